//! What leads requests to the pods, and what watches them. None of it counts for `Ready`.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use windlass_api::foreign::inference_pool::InferencePool;
use windlass_engine::conditions::{ConditionUpdate, Observability, Status, find};
use windlass_engine::fetch::Fetched;
use windlass_engine::health::{self, Inspection, PodsView};
use windlass_engine::state::State;

use super::roles::obstacle;
use crate::http_route;
use crate::model_service::compose::{ClusterRbac, Meaning, Observed, live, stays};
use crate::model_service::pairing::Pairing;
use crate::model_service::{reasons, replicas};

pub(super) fn conditions(observed: &Observed, meaning: &Meaning) -> Vec<ConditionUpdate> {
    [
        Some(epp(observed)),
        Some(pool(observed)),
        route(observed, meaning),
        mesh(observed, meaning),
        monitors(observed, meaning),
        metrics_auth(observed, meaning),
        roles_paired(meaning),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn epp(observed: &Observed) -> ConditionUpdate {
    let answers = &observed.answers;
    let deployment = live(&answers.epp);
    if deployment.is_some_and(|deployment| replicas::size(deployment) == 0) {
        let text = "The endpoint picker is scaled to zero pods";
        return condition(reasons::EPP_READY, false, reasons::SCALED_TO_ZERO, text);
    }
    let pods = answers.epp_pods.found().filter(|pods| !pods.is_empty());
    let pods = pods.map(|pods| of_pods(observed, pods));
    let obstacle = pods.as_ref().and_then(obstacle);
    let inspection = health::deployment(deployment, pods);
    let state = inspection.state();
    if deployment.is_some() && !state.is_ready() && !state.is_error() {
        // The same throughout: each step would be another write of the status.
        let text = "Waiting for the endpoint picker to become ready";
        let text = obstacle.map_or(text.to_owned(), |obstacle| format!("{text}: {obstacle}"));
        return condition(reasons::EPP_READY, false, reasons::ROLLING_OUT, &text);
    }
    told(reasons::EPP_READY, &inspection)
}

fn of_pods(observed: &Observed, pods: &[Pod]) -> Inspection {
    let answers = &observed.answers;
    health::pods(&PodsView { pods, events: &answers.events, logs: &answers.logs })
}

fn pool(observed: &Observed) -> ConditionUpdate {
    let type_ = reasons::POOL_ACCEPTED;
    let Some(answer) = &observed.answers.pool else {
        return missing(type_, "InferencePool (inference.networking.k8s.io/v1)", "the pool");
    };
    let Some(pool) = answer.found().filter(|pool| stays(&pool.metadata)) else {
        return condition(type_, false, reasons::CREATING, "InferencePool is being created");
    };
    match pool_problem(pool) {
        None => condition(type_, true, reasons::ACCEPTED, "InferencePool is accepted by a gateway"),
        Some((reason, message)) => {
            let how = if reason == reasons::AWAITING_GATEWAY {
                Observability::silent()
            } else {
                Observability::warning()
            };
            ConditionUpdate::new(type_, Status::False, reason, message).with(how)
        }
    }
}

/// A gateway that accepts is enough: others may have to do with other routes.
fn pool_problem(pool: &InferencePool) -> Option<(String, String)> {
    let generation = pool.metadata.generation.unwrap_or_default();
    let parents = pool.status.iter().flat_map(|status| &status.parents);
    let mut problem = None;
    for parent in parents {
        let current = |type_: &str| -> Option<&Condition> {
            find(&parent.conditions, type_).filter(|condition| {
                condition.observed_generation.is_none_or(|seen| seen >= generation)
            })
        };
        let bad = |type_: &str| current(type_).filter(|condition| condition.status == "False");
        match bad("Accepted").or_else(|| bad("ResolvedRefs")) {
            Some(refused) => {
                let message = format!("{}: {}", parent.parent_ref.name, refused.message);
                problem = problem.or(Some((refused.reason.clone(), message)));
            }
            None if current("Accepted").is_some_and(|condition| condition.status == "True") => {
                return None;
            }
            None => {}
        }
    }
    let waiting = || {
        let message = "InferencePool is waiting for a gateway to take it";
        (reasons::AWAITING_GATEWAY.to_owned(), message.to_owned())
    };
    Some(problem.unwrap_or_else(waiting))
}

fn route(observed: &Observed, meaning: &Meaning) -> Option<ConditionUpdate> {
    let type_ = reasons::ROUTE_ACCEPTED;
    let gateway = meaning.gateway.as_ref()?;
    let Some(answer) = &observed.answers.route else {
        return Some(missing(type_, "HTTPRoute (gateway.networking.k8s.io/v1)", "the route"));
    };
    let parent = http_route::parent_ref(gateway);
    Some(told(type_, &http_route::inspect(answer.found(), &[parent])))
}

fn mesh(observed: &Observed, meaning: &Meaning) -> Option<ConditionUpdate> {
    let type_ = reasons::MESH_CONFIGURED;
    if !meaning.mesh {
        return None;
    }
    let Some(answer) = &observed.answers.rule else {
        let kind = "DestinationRule (networking.istio.io/v1beta1)";
        return Some(missing(type_, kind, "the rule for the endpoint picker"));
    };
    Some(existing(type_, &[is_there(answer, |rule| &rule.metadata)], "a DestinationRule"))
}

fn monitors(observed: &Observed, meaning: &Meaning) -> Option<ConditionUpdate> {
    let type_ = reasons::MONITORS_READY;
    let (answers, wanted) = (&observed.answers, &meaning.wanted);
    let mut present = Vec::new();
    if wanted.pod_monitors.is_some() {
        let Some(decode) = &answers.decode_monitor else {
            let kind = "PodMonitor (monitoring.coreos.com/v1)";
            return Some(missing(type_, kind, "monitoring"));
        };
        present.push(is_there(decode, |monitor| &monitor.metadata));
        let prefill = answers.prefill_monitor.as_ref().filter(|_| meaning.prefill.is_some());
        present.extend(prefill.map(|answer| is_there(answer, |monitor| &monitor.metadata)));
    }
    if wanted.service_monitor {
        let Some(picker) = &answers.service_monitor else {
            let kind = "ServiceMonitor (monitoring.coreos.com/v1)";
            return Some(missing(type_, kind, "monitoring of the endpoint picker"));
        };
        present.push(is_there(picker, |monitor| &monitor.metadata));
    }
    (!present.is_empty()).then(|| existing(type_, &present, "a monitor of each part"))
}

fn metrics_auth(observed: &Observed, meaning: &Meaning) -> Option<ConditionUpdate> {
    let type_ = reasons::METRICS_AUTH_READY;
    let answers = &observed.answers;
    match &meaning.cluster_rbac {
        ClusterRbac::NotWanted => None,
        ClusterRbac::Conflict(text) => Some(
            ConditionUpdate::new(type_, Status::False, reasons::CONFLICT, text)
                .with(Observability::error()),
        ),
        ClusterRbac::Wanted => {
            let present = [
                is_there(&answers.cluster_role, |role| &role.metadata),
                is_there(&answers.cluster_role_binding, |binding| &binding.metadata),
            ];
            Some(existing(type_, &present, "a ClusterRole and its binding"))
        }
    }
}

fn roles_paired(meaning: &Meaning) -> Option<ConditionUpdate> {
    meaning.prefill.as_ref()?;
    let type_ = reasons::ROLES_PAIRED;
    Some(match meaning.pairing {
        Pairing::Paired => {
            condition(type_, true, reasons::PAIRED, "The pool takes in pods of both roles")
        }
        Pairing::Apart { .. } => condition(
            type_,
            false,
            reasons::DECODE_ALONE,
            "The pool takes in decode pods only: they serve alone until both roles are rolled out",
        ),
    })
}

fn is_there<T>(answer: &Fetched<T>, metadata: impl Fn(&T) -> &ObjectMeta) -> bool {
    answer.found().is_some_and(|object| stays(metadata(object)))
}

fn existing(type_: &str, present: &[bool], what: &str) -> ConditionUpdate {
    if present.iter().all(|present| *present) {
        condition(type_, true, reasons::CONFIGURED, &format!("There is {what}"))
    } else {
        condition(type_, false, reasons::CREATING, &format!("Waiting for {what}"))
    }
}

/// Said aloud once: somebody may wonder why nothing happens.
fn missing(type_: &str, kind: &str, what: &str) -> ConditionUpdate {
    let message = format!("The cluster does not serve {kind}; {what} is left out until it does");
    ConditionUpdate::new(type_, Status::False, reasons::API_MISSING, message)
        .with(Observability::info())
}

fn told(type_: &str, inspection: &Inspection) -> ConditionUpdate {
    let error = inspection.errors.first();
    let reason = inspection.reason.as_deref().or(error.map(|error| error.reason.as_str()));
    let message = inspection.message.as_deref().or(error.map(|error| error.message.as_str()));
    let state = inspection.state();
    let how = if state.is_error() { Observability::warning() } else { Observability::silent() };
    let status = Status::from(matches!(state, State::Ready | State::Running));
    ConditionUpdate::new(
        type_,
        status,
        reason.unwrap_or(reasons::CREATING),
        message.unwrap_or_default(),
    )
    .with(how)
}

/// Coming and going as it should is not worth an event.
fn condition(type_: &str, holds: bool, reason: &str, message: &str) -> ConditionUpdate {
    ConditionUpdate::new(type_, Status::from(holds), reason, message).with(Observability::silent())
}
