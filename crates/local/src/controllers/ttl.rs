//! Finished Jobs go when their time is over.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, Preconditions};

use super::{Context, Controller, Error, Key, Queue};

pub(super) struct Ttl {
    context: Context,
}

impl Controller for Ttl {
    const NAME: &'static str = "ttl-after-finished";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        context.caches.jobs.feed(queue, |job| expiry(job).map(|_| Key::of(job)));
        Self { context }
    }

    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let Some(job) = self.context.caches.jobs.get(key) else { return Ok(None) };
        let Some(expiry) = expiry(&job) else { return Ok(None) };
        let left = expiry.duration_since(self.context.now());
        if left > SignedDuration::ZERO {
            return Ok(Some(left.unsigned_abs()));
        }
        // Whoever gave it more time meanwhile must be heard.
        let preconditions = Preconditions {
            uid: job.metadata.uid.clone(),
            resource_version: job.metadata.resource_version.clone(),
        };
        let params = DeleteParams::background().preconditions(preconditions);
        let api = self.context.api::<Job>(&key.namespace);
        match api.delete(&key.name, &params).await {
            Ok(answer) => self.context.caches.jobs.note_deletion(&job, answer),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(Error::on("delete job", &key.name)(error)),
        }
        Ok(None)
    }
}

/// When this Job is to go; `None` as long as it has not ended, and if it may stay.
fn expiry(job: &Job) -> Option<Timestamp> {
    let ttl = job.spec.as_ref()?.ttl_seconds_after_finished?;
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    let finished = conditions.iter().find(|condition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    })?;
    let since = finished.last_transition_time.as_ref()?.0;
    since.checked_add(SignedDuration::from_secs(ttl.into())).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_a_finished_job_with_a_ttl_expires() {
        let at = "2026-01-01T00:00:00Z";
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": at});
        for (ttl, condition, leaving, want) in [
            (json!(60), condition("Complete", "True"), false, Some("2026-01-01T00:01:00Z")),
            (json!(0), condition("Failed", "True"), false, Some(at)),
            (json!(60), condition("Complete", "True"), true, None),
            (json!(60), condition("FailureTarget", "True"), false, None),
            (json!(60), condition("Failed", "False"), false, None),
            (Value::Null, condition("Complete", "True"), false, None),
        ] {
            let case = format!("{ttl} {condition} {leaving}");
            let job = json!({
                "metadata": {"deletionTimestamp": leaving.then_some(at)},
                "spec": {"template": {}, "ttlSecondsAfterFinished": ttl},
                "status": {"conditions": [condition]},
            });
            let job: Job = serde_json::from_value(job).unwrap();
            let want = want.map(|time| time.parse::<Timestamp>().unwrap());
            assert_eq!(expiry(&job), want, "{case}");
        }
    }
}
