//! The container that fetches the model before the server starts.

use k8s_openapi::api::core::v1::{Container, EnvVar};

use super::environment::variable;
use super::security::locked_down;
use super::{Blueprint, Pods, volumes};
use crate::own_image;

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
    let Blueprint { settings, wanted, .. } = pods.blueprint;
    let credentials = volumes::docker_config_paths(pods);
    let (command, args) = match own_image::is_own(&settings.kit_image) {
        true => own_program(wanted.plain_http),
        false => (words(&["/bin/sh", "-c"]), vec![script(wanted.plain_http, credentials.len())]),
    };
    Some(Container {
        name: UNPACK.to_owned(),
        image: Some(settings.kit_image.clone()),
        command: Some(command),
        args: Some(args),
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

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// It keeps no copy of what it fetches, and tries one set of credentials after the other by itself.
fn own_program(plain_http: bool) -> (Vec<String>, Vec<String>) {
    // The kubelet puts the values of the variables in.
    let mut args = words(&["kit", "unpack"]);
    args.extend(plain_http.then(|| "--plain-http".to_owned()));
    // Whatever it begins with, it is no flag.
    args.extend(words(&["-o", "-d", "$(MODEL_MOUNT_PATH)", "--", "$(OCI_MODEL_IMAGE)"]));
    (words(&[own_image::PROGRAM]), args)
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
