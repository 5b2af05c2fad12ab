//! The template of a service with overrides.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::aim::template::{AimServiceTemplate, AimServiceTemplateSpec};
use windlass_engine::labels::MANAGED_BY;

use crate::aim::names;

/// Without an owner: services that come to the same template share it.
pub(crate) fn derived_template(
    namespace: Option<&str>,
    name: &str,
    spec: &AimServiceTemplateSpec,
) -> AimServiceTemplate {
    AimServiceTemplate {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            labels: Some(BTreeMap::from([
                (MANAGED_BY.to_owned(), names::MANAGER.to_owned()),
                (names::DERIVED_LABEL.to_owned(), "true".to_owned()),
            ])),
            ..Default::default()
        },
        spec: spec.clone(),
        status: None,
    }
}
