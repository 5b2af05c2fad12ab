//! Runs: one for each generation, and one more for each retry of a failed one.
//!
//! Children carry the run they were made for, so that no failed write of a status can make an old
//! Job pass for a new one.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::model::artifact::{ArtifactKind, ArtifactStatus};
use windlass_engine::conditions::{find, types};

use super::names::{GENERATION_ANNOTATION, RETRY_ANNOTATION};
use super::reasons;
use super::status::Phase;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) generation: i64,
    /// The retry annotation's value that it answers.
    pub(super) retry: Option<String>,
}

impl Run {
    /// The run that the artifact should be in now.
    pub(super) fn wanted<K: ArtifactKind>(artifact: &K, jobs: &[Job]) -> Self {
        let generation = artifact.meta().generation.unwrap_or_default();
        let annotations = artifact.meta().annotations.as_ref();
        let asked = annotations.and_then(|map| map.get(RETRY_ANNOTATION)).cloned();
        match Self::stored(artifact.status()).filter(|run| run.generation == generation) {
            Some(stored) => {
                let failed = artifact.status().and_then(Phase::stored) == Some(Phase::Failed);
                let retry = failed && asked.is_some() && asked != stored.retry;
                if retry { Self { generation, retry: asked } } else { stored }
            }
            // The status could not be written, but the Job had been made.
            None => newest(jobs.iter().filter(|job| job.metadata.deletion_timestamp.is_none()))
                .and_then(|job| Self::marked(&job.metadata))
                .filter(|run| run.generation == generation)
                .unwrap_or(Self { generation, retry: asked }),
        }
    }

    /// The run that the stored status speaks of.
    pub(super) fn stored(status: Option<&ArtifactStatus>) -> Option<Self> {
        let status = status?;
        let generation = status.observed_generation.filter(|generation| *generation != 0)?;
        Some(Self { generation, retry: status.observed_retry.clone() })
    }

    /// Whether the stored status tells how this run ended.
    ///
    /// A predecessor that could not clear up after a change left the end of the run before under the
    /// new generation, together with its error.
    pub(super) fn is_told(&self, status: Option<&ArtifactStatus>) -> bool {
        Self::stored(status).as_ref() == Some(self)
            && status.and_then(Phase::stored).is_some_and(Phase::is_terminal)
            && reason(status) != Some(reasons::RECONCILE_ERROR)
    }

    /// Whether a child was made for this run. One without a mark is a predecessor's, and belongs to
    /// the run that was reported last, unless that still waits for a Job.
    pub(super) fn made(&self, child: &ObjectMeta, status: Option<&ArtifactStatus>) -> bool {
        let waits = status.is_some_and(|status| {
            status.job_ref.is_none() && Phase::stored(status) == Some(Phase::Pending)
        }) && reason(status) != Some(reasons::JOB_NOT_CREATED);
        match Self::marked(child) {
            Some(marked) => marked == *self,
            None => Self::stored(status).is_none_or(|stored| stored == *self && !waits),
        }
    }

    pub(super) fn marked(child: &ObjectMeta) -> Option<Self> {
        let annotations = child.annotations.as_ref()?;
        let generation = annotations.get(GENERATION_ANNOTATION)?.parse().ok()?;
        Some(Self { generation, retry: annotations.get(RETRY_ANNOTATION).cloned() })
    }

    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        let generation = (GENERATION_ANNOTATION.to_owned(), self.generation.to_string());
        let retry = self.retry.clone().map(|retry| (RETRY_ANNOTATION.to_owned(), retry));
        [generation].into_iter().chain(retry).collect()
    }
}

fn reason(status: Option<&ArtifactStatus>) -> Option<&str> {
    find(&status?.conditions, types::READY).map(|ready| ready.reason.as_str())
}

/// Of several Jobs the one made last; the name decides between those of one second.
pub(super) fn newest<'a>(jobs: impl Iterator<Item = &'a Job>) -> Option<&'a Job> {
    jobs.max_by_key(|job| {
        let made = job.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (made, job.metadata.name.clone())
    })
}

#[cfg(test)]
mod tests;
