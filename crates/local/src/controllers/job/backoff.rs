//! How long a Job waits before it replaces a failed pod.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::controllers::pods::condition;

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_mins(10);

/// The failures since the last success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    failures: u32,
    last: Option<Timestamp>,
}

impl Backoff {
    /// After these pods have ended.
    pub(super) fn after(self, succeeded: &[&Pod], failed: &[&Pod]) -> Self {
        let success = succeeded.iter().filter_map(|pod| ended_at(pod)).max();
        let before = if succeeded.is_empty() { self } else { Self::default() };
        let later = failed
            .iter()
            .map(|pod| ended_at(pod))
            .filter(|time| succeeded.is_empty() || *time > success);
        let count = u32::try_from(later.clone().count()).unwrap_or(u32::MAX);
        match count {
            0 => before,
            _ => Self {
                failures: before.failures.saturating_add(count),
                last: later.max().flatten(),
            },
        }
    }

    /// How long the next pod has to wait.
    pub(super) fn left(self, now: Timestamp) -> SignedDuration {
        let (Some(doublings), Some(last)) = (self.failures.checked_sub(1), self.last) else {
            return SignedDuration::ZERO;
        };
        let factor = 1i32.checked_shl(doublings.min(30)).unwrap_or(i32::MAX);
        let pause = FIRST.saturating_mul(factor).min(LONGEST);
        pause.saturating_sub(now.duration_since(last)).max(SignedDuration::ZERO)
    }
}

/// When its containers ended, or else when it stopped being ready or was deleted.
fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let meta = &pod.metadata;
    let unready = || {
        let ready = condition(pod, "Ready").filter(|ready| ready.status == "False")?;
        Some(ready.last_transition_time.as_ref()?.0)
    };
    let deleted = || {
        let grace = meta.deletion_grace_period_seconds.unwrap_or_default();
        let at = meta.deletion_timestamp.as_ref()?.0;
        at.checked_sub(SignedDuration::from_secs(grace)).ok()
    };
    let created = || Some(meta.creation_timestamp.as_ref()?.0);
    containers_ended_at(pod).or_else(unready).or_else(deleted).or_else(created)
}

/// Sidecars end last, so they count too.
fn containers_ended_at(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let is_sidecar = |status: &&ContainerStatus| {
        let init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        init.into_iter().any(|container| {
            container.name == status.name && container.restart_policy.as_deref() == Some("Always")
        })
    };
    let sidecars = status.init_container_statuses.iter().flatten().filter(is_sidecar);
    let all = status.container_statuses.iter().flatten().chain(sidecars);
    let ends = all.map(|container| {
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        Some(ended.finished_at.as_ref()?.0)
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn pod(ended: &str) -> Pod {
        let at = format!("2026-01-01T{ended}Z");
        from_value(
            json!({"status": {"containerStatuses": [{"name": "c", "image": "", "imageID": "",
            "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 1, "finishedAt": at}}}]}}),
        )
        .unwrap()
    }

    #[test]
    fn failures_since_the_last_success_count() {
        let (a, b, c) = (pod("00:00:01"), pod("00:00:02"), pod("00:00:03"));
        let (none, one): (&[&Pod], &[&Pod]) = (&[], &[&a]);
        let before = Backoff::default().after(none, one);
        assert_eq!(before.failures, 1);
        for (succeeded, failed, want) in [
            (none, none, 1),
            (none, &[&b, &c][..], 3),
            (&[&b][..], none, 0),
            (&[&b][..], &[&a, &c][..], 1),
            (&[&c][..], &[&a, &b][..], 0),
        ] {
            let after = before.after(succeeded, failed);
            assert_eq!(after.failures, want, "{} {}", succeeded.len(), failed.len());
        }
    }

    #[test]
    fn the_pause_doubles_up_to_ten_minutes() {
        let last: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (failures, elapsed, want) in [
            (0, 0, 0),
            (1, 0, 10),
            (1, 4, 6),
            (1, 11, 0),
            (2, 0, 20),
            (6, 0, 320),
            (7, 0, 600),
            (999, 0, 600),
        ] {
            let backoff = Backoff { failures, last: Some(last) };
            let now = last + SignedDuration::from_secs(elapsed);
            assert_eq!(backoff.left(now).as_secs(), want, "{failures} {elapsed}");
        }
    }

    #[test]
    fn a_pod_without_ended_containers_ended_when_it_was_deleted() {
        let deleted: Pod = from_value(json!({"metadata": {
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30,
            "deletionTimestamp": "2026-01-01T00:01:00Z"}}))
        .unwrap();
        assert_eq!(ended_at(&deleted), "2026-01-01T00:00:30Z".parse().ok());
    }
}
