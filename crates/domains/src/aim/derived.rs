//! Templates that were made from another one and the overrides of a service: their names, and who
//! wants them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::aim::parameters::RuntimeParameters;
use windlass_api::aim::service::AimService;
use windlass_engine::labels::MANAGED_BY;

use super::names;

fn override_hash(overrides: &RuntimeParameters) -> String {
    let gpu = overrides.gpu_selector.as_ref().map(|gpu| (gpu.count, gpu.model.as_str()));
    names::override_hash(overrides.metric.as_deref(), overrides.precision.as_deref(), gpu)
}

pub(super) fn name(base: &str, overrides: &RuntimeParameters) -> String {
    names::derived_template(base, &override_hash(overrides))
}

/// Where the template under [`name`] is one of another base; nothing if it cannot be.
pub(super) fn name_beside(base: &str, overrides: &RuntimeParameters) -> Option<String> {
    names::is_shared_by_bases(base)
        .then(|| names::derived_template_beside(base, &override_hash(overrides)))
}

/// By everything that the making of one leaves on it: a copy that somebody wrote may have its labels.
pub(super) fn is_derived(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    let has = |key: &str, value: &str| {
        labels.and_then(|labels| labels.get(key)).is_some_and(|found| found == value)
    };
    let name = metadata.name.as_deref().unwrap_or_default();
    let hash = name.rsplit_once("-ovr-").map(|(_, hash)| hash);
    metadata.namespace.is_some()
        && has(names::DERIVED_LABEL, "true")
        && has(MANAGED_BY, names::MANAGER)
        && hash.is_some_and(|hash| hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Whether a service names the template, was served by it, or may be about to ask for it.
pub(super) fn is_wanted_by(service: &AimService, template: &str) -> bool {
    let spec = &service.spec;
    let base = spec.template_ref.as_deref().map(str::trim).filter(|base| !base.is_empty());
    let status = service.status.as_ref();
    let resolved = status.and_then(|status| status.resolved_template.as_ref()?.name.as_deref());
    let derived = spec.overrides.as_ref().is_some_and(|overrides| match base {
        Some(base) => {
            name(base, overrides) == template
                || name_beside(base, overrides).as_deref() == Some(template)
        }
        // The base is the image's to say, and the image may say another one by now.
        None => template.ends_with(&format!("-ovr-{}", override_hash(overrides))),
    });
    service.metadata.deletion_timestamp.is_none()
        && (base == Some(template) || derived || resolved == Some(template))
}
