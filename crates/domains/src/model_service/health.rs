//! How the children are, and what is worth telling about the spec.
//!
//! `Ready` speaks of the serving pods, in the words that this kind has always used. What else is made
//! for a service has conditions of its own, on which `Ready` does not depend.

pub(super) mod roles;
mod traffic;

use windlass_api::model::model_service::Phase;
use windlass_engine::conditions::{
    ConditionSet, ConditionUpdate, EventType, Observability, Status, types,
};
use windlass_engine::domain::Health;
use windlass_engine::error::Error;
use windlass_engine::events::EventNote;
use windlass_engine::fetch::Fetched;
use windlass_engine::health::{Blocks, ComponentHealth, Dependency, Inspection};
use windlass_engine::state::{FailureWords, Manual, State};

use super::compose::{Meaning, Observed, Refusal};
use super::reasons;
use roles::RoleHealth;

/// What is to be said of the service as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) phase: Phase,
    pub(super) state: State,
    pub(super) reason: String,
    pub(super) message: String,
}

pub(super) fn health(observed: &Observed) -> Health {
    let roles = roles::roles(observed);
    let verdict = verdict(observed, &roles);
    let mut conditions = ConditionSet::default();
    conditions.set(ready(&verdict));
    for role in &roles {
        conditions.set(role.condition());
    }
    if let Ok(meaning) = &observed.meaning {
        for condition in traffic::conditions(observed, meaning) {
            conditions.set(condition);
        }
    }
    Health {
        components: unreadable(observed),
        notices: observed.meaning.iter().flat_map(notices).collect(),
        manual: Some(Manual {
            state: verdict.state,
            conditions,
            failures: FailureWords::OnReady {
                failed: reasons::RECONCILE_ERROR,
                in_the_way: reasons::CONFLICT,
            },
        }),
        ..Health::default()
    }
}

/// Also for services whose spec makes no sense: what it made before goes on.
pub(super) fn verdict(observed: &Observed, roles: &[RoleHealth]) -> Verdict {
    match &observed.meaning {
        Ok(_) => of_roles(roles),
        Err(refusal @ Refusal::InvalidSpec(_)) => {
            failed(reasons::INVALID_SPEC, refusal.to_string())
        }
        Err(refusal @ Refusal::Conflict { .. }) => failed(reasons::CONFLICT, refusal.to_string()),
    }
}

/// Decode comes first; there is always one.
fn of_roles(roles: &[RoleHealth]) -> Verdict {
    let waiting = |phase, state, reason: &str, message: String| Verdict {
        phase,
        state,
        reason: reason.to_owned(),
        message,
    };
    if let Some(role) = roles.iter().find(|role| role.is_unreadable()) {
        let message = format!("The {} Deployment cannot be read: {}", role.name(), role.message());
        return waiting(Phase::Running, State::Degraded, reasons::UNREACHABLE, message);
    }
    if let Some(role) = roles.iter().find(|role| role.is_missing()) {
        let message = format!("{} Deployment has not been created yet", role.title());
        return waiting(Phase::Pending, State::Pending, reasons::DEPLOYMENT_NOT_FOUND, message);
    }
    if let Some(role) = roles.iter().find(|role| role.has_failed()) {
        return failed(role.reason(), format!("{}: {}", role.name(), role.message()));
    }
    if roles.first().is_some_and(|decode| decode.desired == 0) {
        let message = "Decode is scaled to zero pods, so nothing answers".to_owned();
        return waiting(Phase::Pending, State::NotAvailable, reasons::SCALED_TO_ZERO, message);
    }
    // Surplus pods of one role do not make up for missing ones of the other.
    let ready: i64 = roles.iter().map(|role| i64::from(role.ready.min(role.desired))).sum();
    let desired: i64 = roles.iter().map(|role| i64::from(role.desired)).sum();
    let Some(slowest) = roles.iter().find(|role| !role.is_settled()) else {
        return Verdict {
            phase: Phase::Ready,
            state: State::Ready,
            reason: reasons::ALL_REPLICAS_READY.to_owned(),
            message: format!("All {ready} replicas are ready"),
        };
    };
    let (reason, message) = if ready == 0 && desired > 0 {
        (reasons::PODS_STARTING, "Waiting for serving pods to become ready".to_owned())
    } else if ready < desired {
        (reasons::PARTIALLY_READY, format!("{ready}/{desired} replicas ready"))
    } else {
        let message = format!("{}: {}", slowest.name(), slowest.message());
        (reasons::ROLLING_OUT, message)
    };
    let message = match slowest.obstacle.as_ref().filter(|_| reason != reasons::ROLLING_OUT) {
        Some(obstacle) => format!("{message}: {}: {obstacle}", slowest.name()),
        None => message,
    };
    waiting(Phase::Running, State::Starting, reason, message)
}

fn failed(reason: &str, message: String) -> Verdict {
    Verdict { phase: Phase::Failed, state: State::Degraded, reason: reason.to_owned(), message }
}

/// Waiting is told by the condition alone: events are for what has come to an end.
fn ready(verdict: &Verdict) -> ConditionUpdate {
    let how = match verdict.phase {
        Phase::Ready => Observability::info()
            .with_event_reason(reasons::EVENT_READY)
            .with_event_message("All serving replicas are ready"),
        Phase::Failed if verdict.reason == reasons::INVALID_SPEC => Observability::error(),
        Phase::Failed => Observability::error().with_event_reason(reasons::EVENT_FAILED),
        Phase::Pending | Phase::Running => Observability::silent().with_debug_log(),
    };
    let status = Status::from(verdict.phase == Phase::Ready);
    ConditionUpdate::new(types::READY, status, &verdict.reason, &verdict.message).with(how)
}

/// What could not be read holds back writes that depend on it.
fn unreadable(observed: &Observed) -> Vec<ComponentHealth> {
    let answers = &observed.answers;
    let errors = [
        answers.decode.error(),
        answers.prefill.error(),
        answers.epp.error(),
        answers.epp_account.error(),
        answers.epp_service.error(),
        answers.cluster_role.error(),
        answers.cluster_role_binding.error(),
        answers.pods.error(),
        of_optional(answers.pool.as_ref()),
        of_optional(answers.legacy_pool.as_ref()),
        of_optional(answers.route.as_ref()),
        of_optional(answers.rule.as_ref()),
        of_optional(answers.decode_monitor.as_ref()),
        of_optional(answers.prefill_monitor.as_ref()),
        of_optional(answers.service_monitor.as_ref()),
    ];
    let errors: Vec<Error> = errors.into_iter().flatten().cloned().collect();
    if errors.is_empty() {
        return Vec::new();
    }
    let inspection = Inspection { errors, ..Inspection::default() };
    vec![inspection.into_component("Children", Dependency::Downstream, Blocks::Apply)]
}

fn of_optional<T>(answer: Option<&Fetched<T>>) -> Option<&Error> {
    answer.and_then(Fetched::error)
}

fn notices(meaning: &Meaning) -> Option<EventNote> {
    meaning.wanted.plain_http.then(|| EventNote {
        type_: EventType::Warning,
        reason: reasons::PLAIN_HTTP.to_owned(),
        message: "The model is fetched over plain HTTP, and the credentials with it".to_owned(),
        action: "Validate".to_owned(),
    })
}
