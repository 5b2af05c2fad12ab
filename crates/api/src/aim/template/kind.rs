//! What the two kinds of templates have in common.

use k8s_openapi::api::core::v1::{EnvVar, LocalObjectReference};
use kube::Resource;
use serde::de::DeserializeOwned;

use super::{AimClusterServiceTemplate, AimServiceTemplate, TemplateSpec, TemplateStatus};

pub trait TemplateKind:
    Resource<DynamicType = ()> + DeserializeOwned + Clone + Send + Sync + 'static
{
    fn common(&self) -> &TemplateSpec;
    fn status(&self) -> Option<&TemplateStatus>;

    fn env(&self) -> &[EnvVar] {
        &[]
    }

    fn image_pull_secrets(&self) -> &[LocalObjectReference] {
        &[]
    }
}

impl TemplateKind for AimServiceTemplate {
    fn common(&self) -> &TemplateSpec {
        &self.spec.common
    }

    fn status(&self) -> Option<&TemplateStatus> {
        self.status.as_ref()
    }

    fn env(&self) -> &[EnvVar] {
        &self.spec.env
    }

    fn image_pull_secrets(&self) -> &[LocalObjectReference] {
        &self.spec.image_pull_secrets
    }
}

impl TemplateKind for AimClusterServiceTemplate {
    fn common(&self) -> &TemplateSpec {
        &self.spec.common
    }

    fn status(&self) -> Option<&TemplateStatus> {
        self.status.as_ref()
    }
}
