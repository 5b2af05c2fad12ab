//! Waiting for a condition, with a deadline. The only place of these tests that pauses.

use std::{
    fmt::Debug,
    future::Future,
    thread,
    time::{Duration, Instant},
};

/// Generous, because the machine may be busy; a passing test never waits that long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks until there is an answer, in a thread of its own.
pub(crate) fn blocking<T, E: Debug>(what: &str, mut ask: impl FnMut() -> Result<T, E>) -> T {
    let started = Instant::now();
    loop {
        match ask() {
            Ok(value) => return value,
            Err(seen) if started.elapsed() > DEADLINE => panic!("no {what}; last seen: {seen:?}"),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Asks until there is an answer.
pub(crate) async fn until<T, F>(what: &str, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let started = Instant::now();
    loop {
        match ask().await {
            Ok(value) => return value,
            Err(seen) if started.elapsed() > DEADLINE => panic!("no {what}; last seen: {seen}"),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
