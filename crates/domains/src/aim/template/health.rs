//! The conditions of a template. Only those that a state speaks of are touched; the others stand.

use windlass_api::aim::template::{Phase, TemplateKind, TemplateStatus};
use windlass_engine::conditions::{
    ConditionSet, ConditionUpdate, Observability, Status, find, types,
};
use windlass_engine::domain::Health;
use windlass_engine::error::Error;
use windlass_engine::health::ComponentHealth;
use windlass_engine::kind::Scope;
use windlass_engine::state::{FailureWords, Manual, State, Told};

use super::compose::{Observed, Outcome};
use super::discovery::has_answer;
use super::fetch::scope;
use super::{news, reasons};

pub(super) const DISCOVERED: &str = "Discovered";
pub(super) const PROGRESSING: &str = types::PROGRESSING;
const READY: &str = types::READY;
const TYPES: [&str; 4] = [DISCOVERED, PROGRESSING, READY, FAILURE];
pub(super) const FAILURE: &str = "Failure";

/// What is said of a Job that runs; what keeps its pod from starting comes after it.
const RUNNING: &str = "Discovery job is running";

/// What is said of something that could not be read, and how it begins where that is a runtime config
/// which does not exist.
const UNREAD: &str = "Observation failed: ";
pub(super) const NO_CONFIG: &str = "failed to resolve AIMRuntimeConfig ";

/// A failed write, where there is no answer yet and where there is one.
const FAILED_WRITE: [Told; 2] = [
    FAILED_WRITE_ASIDE[0],
    Told {
        type_: READY,
        status: Status::False,
        reason: reasons::FAILED,
        message: "Template is not ready due to errors",
        in_place: false,
    },
];
const FAILED_WRITE_ASIDE: [Told; 1] = [Told {
    type_: FAILURE,
    status: Status::True,
    reason: reasons::FAILED,
    message: "Apply failed: {}",
    in_place: false,
}];

pub(super) fn health<K: TemplateKind>(template: &K, observed: &Observed) -> Health {
    let stored = template.status().map_or(&[][..], |status| &status.conditions);
    let mut conditions = ConditionSet::from_stored(stored);
    // Of what else was told (that it is paused, that it cannot be read) nothing holds any more.
    conditions.retain(|condition| TYPES.contains(&condition.type_.as_str()));
    if matches!(observed.outcome, Outcome::Running { .. }) && conditions.get(READY).is_none() {
        // A Job is seen in the pass that makes it; the order is that of two passes.
        for update in asking(template, &Outcome::Starting).1 {
            conditions.set(update.with(Observability::silent()));
        }
    }
    let (state, told) = judge(template, observed);
    let is_failing = told.iter().any(|update| update.type_ == FAILURE);
    for update in told {
        conditions.set(update.with(Observability::silent()));
    }
    if !is_failing && conditions.get(FAILURE).is_some() {
        // That nothing fails is not yet an answer.
        let reason = match state {
            State::Ready => reasons::AVAILABLE,
            _ => reasons::RECONCILING,
        };
        let quiet = update(FAILURE, Status::False, reason, "No active failures");
        conditions.set(quiet.with(Observability::silent()));
    }
    let errors: Vec<Error> = unread(&observed.outcome).into_iter().cloned().collect();
    let failures = match is_served(observed) {
        true => FailureWords::Told { conditions: &FAILED_WRITE_ASIDE, state: None, instead: false },
        false => FailureWords::Told {
            conditions: &FAILED_WRITE,
            state: Some(State::Failed),
            instead: true,
        },
    };
    Health {
        components: vec![ComponentHealth::new("Template").failed_with(errors)],
        news: news::news(template, observed),
        manual: Some(Manual { state, conditions, failures }),
        ..Health::default()
    }
}

/// Whether the stored status tells of no answer that counts, and that none will come unless something is
/// mended.
pub(in crate::aim) fn is_hopeless(status: Option<&TemplateStatus>) -> bool {
    let Some(status) = status else { return false };
    let progress = find(&status.conditions, PROGRESSING);
    let is_held_up = progress.is_some_and(|progress| {
        progress.reason == reasons::DISCOVERY_RUNNING && progress.message != RUNNING
    });
    let is = |phase: Phase| status.status.as_deref() == Some(phase.as_str());
    // Degraded is what has no image; another base may name another.
    let is_lost = is(Phase::Degraded) || is(Phase::Failed) && has_failed_for_good(status);
    !has_answer(Some(status)) && (is_lost || is_held_up && is(Phase::Progressing))
}

/// Whether what has failed is the asking itself, and not a read or write that may go well next time.
fn has_failed_for_good(status: &TemplateStatus) -> bool {
    let failure = find(&status.conditions, FAILURE);
    let failure = failure.filter(|failure| Status::parse(&failure.status) == Status::True);
    let Some(failure) = failure else { return false };
    let discovery = status.discovery.as_ref();
    match (failure.reason.as_str(), failure.message.strip_prefix(UNREAD)) {
        (reasons::JOB_FAILED, _) => true,
        (reasons::DISCOVERY_PARSE_FAILED, _) => !discovery.is_some_and(|known| known.unread),
        (_, Some(unread)) => unread.starts_with(NO_CONFIG),
        // A Job may be refused for ever, and where none runs nothing is lost.
        (_, None) => discovery.is_none_or(|known| known.started_job.is_none()),
    }
}

/// Whether services may build on the answer.
fn is_served(observed: &Observed) -> bool {
    observed.answer.is_given && !matches!(observed.outcome, Outcome::NoImage)
}

fn unread(outcome: &Outcome) -> Option<&Error> {
    match outcome {
        Outcome::Unread { error, .. } | Outcome::ParseFailed { error, .. } => error.as_ref(),
        _ => None,
    }
}

fn update(type_: &str, status: Status, reason: &str, message: &str) -> ConditionUpdate {
    ConditionUpdate::new(type_, status, reason, message)
}

fn judge<K: TemplateKind>(template: &K, observed: &Observed) -> (State, Vec<ConditionUpdate>) {
    let (state, told) = asking(template, &observed.outcome);
    if !is_served(observed) {
        return (state, told);
    }
    // An answer stands until there is another, so what is going on beside it changes nothing else.
    let beside =
        told.into_iter().filter(|update| [FAILURE, PROGRESSING].contains(&update.type_.as_str()));
    let mut all = available();
    if matches!(observed.outcome, Outcome::Unread { .. }) && is_told(template, PROGRESSING) {
        // Who could not look knows nothing of the asking, and what is told of it may be all that does.
        all.retain(|known| known.type_ != PROGRESSING);
    }
    for update in beside {
        all.retain(|known| known.type_ != update.type_);
        all.push(update);
    }
    (State::Ready, all)
}

fn is_told<K: TemplateKind>(template: &K, type_: &str) -> bool {
    template.status().is_some_and(|status| find(&status.conditions, type_).is_some())
}

fn available() -> Vec<ConditionUpdate> {
    vec![
        update(DISCOVERED, Status::True, reasons::DISCOVERED, "Model sources discovered"),
        update(PROGRESSING, Status::False, reasons::AVAILABLE, "Discovery complete"),
        update(READY, Status::True, reasons::AVAILABLE, "Template is ready"),
    ]
}

/// What is to be said of the asking itself.
fn asking<K: TemplateKind>(template: &K, outcome: &Outcome) -> (State, Vec<ConditionUpdate>) {
    let not_ready = |reason: &str, message: &str| update(READY, Status::False, reason, message);
    let failure = |reason: &str, message: &str| update(FAILURE, Status::True, reason, message);
    match outcome {
        Outcome::Unread { message, .. } => {
            let message = format!("{UNREAD}{message}");
            let ready = not_ready(reasons::FAILED, "Template is not ready due to errors");
            (State::Failed, vec![failure(reasons::FAILED, &message), ready])
        }
        Outcome::NoImage => {
            let reason = reasons::IMAGE_NOT_FOUND;
            let message = no_image(template);
            let ready = not_ready(reason, "Cannot proceed without image");
            (State::Degraded, vec![failure(reason, &message), ready])
        }
        Outcome::Starting => {
            let reason = reasons::RECONCILING;
            let progressing = update(PROGRESSING, Status::True, reason, "Initiating discovery");
            (State::Pending, vec![progressing, not_ready(reason, "Template is not ready")])
        }
        Outcome::Running { obstacle } => (State::Progressing, running(obstacle.as_deref())),
        Outcome::JobFailed | Outcome::Waiting { message: None, .. } => {
            (State::Failed, job_failed())
        }
        Outcome::ParseFailed { message, .. } | Outcome::Waiting { message: Some(message), .. } => {
            (State::Failed, parse_failed(message))
        }
        Outcome::Discovered | Outcome::Answered => (State::Ready, Vec::new()),
    }
}

fn job_failed() -> Vec<ConditionUpdate> {
    let reason = reasons::DISCOVERY_FAILED;
    vec![
        update(FAILURE, Status::True, reasons::JOB_FAILED, "Discovery job failed"),
        update(DISCOVERED, Status::False, reason, "Discovery failed"),
        update(PROGRESSING, Status::False, reason, "Discovery has ended"),
        update(READY, Status::False, reasons::FAILED, "Template is not ready"),
    ]
}

fn parse_failed(message: &str) -> Vec<ConditionUpdate> {
    let reason = reasons::DISCOVERY_PARSE_FAILED;
    vec![
        update(FAILURE, Status::True, reason, &parse_failure(message)),
        update(PROGRESSING, Status::False, reason, "Discovery has ended"),
        update(READY, Status::False, reason, "Template is not ready"),
    ]
}

fn running(obstacle: Option<&str>) -> Vec<ConditionUpdate> {
    let message = match obstacle {
        Some(obstacle) => format!("{RUNNING}: {obstacle}"),
        None => RUNNING.to_owned(),
    };
    vec![
        update(PROGRESSING, Status::True, reasons::DISCOVERY_RUNNING, &message),
        not_discovered(),
        update(READY, Status::False, reasons::RECONCILING, "Template is not ready yet"),
    ]
}

fn not_discovered() -> ConditionUpdate {
    let message = "Discovery job has not completed";
    update(DISCOVERED, Status::False, reasons::JOB_PENDING, message)
}

fn no_image<K: TemplateKind>(template: &K) -> String {
    let kinds = match scope(template) {
        Scope::Namespaced => "AIMImage or AIMClusterImage",
        Scope::Cluster => "AIMClusterImage",
    };
    format!("No {kinds} found for image name \"{}\"", template.common().aim_image_name)
}

pub(super) fn parse_failure(message: &str) -> String {
    format!("Failed to parse discovery output: {message}")
}
