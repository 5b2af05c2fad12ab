//! The kinds this program knows, each with its flags; the one place that lists them.

use clap::{Args, ValueEnum};
use windlass_domains::inference_service::{GpuMapping, InferenceServiceDomain, Settings};

const ZERFOO_IMAGE: &str = "ghcr.io/zerfoo/zerfoo:0.1.0";

/// Settings of the kinds.
#[derive(Debug, Clone, Args)]
#[group(id = "kinds")]
pub(crate) struct Flags {
    /// Image of ZerfooInferenceServices that name none
    #[arg(
        long,
        env = "WINDLASS_ZERFOO_IMAGE",
        default_value = ZERFOO_IMAGE,
        help_heading = "ZerfooInferenceService"
    )]
    pub(crate) zerfoo_image: String,
    /// Refuse ZerfooInferenceServices without an auth block instead of serving them openly
    #[arg(
        long,
        env = "WINDLASS_REQUIRE_AUTH",
        num_args = 0..=1, require_equals = true, default_missing_value = "true",
        default_value_t = false,
        action = clap::ArgAction::Set,
        help_heading = "ZerfooInferenceService"
    )]
    pub(crate) require_auth: bool,
    /// Request `gpuMemory` as this extended resource in MiB, for plugins that share devices, instead
    /// of whole devices
    #[arg(
        long,
        env = "WINDLASS_GPU_MEMORY_RESOURCE",
        value_name = "RESOURCE",
        help_heading = "ZerfooInferenceService"
    )]
    pub(crate) gpu_memory_resource: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum KindName {
    #[value(name = "ZerfooInferenceService", alias = "zerfooinferenceservice", alias = "zis")]
    InferenceService,
}

impl KindName {
    pub(crate) const ALL: [Self; 1] = [Self::InferenceService];
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            zerfoo_image: ZERFOO_IMAGE.to_owned(),
            require_auth: false,
            gpu_memory_resource: None,
        }
    }
}

impl Flags {
    pub(crate) fn inference_service(&self) -> InferenceServiceDomain {
        InferenceServiceDomain {
            settings: Settings {
                default_image: self.zerfoo_image.clone(),
                require_auth: self.require_auth,
                gpu: match &self.gpu_memory_resource {
                    Some(resource) => GpuMapping::Memory { resource: resource.clone() },
                    None => GpuMapping::Devices,
                },
                ..Settings::default()
            },
        }
    }
}
