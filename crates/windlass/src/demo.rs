//! `windlass demo`: from nothing to a model that answers, by the files and the programs that a user has.
//!
//! `model` (downloaded once) → `hub` (has it for the import) → `cluster` (`windlass up`, a process of its
//! own) → `objects` (applied, waited for) → `tree` (what they have become) → `ask` (through the gateway).
//! `steps` is what is told meanwhile.

mod ask;
mod cluster;
mod examples;
mod hub;
mod model;
mod objects;
mod steps;
mod tree;

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::operator;
use ask::{Answer, Question};
use cluster::{Cluster, Greeting};
use examples::Example;
use model::Model;
use objects::Objects;
use steps::Terminal;

#[derive(Debug, Args)]
#[group(id = "demo")]
pub(crate) struct Flags {
    /// End after the answer
    #[arg(long)]
    once: bool,
    /// Show the other systems too: an AIMService, and a ZerfooInferenceService with a canary
    #[arg(long)]
    all: bool,
    /// Serve this GGUF file of the Llama family instead of SmolLM2-135M-Instruct
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// What to ask
    #[arg(
        long,
        value_name = "QUESTION",
        default_value = "What is the capital of France, and what is it known for?"
    )]
    ask: String,
    /// Port of the gateway on 127.0.0.1; if not given, 8080 or the next free one
    #[arg(long, value_name = "PORT")]
    gateway_port: Option<u16>,
}

pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(perform(flags));
    runtime.shutdown_background();
    outcome
}

async fn perform(flags: Flags) -> anyhow::Result<()> {
    let terminal = Terminal::of_process();
    let stop = operator::stop_on_signal()?;
    let model = stop.run_until_cancelled(get_model(&flags, terminal)).await;
    let model = model.ok_or_else(interrupted)??;
    let hub = hub::start(model).await?;
    let step = terminal.step("cluster");
    step.note("starts `windlass up`: API, operator, node, registry and gateway");
    let port = flags.gateway_port.map(|port| format!("--gateway-port={port}"));
    let cluster = stop.run_until_cancelled(Cluster::start(&hub, port.as_slice())).await;
    let mut cluster = cluster.ok_or_else(interrupted)??;
    let greeting = cluster.greeting().clone();
    step.done(&format!("`windlass up` at {}, with a registry and a gateway", greeting.api));
    let played = tokio::select! {
        played = stop.run_until_cancelled(play(&flags, &greeting, terminal, &stop)) => {
            played.unwrap_or_else(|| Err(interrupted()))
        }
        error = cluster.ended() => {
            return Err(error.context("`windlass up` has ended by itself"));
        }
    };
    if played.is_err() && !stop.is_cancelled() {
        terminal.say(&format!("\nwhat `windlass up` has logged last:\n{}", cluster.log()));
    }
    let step = terminal.step("end");
    step.note("ends the pods and the cluster");
    let ended = cluster.end().await.context("cannot end the cluster");
    // Why it failed says more than how it ended.
    played.and(ended)?;
    step.done("nothing is left but the model in the cache");
    Ok(())
}

fn interrupted() -> anyhow::Error {
    anyhow!("interrupted")
}

async fn get_model(flags: &Flags, terminal: Terminal) -> anyhow::Result<Model> {
    let step = terminal.step("model");
    match &flags.model {
        Some(path) => {
            let model = Model::of_user(path)?;
            let size = steps::size_of(model.size);
            step.done(&format!("{}, {size}", model.path.display()));
            Ok(model)
        }
        None => model::get(&step).await,
    }
}

async fn play(
    flags: &Flags,
    greeting: &Greeting,
    terminal: Terminal,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let objects = Objects::connect(&greeting.kubeconfig).await?;
    let examples = examples::wanted(flags.all);
    for example in &examples {
        for object in example.objects(&greeting.registry)? {
            bring(&objects, &object, terminal).await?;
        }
    }
    let step = terminal.step("pods");
    let running = objects.available(&step).await?;
    step.done(&format!("{running} run as processes of this machine"));
    let all = objects.list(examples::KINDS).await?;
    for root in tree::roots(&all).filter(|root| examples::is_shown(root)) {
        terminal.say(&format!("\n{}", tree::render(root, &all).trim_end()));
    }
    for example in &examples {
        converse(example, flags, greeting, terminal).await?;
    }
    if flags.once {
        return Ok(());
    }
    terminal.say(&go_on(greeting, &examples));
    stop.cancelled().await;
    Ok(())
}

/// Applies an object and waits until it is ready: the next may need what it brings.
async fn bring(objects: &Objects, object: &Value, terminal: Terminal) -> anyhow::Result<()> {
    let step = terminal.step(examples::step(object));
    objects.apply(object).await?;
    let found = objects.ready(object, &step).await?;
    step.done(&examples::came(&found));
    Ok(())
}

/// Asks as often as the example wants.
async fn converse(
    example: &Example,
    flags: &Flags,
    greeting: &Greeting,
    terminal: Terminal,
) -> anyhow::Result<()> {
    let Example { path, headers, model, .. } = *example;
    let gateway = &greeting.gateway;
    for _ in 0..example.requests {
        terminal.say(&format!("\n{}", terminal.bold(&format!("> {}", flags.ask))));
        let question = Question { gateway, path, headers, model, text: &flags.ask };
        let answer = ask::ask(&question, |piece| terminal.add(piece)).await;
        // Whatever comes next begins a line.
        terminal.say("");
        terminal.say(&terminal.faint(&told(&answer?)));
    }
    Ok(())
}

fn told(answer: &Answer) -> String {
    format!(
        "({}: {} tokens, the first after {:.2} s, then {:.0} a second)",
        answer.model,
        answer.pieces,
        answer.first.as_secs_f32(),
        answer.rate()
    )
}

fn go_on(greeting: &Greeting, examples: &[Example]) -> String {
    let Greeting { gateway, kubeconfig, .. } = greeting;
    let mut text = "\nIt goes on until Ctrl-C. In another terminal:\n".to_owned();
    for Example { path, headers, model, .. } in examples {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| format!(" -H '{name}: {value}'")).collect();
        let model = model.map(|model| format!(r#""model": "{model}", "#)).unwrap_or_default();
        let messages = r#""messages": [{"role": "user", "content": "Hello!"}]"#;
        let body = format!(r#"{{{model}"stream": true, {messages}}}"#);
        text += &format!("\n  curl -N {gateway}{path}{} \\\n    -d '{body}'\n", headers.concat());
    }
    let kubeconfig = crate::local::shell_word(kubeconfig);
    text + &format!(
        "\n  export KUBECONFIG={kubeconfig}\n  \
         kubectl get modelservices,artifacts,pods\n  \
         kubectl patch modelservice smollm2 --type=merge -p '{{\"spec\":{{\"decode\":{{\"replicas\":2}}}}}}'\n"
    )
}
