//! What Prometheus scrapes of the endpoint picker.

use k8s_openapi::api::core::v1::SecretKeySelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_api::foreign::service_monitor::{
    Authorization, Endpoint, ServiceMonitor, ServiceMonitorSpec,
};

use super::epp_deployment::METRICS;
use crate::model_service::names::Names;

/// `auth` presents the token of the picker's Secret.
pub(crate) fn service_monitor(names: &Names, auth: bool) -> ServiceMonitor {
    let token = || Authorization {
        credentials: Some(SecretKeySelector {
            name: names.token_secret(),
            key: "token".to_owned(),
            ..Default::default()
        }),
    };
    ServiceMonitor {
        metadata: names.epp_metadata(names.epp()),
        spec: ServiceMonitorSpec {
            selector: LabelSelector {
                match_labels: Some(names.epp_selector()),
                ..Default::default()
            },
            endpoints: vec![Endpoint {
                port: METRICS.to_owned(),
                interval: "30s".to_owned(),
                authorization: auth.then(token),
            }],
        },
    }
}
