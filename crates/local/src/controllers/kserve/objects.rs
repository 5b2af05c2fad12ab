//! What an InferenceService becomes: a Deployment, its Service and, between bounds, an autoscaler.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy},
        autoscaling::v2::{
            CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec,
            MetricSpec, MetricTarget, ResourceMetricSource,
        },
        core::v1::{PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec},
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference},
        util::intstr::IntOrString,
    },
};
use kube::Resource;
use serde_json::Value;

use super::{kinds::InferenceService, pod::PORT};

pub(super) const NAME_LABEL: &str = "serving.kserve.io/inferenceservice";
const COMPONENT_LABEL: &str = "component";
const SOURCE: &str = "internal.serving.kserve.io/storage-initializer-sourceuri";
const AUTOSCALER: &str = "serving.kserve.io/autoscalerClass";
/// Where clients find it.
const SERVICE_PORT: i32 = 80;
/// The share of the requests that an autoscaler keeps to, in percent.
const USUAL_SHARE: i32 = 80;

pub(super) fn name(service: &InferenceService) -> String {
    format!("{}-predictor", service.metadata.name.as_deref().unwrap_or_default())
}

/// How many there are to be; with two numbers somebody chooses between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replicas {
    Fixed(i32),
    Between(i32, i32),
}

pub(super) fn replicas(service: &InferenceService) -> Replicas {
    let number = |name: &str| {
        let number = service.spec.pointer(&format!("/predictor/{name}"))?.as_i64()?;
        i32::try_from(number).ok()
    };
    // Without somebody to wake it up, none would stay none.
    let least = number("minReplicas").unwrap_or(1).max(1);
    let most = number("maxReplicas").unwrap_or(0);
    let class = service.metadata.annotations.as_ref().and_then(|all| all.get(AUTOSCALER));
    let alone = matches!(class.map(String::as_str), Some("none" | "external"));
    if most > least && !alone { Replicas::Between(least, most) } else { Replicas::Fixed(least) }
}

pub(super) fn deployment(
    service: &InferenceService,
    runtime: Option<&Value>,
    pod: PodSpec,
) -> Deployment {
    let metadata = metadata(service, runtime);
    Deployment {
        spec: Some(DeploymentSpec {
            replicas: match replicas(service) {
                Replicas::Fixed(replicas) => Some(replicas),
                Replicas::Between(..) => None,
            },
            selector: LabelSelector { match_labels: Some(selector(service)), ..Default::default() },
            strategy: strategy(service),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: metadata.labels.clone(),
                    annotations: metadata.annotations.clone(),
                    ..Default::default()
                }),
                spec: Some(pod),
            },
            ..Default::default()
        }),
        metadata,
        status: None,
    }
}

/// In front of the ports of the first container, the first of them at the usual one.
pub(super) fn service(
    service: &InferenceService,
    runtime: Option<&Value>,
    pod: &PodSpec,
) -> Service {
    let open = pod.containers.first().and_then(|container| container.ports.as_deref());
    let open = open.unwrap_or_default();
    let mut ports: Vec<_> = open
        .iter()
        .enumerate()
        .map(|(index, port)| ServicePort {
            name: port.name.clone(),
            port: if index == 0 { SERVICE_PORT } else { port.container_port },
            target_port: Some(IntOrString::Int(port.container_port)),
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".into())),
            app_protocol: port
                .name
                .as_deref()
                .filter(|name| speaks_http2(name))
                .map(|_| "kubernetes.io/h2c".into()),
            ..Default::default()
        })
        .collect();
    if ports.is_empty() {
        ports.push(ServicePort {
            name: Some("http".into()),
            port: SERVICE_PORT,
            target_port: Some(IntOrString::Int(PORT)),
            protocol: Some("TCP".into()),
            ..Default::default()
        });
    }
    Service {
        metadata: metadata(service, runtime),
        spec: Some(ServiceSpec {
            selector: Some(selector(service)),
            ports: Some(ports),
            ..Default::default()
        }),
        status: None,
    }
}

fn speaks_http2(port: &str) -> bool {
    port.contains("grpc") || port.contains("h2c")
}

pub(super) fn autoscaler(
    service: &InferenceService,
    runtime: Option<&Value>,
    least: i32,
    most: i32,
) -> HorizontalPodAutoscaler {
    let share = service.spec.pointer("/predictor/scaleTarget").and_then(Value::as_i64);
    let share = share.and_then(|share| i32::try_from(share).ok()).unwrap_or(USUAL_SHARE);
    let resource = service.spec.pointer("/predictor/scaleMetric").and_then(Value::as_str);
    HorizontalPodAutoscaler {
        metadata: metadata(service, runtime),
        spec: Some(HorizontalPodAutoscalerSpec {
            scale_target_ref: CrossVersionObjectReference {
                api_version: Some("apps/v1".into()),
                kind: "Deployment".into(),
                name: name(service),
            },
            min_replicas: Some(least),
            max_replicas: most,
            metrics: Some(vec![MetricSpec {
                type_: "Resource".into(),
                resource: Some(ResourceMetricSource {
                    name: resource.unwrap_or("cpu").into(),
                    target: MetricTarget {
                        type_: "Utilization".into(),
                        average_utilization: Some(share),
                        ..Default::default()
                    },
                }),
                ..Default::default()
            }]),
            ..Default::default()
        }),
        status: None,
    }
}

fn strategy(service: &InferenceService) -> Option<DeploymentStrategy> {
    let given = service.spec.pointer("/predictor/deploymentStrategy")?;
    serde_json::from_value(given.clone()).ok()
}

fn selector(service: &InferenceService) -> BTreeMap<String, String> {
    [("app".to_owned(), format!("isvc.{}", name(service)))].into()
}

/// The closer to the predictor something is said, the more it counts.
fn metadata(service: &InferenceService, runtime: Option<&Value>) -> ObjectMeta {
    let of = |value: Option<&Value>, field: &str| -> BTreeMap<String, String> {
        let given = value.and_then(|value| value.get(field)).cloned().unwrap_or_default();
        serde_json::from_value(given).unwrap_or_default()
    };
    let predictor = service.spec.get("predictor");
    let mut labels = of(runtime, "labels");
    labels.extend(service.metadata.labels.clone().unwrap_or_default());
    labels.extend(of(predictor, "labels"));
    labels.extend(selector(service));
    labels.insert(NAME_LABEL.into(), service.metadata.name.clone().unwrap_or_default());
    labels.insert(COMPONENT_LABEL.into(), "predictor".into());
    let mut annotations = of(runtime, "annotations");
    annotations.extend(service.metadata.annotations.clone().unwrap_or_default());
    annotations.extend(of(predictor, "annotations"));
    // What was applied to the one is not what was applied to the other.
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    let source = service.spec.pointer("/predictor/model/storageUri").and_then(Value::as_str);
    annotations.extend(source.map(|source| (SOURCE.to_owned(), source.to_owned())));
    ObjectMeta {
        name: Some(name(service)),
        namespace: service.metadata.namespace.clone(),
        labels: Some(labels),
        annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
        owner_references: service
            .controller_owner_ref(&())
            .map(|owner: OwnerReference| vec![owner]),
        ..Default::default()
    }
}
