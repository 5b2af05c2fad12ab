//! One run: starts, a question whose answer is known, prompts of 100 tokens, and four at once.

use std::{
    fmt, fs,
    net::SocketAddr,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::json;

use super::{
    Arguments,
    asked::{Asked, ask},
    model,
};
use crate::{
    bench::{
        operator::{Memory, memory_of},
        report::{megabytes, round},
        target::{Limit, Target, judge},
    },
    cluster::{Lifetime, Process},
    interrupt::Interrupted,
    program::{self, Profile},
    scratch::Folder,
};

const PROMPT: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(60);

const START: Limit = Limit::Under(2.0);
const FIRST_TOKEN: Limit = Limit::Under(1.5);
const RATE: Limit = Limit::AtLeast(40.0);

/// What a field means is said in CONTRIBUTING.md.
#[derive(Debug, Serialize)]
struct Report {
    rounds: u32,
    prompt_tokens: u64,
    answer_tokens: u64,
    start_seconds: f64,
    first_token_seconds: f64,
    tokens_per_second: f64,
    tokens_per_second_of_four: f64,
    peak_memory_mb: Option<f64>,
    answer: String,
}

/// The figures of others with the same file on two cores, measured once: llama.cpp by
/// llama-cpp-python, with a prompt of 128 tokens, and candle's own example.
struct Row {
    what: &'static str,
    reached: f64,
    wanted: Limit,
    llama_cpp: &'static str,
    candle: &'static str,
}

impl Report {
    fn rows(&self) -> [Row; 3] {
        let row = |what, reached, wanted, llama_cpp, candle| Row {
            what,
            reached,
            wanted,
            llama_cpp,
            candle,
        };
        [
            row("start, s", self.start_seconds, START, "-", "-"),
            row("first token, s", self.first_token_seconds, FIRST_TOKEN, "0.75", "3.5"),
            row("tokens per second", self.tokens_per_second, RATE, "81", "14"),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:20}{:>10}{:>12}{:>10}  wanted", "", "windlass", "llama.cpp", "candle")?;
        for Row { what, reached, wanted, llama_cpp, candle } in self.rows() {
            writeln!(f, "{what:20}{reached:>10}{llama_cpp:>12}{candle:>10}  {wanted}")?;
        }
        writeln!(f, "{:20}{:>10}", "four at once", self.tokens_per_second_of_four)
    }
}

/// Prints the report as one line on standard output, and for the eye beside it. Fails where a target
/// is missed, but for debug builds and other models.
pub(in crate::bench) fn run(arguments: &Arguments) -> Result<()> {
    let profile = if arguments.debug { Profile::Debug } else { Profile::Release };
    let model = arguments.model.clone().map_or_else(model::fetch, Ok)?;
    let windlass = program::build(profile)?;
    let folder = Folder::new("bench")?;
    let interrupted = Interrupted::listen()?;
    let server = |name: &str| start(&windlass, &model, &folder.path().join(name), &interrupted);
    let mut starts = Vec::new();
    for at in 1..arguments.rounds {
        starts.push(server(&format!("start-{at}"))?.took.as_secs_f64());
    }
    let last = server("server")?;
    starts.push(last.took.as_secs_f64());
    let report = measure(arguments, &last, &starts, &interrupted)?;
    eprint!("{report}");
    println!("{}", serde_json::to_string(&report).context("cannot write the report")?);
    if arguments.debug || arguments.model.is_some() {
        return Ok(());
    }
    if !report.answer.contains("Paris") {
        bail!("the capital of France is Paris, but the model says {:?}", report.answer);
    }
    let target =
        |row: Row| Target { what: row.what.to_owned(), reached: row.reached, wanted: row.wanted };
    judge(&report.rows().map(target))
}

fn measure(
    arguments: &Arguments,
    server: &Started,
    starts: &[f64],
    interrupted: &Interrupted,
) -> Result<Report> {
    let question = json!([{"role": "user", "content": "Please name the capital city of France."}]);
    let body = json!({"messages": question, "temperature": 0, "max_tokens": 32});
    let answer = ask(server.address, "/v1/chat/completions", body)?.text;
    let mut asked = Vec::new();
    for n in 0..arguments.rounds {
        interrupted.check()?;
        asked.push(completion(server.address, n, arguments.tokens)?);
    }
    let begun = Instant::now();
    let four = thread::scope(|scope| {
        let one = |n| scope.spawn(move || completion(server.address, n, arguments.tokens));
        let under_way: Vec<_> = (0..4).map(|n| one(arguments.rounds + n)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Asked>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        under_way.into_iter().map(join).collect::<Result<Vec<Asked>>>()
    })?;
    let of_four: u64 = four.iter().map(|asked| asked.tokens).sum();
    let first = asked.iter().map(|asked| asked.first.as_secs_f64()).collect();
    let rates = asked.iter().map(Asked::tokens_per_second).collect();
    Ok(Report {
        rounds: arguments.rounds,
        prompt_tokens: asked[0].prompt_tokens,
        answer_tokens: asked[0].tokens,
        start_seconds: round(median(starts.to_vec()), 3),
        first_token_seconds: round(median(first), 3),
        tokens_per_second: round(median(rates), 1),
        tokens_per_second_of_four: round(of_four as f64 / begun.elapsed().as_secs_f64(), 1),
        peak_memory_mb: memory_of(server.process.pid(), Memory::Peak).map(megabytes),
        answer,
    })
}

/// Which tokens there are does not matter for the time; that nobody can have seen them before does.
fn completion(address: SocketAddr, n: u32, tokens: u32) -> Result<Asked> {
    let prompt: Vec<u32> = (1000 + n * PROMPT..).take(PROMPT as usize).collect();
    let body =
        json!({"prompt": prompt, "temperature": 0, "max_tokens": tokens, "ignore_eos": true});
    ask(address, "/v1/completions", body)
}

struct Started {
    process: Process,
    address: SocketAddr,
    took: Duration,
}

fn start(
    windlass: &Path,
    model: &Path,
    folder: &Path,
    interrupted: &Interrupted,
) -> Result<Started> {
    fs::create_dir(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let flags = ["--host", "127.0.0.1", "--port", "0"];
    let mut arguments = vec!["serve".into(), model.as_os_str().to_owned()];
    arguments.extend(flags.map(Into::into));
    let begun = Instant::now();
    let mut process = Process::start("serve", windlass, arguments, folder, Lifetime::Bound)?;
    loop {
        let said = fs::read_to_string(folder.join("serve.log")).unwrap_or_default();
        let address = said.split("http://").nth(1).and_then(|rest| rest.split(';').next());
        if let Some(address) = address.and_then(|address| address.parse().ok()) {
            return Ok(Started { process, address, took: begun.elapsed() });
        }
        process.check_running()?;
        interrupted.check()?;
        if begun.elapsed() > PATIENCE {
            bail!("the server does not come up");
        }
        thread::sleep(PAUSE);
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
