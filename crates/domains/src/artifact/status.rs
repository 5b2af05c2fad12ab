//! The artifact's own status fields.

use std::fmt;

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Map, Value, json};
use windlass_api::model::artifact::{ArtifactKind, ArtifactStatus};

use super::compose::Observed;
use super::objects::job::TARGET_ENV;
use super::observe::finished_at;
use super::run::Run;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    pub(super) fn stored(status: &ArtifactStatus) -> Option<Self> {
        let all = [Self::Pending, Self::Running, Self::Succeeded, Self::Failed];
        all.into_iter().find(|phase| Some(phase.as_str()) == status.phase.as_deref())
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

pub(super) fn status<K: ArtifactKind>(artifact: &K, observed: &Observed) -> Map<String, Value> {
    // What could not be read may be as it was, but only for the run that was reported.
    let as_it_was =
        observed.unread.is_some() && Run::stored(artifact.status()).as_ref() == Some(&observed.run);
    let stored = artifact.status().filter(|_| observed.settled || as_it_was);
    let fields = stored.map_or_else(|| of_run(observed), as_stored);
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

fn of_run(observed: &Observed) -> Map<String, Value> {
    let Observed { run, job, observation, .. } = observed;
    let digest = Some(&observation.digest).filter(|digest| !digest.is_empty());
    let job_status = job.as_ref().and_then(|job| job.status.as_ref());
    let finished = job.as_ref().filter(|_| observation.phase.is_terminal()).and_then(finished_at);
    Map::from_iter([
        ("phase".to_owned(), json!(observation.phase.as_str())),
        ("digest".to_owned(), json!(digest)),
        // Where the Job pushed to, whatever the spec says by now.
        ("reference".to_owned(), json!(digest.and_then(|_| target_of(job.as_ref()?)))),
        ("jobRef".to_owned(), json!(job.as_ref().map(job_ref))),
        ("startTime".to_owned(), json!(job_status.and_then(|status| status.start_time.clone()))),
        ("completionTime".to_owned(), json!(finished)),
        ("observedRetry".to_owned(), json!(run.retry)),
    ])
}

fn as_stored(status: &ArtifactStatus) -> Map<String, Value> {
    let ArtifactStatus { phase, digest, reference, job_ref, start_time, .. } = status;
    Map::from_iter([
        ("phase".to_owned(), json!(phase)),
        ("digest".to_owned(), json!(digest)),
        ("reference".to_owned(), json!(reference)),
        ("jobRef".to_owned(), json!(job_ref)),
        ("startTime".to_owned(), json!(start_time)),
        ("completionTime".to_owned(), json!(status.completion_time)),
        ("observedRetry".to_owned(), json!(status.observed_retry)),
    ])
}

fn job_ref(job: &Job) -> Value {
    json!({ "name": job.metadata.name, "namespace": job.metadata.namespace })
}

fn target_of(job: &Job) -> Option<&str> {
    let containers = &job.spec.as_ref()?.template.spec.as_ref()?.containers;
    let mut variables = containers.iter().flat_map(|container| container.env.iter().flatten());
    variables.find(|variable| variable.name == TARGET_ENV)?.value.as_deref()
}
