//! What Prometheus scrapes of the serving pods.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_api::foreign::pod_monitor::{
    PodMetricsEndpoint, PodMonitor, PodMonitorSpec, Relabeling,
};
use windlass_api::model::model_service::PodMonitoring;

use crate::model_service::names::{Names, Role};

pub(crate) fn pod_monitor(names: &Names, role: Role, settings: &PodMonitoring) -> PodMonitor {
    let name_label = "__meta_kubernetes_pod_label_app_kubernetes_io_name";
    PodMonitor {
        metadata: names.role_metadata(role),
        spec: PodMonitorSpec {
            selector: LabelSelector {
                match_labels: Some(names.role_selector(role)),
                ..Default::default()
            },
            pod_metrics_endpoints: vec![PodMetricsEndpoint {
                port: settings.port_name.clone(),
                path: settings.path.clone(),
                interval: settings.interval.clone(),
                relabelings: vec![Relabeling {
                    action: "replace".to_owned(),
                    source_labels: vec![name_label.to_owned()],
                    target_label: "model_service".to_owned(),
                }],
            }],
        },
    }
}
