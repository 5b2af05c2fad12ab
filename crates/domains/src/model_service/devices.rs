//! The devices that a serving pod asks for.

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use windlass_api::model::model_service::{AcceleratorType, Parallelism};

/// The resource by which the device plugin of a vendor offers its devices.
pub(super) fn resource_name(accelerator: AcceleratorType) -> Option<&'static str> {
    match accelerator {
        AcceleratorType::Nvidia => Some("nvidia.com/gpu"),
        AcceleratorType::Amd => Some("amd.com/gpu"),
        AcceleratorType::IntelGaudi => Some("habana.ai/gaudi"),
        AcceleratorType::Google => Some("google.com/tpu"),
        AcceleratorType::Cpu => None,
    }
}

/// Copies in other pods have devices of their own, so only the local ones count.
pub(super) fn count(parallelism: Parallelism) -> i32 {
    parallelism.tensor.max(1).saturating_mul(parallelism.data_local.max(1))
}

/// The spec's resources with the devices on top, in place of what it says about them.
pub(super) fn add_devices(
    resources: Option<&ResourceRequirements>,
    accelerator: AcceleratorType,
    parallelism: Parallelism,
) -> Option<ResourceRequirements> {
    let mut resources = resources.cloned().unwrap_or_default();
    if let Some(name) = resource_name(accelerator) {
        let amount = Quantity(count(parallelism).to_string());
        for list in [&mut resources.limits, &mut resources.requests] {
            list.get_or_insert_default().insert(name.to_owned(), amount.clone());
        }
    }
    Some(resources).filter(|resources| *resources != ResourceRequirements::default())
}
