//! Health of a HorizontalPodAutoscaler.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition,
};

use super::Inspection;
use crate::error::Error;
use crate::state::State;

/// Metrics of new pods take this long to arrive; longer means that nobody delivers them.
pub const METRICS_PATIENCE: SignedDuration = SignedDuration::from_mins(2);

pub fn autoscaler(scaler: Option<&HorizontalPodAutoscaler>, now: Timestamp) -> Inspection {
    let Some(scaler) = scaler else {
        let message = "HorizontalPodAutoscaler not found";
        return Inspection::failed(Error::missing_downstream("HPANotFound", message));
    };
    if let Some(leaving) = Inspection::terminating("HorizontalPodAutoscaler", &scaler.metadata) {
        return leaving;
    }
    if let Some(blocked) = is_false(scaler, "AbleToScale") {
        return Inspection::of(State::Degraded, "ScalingBlocked", text(blocked));
    }
    match is_false(scaler, "ScalingActive") {
        // Somebody set the target to zero on purpose.
        Some(idle) if idle.reason.as_deref() == Some("ScalingDisabled") => {
            Inspection::ready("ScalingDisabled", text(idle))
        }
        Some(waiting) if lasts_longer(waiting, now) => {
            Inspection::of(State::Degraded, "MetricsUnavailable", text(waiting))
        }
        Some(waiting) => Inspection::progressing("WaitingForMetrics", text(waiting)),
        None => Inspection::ready("AutoscalerActive", "Autoscaler is active"),
    }
}

fn lasts_longer(condition: &HorizontalPodAutoscalerCondition, now: Timestamp) -> bool {
    let since = condition.last_transition_time.as_ref().map(|time| time.0);
    since.is_some_and(|since| now.duration_since(since) >= METRICS_PATIENCE)
}

fn is_false<'a>(
    scaler: &'a HorizontalPodAutoscaler,
    type_: &str,
) -> Option<&'a HorizontalPodAutoscalerCondition> {
    let conditions = scaler.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_ && condition.status == "False")
}

fn text(condition: &HorizontalPodAutoscalerCondition) -> String {
    condition.message.clone().unwrap_or_default()
}
