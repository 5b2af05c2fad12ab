//! The end of a run that has to end.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::LifecycleHandler;
use tokio::{sync::watch, time::sleep};

use super::{Mailbox, Message, Worker};
use crate::node::{
    pod::{self, failed_pre_stop},
    probes::{self, Target},
    process::Process,
};

/// What a process has after a hook that took all the time.
const LEAST: Duration = Duration::from_secs(2);
/// By then whoever sends requests to a pod that is deleted has heard of it, and what was on its way has
/// come, through a sidecar too. A program that is told to end at once would refuse it.
const HEARD: Duration = Duration::from_secs(1);

impl Worker {
    /// By then at the latest. Asked again, it can only be sooner.
    pub(super) fn stop(&mut self, container: &str, by: Timestamp) {
        let Some(live) = self.live.get_mut(container) else { return };
        if let Some(deadline) = &live.deadline {
            deadline.send_if_modified(|known| {
                let sooner = by < *known;
                *known = by.min(*known);
                sooner
            });
            return;
        }
        let (sender, deadline) = watch::channel(by);
        live.deadline = Some(sender);
        let hooks =
            pod::container(&self.pod, container).and_then(|(_, spec)| spec.lifecycle.as_ref());
        let hook = hooks.and_then(|hooks| hooks.pre_stop.clone());
        let (process, target) = (live.process.clone(), live.target.clone());
        let mailbox = self.mailbox.clone();
        let is_deleted = self.pod.metadata.deletion_timestamp.is_some();
        let first = if is_deleted { before_end(by, Timestamp::now()) } else { Duration::ZERO };
        live.tasks.spawn(async move {
            let mut patience = deadline.clone();
            tokio::select! {
                () = sleep(first) => {}
                () = over(&mut patience) => {}
            }
            stop(process, hook, target, deadline, mailbox).await;
        });
    }
}

/// How long a process is left alone before it is told to end. It has at least as much time afterwards.
fn before_end(by: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(by.duration_since(now)).unwrap_or(Duration::ZERO);
    HEARD.min(left / 2)
}

/// Ends with the run, whose holder lets go of this.
async fn stop(
    process: Arc<Process>,
    hook: Option<LifecycleHandler>,
    target: Target,
    mut deadline: watch::Receiver<Timestamp>,
    mailbox: Mailbox,
) {
    let mut least = Duration::ZERO;
    if let Some(hook) = hook {
        let done = tokio::select! {
            done = probes::hook(&hook, &target, Duration::MAX) => done,
            () = over(&mut deadline) => Err("the time is over".to_owned()),
        };
        if let Err(text) = done {
            tracing::debug!(text, "a hook has failed");
            let _ = mailbox.send(Message::Note(failed_pre_stop(&target.container.name)));
        }
        least = if *deadline.borrow() > Timestamp::now() { Duration::ZERO } else { LEAST };
    }
    process.terminate();
    over(&mut deadline).await;
    sleep(least).await;
    process.kill();
}

/// The deadline, which may come nearer.
async fn over(deadline: &mut watch::Receiver<Timestamp>) {
    loop {
        let left = deadline.borrow_and_update().duration_since(Timestamp::now());
        let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
        tokio::select! {
            () = sleep(left) => return,
            changed = deadline.changed() => if changed.is_err() {
                sleep(left).await;
                return;
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn most_of_a_short_grace_is_for_the_process() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (left, want) in
            [(30_000, 1000), (2_000, 1000), (1_000, 500), (500, 250), (0, 0), (-5_000, 0)]
        {
            let by = now + SignedDuration::from_millis(left);
            assert_eq!(before_end(by, now), Duration::from_millis(want), "{left}");
        }
    }
}
