//! The kinds this program knows, each with its flags; the one place that lists them.

use clap::{Args, ValueEnum};
use windlass_api::serving::zerfoo_inference_service::DEFAULT_HOST_PATH;
use windlass_domains::inference_service::{
    DEFAULT_IMAGE, GpuMapping, InferenceServiceDomain, Settings,
};

#[cfg(test)]
mod tests;

/// Settings of the kinds.
#[derive(Debug, Clone, Args)]
#[group(id = "kinds")]
pub(crate) struct Flags {
    /// Image of ZerfooInferenceServices that name none
    #[arg(
        long,
        env = "WINDLASS_ZERFOO_IMAGE",
        default_value = DEFAULT_IMAGE,
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
    /// Directories of nodes, comma-separated, that ZerfooInferenceServices may use as a cache, with
    /// all that is below them; empty forbids it
    #[arg(
        long,
        env = "WINDLASS_HOST_PATH_PREFIXES",
        value_name = "PATHS",
        value_delimiter = ',',
        default_value = DEFAULT_HOST_PATH,
        value_parser = host_path_prefix,
        help_heading = "ZerfooInferenceService"
    )]
    pub(crate) host_path_prefixes: Vec<String>,
}

fn host_path_prefix(text: &str) -> Result<String, String> {
    let path = text.trim();
    if path.is_empty() || (path.starts_with('/') && path.split('/').all(|name| name != "..")) {
        return Ok(path.to_owned());
    }
    Err("must start with / and not contain ..".to_owned())
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
            zerfoo_image: DEFAULT_IMAGE.to_owned(),
            require_auth: false,
            gpu_memory_resource: None,
            host_path_prefixes: vec![DEFAULT_HOST_PATH.to_owned()],
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
                // An empty list arrives as one empty text.
                host_path_prefixes: self
                    .host_path_prefixes
                    .iter()
                    .filter(|prefix| !prefix.is_empty())
                    .cloned()
                    .collect(),
                ..Settings::default()
            },
        }
    }
}
