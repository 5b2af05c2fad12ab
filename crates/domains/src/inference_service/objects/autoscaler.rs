//! The autoscaler of the primary Deployment.

use k8s_openapi::api::autoscaling::v2::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, MetricSpec,
    MetricTarget, ResourceMetricSource,
};
use windlass_api::serving::zerfoo_inference_service::Autoscaling;

use crate::inference_service::names::{Names, Track};
use crate::inference_service::validate::Bounds;

pub(crate) fn autoscaler(
    names: &Names,
    bounds: Bounds,
    settings: &Autoscaling,
) -> HorizontalPodAutoscaler {
    let metrics = if settings.metrics.is_empty() {
        vec![cpu(settings.target_cpu_utilization_percentage)]
    } else {
        settings.metrics.clone()
    };
    HorizontalPodAutoscaler {
        metadata: names.metadata(names.autoscaler(), None),
        spec: Some(HorizontalPodAutoscalerSpec {
            scale_target_ref: CrossVersionObjectReference {
                api_version: Some("apps/v1".to_owned()),
                kind: "Deployment".to_owned(),
                name: names.track(Track::Primary),
            },
            min_replicas: Some(bounds.min),
            max_replicas: bounds.max,
            metrics: Some(metrics),
            behavior: settings.behavior.clone(),
        }),
        ..Default::default()
    }
}

fn cpu(percent: i32) -> MetricSpec {
    MetricSpec {
        type_: "Resource".to_owned(),
        resource: Some(ResourceMetricSource {
            name: "cpu".to_owned(),
            target: MetricTarget {
                type_: "Utilization".to_owned(),
                average_utilization: Some(percent),
                ..Default::default()
            },
        }),
        ..Default::default()
    }
}
