//! The Service by which gateways and Prometheus reach the endpoint picker.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::epp_deployment::{EXT_PROC, METRICS, METRICS_PORT};
use crate::model_service::names::{Names, TOKEN_UID_ANNOTATION};

/// `token` is the uid of the token Secret that we made.
pub(crate) fn epp_service(names: &Names, port: i32, token: Option<&str>) -> Service {
    let note = token.map(|uid| (TOKEN_UID_ANNOTATION.to_owned(), uid.to_owned()));
    Service {
        metadata: ObjectMeta {
            annotations: note.map(|note| BTreeMap::from([note])),
            ..names.epp_metadata(names.epp())
        },
        spec: Some(ServiceSpec {
            selector: Some(names.epp_selector()),
            ports: Some(vec![named(EXT_PROC, port), named(METRICS, METRICS_PORT)]),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn named(name: &str, number: i32) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: number,
        target_port: Some(IntOrString::Int(number)),
        protocol: Some("TCP".to_owned()),
        ..Default::default()
    }
}
