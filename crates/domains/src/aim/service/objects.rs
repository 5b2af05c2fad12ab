//! The children as struct literals, one function per object.

pub(super) mod derived_template;
pub(super) mod http_route;
pub(super) mod inference_service;

mod resources;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::aim::service::AimService;
use windlass_engine::labels::{COMPONENT, MANAGED_BY, NAME};

use super::compose::Served;
use crate::aim::names;

/// Under the name of the service.
fn metadata(service: &AimService, labels: BTreeMap<String, String>) -> ObjectMeta {
    ObjectMeta {
        name: service.metadata.name.clone(),
        namespace: service.metadata.namespace.clone(),
        labels: Some(labels),
        ..Default::default()
    }
}

/// Labels of all that is served from a template.
fn labels(served: Served<'_>) -> BTreeMap<String, String> {
    let source = served.source.name.as_deref().filter(|name| !name.is_empty());
    let model = source.unwrap_or(&served.template.spec.aim_image_name);
    let label = |key: &str, value: String| (key.to_owned(), value);
    BTreeMap::from([
        label(NAME, names::SERVICE.to_owned()),
        label(COMPONENT, names::SERVICE_COMPONENT.to_owned()),
        label(MANAGED_BY, names::MANAGER.to_owned()),
        label(names::TEMPLATE_LABEL, names::sanitize(&served.template.name)),
        label(names::MODEL_ID_LABEL, names::sanitize(model)),
    ])
}
