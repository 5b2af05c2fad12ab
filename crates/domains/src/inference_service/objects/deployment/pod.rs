//! The pods of a track.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource,
    HTTPGetAction, HostPathVolumeSource, NodeAffinity, NodeSelector, NodeSelectorRequirement,
    NodeSelectorTerm, PersistentVolumeClaimVolumeSource, PodSecurityContext, PodSpec,
    PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile, SecretKeySelector,
    SecurityContext, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass_api::serving::zerfoo_inference_service::{SecretKeyRef, ZerfooInferenceServiceSpec};
use windlass_engine::runtime_config::merge_pull_secrets;

use super::Blueprint;
use crate::inference_service::aliases;
use crate::inference_service::gpu::Demand;
use crate::inference_service::names::Track;
use crate::inference_service::probes::Probes;
use crate::inference_service::validate::{Access, Wanted};

pub(crate) const PORT_NAME: &str = "http";
pub(crate) const API_KEY_VARIABLE: &str = "ZERFOO_API_KEY";

const TOKEN_VARIABLE: &str = "HF_TOKEN";
const CACHE: &str = "models";
const CACHE_PATH: &str = "/models";
const SCRATCH: &str = "tmp";
const SCRATCH_PATH: &str = "/tmp";
/// The image's own user.
const USER: i64 = 1000;
/// Twice what the server takes at most to finish its requests.
const GRACE_SECONDS: i64 = 60;

pub(super) fn template(blueprint: Blueprint<'_>, track: Track, model: &str) -> PodTemplateSpec {
    let Blueprint { names, spec, wanted, .. } = blueprint;
    // The operator's labels come last: a Deployment must select its own pods.
    let mut labels = spec.pod_labels.clone();
    labels.extend(names.labels(Some(track)));
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels),
            annotations: non_empty_map(&spec.pod_annotations),
            ..Default::default()
        }),
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            termination_grace_period_seconds: Some(GRACE_SECONDS),
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(USER),
                fs_group: Some(USER),
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".to_owned(),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            service_account_name: spec.service_account_name.clone(),
            // Each once: server-side apply refuses two entries of one name.
            image_pull_secrets: non_empty(merge_pull_secrets(&[], &spec.image_pull_secrets)),
            init_containers: prefetch(blueprint, model).map(|container| vec![container]),
            containers: vec![server(blueprint, model)],
            volumes: Some(vec![cache_volume(spec), scratch_volume()]),
            node_selector: non_empty_map(&spec.node_selector),
            affinity: affinity(spec.affinity.as_ref(), wanted.gpu.as_ref()),
            tolerations: non_empty(tolerations(&spec.tolerations, wanted.gpu.as_ref())),
            runtime_class_name: wanted.gpu.as_ref().and_then(|gpu| gpu.runtime_class.clone()),
            ..Default::default()
        }),
    }
}

fn server(blueprint: Blueprint<'_>, model: &str) -> Container {
    let Blueprint { spec, wanted, .. } = blueprint;
    let Probes { path, liveness_path, startup_failures, .. } = &wanted.probes;
    Container {
        name: "zerfoo".to_owned(),
        image: Some(image(blueprint)),
        args: Some(server_args(spec, wanted, model)),
        env: Some(server_env(spec, wanted)),
        ports: Some(vec![ContainerPort {
            name: Some(PORT_NAME.to_owned()),
            container_port: spec.port,
            ..Default::default()
        }]),
        startup_probe: Some(probe(&wanted.probes, path, *startup_failures)),
        readiness_probe: Some(probe(&wanted.probes, path, 3)),
        liveness_probe: Some(probe(&wanted.probes, liveness_path, 6)),
        resources: resources(wanted, wanted.gpu.as_ref()),
        security_context: Some(locked_down()),
        volume_mounts: Some(volume_mounts()),
        ..Default::default()
    }
}

/// Exactly one positional argument is allowed, and it comes last.
fn server_args(spec: &ZerfooInferenceServiceSpec, wanted: &Wanted, model: &str) -> Vec<String> {
    let port = spec.port.to_string();
    let mut args: Vec<String> =
        ["serve", "--port", &port, "--cache-dir", CACHE_PATH].map(str::to_owned).into();
    args.extend(spec.extra_args.iter().cloned());
    if wanted.access == Access::Anyone {
        args.push("--allow-no-auth".to_owned());
    }
    args.push(model.to_owned());
    args
}

fn server_env(spec: &ZerfooInferenceServiceSpec, wanted: &Wanted) -> Vec<EnvVar> {
    let key = match &wanted.access {
        Access::ApiKey(key) => Some(from_secret(API_KEY_VARIABLE, key)),
        Access::Custom | Access::Anyone => None,
    };
    with_own(fetching_env(spec).chain(key), &spec.env)
}

/// What downloading needs: a writable home, and the right to gated repositories.
fn fetching_env(spec: &ZerfooInferenceServiceSpec) -> impl Iterator<Item = EnvVar> {
    let home = EnvVar {
        name: "HOME".to_owned(),
        value: Some(SCRATCH_PATH.to_owned()),
        ..Default::default()
    };
    let token = spec.hugging_face_token_secret_ref.as_ref();
    [Some(home), token.map(|key| from_secret(TOKEN_VARIABLE, key))].into_iter().flatten()
}

/// The user has the last word on every variable.
fn with_own(ours: impl Iterator<Item = EnvVar>, own: &[EnvVar]) -> Vec<EnvVar> {
    let mut env: Vec<EnvVar> = ours.collect();
    for variable in own {
        match env.iter_mut().find(|known| known.name == variable.name) {
            Some(known) => known.clone_from(variable),
            None => env.push(variable.clone()),
        }
    }
    env
}

fn from_secret(name: &str, key: &SecretKeyRef) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: key.name.clone(),
                key: key.key.clone(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Fetches one quantisation, where the server would fetch every file of the repository.
fn prefetch(blueprint: Blueprint<'_>, model: &str) -> Option<Container> {
    let Blueprint { spec, wanted, .. } = blueprint;
    let quant = &spec.cache.as_ref()?.prefetch.as_ref()?.quant;
    // Validation has refused aliases that mean nothing to us.
    let repository = aliases::repository(model)?;
    let args = ["pull", "--quant", quant, "--cache-dir", CACHE_PATH, repository];
    Some(Container {
        name: "prefetch".to_owned(),
        image: Some(image(blueprint)),
        args: Some(args.map(str::to_owned).into()),
        // Proxies and mirrors matter most here.
        env: Some(with_own(fetching_env(spec), &spec.env)),
        // The same as the server's, so that the pod keeps its quality of service; but no devices.
        resources: resources(wanted, None),
        security_context: Some(locked_down()),
        volume_mounts: Some(volume_mounts()),
        ..Default::default()
    })
}

fn image(blueprint: Blueprint<'_>) -> String {
    let own = blueprint.spec.image.clone();
    own.unwrap_or_else(|| blueprint.settings.default_image.clone())
}

fn probe(probes: &Probes, path: &str, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(PORT_NAME.to_owned()),
            ..Default::default()
        }),
        period_seconds: Some(probes.period_seconds),
        timeout_seconds: Some(probes.timeout_seconds),
        failure_threshold: Some(failures),
        ..Default::default()
    }
}

/// Requests equal limits: the autoscaler measures against requests.
fn resources(wanted: &Wanted, gpu: Option<&Demand>) -> Option<ResourceRequirements> {
    let entries = [
        wanted.cpu.clone().map(|cpu| ("cpu".to_owned(), cpu)),
        wanted.memory.clone().map(|memory| ("memory".to_owned(), memory)),
        gpu.map(|gpu| (gpu.resource.clone(), Quantity(gpu.amount.to_string()))),
    ];
    let amounts: BTreeMap<_, _> = entries.into_iter().flatten().collect();
    (!amounts.is_empty()).then(|| ResourceRequirements {
        requests: Some(amounts.clone()),
        limits: Some(amounts),
        ..Default::default()
    })
}

fn locked_down() -> SecurityContext {
    SecurityContext {
        read_only_root_filesystem: Some(true),
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn volume_mounts() -> Vec<VolumeMount> {
    [(CACHE, CACHE_PATH), (SCRATCH, SCRATCH_PATH)]
        .map(|(name, path)| VolumeMount {
            name: name.to_owned(),
            mount_path: path.to_owned(),
            ..Default::default()
        })
        .into()
}

fn cache_volume(spec: &ZerfooInferenceServiceSpec) -> Volume {
    let cache = spec.cache.clone().unwrap_or_default();
    let volume = Volume { name: CACHE.to_owned(), ..Default::default() };
    if let Some(claim) = cache.persistent_volume_claim {
        let source = PersistentVolumeClaimVolumeSource {
            claim_name: claim.claim_name,
            ..Default::default()
        };
        Volume { persistent_volume_claim: Some(source), ..volume }
    } else if let Some(directory) = cache.host_path {
        let source = HostPathVolumeSource {
            path: directory.path,
            type_: Some("DirectoryOrCreate".to_owned()),
        };
        Volume { host_path: Some(source), ..volume }
    } else {
        let size_limit = cache.empty_dir.and_then(|directory| directory.size_limit);
        let source = EmptyDirVolumeSource { size_limit, ..Default::default() };
        Volume { empty_dir: Some(source), ..volume }
    }
}

fn scratch_volume() -> Volume {
    Volume {
        name: SCRATCH.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Default::default()
    }
}

fn tolerations(own: &[Toleration], gpu: Option<&Demand>) -> Vec<Toleration> {
    let for_devices = gpu.map(|gpu| Toleration {
        key: Some(gpu.taint.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoSchedule".to_owned()),
        ..Default::default()
    });
    for_devices.into_iter().chain(own.iter().cloned()).collect()
}

/// The user's constraints with the one on device memory added.
fn affinity(own: Option<&Affinity>, gpu: Option<&Demand>) -> Option<Affinity> {
    let Some(node) = gpu.and_then(|gpu| gpu.node.clone()) else { return own.cloned() };
    let mut affinity = own.cloned().unwrap_or_default();
    let node_affinity = affinity.node_affinity.get_or_insert_with(NodeAffinity::default);
    let required = node_affinity
        .required_during_scheduling_ignored_during_execution
        .get_or_insert_with(NodeSelector::default);
    require_in_every_term(&mut required.node_selector_terms, &node);
    Some(affinity)
}

/// A node has to meet one term, so the requirement goes into each of them.
fn require_in_every_term(terms: &mut Vec<NodeSelectorTerm>, node: &NodeSelectorRequirement) {
    if terms.is_empty() {
        terms.push(NodeSelectorTerm::default());
    }
    for term in terms {
        term.match_expressions.get_or_insert_default().push(node.clone());
    }
}

fn non_empty<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

fn non_empty_map(map: &BTreeMap<String, String>) -> Option<BTreeMap<String, String>> {
    (!map.is_empty()).then(|| map.clone())
}
