//! The pool of serving pods from which the endpoint picker chooses.

use windlass_api::foreign::inference_pool::{
    EndpointPickerRef, InferencePool, InferencePoolSpec, Port, Selector,
};

use super::Blueprint;
use crate::model_service::names::Role;

/// Where the pool says which pods are its own.
pub(crate) const SELECTOR: &str = "/spec/selector/matchLabels";

/// `only` limits the pool to one role.
pub(crate) fn inference_pool(blueprint: Blueprint<'_>, only: Option<Role>) -> InferencePool {
    let Blueprint { names, wanted, .. } = blueprint;
    InferencePool {
        metadata: names.traffic_metadata(),
        spec: InferencePoolSpec {
            selector: Selector { match_labels: names.pool_selector(only) },
            target_ports: vec![Port { number: wanted.port }],
            endpoint_picker_ref: EndpointPickerRef {
                group: String::new(),
                kind: "Service".to_owned(),
                name: names.epp().to_owned(),
                port: Some(Port { number: wanted.epp.port }),
                failure_mode: wanted.epp.failure_mode.as_str().to_owned(),
            },
        },
        status: None,
    }
}
