//! What KServe runs for the services of a template.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EmptyDirVolumeSource, EnvVar, LocalObjectReference,
    ResourceRequirements, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::aim::template::{ModelSource, Profile};
use windlass_api::foreign::serving_runtime::{ModelFormat, ServingRuntimeSpec};
use windlass_engine::labels::{COMPONENT, MANAGED_BY, NAME};

use crate::aim::names;

const GPU: &str = "amd.com/gpu";
const SHARED_MEMORY: &str = "dshm";

/// What the runtime is made of.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Served<'a> {
    pub(in super::super) template: &'a str,
    /// Absent for templates of the cluster.
    pub(in super::super) namespace: Option<&'a str>,
    pub(in super::super) aim_image_name: &'a str,
    pub(in super::super) image: &'a str,
    pub(in super::super) sources: &'a [ModelSource],
    pub(in super::super) profile: Option<&'a Profile>,
    pub(in super::super) pull_secrets: &'a [LocalObjectReference],
}

pub(in super::super) fn metadata(served: Served<'_>) -> ObjectMeta {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    ObjectMeta {
        name: Some(served.template.to_owned()),
        namespace: served.namespace.map(str::to_owned),
        labels: Some(BTreeMap::from([
            label(NAME, names::RUNTIME),
            label(COMPONENT, names::RUNTIME_COMPONENT),
            label(MANAGED_BY, names::MANAGER),
            label(names::MODEL_ID_LABEL, &names::sanitize(served.aim_image_name)),
        ])),
        ..Default::default()
    }
}

pub(in super::super) fn spec(served: Served<'_>) -> ServingRuntimeSpec {
    let variable = |name: &str, value: &str| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        ..Default::default()
    };
    ServingRuntimeSpec {
        supported_model_formats: vec![ModelFormat {
            name: "aim".to_owned(),
            version: Some("1".to_owned()),
        }],
        image_pull_secrets: served.pull_secrets.to_vec(),
        containers: vec![Container {
            name: "kserve-container".to_owned(),
            image: Some(served.image.to_owned()),
            env: Some(vec![
                variable("AIM_MODEL_ID", model_id(served)),
                variable("VLLM_ENABLE_METRICS", "true"),
            ]),
            resources: Some(resources(served.profile)),
            ports: Some(vec![ContainerPort {
                container_port: 8000,
                name: Some("http".to_owned()),
                protocol: Some("TCP".to_owned()),
                ..Default::default()
            }]),
            volume_mounts: Some(vec![VolumeMount {
                name: SHARED_MEMORY.to_owned(),
                mount_path: "/dev/shm".to_owned(),
                ..Default::default()
            }]),
            ..Default::default()
        }],
        volumes: vec![Volume {
            name: SHARED_MEMORY.to_owned(),
            empty_dir: Some(EmptyDirVolumeSource {
                medium: Some("Memory".to_owned()),
                size_limit: Some(Quantity("8Gi".to_owned())),
            }),
            ..Default::default()
        }],
    }
}

/// Of the first model that can be fetched; one without a name is known by its image.
fn model_id<'a>(served: Served<'a>) -> &'a str {
    let primary = served.sources.iter().find(|source| !source.source_uri.is_empty());
    let name = primary.and_then(|source| source.name.as_deref());
    name.filter(|name| !name.is_empty()).unwrap_or(served.aim_image_name)
}

fn resources(profile: Option<&Profile>) -> ResourceRequirements {
    let count =
        profile.and_then(|profile| profile.metadata.as_ref()?.gpu_count).unwrap_or(0).max(0);
    let devices = BTreeMap::from([(GPU.to_owned(), Quantity(count.to_string()))]);
    ResourceRequirements {
        requests: Some(devices.clone()),
        limits: Some(devices),
        ..Default::default()
    }
}
