//! What an autoscaler does about its target, and what its status says.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        autoscaling::{
            v1::Scale,
            v2::{
                HPAScalingRules, HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition,
                HorizontalPodAutoscalerStatus, MetricSpec, MetricStatus, ResourceMetricStatus,
            },
        },
        core::v1::Pod,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Time},
};

use super::{
    limits::{History, Range, limit},
    load::{Load, Proposal, Sample, Tolerance, propose},
};

const ABLE: &str = "AbleToScale";
const ACTIVE: &str = "ScalingActive";
const LIMITED: &str = "ScalingLimited";
/// Below this difference from the target nothing is done.
const TOLERANCE: f64 = 0.1;

/// What is known of an autoscaler and its target.
pub(super) struct Seen<'a> {
    pub(super) autoscaler: &'a HorizontalPodAutoscaler,
    pub(super) scale: &'a Scale,
    /// Those of the target.
    pub(super) pods: &'a [Arc<Pod>],
    /// By the pods' uids.
    pub(super) samples: &'a BTreeMap<String, Sample>,
    pub(super) now: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decision {
    pub(super) status: HorizontalPodAutoscalerStatus,
    pub(super) rescale: Option<Rescale>,
    /// Warnings, as reason and message.
    pub(super) warnings: Vec<(&'static str, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rescale {
    pub(super) from: i32,
    pub(super) to: i32,
    pub(super) reason: String,
}

/// The target could not be asked for its scale.
pub(super) fn without_scale(
    autoscaler: &HorizontalPodAutoscaler,
    cause: &str,
    now: Timestamp,
) -> Decision {
    let mut status = autoscaler.status.clone().unwrap_or_default();
    let message =
        format!("the HPA controller was unable to get the target's current scale: {cause}");
    let told = set(&mut status, ABLE, false, "FailedGetScale", &message, now);
    let warnings = told.then(|| ("FailedGetScale", cause.to_owned())).into_iter().collect();
    Decision { status, rescale: None, warnings }
}

pub(super) fn decide(seen: &Seen<'_>, history: &mut History) -> Decision {
    let spec = &seen.autoscaler.spec.clone().unwrap_or_default();
    let current = seen.scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
    let range = Range { current, min: spec.min_replicas.unwrap_or(1), max: spec.max_replicas };
    let mut status = seen.autoscaler.status.clone().unwrap_or_default();
    let found = "the HPA controller was able to get the target's current scale";
    set(&mut status, ABLE, true, "SucceededGetScale", found, seen.now);
    history.begin(current, seen.now);
    status.current_replicas = Some(current).filter(|current| *current != 0);
    if current == 0 {
        let message = "scaling is disabled since the replica count of the target is zero";
        set(&mut status, ACTIVE, false, "ScalingDisabled", message, seen.now);
        status.desired_replicas = 0;
        status.current_metrics = None;
        return Decision { status, rescale: None, warnings: Vec::new() };
    }
    let outside = if current > range.max {
        Some((range.max, "Current number of replicas above Spec.MaxReplicas"))
    } else if current < range.min {
        Some((range.min, "Current number of replicas below Spec.MinReplicas"))
    } else {
        None
    };
    if let Some((to, reason)) = outside {
        status.current_metrics = None;
        let rescale = Rescale { from: current, to, reason: reason.into() };
        return Decision { status, rescale: Some(rescale), warnings: Vec::new() };
    }
    measured(seen, &range, status, history)
}

/// The number is within its range: what is measured decides.
fn measured(
    seen: &Seen<'_>,
    range: &Range,
    mut status: HorizontalPodAutoscalerStatus,
    history: &mut History,
) -> Decision {
    let spec = seen.autoscaler.spec.clone().unwrap_or_default();
    let outcome = proposals(seen, range.current);
    status.current_metrics = Some(outcome.statuses).filter(|statuses| !statuses.is_empty());
    let mut warnings = Vec::new();
    if let Some((reason, cause)) = outcome.failure {
        // Who asks for fewer may be wrong when not all are heard.
        if outcome.best.as_ref().is_none_or(|best| best.replicas < range.current) {
            let message = format!("the HPA was unable to compute the replica count: {cause}");
            if set(&mut status, ACTIVE, false, reason, &message, seen.now) {
                warnings.push((reason, cause.clone()));
                let invalid = format!("invalid metrics, first error is: {cause}");
                warnings.push(("FailedComputeMetricsReplicas", invalid));
            }
            return Decision { status, rescale: None, warnings };
        }
    }
    let Some(best) = outcome.best else {
        return Decision { status, rescale: None, warnings };
    };
    let message =
        format!("the HPA was able to successfully calculate a replica count from {}", best.metric);
    set(&mut status, ACTIVE, true, "ValidMetricFound", &message, seen.now);
    let limited = limit(range, best.replicas, spec.behavior.as_ref(), history, seen.now);
    let (is, reason, message) = limited.able;
    set(&mut status, ABLE, is, reason, message, seen.now);
    let (is, reason, message) = limited.limited;
    set(&mut status, LIMITED, is, reason, message, seen.now);
    let reason = if best.replicas > range.current {
        format!("{} above target", best.metric)
    } else {
        "All metrics below target".to_owned()
    };
    status.desired_replicas = range.current;
    let (from, to) = (range.current, limited.replicas);
    let rescale = (from != to).then_some(Rescale { from, to, reason });
    Decision { status, rescale, warnings }
}

impl Decision {
    /// The new number is set.
    pub(super) fn rescaled(&mut self, rescale: &Rescale, history: &mut History, now: Timestamp) {
        let to = rescale.to;
        let message = format!("the HPA controller was able to update the target scale to {to}");
        set(&mut self.status, ABLE, true, "SucceededRescale", &message, now);
        self.status.desired_replicas = to;
        self.status.last_scale_time = Some(Time(now));
        history.changes.push((now, to.saturating_sub(rescale.from)));
    }

    pub(super) fn not_rescaled(&mut self, rescale: &Rescale, cause: &str, now: Timestamp) {
        let message = format!("the HPA controller was unable to update the target scale: {cause}");
        if set(&mut self.status, ABLE, false, "FailedUpdateScale", &message, now) {
            let Rescale { to, reason, .. } = rescale;
            let message = format!("New size: {to}; reason: {reason}; error: {cause}");
            self.warnings.push(("FailedRescale", message));
        }
    }
}

struct Outcome {
    best: Option<Proposal>,
    statuses: Vec<MetricStatus>,
    /// The first one, as reason and cause.
    failure: Option<(&'static str, String)>,
}

/// The metric that asks for most replicas counts.
fn proposals(seen: &Seen<'_>, current: i32) -> Outcome {
    let mut outcome = Outcome { best: None, statuses: Vec::new(), failure: None };
    let selector = seen.scale.status.as_ref().and_then(|status| status.selector.as_deref());
    if selector.unwrap_or_default().is_empty() {
        let cause = "the HPA target's scale is missing a selector".to_owned();
        outcome.failure = Some(("InvalidSelector", cause));
        return outcome;
    }
    let spec = seen.autoscaler.spec.as_ref();
    let behavior = spec.and_then(|spec| spec.behavior.as_ref());
    let tolerance = Tolerance {
        up: tolerance(behavior.and_then(|behavior| behavior.scale_up.as_ref())),
        down: tolerance(behavior.and_then(|behavior| behavior.scale_down.as_ref())),
    };
    let load = Load {
        replicas: current,
        pods: seen.pods,
        samples: seen.samples,
        tolerance,
        now: seen.now,
    };
    let metrics = spec.and_then(|spec| spec.metrics.as_deref()).unwrap_or_default();
    if metrics.is_empty() {
        outcome.failure = Some((FAILED, "no metrics are asked for".to_owned()));
    }
    for metric in metrics {
        match proposal(&load, metric) {
            Ok((proposal, status)) => {
                outcome.statuses.push(status);
                if outcome.best.as_ref().is_none_or(|best| proposal.replicas > best.replicas) {
                    outcome.best = Some(proposal);
                }
            }
            Err(cause) => outcome.failure = outcome.failure.or(Some((FAILED, cause))),
        }
    }
    outcome
}

const FAILED: &str = "FailedGetResourceMetric";

fn proposal(load: &Load<'_>, metric: &MetricSpec) -> Result<(Proposal, MetricStatus), String> {
    let cpu = metric.resource.as_ref().filter(|resource| resource.name == "cpu");
    let Some(cpu) = cpu else {
        return Err(format!("only the cpu of pods is measured here, not {}", named(metric)));
    };
    let proposal = propose(load, &cpu.target)
        .map_err(|cause| format!("failed to get cpu utilization: {cause}"))?;
    let status = MetricStatus {
        type_: "Resource".into(),
        resource: Some(ResourceMetricStatus {
            name: "cpu".into(),
            current: proposal.current.clone(),
        }),
        ..Default::default()
    };
    Ok((proposal, status))
}

fn named(metric: &MetricSpec) -> String {
    let resource = metric.resource.as_ref().map(|resource| &resource.name);
    let container = metric.container_resource.as_ref().map(|resource| &resource.name);
    let pods = metric.pods.as_ref().map(|pods| &pods.metric.name);
    let object = metric.object.as_ref().map(|object| &object.metric.name);
    let external = metric.external.as_ref().map(|external| &external.metric.name);
    let name = resource.or(container).or(pods).or(object).or(external);
    format!("{} {}", metric.type_, name.map_or("", |name| name))
}

fn tolerance(rules: Option<&HPAScalingRules>) -> f64 {
    let own = rules.and_then(|rules| rules.tolerance.as_ref()).and_then(|Quantity(text)| {
        let nano = crate::builtin::quantity::Quantity::parse(text).ok()?.nano();
        Some(nano as f64 / 1e9)
    });
    own.unwrap_or(TOLERANCE)
}

/// Whether that says something new. Conditions stay in the order of their first appearance.
fn set(
    status: &mut HorizontalPodAutoscalerStatus,
    kind: &str,
    is: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> bool {
    let conditions = status.conditions.get_or_insert_default();
    let value = if is { "True" } else { "False" };
    let wanted = HorizontalPodAutoscalerCondition {
        type_: kind.into(),
        status: value.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_transition_time: Some(Time(now)),
    };
    let Some(held) = conditions.iter_mut().find(|condition| condition.type_ == kind) else {
        conditions.push(wanted);
        return true;
    };
    let news = held.status != wanted.status
        || held.reason != wanted.reason
        || held.message != wanted.message;
    let since = held.last_transition_time.clone().filter(|_| held.status == wanted.status);
    *held = wanted;
    if since.is_some() {
        held.last_transition_time = since;
    }
    news
}
