//! Waiting for a condition, with a deadline. The only place of the tests that pauses.

use std::{
    fmt::Debug,
    future::Future,
    time::{Duration, Instant},
};

/// Generous, because two cores may run many tests at once; a passing test never waits that long.
pub const DEADLINE: Duration = Duration::from_secs(240);
const PAUSE: Duration = Duration::from_millis(50);

/// Asks until there is an answer.
pub async fn until<T, F>(what: &str, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let started = Instant::now();
    loop {
        match ask().await {
            Ok(value) => return value,
            Err(seen) if started.elapsed() > DEADLINE => {
                panic!("waited {DEADLINE:?} for {what}; last seen: {seen}");
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Asks until there is an answer, where nothing else runs in the thread.
pub fn blocking<T, E: Debug>(what: &str, mut ask: impl FnMut() -> Result<T, E>) -> T {
    let started = Instant::now();
    loop {
        match ask() {
            Ok(value) => return value,
            Err(seen) if started.elapsed() > DEADLINE => {
                panic!("waited {DEADLINE:?} for {what}; last seen: {seen:?}");
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Asks until the answer satisfies the check.
pub async fn eventually<T: Debug, F>(
    what: &str,
    mut ask: impl FnMut() -> F,
    mut check: impl FnMut(&T) -> bool,
) -> T
where
    F: Future<Output = T>,
{
    let started = Instant::now();
    loop {
        let value = ask().await;
        if check(&value) {
            return value;
        }
        assert!(
            started.elapsed() <= DEADLINE,
            "waited {DEADLINE:?} for {what}; last seen: {value:#?}"
        );
        tokio::time::sleep(PAUSE).await;
    }
}

/// Lets time pass, for scenarios about what must not happen.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
