//! `windlass serve`: a model on the CPU of this machine, asked as OpenAI's API and vLLM are.
//!
//! `flags` (what vLLM understands) → `file` (which model) → `http` (who asks what); `body` reads a
//! request, pure but for the tokenizer, `answer` makes JSON or a stream of the engine's events.

mod answer;
mod body;
mod file;
mod flags;
mod http;
mod metrics;
mod refused;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use tokio::{net::TcpListener, time::sleep};
use tokio_util::sync::CancellationToken;
use windlass_inference::{
    Engine, Model,
    engine::{Figures, Limits},
};

use crate::{exit::BadInput, operator::logging};
pub(crate) use flags::{Flags, mark_foreign};
use http::Server;

/// For answers that are under way at the end.
const GRACE: Duration = Duration::from_secs(30);
/// For connections to be closed after that.
const CLOSING: Duration = Duration::from_secs(2);
/// Between looks whether they are through.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(flags));
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

async fn serve(flags: Flags) -> anyhow::Result<()> {
    logging::start(&flags.logging, &logging::Zap::default(), logging::Usual::UP)?;
    flags.refuse_what_would_be_missed()?;
    for flag in &flags.ignored {
        tracing::warn!(flag, "has no meaning here and is ignored");
    }
    let given = flags.given()?;
    let path = file::find(given)?;
    let started = Instant::now();
    let model = Model::load(&path).with_context(|| format!("cannot serve {}", path.display()))?;
    tracing::info!(seconds = started.elapsed().as_secs_f32(), "the model is loaded");
    let context = model.network.shape().context;
    let tokens = flags.max_model_len.tokens().unwrap_or(context);
    if tokens > context {
        let text = format!("--max-model-len must be at most {context}, as the model has it");
        return Err(BadInput(text).into());
    }
    let limits = Limits { sequences: flags.max_num_seqs.get().into(), tokens };
    let names = flags.names(given);
    let model = Arc::new(model);
    let engine = Engine::start(Arc::clone(&model), limits)?;
    let stop = crate::operator::stop_on_signal()?;
    let is_open_to_all = flags.is_open_to_all();
    let server = Server::new(engine, model, names, limits, flags.api_key, stop.clone());
    let server = Arc::new(server);
    let address = (flags.host.as_str(), flags.port);
    let socket = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {}:{}", flags.host, flags.port))?;
    if is_open_to_all {
        tracing::warn!(host = flags.host, "anybody who reaches this machine may ask: no --api-key");
    }
    println!("{} is at http://{}; Ctrl-C ends it", server.name(), socket.local_addr()?);
    let through = CancellationToken::new();
    let serving = axum::serve(socket, http::router(Arc::clone(&server)))
        .with_graceful_shutdown(through.clone().cancelled_owned());
    tokio::select! {
        served = serving => served.context("the server has failed")?,
        () = end(&server, &stop, &through) => {}
    }
    anyhow::ensure!(server.is_alive(), "the engine has failed");
    Ok(())
}

/// Whoever asks for the health learns of the end while answers are still under way; then the
/// connections are closed. Comes back only if that takes too long, or if nothing is computed any more.
async fn end(server: &Server, stop: &CancellationToken, through: &CancellationToken) {
    let busy = |figures: Figures| figures.running + figures.waiting > 0;
    let answered = async {
        stop.cancelled().await;
        while busy(server.figures()) {
            sleep(LOOK).await;
        }
    };
    let too_late = async {
        stop.cancelled().await;
        sleep(GRACE).await;
    };
    tokio::select! {
        () = answered => {}
        () = too_late => {}
        () = server.failed() => {}
    }
    through.cancel();
    sleep(CLOSING).await;
}
