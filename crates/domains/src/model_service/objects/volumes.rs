//! Volumes of the serving pods.

use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, KeyToPath, SecretVolumeSource, Volume, VolumeMount,
};
use windlass_api::model::model_service::Role as RoleSpec;

use super::{Pods, unpack};
use crate::model_service::validate::parallelism;

pub(super) const MODEL: &str = "model";
pub(super) const SCRATCH: &str = "model-tmp";
pub(super) const SCRATCH_PATH: &str = "/tmp/model-oci";
pub(crate) const SHARED_MEMORY: &str = "dshm";
pub(crate) const SHARED_MEMORY_PATH: &str = "/dev/shm";

/// Credentials of the first pull secret; those of the others have a number after it.
pub(super) const DOCKER_CONFIG: &str = "docker-config";
pub(super) const DOCKER_CONFIG_PATH: &str = "/.docker";

/// Whether the user must not give a volume of this role this name.
pub(crate) fn is_reserved(role: &RoleSpec, name: &str) -> bool {
    [MODEL, SCRATCH].contains(&name)
        || name.starts_with(DOCKER_CONFIG)
        || (name == SHARED_MEMORY && wants_shared_memory(role))
}

/// Where the containers of a pod have something else than the model.
pub(crate) fn taken_paths(pods: Pods<'_>) -> Vec<String> {
    let shared = wants_shared_memory(pods.spec).then(|| SHARED_MEMORY_PATH.to_owned());
    let mut taken = Vec::from_iter(shared);
    if unpack::is_wanted(pods) {
        taken.push(SCRATCH_PATH.to_owned());
        taken.extend(docker_config_paths(pods));
    }
    taken
}

/// The volumes that hold what the model is fetched with.
pub(crate) fn is_for_unpacking(name: &str) -> bool {
    name == SCRATCH || name.starts_with(DOCKER_CONFIG)
}

pub(super) fn volumes(pods: Pods<'_>) -> Vec<Volume> {
    let mut volumes = vec![scratch(MODEL, EmptyDirVolumeSource::default())];
    volumes.push(scratch(SCRATCH, EmptyDirVolumeSource::default()));
    volumes.extend(docker_configs(pods).map(|(index, secret)| docker_config(index, &secret)));
    if wants_shared_memory(pods.spec) {
        let asked = pods.spec.shared_memory.as_ref();
        let source = EmptyDirVolumeSource {
            medium: Some("Memory".to_owned()),
            size_limit: asked.and_then(|memory| memory.size_limit.clone()),
        };
        volumes.push(scratch(SHARED_MEMORY, source));
    }
    volumes.extend(pods.spec.volumes.iter().cloned());
    volumes
}

/// Where the server finds the volumes; the model cannot be changed by it.
pub(super) fn server_mounts(pods: Pods<'_>) -> Vec<VolumeMount> {
    let mut mounts = vec![VolumeMount {
        read_only: Some(true),
        ..mount(MODEL, &pods.blueprint.wanted.mount_path)
    }];
    if wants_shared_memory(pods.spec) {
        mounts.push(mount(SHARED_MEMORY, SHARED_MEMORY_PATH));
    }
    mounts.extend(pods.spec.volume_mounts.iter().cloned());
    mounts
}

/// Where unpacking finds them.
pub(super) fn unpack_mounts(pods: Pods<'_>) -> Vec<VolumeMount> {
    let mut mounts =
        vec![mount(SCRATCH, SCRATCH_PATH), mount(MODEL, &pods.blueprint.wanted.mount_path)];
    let configs = docker_configs(pods).map(|(index, _)| VolumeMount {
        read_only: Some(true),
        ..mount(&numbered(DOCKER_CONFIG, index), &numbered(DOCKER_CONFIG_PATH, index))
    });
    mounts.extend(configs);
    mounts
}

/// The folders that hold credentials, in the order of the pull secrets.
pub(super) fn docker_config_paths(pods: Pods<'_>) -> Vec<String> {
    docker_configs(pods).map(|(index, _)| numbered(DOCKER_CONFIG_PATH, index)).collect()
}

fn docker_configs(pods: Pods<'_>) -> impl Iterator<Item = (usize, String)> {
    pods.pull_secrets().into_iter().map(|secret| secret.name).enumerate()
}

fn docker_config(index: usize, secret: &str) -> Volume {
    Volume {
        name: numbered(DOCKER_CONFIG, index),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            items: Some(vec![KeyToPath {
                key: ".dockerconfigjson".to_owned(),
                path: "config.json".to_owned(),
                ..Default::default()
            }]),
            // The kubelet starts a pod without its pull secrets; only the first has ever been more.
            optional: (index > 0).then_some(true),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn numbered(name: &str, index: usize) -> String {
    if index == 0 { name.to_owned() } else { format!("{name}-{index}") }
}

/// Processes that share one model exchange their work there, and the default is far too small.
pub(crate) fn wants_shared_memory(role: &RoleSpec) -> bool {
    match &role.shared_memory {
        Some(memory) => memory.enabled.unwrap_or(true),
        None => parallelism(role).tensor > 1,
    }
}

fn scratch(name: &str, source: EmptyDirVolumeSource) -> Volume {
    Volume { name: name.to_owned(), empty_dir: Some(source), ..Default::default() }
}

fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount { name: name.to_owned(), mount_path: path.to_owned(), ..Default::default() }
}
