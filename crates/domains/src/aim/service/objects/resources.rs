//! What one server may use.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use windlass_api::aim::service::AimService;
use windlass_api::foreign::inference_service::InferenceService;

use crate::aim::service::compose::Observed;
use crate::aim::service::resolution::Template;

const GPU: &str = "amd.com/gpu";

/// Those of the service, of the template or of the image, as a whole, and the devices that the model
/// takes.
pub(super) fn resources(
    service: &AimService,
    template: &Template,
    observed: &Observed,
) -> Option<ResourceRequirements> {
    let of_image = || observed.image().map(|image| &image.spec.resources);
    // An image that has gone from the catalogue must not take its share from servers that run.
    let live = || of_live(observed.inference_service.present()?);
    let chosen = service.spec.resources.as_ref().or(template.spec.resources.as_ref());
    let mut resources = chosen.or_else(of_image).or_else(live).cloned().unwrap_or_default();
    let count = template.profile().and_then(|profile| profile.gpu_count).unwrap_or_default();
    fill_gpus(&mut resources, count);
    (resources != ResourceRequirements::default()).then_some(resources)
}

fn of_live(live: &InferenceService) -> Option<&ResourceRequirements> {
    live.spec.predictor.model.as_ref()?.resources.as_ref()
}

/// Kubernetes wants as many devices requested as allowed, so a number on one side counts for both.
fn fill_gpus(resources: &mut ResourceRequirements, count: i32) {
    let given = |amounts: &Option<BTreeMap<String, Quantity>>| amounts.as_ref()?.get(GPU).cloned();
    let (requested, allowed) = (given(&resources.requests), given(&resources.limits));
    let known = (count > 0).then(|| Quantity(count.to_string()));
    let Some(amount) = allowed.or(requested).or(known) else { return };
    for amounts in [&mut resources.requests, &mut resources.limits] {
        let amounts = amounts.get_or_insert_default();
        amounts.entry(GPU.to_owned()).or_insert_with(|| amount.clone());
    }
}
