//! Plays the programs of the examples, so that pods run without any model, device or image: the
//! servers answer as the real ones do, and say which pod, model and version has answered.
//!
//! `stand-in ROLE --host ADDRESS` and then the words that the real program would get:
//!
//! - `server`: vLLM, zerfoo, a runtime of KServe; also what they do besides serving
//! - `picker`: an endpoint picker, as far as its probes and metrics go
//! - `client`: asks the API who it is and what it may read
//! - `sidecar`: hands requests on to the server of its pod
//! - under the name `kit`: the packer of models
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what a program says to its log is a part of it"
)]

mod answers;
mod arguments;
mod client;
mod kit;
mod picker;
mod server;
mod sidecar;

use std::{env, path::Path, process::ExitCode};

use arguments::Arguments;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = env::args();
    let called = words.next().unwrap_or_default();
    let words: Vec<String> = words.collect();
    let outcome = match (Path::new(&called).file_name(), words.split_first()) {
        (Some(name), _) if name == "kit" => kit::run(&words),
        (_, Some((role, rest))) => play(role, &Arguments::parse(rest)).await,
        _ => Err("no role was given".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stand-in: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn play(role: &str, arguments: &Arguments) -> Outcome {
    match role {
        "server" => server::run(arguments, told_to_stop()?).await,
        "picker" => picker::run(arguments, told_to_stop()?).await,
        "client" => client::run(arguments).await,
        "sidecar" => sidecar::run(arguments, told_to_stop()?).await,
        _ => Err(format!("{role} cannot be played").into()),
    }
}

/// SIGTERM, as pods are told.
fn told_to_stop() -> std::io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut told = signal(SignalKind::terminate())?;
    let stopped = stop.clone();
    tokio::spawn(async move {
        told.recv().await;
        stopped.cancel();
    });
    Ok(stop)
}
