//! The vLLM server.

use k8s_openapi::api::core::v1::{Container, ContainerPort, EnvVar};

use super::environment::{last_of_each_name, variable};
use super::probes::server_probes;
use super::security::locked_down;
use super::{Pods, container_port, volumes};
use crate::model_service::devices::add_devices;
use crate::model_service::validate::{parallelism, server_port};

pub(crate) const SERVER: &str = "vllm";

pub(super) fn container(pods: Pods<'_>) -> Container {
    let (spec, wanted) = (pods.blueprint.spec, pods.blueprint.wanted);
    let probes = server_probes(pods);
    Container {
        name: SERVER.to_owned(),
        image: Some(wanted.engine_image.clone()),
        image_pull_policy: spec.engine.image_pull_policy.clone().filter(|text| !text.is_empty()),
        command: Some(vec!["vllm".to_owned(), "serve".to_owned()]),
        args: Some(args(pods)),
        env: Some(env(pods)),
        ports: Some(ports(pods)),
        resources: add_devices(
            pods.spec.resources.as_ref(),
            spec.accelerator.type_,
            parallelism(pods.spec),
        ),
        startup_probe: probes.startup,
        readiness_probe: probes.readiness,
        liveness_probe: probes.liveness,
        volume_mounts: Some(volumes::server_mounts(pods)),
        security_context: Some(locked_down()),
        ..Default::default()
    }
}

/// The user's arguments come last, so that they have the last word.
fn args(pods: Pods<'_>) -> Vec<String> {
    let (spec, wanted) = (pods.blueprint.spec, pods.blueprint.wanted);
    let sizes = parallelism(pods.spec);
    let mut args = vec![wanted.mount_path.clone()];
    let mut pair = |flag: &str, value: String| args.extend([flag.to_owned(), value]);
    pair("--port", server_port(spec, pods.role).to_string());
    pair("--served-model-name", spec.model.name.clone());
    for (flag, size) in [
        ("--tensor-parallel-size", sizes.tensor),
        ("--data-parallel-size", sizes.data),
        ("--data-parallel-size-local", sizes.data_local),
    ] {
        if size > 1 {
            pair(flag, size.to_string());
        }
    }
    args.extend(spec.engine.args.iter().cloned());
    args
}

fn env(pods: Pods<'_>) -> Vec<EnvVar> {
    let sizes = parallelism(pods.spec);
    let mut env: Vec<EnvVar> =
        [("TP_SIZE", sizes.tensor), ("DP_SIZE", sizes.data), ("DP_SIZE_LOCAL", sizes.data_local)]
            .map(|(name, size)| variable(name, size.max(1).to_string()))
            .into();
    env.extend(pods.blueprint.spec.engine.env.iter().cloned());
    last_of_each_name(env)
}

fn ports(pods: Pods<'_>) -> Vec<ContainerPort> {
    let port = server_port(pods.blueprint.spec, pods.role);
    let nixl = pods.blueprint.wanted.nixl_port.filter(|nixl| *nixl != port);
    let nixl = nixl.map(|number| container_port("nixl-side", number));
    [container_port("http", port)].into_iter().chain(nixl).collect()
}
