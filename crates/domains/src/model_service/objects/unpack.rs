//! The container that fetches the model before the server starts.

use k8s_openapi::api::core::v1::{Container, EnvVar};

use super::environment::variable;
use super::security::locked_down;
use super::{Blueprint, Pods, volumes};

pub(crate) const UNPACK: &str = "model-unpack";

const MODEL: &str = "OCI_MODEL_IMAGE";
const TARGET: &str = "MODEL_MOUNT_PATH";

/// The variables that the spec decides; the others are ours.
pub(crate) const OF_SPEC: [&str; 2] = [MODEL, TARGET];

/// Not where the administrator unpacks in another way, or there is nothing to unpack.
pub(super) fn is_wanted(pods: Pods<'_>) -> bool {
    let Blueprint { settings, spec, .. } = pods.blueprint;
    !settings.kit_image.is_empty() && !spec.model.image.is_empty()
}

pub(super) fn container(pods: Pods<'_>) -> Option<Container> {
    if !is_wanted(pods) {
        return None;
    }
    let credentials = volumes::docker_config_paths(pods);
    Some(Container {
        name: UNPACK.to_owned(),
        image: Some(pods.blueprint.settings.kit_image.clone()),
        command: Some(vec!["/bin/sh".to_owned(), "-c".to_owned()]),
        args: Some(vec![script(pods.blueprint.wanted.plain_http, credentials.len())]),
        env: Some(env(pods, &credentials)),
        volume_mounts: Some(volumes::unpack_mounts(pods)),
        security_context: Some(locked_down()),
        ..Default::default()
    })
}

/// What to unpack, and where to.
pub(crate) fn of_spec(pods: Pods<'_>) -> [EnvVar; 2] {
    [
        variable(MODEL, &pods.blueprint.spec.model.image),
        variable(TARGET, &pods.blueprint.wanted.mount_path),
    ]
}

fn env(pods: Pods<'_>, credentials: &[String]) -> Vec<EnvVar> {
    let mut env = Vec::from(of_spec(pods));
    env.push(variable("KITOPS_HOME", volumes::SCRATCH_PATH));
    if let Some(first) = credentials.first() {
        env.push(variable("DOCKER_CONFIG", first));
    }
    if credentials.len() > 1 {
        env.push(variable("DOCKER_CONFIGS", credentials.join(" ")));
    }
    env
}

/// The copy that fetching leaves behind is as large as the model, and of no use to the server.
fn script(plain_http: bool, credentials: usize) -> String {
    let transport = if plain_http { " --plain-http" } else { "" };
    let unpack = format!(r#"kit unpack "$OCI_MODEL_IMAGE"{transport} -o -d "$MODEL_MOUNT_PATH""#);
    let fetch = if credentials > 1 {
        // The tool takes one set of credentials at a time.
        format!(
            "fetched=no\n\
             for DOCKER_CONFIG in $DOCKER_CONFIGS; do\n  \
               export DOCKER_CONFIG\n  \
               if {unpack}; then fetched=yes; break; fi\n\
             done\n\
             [ \"$fetched\" = yes ]"
        )
    } else {
        unpack
    };
    format!("set -eu\nmkdir -p \"$KITOPS_HOME\"\n{fetch}\nrm -rf \"${{KITOPS_HOME:?}}\"/*\n")
}
