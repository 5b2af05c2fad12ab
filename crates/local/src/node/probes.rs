//! Probes: questions to a running container, asked again and again.

mod ask;
mod grpc;
mod http;
mod tally;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Probe as Spec};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

pub use tally::Tally;

use super::{pod::Probe, process::Launch, translate::Mounts};

/// A running container, as probes and hooks reach it.
#[derive(Clone, Debug)]
pub struct Target {
    pub host: String,
    /// Its ports, to be named.
    pub container: Arc<Container>,
    /// What commands run with, but for the command itself.
    pub launch: Arc<Launch>,
    pub token: String,
    /// Puts real paths for those of mounts into a command.
    pub mounts: Arc<Mounts>,
}

/// What a probe has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// This time it failed.
    Failed(String),
    /// It has failed or passed as often as it takes.
    Verdict(bool),
}

/// Asks until the container has to be restarted or, for a startup probe, has started.
///
/// `started` gates the other probes.
pub async fn watch(
    probe: Probe,
    spec: Spec,
    target: Target,
    mut started: watch::Receiver<bool>,
    tell: impl AsyncFn(Word),
) {
    let begin = Instant::now();
    let seconds = |value: Option<i32>, default: i32| {
        let value = value.filter(|value| *value > 0).unwrap_or(default);
        Duration::from_secs(value.unsigned_abs().into())
    };
    if probe != Probe::Startup && started.wait_for(|started| *started).await.is_err() {
        return;
    }
    sleep_until(begin + seconds(spec.initial_delay_seconds, 0)).await;
    let (period, limit) = (seconds(spec.period_seconds, 10), seconds(spec.timeout_seconds, 1));
    let mut tally = Tally::new(&spec);
    loop {
        let next = Instant::now() + period;
        let answer = ask::probe(&spec, &target, limit).await;
        let passed = answer.is_ok();
        if let Err(text) = answer {
            tell(Word::Failed(text)).await;
        }
        if let Some(verdict) = tally.count(passed) {
            tell(Word::Verdict(verdict)).await;
            if probe == Probe::Startup || (probe == Probe::Liveness && !verdict) {
                return;
            }
        }
        sleep_until(next).await;
    }
}

/// Runs a hook once. The error says what came of it.
pub async fn hook(hook: &LifecycleHandler, target: &Target, limit: Duration) -> Result<(), String> {
    if let Some(pause) = &hook.sleep {
        let pause = Duration::from_secs(pause.seconds.max(0).unsigned_abs());
        sleep(pause.min(limit)).await;
        return Ok(());
    }
    let probe = Spec {
        exec: hook.exec.clone(),
        http_get: hook.http_get.clone(),
        tcp_socket: hook.tcp_socket.clone(),
        ..Spec::default()
    };
    ask::probe(&probe, target, limit).await
}
