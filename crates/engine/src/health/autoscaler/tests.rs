use serde_json::{Value, json};

use super::*;
use crate::error::Category::MissingDownstream;
use crate::health::tests::{brief, object};

const NOW: &str = "2026-01-01T00:10:00Z";

fn inspect(conditions: Value) -> (State, String) {
    let scaler: HorizontalPodAutoscaler = object(json!({
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}},
        "status": {"desiredReplicas": 1, "conditions": conditions},
    }));
    let (state, reason, _) = brief(autoscaler(Some(&scaler), NOW.parse().unwrap()));
    (state, reason)
}

#[test]
fn an_autoscaler_may_wait_for_metrics_but_not_for_ever() {
    let inactive = |since: &str| json!([{"type": "ScalingActive", "status": "False", "lastTransitionTime": since}]);
    for (conditions, state, reason) in [
        (json!([]), State::Ready, "AutoscalerActive"),
        (json!([{"type": "AbleToScale", "status": "False"}]), State::Degraded, "ScalingBlocked"),
        (inactive("2026-01-01T00:08:01Z"), State::Progressing, "WaitingForMetrics"),
        (inactive("2026-01-01T00:08:00Z"), State::Degraded, "MetricsUnavailable"),
        (
            json!([{"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled",
                    "lastTransitionTime": "2025-01-01T00:00:00Z"}]),
            State::Ready,
            "ScalingDisabled",
        ),
    ] {
        assert_eq!(inspect(conditions), (state, reason.into()));
    }
}

#[test]
fn a_missing_autoscaler_is_being_made() {
    let got = brief(autoscaler(None, NOW.parse().unwrap()));
    assert_eq!(got, (State::Progressing, "HPANotFound".into(), Some(MissingDownstream)));
}

#[test]
fn an_autoscaler_that_is_being_deleted_is_not_active() {
    let leaving: HorizontalPodAutoscaler =
        object(json!({"metadata": {"deletionTimestamp": NOW}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "d"}}}));
    let got = brief(autoscaler(Some(&leaving), NOW.parse().unwrap()));
    assert_eq!(got, (State::Progressing, "Terminating".into(), None));
}
