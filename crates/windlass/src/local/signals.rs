//! By what `up` is told to end.

use std::{fs, io, thread};

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use windlass_local::node::Ending;

/// The first signal gives pods their grace, the second takes it from them.
pub(super) fn listen() -> anyhow::Result<Ending> {
    let ending = Ending::default();
    let on = |kind: SignalKind| -> anyhow::Result<Signal> {
        signal(kind).context("cannot listen for signals")
    };
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let (mut signal, Ending { stop, now }) = (on(kind)?, ending.clone());
        tokio::spawn(async move {
            while signal.recv().await.is_some() {
                if stop.is_cancelled() {
                    now.cancel();
                }
                stop.cancel();
            }
        });
    }
    if !is_ignored(SignalKind::hangup(), &status()) {
        // The end of a terminal would leave the pods behind, but it asks for no hurry.
        let (mut hangup, stop) = (on(SignalKind::hangup())?, ending.stop.clone());
        tokio::spawn(async move {
            hangup.recv().await;
            stop.cancel();
        });
    }
    // Whoever has started this may have it ignore the ends of children, and then none would be told.
    drop(on(SignalKind::child())?);
    Ok(ending)
}

/// In a thread of its own: the runtime would wait for the end of the input when it ends itself.
pub(super) fn end_with_stdin(stop: CancellationToken) {
    thread::spawn(move || {
        // What is said there is of no matter, nor is why it ends.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        stop.cancel();
    });
}

fn status() -> String {
    fs::read_to_string("/proc/self/status").unwrap_or_default()
}

/// Who has a signal ignored, as nohup does, means it so.
fn is_ignored(kind: SignalKind, status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let bit = u32::try_from(kind.as_raw_value() - 1).ok().and_then(|at| 1_u64.checked_shl(at));
    ignored.zip(bit).is_some_and(|(mask, bit)| mask & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_known_by_its_bit() {
        for (mask, hangup, child) in [
            ("0000000000000000", false, false),
            ("0000000000000001", true, false),
            ("0000000000010000", false, true),
            ("none", false, false),
        ] {
            let status = format!("Name:\tx\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
            assert_eq!(is_ignored(SignalKind::hangup(), &status), hangup, "{mask}");
            assert_eq!(is_ignored(SignalKind::child(), &status), child, "{mask}");
        }
        assert!(!is_ignored(SignalKind::hangup(), ""));
    }
}
