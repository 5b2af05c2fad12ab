//! Of what a pod template is made, and which of its parts are kept as they are.
//!
//! Loading a model takes long and devices are scarce, so pods are replaced only when the service
//! itself asks for something else: not because another operator wrote the Deployment before, nor
//! because this one has a new version. Therefore each Deployment carries two marks:
//!
//! - its *revision*, a hash of all that the spec and the settings say about its pods;
//! - its *form*, a hash of what is ours to choose: the version of our own ways, and the settings that
//!   matter only while a pod starts.
//!
//! A Deployment of the wanted revision and the present form is what we would write today, and every
//! change that somebody makes to it is put back. One of the wanted revision and another form keeps
//! its form: the version label, the server's probes, the shared memory, and the whole step that
//! unpacks the model (its script with TLS or without, its image and its credentials), or its absence,
//! are taken from the live template. When the revision changes the pods are replaced anyway, and get the present form.
//!
//! A Deployment without marks is of the operator before us. It counts as of the wanted revision if its
//! template in the form it has is the wanted one: then nothing is left that would have to change, and
//! nothing that it set would have to go. The service's status has no say in it, as a pass of ours may
//! have written that before the Deployment was taken over.
//!
//! What goes into a revision, and how, must never change, or every pod of every service is replaced.
//! Fields that are new in the spec do no harm as long as they are left out where they are not set. A
//! change of the parts that are kept must come with another [`WAYS`].

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, PodTemplateSpec};
use serde_json::{Value, json};
use windlass_api::model::model_service::Role as RoleSpec;
use windlass_engine::{names::hash, quantity};

use super::epp_config::ConfigFile;
use super::names::{FORM_ANNOTATION, REVISION_ANNOTATION, Role, VERSION_LABEL};
use super::objects::{Blueprint, Pods, server, unpack, volumes};

mod dropped;
#[cfg(test)]
mod tests;

const DIGITS: usize = 16;
const FORM_DIGITS: usize = 8;

/// Counts the ways in which we have written the parts that are kept.
const WAYS: u32 = 1;

/// The form of what the operator before us wrote.
const TAKEN_OVER: &str = "taken-over";

/// The marks of a Deployment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Marks {
    pub(super) revision: String,
    pub(super) form: String,
    /// Whether a Deployment without marks can be of this revision.
    adopts: bool,
    /// What a live step that unpacks a model must say to be kept.
    model: Vec<EnvVar>,
}

impl Marks {
    pub(super) fn annotations(&self) -> [(String, String); 2] {
        [
            (REVISION_ANNOTATION.to_owned(), self.revision.clone()),
            (FORM_ANNOTATION.to_owned(), self.form.clone()),
        ]
    }
}

pub(super) fn marks_of_role(pods: Pods<'_>) -> Marks {
    let settings = pods.blueprint.settings;
    let form = json!([WAYS, settings.kit_image, settings.plain_http]);
    Marks {
        revision: of_role(pods),
        form: hash(&form.to_string(), FORM_DIGITS),
        adopts: !asks_for_a_form(pods),
        model: unpack::of_spec(pods).into(),
    }
}

pub(super) fn marks_of_picker(blueprint: Blueprint<'_>, file: ConfigFile) -> Marks {
    let form = hash(&json!([WAYS]).to_string(), FORM_DIGITS);
    Marks { revision: of_picker(blueprint, file), form, adopts: true, model: Vec::new() }
}

/// Whether the spec speaks of the parts that are kept, which the operator before us did not offer.
fn asks_for_a_form(pods: Pods<'_>) -> bool {
    let insecure = pods.blueprint.spec.model.insecure;
    pods.spec.probes.is_some() || pods.spec.shared_memory.is_some() || insecure.is_some()
}

fn of_role(pods: Pods<'_>) -> String {
    let Blueprint { spec, wanted, settings, .. } = pods.blueprint;
    // How many pods there are and how they are replaced is not part of them.
    let role = RoleSpec { replicas: 1, strategy: None, ..pods.spec.clone() };
    let proxy = spec.routing_proxy.as_ref().filter(|_| pods.role == Role::Decode);
    let traces = proxy.is_some() && settings.tracing.enabled;
    hashed(&json!({
        "role": pods.role.as_str(),
        "model": spec.model,
        "engine": spec.engine,
        "engineImage": wanted.engine_image,
        "accelerator": spec.accelerator,
        "pods": role,
        "proxy": proxy.map(|proxy| json!([proxy, wanted.proxy_image])),
        "tracing": traces.then(|| tracing(pods.blueprint)),
    }))
}

fn of_picker(blueprint: Blueprint<'_>, file: ConfigFile) -> String {
    let Blueprint { wanted, settings, .. } = blueprint;
    let epp = &wanted.epp;
    hashed(&json!({
        "image": epp.image,
        "port": epp.port,
        "several": epp.replicas > 1,
        "resources": epp.resources,
        "config": file.hash(),
        "auth": settings.metrics_endpoint_auth,
        "tracing": settings.tracing.enabled.then(|| tracing(blueprint)),
    }))
}

fn tracing(blueprint: Blueprint<'_>) -> Value {
    let tracing = &blueprint.settings.tracing;
    json!([tracing.otel_endpoint, tracing.sampler, tracing.sampler_arg])
}

fn hashed(inputs: &Value) -> String {
    hash(&sorted(inputs).to_string(), DIGITS)
}

/// Maps as lists of pairs in the order of their keys, whatever order a build of the library keeps.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            pairs.into_iter().map(|(key, value)| json!([key, sorted(value)])).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// Takes over from a live Deployment of the wanted revision what its pods need not be replaced for.
/// Returns whether it is one.
pub(super) fn keep_live_form(
    marks: &mut Marks,
    template: &mut PodTemplateSpec,
    live: &Deployment,
) -> bool {
    let Some(live_template) = live.spec.as_ref().map(|spec| &spec.template) else { return false };
    let known = annotation(live, REVISION_ANNOTATION);
    if known.is_some_and(|known| known != marks.revision) {
        return false;
    }
    let form = annotation(live, FORM_ANNOTATION).unwrap_or(TAKEN_OVER);
    if known.is_some() && form == marks.form {
        return true;
    }
    let kept = in_live_form(template, live_template);
    if known.is_none() {
        let same = loads(&marks.model, live_template)
            && is_carried_out(&json!(kept), &json!(live_template))
            && !dropped::drops(live, &json!(kept));
        if !marks.adopts || !same {
            return false;
        }
    }
    form.clone_into(&mut marks.form);
    *template = kept;
    true
}

fn annotation<'a>(live: &'a Deployment, key: &str) -> Option<&'a str> {
    live.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Which model is unpacked, and where to, is the spec's word in a step that is kept as a whole. A pod
/// without that step loads whatever is put there.
fn loads(model: &[EnvVar], live: &PodTemplateSpec) -> bool {
    let Some(unpack) = live.spec.as_ref().and_then(unpack_of) else { return true };
    let of_spec = |variable: &&EnvVar| unpack::OF_SPEC.contains(&variable.name.as_str());
    unpack.env.iter().flatten().filter(of_spec).eq(model)
}

fn unpack_of(pod: &PodSpec) -> Option<&Container> {
    pod.init_containers.iter().flatten().find(|container| container.name == unpack::UNPACK)
}

/// Whether all that is wanted is there; what the server filled in besides does not matter.
fn is_carried_out(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().all(|(key, value)| {
            live.get(key).is_some_and(|live| is_carried_out(value, live)) || is_empty(value)
        }),
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted.iter().zip(live).all(|(wanted, live)| is_carried_out(wanted, live))
        }
        (Value::String(wanted), Value::String(live)) => {
            wanted == live || quantity::equal(wanted, live)
        }
        (wanted, live) => wanted == live,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        other => other.is_null(),
    }
}

fn in_live_form(template: &PodTemplateSpec, live: &PodTemplateSpec) -> PodTemplateSpec {
    let mut kept = template.clone();
    keep_version_label(&mut kept, live);
    if let (Some(pod), Some(live)) = (&mut kept.spec, &live.spec) {
        keep_unpacking(pod, live);
        keep_server(pod, live);
    }
    kept
}

fn keep_version_label(template: &mut PodTemplateSpec, live: &PodTemplateSpec) {
    let live = live.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    let version = live.and_then(|labels| labels.get(VERSION_LABEL));
    let labels = template.metadata.as_mut().and_then(|metadata| metadata.labels.as_mut());
    if let (Some(version), Some(labels)) = (version, labels) {
        labels.insert(VERSION_LABEL.to_owned(), version.clone());
    }
}

/// The step as it is, and none where there is none.
fn keep_unpacking(pod: &mut PodSpec, live: &PodSpec) {
    let is_unpack = |container: &Container| container.name == unpack::UNPACK;
    let live_steps = live.init_containers.as_deref().unwrap_or_default();
    let steps = pod.init_containers.get_or_insert_default();
    take(steps, live_steps, |step| &step.name, is_unpack);
    if steps.is_empty() {
        pod.init_containers = None;
    }
    keep_volumes(pod, live, volumes::is_for_unpacking);
}

fn keep_server(pod: &mut PodSpec, live: &PodSpec) {
    let is_server = |container: &&Container| container.name == server::SERVER;
    let Some(live_server) = live.containers.iter().find(is_server) else { return };
    let Some(server) = pod.containers.iter_mut().find(|container| is_server(&&**container)) else {
        return;
    };
    server.startup_probe.clone_from(&live_server.startup_probe);
    server.readiness_probe.clone_from(&live_server.readiness_probe);
    server.liveness_probe.clone_from(&live_server.liveness_probe);
    let is_shared = |name: &str| name == volumes::SHARED_MEMORY;
    let mounts = server.volume_mounts.get_or_insert_default();
    let live_mounts = live_server.volume_mounts.as_deref().unwrap_or_default();
    take(mounts, live_mounts, |mount| &mount.mount_path, |mount| is_shared(&mount.name));
    keep_volumes(pod, live, is_shared);
}

fn keep_volumes(pod: &mut PodSpec, live: &PodSpec, which: impl Fn(&str) -> bool) {
    let volumes = pod.volumes.get_or_insert_default();
    let live_volumes = live.volumes.as_deref().unwrap_or_default();
    take(volumes, live_volumes, |volume| &volume.name, |volume| which(&volume.name));
}

/// Replaces the items of a kind by the live ones. The order is the live one throughout, as even a
/// change of order would replace the pods.
fn take<T: Clone>(
    items: &mut Vec<T>,
    live: &[T],
    key: impl Fn(&T) -> &str,
    which: impl Fn(&T) -> bool,
) {
    items.retain(|item| !which(item));
    items.extend(live.iter().filter(|item| which(item)).cloned());
    let place = |item: &T| live.iter().position(|known| key(known) == key(item));
    items.sort_by_key(|item| place(item).unwrap_or(usize::MAX));
}
