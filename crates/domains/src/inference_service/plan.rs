//! From meaning to changes: what to apply, what to delete, when to look again.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Service;
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::serving::zerfoo_inference_service::{TrafficMode, ZerfooInferenceService};
use windlass_engine::health::autoscaler::METRICS_PATIENCE;
use windlass_engine::plan::{Plan, When};

use super::Settings;
use super::compose::{Meaning, Observed};
use super::fetch::is_stuck_on_its_node;
use super::names::Track;
use super::objects::deployment::{self, Blueprint};
use super::objects::{autoscaler, route, service};

/// Events of pods are not watched; while one may come that explains a pod, they are read again.
const EXPLAIN_AGAIN: Duration = Duration::from_secs(30);

pub(super) fn plan(
    settings: &Settings,
    object: &ZerfooInferenceService,
    observed: &Observed,
) -> Plan {
    let mut plan = Plan::default();
    // Nothing is changed, and nothing removed, on behalf of a spec that makes no sense.
    let Ok(meaning) = &observed.meaning else { return plan };
    apply(&mut plan, settings, object, observed, meaning);
    remove(&mut plan, observed, meaning);
    for delay in [meaning.traffic.again, metrics_patience(observed), pods_patience(observed)] {
        delay.into_iter().for_each(|delay| plan.requeue_after(delay));
    }
    plan
}

fn apply(
    plan: &mut Plan,
    settings: &Settings,
    object: &ZerfooInferenceService,
    observed: &Observed,
    meaning: &Meaning,
) {
    let Meaning { wanted, traffic, routing, .. } = meaning;
    let names = &observed.names;
    let blueprint = Blueprint { names, spec: &object.spec, wanted, settings };
    plan.apply(&deployment::primary(blueprint, traffic.primary.field()));
    plan.apply(&service::stable(names, traffic.reach));
    if let Some(canary) = &traffic.canary {
        plan.apply(&deployment::canary(blueprint, canary));
    }
    if let Some(bounds) = wanted.bounds {
        let settings = object.spec.autoscaling.clone().unwrap_or_default();
        plan.apply(&autoscaler::autoscaler(names, bounds, &settings));
    }
    if let Some(routing) = routing {
        plan.apply(&service::for_track(names, Track::Primary));
        if traffic.canary.is_some() {
            plan.apply(&service::for_track(names, Track::Canary));
        }
        plan.apply(&route::route(names, routing, traffic.weights()));
    }
}

/// Only what was seen: a pass at rest asks for nothing.
fn remove(plan: &mut Plan, observed: &Observed, meaning: &Meaning) {
    let Observed { names, answers, .. } = observed;
    let namespace = names.namespace();
    let no_canary = meaning.traffic.canary.is_none();
    let by_replicas = meaning.traffic.mode == TrafficMode::Replicas;
    if meaning.wanted.bounds.is_none() && answers.autoscaler.found().is_some() {
        // Before the size is applied, or the autoscaler would change it back.
        plan.delete::<HorizontalPodAutoscaler>(namespace, &names.autoscaler(), When::BeforeApply);
    }
    if meaning.routing.is_none()
        && answers.route.as_ref().is_some_and(|route| route.found().is_some())
    {
        plan.delete::<HttpRoute>(namespace, &names.route(), When::AfterApply);
    }
    if by_replicas && answers.primary_service.found().is_some() {
        plan.delete::<Service>(namespace, &names.track(Track::Primary), When::AfterApply);
    }
    if (by_replicas || no_canary) && answers.canary_service.found().is_some() {
        plan.delete::<Service>(namespace, &names.track(Track::Canary), When::AfterApply);
    }
    let is_live = |live: &Deployment| live.metadata.deletion_timestamp.is_none();
    if no_canary && answers.canary.found().is_some_and(is_live) {
        plan.delete::<Deployment>(namespace, &names.track(Track::Canary), When::AfterApply);
    }
}

/// When missing metrics stop being a matter of patience.
fn metrics_patience(observed: &Observed) -> Option<Duration> {
    let conditions = observed.answers.autoscaler.found()?.status.as_ref()?.conditions.as_ref()?;
    let inactive = conditions.iter().find(|c| c.type_ == "ScalingActive" && c.status == "False")?;
    let waited = observed.now.duration_since(inactive.last_transition_time.as_ref()?.0);
    let left = Duration::try_from(METRICS_PATIENCE.checked_sub(waited)?).ok()?;
    (!left.is_zero()).then_some(left)
}

fn pods_patience(observed: &Observed) -> Option<Duration> {
    let mut pods = observed.answers.pods.found().into_iter().flatten();
    pods.any(is_stuck_on_its_node).then_some(EXPLAIN_AGAIN)
}
