//! The kinds this program knows, each with its flags; the one place that lists them.

use clap::{Args, ValueEnum};
use windlass_api::{
    aim::template::{AimClusterServiceTemplate, AimServiceTemplate, TemplateKind},
    model::artifact::{self as artifact_api, Artifact, ArtifactKind, ModelArtifact},
    serving::zerfoo_inference_service::DEFAULT_HOST_PATH,
};
use windlass_domains::{
    aim::{service::ServiceDomain, template::TemplateDomain},
    artifact::{self, ArtifactDomain, DEFAULT_KIT_IMAGE},
    inference_service::{DEFAULT_IMAGE, GpuMapping, InferenceServiceDomain, Settings},
};
use windlass_engine::domain::Domain;

mod aim;
mod model_service;
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

    /// Image that packs the models of Artifacts and unpacks those of ModelServices, by a shell that
    /// calls its `kit`. If its name ends in `windlass`, its `windlass kit` is called without one. Empty
    /// leaves unpacking out, and Artifacts cannot be packed
    #[arg(
        long,
        env = "WINDLASS_KIT_IMAGE",
        default_value = DEFAULT_KIT_IMAGE,
        value_parser = model_service::optional_image,
        help_heading = "Artifact, ModelArtifact, ModelService"
    )]
    pub(crate) kit_image: String,
    /// Give up a run of an Artifact or ModelArtifact after this many seconds; never if not given
    #[arg(
        long,
        env = "WINDLASS_ARTIFACT_DEADLINE_SECONDS",
        value_name = "SECONDS",
        value_parser = clap::value_parser!(i64).range(1..),
        help_heading = "Artifact, ModelArtifact"
    )]
    pub(crate) artifact_deadline_seconds: Option<i64>,

    #[command(flatten)]
    pub(crate) model_service: model_service::Flags,

    #[command(flatten)]
    pub(crate) aim: aim::Flags,
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
    #[value(name = "ModelArtifact", alias = "modelartifact")]
    ModelArtifact,
    #[value(name = "Artifact", alias = "artifact")]
    Artifact,
    #[value(name = "ModelService", alias = "modelservice")]
    ModelService,
    #[value(name = "AIMServiceTemplate", alias = "aimservicetemplate", alias = "aimst")]
    AimServiceTemplate,
    #[value(
        name = "AIMClusterServiceTemplate",
        alias = "aimclusterservicetemplate",
        alias = "aimclst"
    )]
    AimClusterServiceTemplate,
    #[value(name = "AIMService", alias = "aimservice", alias = "aimsvc")]
    AimService,
}

/// Something to be done with the domain of a kind, whichever that is.
pub(crate) trait Visitor {
    type Output;
    fn visit<D: Domain>(self, domain: D) -> Self::Output;
}

impl KindName {
    pub(crate) const ALL: [Self; 7] = [
        Self::InferenceService,
        Self::ModelArtifact,
        Self::Artifact,
        Self::ModelService,
        Self::AimServiceTemplate,
        Self::AimClusterServiceTemplate,
        Self::AimService,
    ];

    /// The kind as manifests call it.
    pub(crate) fn of(kind: &str) -> Option<Self> {
        let named =
            |known: &Self| known.to_possible_value().is_some_and(|value| value.get_name() == kind);
        Self::ALL.into_iter().find(named)
    }

    /// What the API server asks of the name of a new object and the domain of an old one does not.
    pub(crate) fn check_new_name(self, name: &str) -> Result<(), &'static str> {
        match self {
            Self::ModelArtifact | Self::Artifact if name.len() > artifact_api::MAX_NAME => {
                Err(artifact_api::LONG_NAME)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn visit<V: Visitor>(self, flags: &Flags, visitor: V) -> V::Output {
        match self {
            Self::InferenceService => visitor.visit(flags.inference_service()),
            Self::ModelArtifact => visitor.visit(flags.artifact::<ModelArtifact>()),
            Self::Artifact => visitor.visit(flags.artifact::<Artifact>()),
            Self::ModelService => visitor.visit(flags.model_service.domain(&flags.kit_image)),
            Self::AimServiceTemplate => visitor.visit(flags.template::<AimServiceTemplate>()),
            Self::AimClusterServiceTemplate => {
                visitor.visit(flags.template::<AimClusterServiceTemplate>())
            }
            Self::AimService => visitor.visit(ServiceDomain { settings: flags.aim.settings() }),
        }
    }
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            zerfoo_image: DEFAULT_IMAGE.to_owned(),
            require_auth: false,
            gpu_memory_resource: None,
            host_path_prefixes: vec![DEFAULT_HOST_PATH.to_owned()],
            kit_image: DEFAULT_KIT_IMAGE.to_owned(),
            artifact_deadline_seconds: None,
            model_service: model_service::Flags::default(),
            aim: aim::Flags::default(),
        }
    }
}

impl Flags {
    fn artifact<K: ArtifactKind>(&self) -> ArtifactDomain<K> {
        ArtifactDomain::new(artifact::Settings {
            kit_image: self.kit_image.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            active_deadline_seconds: self.artifact_deadline_seconds,
        })
    }

    fn template<K: TemplateKind>(&self) -> TemplateDomain<K> {
        TemplateDomain::new(self.aim.settings())
    }

    fn inference_service(&self) -> InferenceServiceDomain {
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
