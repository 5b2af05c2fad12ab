//! How the children are, and what is worth telling about the spec.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Pod, Service};
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::serving::zerfoo_inference_service::{CanaryPhase, TrafficMode};
use windlass_engine::conditions::{ConditionUpdate, EventType, Observability, Status};
use windlass_engine::domain::Health;
use windlass_engine::error::Error;
use windlass_engine::events::EventNote;
use windlass_engine::fetch::Fetched;
use windlass_engine::health::{self, Blocks, ComponentHealth, Dependency, Inspection, PodsView};
use windlass_engine::kind::Kind;
use windlass_engine::state::State;

use super::compose::{Meaning, Observed, inspect_route};
use super::names::{TRACK_LABEL, Track};
use super::traffic::CanaryPlan;
use super::validate::{InvalidSpec, Remark};
use super::{reasons, replicas};

pub(super) fn health(observed: &Observed) -> Health {
    match &observed.meaning {
        Ok(meaning) => Health {
            components: components(observed, meaning),
            conditions: vec![traffic_split(meaning)],
            notices: meaning.wanted.remarks.iter().map(|remark| notice(*remark)).collect(),
            ..Health::default()
        },
        Err(invalid) => Health {
            components: [Some(rejected(invalid)), canary_as_it_is(observed)]
                .into_iter()
                .flatten()
                .collect(),
            ..Health::default()
        },
    }
}

/// The current generation cannot be rolled out, whatever still runs.
fn rejected(invalid: &InvalidSpec) -> ComponentHealth {
    let error =
        Error::invalid_spec(reasons::INVALID_SPEC, invalid.to_string()).at(invalid.0.field());
    Inspection::failed(error).into_component(
        reasons::PRIMARY,
        Dependency::Downstream,
        Blocks::Apply,
    )
}

/// A canary that runs goes on, whatever the spec says now.
fn canary_as_it_is(observed: &Observed) -> Option<ComponentHealth> {
    let answer = &observed.answers.canary;
    answer.found().map(|_| workload(observed, Track::Canary, answer))
}

fn components(observed: &Observed, meaning: &Meaning) -> Vec<ComponentHealth> {
    [
        Some(primary(observed, meaning)),
        canary(observed, meaning),
        Some(services(observed, meaning)),
        route(observed, meaning),
        autoscaler(observed, meaning),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn primary(observed: &Observed, meaning: &Meaning) -> ComponentHealth {
    if let Some(missing) = missing_secret(observed) {
        return Inspection::failed(missing).into_component(
            reasons::PRIMARY,
            Dependency::Downstream,
            Blocks::Apply,
        );
    }
    let component = workload(observed, Track::Primary, &observed.answers.primary);
    let phase = meaning.traffic.canary.as_ref().map(|canary| canary.phase);
    if phase == Some(CanaryPhase::Promoting) { stalled(component) } else { component }
}

/// Only what is known to be missing counts; a refused read says nothing.
fn missing_secret(observed: &Observed) -> Option<Error> {
    let mut secrets = observed.answers.secrets.iter();
    let (name, _) = secrets.find(|(_, answer)| answer.is_missing())?;
    let message = format!("Secret {name} not found");
    Some(Error::missing_upstream(reasons::SECRET_NOT_FOUND, message))
}

/// A primary that fails during a promotion: the canary carries on, and somebody has to look.
fn stalled(component: ComponentHealth) -> ComponentHealth {
    let unreachable = component.errors.iter().any(|error| error.category.is_infrastructure());
    if !component.state().is_error() || unreachable {
        return component;
    }
    let message = format!(
        "The canary keeps the traffic because the primary does not come up: {}",
        component.message()
    );
    let stalled = ComponentHealth::new(reasons::PRIMARY)
        .with_state(State::Degraded, reasons::PROMOTION_STALLED, message)
        .depends(Dependency::Downstream);
    ComponentHealth { child: component.child, ..stalled }
}

fn canary(observed: &Observed, meaning: &Meaning) -> Option<ComponentHealth> {
    let answer = &observed.answers.canary;
    // Whether a canary exists decides where traffic goes, so not knowing it is a problem.
    let matters = meaning.traffic.canary.is_some() || answer.error().is_some();
    matters.then(|| workload(observed, Track::Canary, answer))
}

fn workload(observed: &Observed, track: Track, answer: &Fetched<Deployment>) -> ComponentHealth {
    let name = match track {
        Track::Primary => reasons::PRIMARY,
        Track::Canary => reasons::CANARY,
    };
    let health = answer.downstream(name, |deployment| match replicas::size(deployment) {
        // As wanted by somebody, but nothing would answer.
        0 => Inspection::of(State::NotAvailable, reasons::SCALED_TO_ZERO, "Scaled to zero pods"),
        _ => health::deployment(Some(deployment), pods(observed, track)),
    });
    about(health, observed, &Kind::of::<Deployment>(), &observed.names.track(track))
}

fn about(health: ComponentHealth, observed: &Observed, kind: &Kind, name: &str) -> ComponentHealth {
    health.about(&kind.kind, observed.names.namespace(), name)
}

fn pods(observed: &Observed, track: Track) -> Option<Inspection> {
    let all = observed.answers.pods.found()?;
    let pods: Vec<Pod> = all.iter().filter(|pod| is_on(pod, track)).cloned().collect();
    let view =
        PodsView { pods: &pods, events: &observed.answers.events, logs: &observed.answers.logs };
    Some(health::pods(&view))
}

fn is_on(pod: &Pod, track: Track) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(TRACK_LABEL)).is_some_and(|value| value == track.as_str())
}

/// All wanted Services as one: the first that is not there, or not for long, speaks.
fn services(observed: &Observed, meaning: &Meaning) -> ComponentHealth {
    let answers = &observed.answers;
    let by_gateway = meaning.traffic.mode == TrafficMode::Gateway;
    let wanted = [
        Some(&answers.service),
        by_gateway.then_some(&answers.primary_service),
        (by_gateway && meaning.traffic.canary.is_some()).then_some(&answers.canary_service),
    ];
    let mut wanted = wanted.into_iter().flatten();
    let stays = |service: &Service| service.metadata.deletion_timestamp.is_none();
    let absent = wanted.find(|answer| !answer.found().is_some_and(stays));
    absent.unwrap_or(&answers.service).downstream(reasons::SERVICE, |service: &Service| {
        Inspection::terminating("Service", &service.metadata)
            .unwrap_or_else(|| Inspection::ready(reasons::SERVICE_CREATED, "Service exists"))
    })
}

fn route(observed: &Observed, meaning: &Meaning) -> Option<ComponentHealth> {
    let answer = observed.answers.route.as_ref()?;
    let health = match &meaning.routing {
        Some(routing) => {
            answer.downstream(reasons::ROUTE, |route| inspect_route(Some(route), routing))
        }
        None => only_failure(reasons::ROUTE, answer)?,
    };
    Some(about(health, observed, &Kind::of::<HttpRoute>(), &observed.names.route()))
}

fn autoscaler(observed: &Observed, meaning: &Meaning) -> Option<ComponentHealth> {
    let answer = &observed.answers.autoscaler;
    let health = match meaning.wanted.bounds {
        Some(_) => answer.downstream(reasons::AUTOSCALER, |scaler| {
            health::autoscaler(Some(scaler), observed.now)
        }),
        None => only_failure(reasons::AUTOSCALER, answer)?,
    };
    Some(about(
        health,
        observed,
        &Kind::of::<HorizontalPodAutoscaler>(),
        &observed.names.autoscaler(),
    ))
}

/// An object that is not wanted has no health, unless it is not known whether it is gone.
fn only_failure<T>(name: &str, answer: &Fetched<T>) -> Option<ComponentHealth> {
    let error = answer.error()?.clone();
    let inspection = Inspection::failed(error);
    Some(inspection.into_component(name, Dependency::Downstream, Blocks::Apply))
}

fn traffic_split(meaning: &Meaning) -> ConditionUpdate {
    let canary = meaning.traffic.canary.as_ref();
    let (status, reason, message) = match canary {
        Some(canary) if canary.phase == CanaryPhase::Promoting => {
            (Status::False, reasons::PROMOTING, promoting_message(canary))
        }
        Some(canary) if canary.phase == CanaryPhase::Draining => {
            (Status::False, reasons::DRAINING, draining_message(canary))
        }
        _ if meaning.gateway_missing => (
            Status::False,
            reasons::GATEWAY_API_MISSING,
            "The cluster does not serve HTTPRoute, so pods make the split instead of a gateway"
                .to_owned(),
        ),
        Some(canary) if !canary.available => (
            Status::False,
            reasons::CANARY_NOT_READY,
            "The canary receives no traffic before one of its pods is available".to_owned(),
        ),
        Some(CanaryPlan { share, effective, .. }) if share != effective => (
            Status::False,
            reasons::SPLIT_PENDING,
            format!("The canary receives {effective}% of the traffic, about to be {share}%"),
        ),
        Some(CanaryPlan { weight, share, .. }) if weight != share => (
            Status::False,
            reasons::APPROXIMATE,
            format!("The number of pods allows {share}% instead of {weight}%"),
        ),
        Some(CanaryPlan { share, .. }) => {
            (Status::True, reasons::APPLIED, format!("The canary receives {share}% of the traffic"))
        }
        None => (Status::True, reasons::APPLIED, "All traffic goes to the primary".to_owned()),
    };
    // Without a canary there is no split to speak of.
    let how = if canary.is_none() && !meaning.gateway_missing {
        Observability::silent()
    } else {
        Observability::info()
    };
    ConditionUpdate::new(reasons::TRAFFIC_SPLIT_APPLIED, status, reason, message).with(how)
}

fn promoting_message(canary: &CanaryPlan) -> String {
    if canary.available {
        "The canary receives all traffic until the primary serves its model".to_owned()
    } else {
        "The primary is rolled to the canary's model; the canary is not available to help"
            .to_owned()
    }
}

fn draining_message(canary: &CanaryPlan) -> String {
    match canary.drain_started {
        Some(started) => {
            format!("All traffic goes to the primary; the canary drains since {started}")
        }
        None => "All traffic is about to go to the primary; then the canary drains".to_owned(),
    }
}

fn notice(remark: Remark) -> EventNote {
    let (reason, message) = match remark {
        Remark::UnauthenticatedEndpoint => (
            reasons::UNAUTHENTICATED_ENDPOINT,
            "Anyone who reaches the endpoint may use it; set auth.apiKeySecretRef, \
             or auth.allowNoAuth to say that this is wanted",
        ),
        Remark::AutoscalingIncomplete => (
            reasons::AUTOSCALING_INCOMPLETE,
            "Autoscaling is off because it needs both minReplicas and maxReplicas",
        ),
        Remark::ProbeTimeoutExceedsInterval => (
            reasons::PROBE_TIMEOUT_EXCEEDS_INTERVAL,
            "healthCheck.timeout is longer than healthCheck.interval",
        ),
    };
    EventNote {
        type_: EventType::Warning,
        reason: reason.to_owned(),
        message: message.to_owned(),
        action: "Validate".to_owned(),
    }
}
