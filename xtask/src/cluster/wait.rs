//! Waiting for something to become true, with a deadline and a name for what is waited for.

use std::{
    io,
    process::{Child, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

const PAUSE: Duration = Duration::from_millis(50);

/// Asks until the answer is `Some` and returns it. An error ends the wait at once; the deadline
/// ends it with an error that names `what`.
pub fn wait_until<T>(
    what: &str,
    deadline: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if started.elapsed() >= deadline {
            bail!("{what}: not within {} s", deadline.as_secs_f32());
        }
        thread::sleep(PAUSE);
    }
}

/// Waits for a child to end by itself, with a call each time `period` has passed.
pub(super) fn child(
    child: &mut Child,
    period: Duration,
    mut still_there: impl FnMut(),
) -> io::Result<ExitStatus> {
    let mut last = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if last.elapsed() >= period {
            last = Instant::now();
            still_there();
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_ends_the_wait() {
        let mut answers = [None, None, Some(7)].into_iter();
        let got = wait_until("seven", Duration::from_secs(5), || Ok(answers.next().flatten()));
        assert_eq!(got.unwrap(), 7);
    }

    #[test]
    fn a_passed_deadline_names_what_was_waited_for() {
        let got = wait_until("the end", Duration::ZERO, || Ok(None::<()>));
        assert_eq!(got.unwrap_err().to_string(), "the end: not within 0 s");
    }
}
