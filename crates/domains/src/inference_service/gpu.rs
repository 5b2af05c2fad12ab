//! What `resources.gpuMemory` means to a scheduler that only counts devices.
//!
//! Kubernetes has no resource for device memory. Whole devices are requested, and a node constraint
//! keeps the pod off devices that are too small.

use k8s_openapi::api::core::v1::NodeSelectorRequirement;
use windlass_api::serving::zerfoo_inference_service::{Gpu, GpuVendor};
use windlass_engine::gpu::VRAM_TIERS;

#[cfg(test)]
mod tests;

const MIB: i128 = 1024 * 1024;

/// How device memory is requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// Whole devices plus a node constraint on their size.
    #[default]
    Devices,
    /// One extended resource that counts MiB, for clusters with a plugin that shares devices.
    Memory { resource: String },
}

/// What a pod asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Demand {
    pub resource: String,
    pub amount: i64,
    /// Nodes whose devices are large enough.
    pub node: Option<NodeSelectorRequirement>,
    /// Taint that keeps other pods off nodes with devices.
    pub taint: &'static str,
    pub runtime_class: Option<String>,
}

/// No known device of the vendor is that large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge {
    pub mebibytes: i64,
}

/// `bytes` is the memory of all devices of a pod together.
pub(super) fn demand(bytes: i128, gpu: &Gpu, mapping: &Mapping) -> Result<Demand, TooLarge> {
    let count = i64::from(gpu.count.max(1));
    let taint = resource_name(gpu.vendor);
    let runtime_class = gpu.runtime_class_name.clone();
    if let Mapping::Memory { resource } = mapping {
        return Ok(Demand {
            resource: resource.clone(),
            amount: mebibytes(bytes, 1),
            node: None,
            taint,
            runtime_class,
        });
    }
    let need = mebibytes(bytes, i128::from(count));
    let node = match gpu.vendor {
        GpuVendor::Nvidia => at_least_reported(need, gpu.memory_tolerance_percent),
        GpuVendor::Amd => nominal_tiers(need)?,
    };
    Ok(Demand { resource: taint.to_owned(), amount: count, node: Some(node), taint, runtime_class })
}

fn resource_name(vendor: GpuVendor) -> &'static str {
    match vendor {
        GpuVendor::Nvidia => "nvidia.com/gpu",
        GpuVendor::Amd => "amd.com/gpu",
    }
}

/// Rounded up, per device.
fn mebibytes(bytes: i128, devices: i128) -> i64 {
    let unit = MIB * devices;
    let needed = bytes.div_euclid(unit) + i128::from(bytes.rem_euclid(unit) != 0);
    i64::try_from(needed).unwrap_or(i64::MAX)
}

/// The label holds what the driver reports, a few percent below the size on the box.
fn at_least_reported(need: i64, tolerance_percent: i32) -> NodeSelectorRequirement {
    let percent = 100 - i128::from(tolerance_percent.clamp(0, 99));
    let reported = i128::from(need) * percent / 100;
    NodeSelectorRequirement {
        key: "nvidia.com/gpu.memory".to_owned(),
        operator: "Gt".to_owned(),
        // Less than one MiB is still some device.
        values: Some(vec![(reported - 1).max(0).to_string()]),
    }
}

/// The label holds the size on the box as text, so every size that will do is listed.
fn nominal_tiers(need: i64) -> Result<NodeSelectorRequirement, TooLarge> {
    let values: Vec<String> = VRAM_TIERS
        .iter()
        .filter(|gibibytes| i64::from(**gibibytes) * 1024 >= need)
        .map(|gibibytes| format!("{gibibytes}G"))
        .collect();
    if values.is_empty() {
        return Err(TooLarge { mebibytes: need });
    }
    Ok(NodeSelectorRequirement {
        key: "amd.com/gpu.vram".to_owned(),
        operator: "In".to_owned(),
        values: Some(values),
    })
}
