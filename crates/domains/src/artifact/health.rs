//! How the run is, in the one condition that this kind has, and what is worth an event.

use std::collections::BTreeSet;

use windlass_api::model::artifact::{ArtifactKind, DEFAULT_TOKEN_KEY};
use windlass_engine::conditions::{
    ConditionSet, ConditionUpdate, EventType, Observability, Status, find, types,
};
use windlass_engine::domain::Health;
use windlass_engine::error::Error;
use windlass_engine::events::EventNote;
use windlass_engine::fetch::Fetched;
use windlass_engine::health::ComponentHealth;
use windlass_engine::state::{FailureWords, Manual, State};

use super::compose::{Blocker, Observed, Workspace};
use super::names::GENERATION_ANNOTATION;
use super::objects::job::{Credentials, DOCKER_CONFIG_KEY};
use super::observe::Observation;
use super::reasons;
use super::status::Phase;

pub(super) fn health<K: ArtifactKind>(artifact: &K, observed: &Observed) -> Health {
    let (state, ready) = judge(artifact, observed);
    let mut conditions = ConditionSet::default();
    conditions.set(ready);
    let refusal = observed.refusal.map(|refusal| {
        Error::invalid_spec(reasons::INVALID_SPEC, refusal.to_string()).at(refusal.field())
    });
    let errors: Vec<Error> = observed.unread.iter().cloned().chain(refusal).collect();
    Health {
        components: vec![ComponentHealth::new("Pipeline").failed_with(errors)],
        news: job_created(artifact, observed).into_iter().collect(),
        manual: Some(Manual {
            state,
            conditions,
            // Of a run that has ended only the workspace and the Job remain to be tidied up.
            failures: match observed.is_over() {
                true => FailureWords::Log,
                false => FailureWords::OnReady {
                    failed: reasons::RECONCILE_ERROR,
                    in_the_way: reasons::INVALID_SPEC,
                },
            },
        }),
        ..Health::default()
    }
}

fn judge<K: ArtifactKind>(artifact: &K, observed: &Observed) -> (State, ConditionUpdate) {
    let ready = |status, reason: &str, message: &str| {
        ConditionUpdate::new(types::READY, status, reason, message)
    };
    if observed.settled {
        return as_stored(artifact);
    }
    if let Some(error) = &observed.unread {
        let condition = ready(Status::False, reasons::RECONCILE_ERROR, &error.to_string());
        return (State::Degraded, condition.with(Observability::error()));
    }
    if let Some(refusal) = observed.refusal {
        let condition = ready(Status::False, reasons::INVALID_SPEC, &refusal.to_string());
        return (State::Degraded, condition.with(Observability::warning()));
    }
    let Observation { phase, ready: status, reason, message, .. } = &observed.observation;
    if let (None, Some(blocker)) = (&observed.job, observed.blocker()) {
        let message = wait_for(&blocker, observed);
        let condition = ready(Status::False, reasons::WAITING_FOR_WORKSPACE, &message);
        return (State::Pending, condition.with(Observability::silent()));
    }
    let missing = Some(phase).filter(|phase| !phase.is_terminal());
    let missing = missing.and_then(|_| missing_secret(artifact, observed));
    let message = missing.as_ref().unwrap_or(message);
    (state_of(*phase), ready(*status, reason, message).with(loudness(*phase, message)))
}

fn state_of(phase: Phase) -> State {
    match phase {
        Phase::Pending => State::Pending,
        Phase::Running => State::Progressing,
        Phase::Succeeded => State::Ready,
        Phase::Failed => State::Failed,
    }
}

/// Only ends are events; that a run goes on is no news.
fn loudness(phase: Phase, message: &str) -> Observability {
    match phase {
        Phase::Pending | Phase::Running => Observability::silent().with_info_log(),
        Phase::Succeeded => {
            Observability::info().with_event_message("Artifact pushed successfully")
        }
        Phase::Failed => Observability::warning()
            .with_event_reason(reasons::FAILED)
            .with_event_message(format!("Artifact pipeline failed: {message}")),
    }
}

/// The run is over, and what was said of it stands, also after its Job has expired.
fn as_stored<K: ArtifactKind>(artifact: &K) -> (State, ConditionUpdate) {
    let status = artifact.status();
    let phase = status.and_then(Phase::stored).unwrap_or(Phase::Pending);
    let stored = status.and_then(|status| find(&status.conditions, types::READY));
    let condition = match stored {
        Some(known) => ConditionUpdate::new(
            types::READY,
            Status::parse(&known.status),
            &known.reason,
            &known.message,
        ),
        None => ConditionUpdate::new(
            types::READY,
            Status::from(phase == Phase::Succeeded),
            reasons::COMPLETED,
            "Pipeline completed; Job was cleaned up",
        ),
    };
    (state_of(phase), condition.with(Observability::silent()))
}

fn wait_for(blocker: &Blocker, observed: &Observed) -> String {
    match blocker {
        Blocker::Job(name) => format!("Waiting for Job {name} of an earlier run to be gone"),
        Blocker::Pod(name) => format!("Waiting for pod {name} of an earlier run to end"),
        Blocker::Claim => {
            let name = observed.names.claim();
            let whose = match observed.claim {
                Workspace::OfTheOtherKind => "of the artifact of this name and the other kind",
                _ => "of an earlier run",
            };
            format!("Waiting for PersistentVolumeClaim {name} {whose} to be gone")
        }
    }
}

/// A Secret that the pod will wait for, or a key of it. Unknown where Secrets may not be read.
fn missing_secret<K: ArtifactKind>(artifact: &K, observed: &Observed) -> Option<String> {
    let source = artifact.spec().source.hugging_face.as_ref();
    let token = source.and_then(|source| source.token_secret_ref.as_ref());
    let lacks_token = token.and_then(|token| {
        let key = token.key.as_deref().filter(|key| !key.is_empty()).unwrap_or(DEFAULT_TOKEN_KEY);
        lacks(&token.name, observed, |keys| (!keys.contains(key)).then(|| key.to_owned()))
    });
    let credentials = artifact.spec().target.credentials_secret_ref.as_ref();
    lacks_token.or_else(|| {
        let missing = || DOCKER_CONFIG_KEY.to_owned();
        lacks(&credentials?.name, observed, |keys| Credentials::of(keys).is_none().then(missing))
    })
}

fn lacks(
    name: &str,
    observed: &Observed,
    key: impl Fn(&BTreeSet<String>) -> Option<String>,
) -> Option<String> {
    match observed.secrets.get(name)? {
        Fetched::Missing => Some(format!("Secret {name} does not exist; the pod waits for it")),
        Fetched::Found(keys) => {
            key(keys).map(|key| format!("Secret {name} has no key {key}; the pod waits for it"))
        }
        Fetched::Failed(_) => None,
    }
}

/// Told once the Job is in the status, and only of Jobs that we made.
fn job_created<K: ArtifactKind>(artifact: &K, observed: &Observed) -> Option<EventNote> {
    if observed.settled || observed.unread.is_some() {
        return None;
    }
    let job = &observed.job.as_ref()?.metadata;
    let name = job.name.as_deref()?;
    let is_ours = job.annotations.as_ref()?.contains_key(GENERATION_ANNOTATION);
    let known = artifact.status().and_then(|status| status.job_ref.as_ref());
    let is_news = known.is_none_or(|known| known.name != name);
    (is_ours && is_news).then(|| EventNote {
        type_: EventType::Normal,
        reason: reasons::JOB_CREATED.to_owned(),
        message: format!("Created pipeline job {name}"),
        action: "Apply".to_owned(),
    })
}
