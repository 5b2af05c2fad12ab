//! Reads what a template builds on, and how the asking of its image is going. Decides nothing;
//! failures are kept.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::aim::template::{Discovery, TemplateKind};
use windlass_api::foreign::serving_runtime::{
    ClusterServingRuntime, ServingRuntime, ServingRuntimeSpec,
};
use windlass_engine::error::Error;
use windlass_engine::fetch::{Fetched, Reader, Selector, get, list, list_now};
use windlass_engine::health::LogKey;
use windlass_engine::health::job::is_complete;
use windlass_engine::kind::Scope;
use windlass_engine::object::{controller, is_controlled_by};

use super::discovery::{RunsWith, Wanted, ending, is_answered, is_spent, lacks_inputs, remembered};
use super::objects::job::CONTAINER;
use super::runtime_kind;
use super::usage::{self, Users};
use crate::aim::catalogue::{self, Images};
use crate::aim::runtime_config::{self, Configs};
use crate::aim::{Settings, names};

/// Answers of the API as they came.
#[derive(Clone, Debug)]
pub struct Answers {
    pub(super) images: Images,
    pub(super) configs: Configs,
    /// Of this template, the newest first.
    pub(super) jobs: Fetched<Vec<Job>>,
    /// Names of the Jobs of a namesake of the other kind.
    pub(super) taken: Vec<String>,
    /// Of the Job that is asking; only while it has something to tell.
    pub(super) pods: Option<Fetched<Vec<Pod>>>,
    /// What it has printed, once it has succeeded.
    pub(super) output: Option<Result<Vec<u8>, Error>>,
    /// The image that runs by the stored answer; only asked for if nothing else tells which has given it.
    pub(super) served: Fetched<String>,
    /// Whether KServe is installed.
    pub(super) serves_runtime: bool,
    /// Asked for on behalf of derived templates only.
    pub(super) users: Option<Users>,
}

pub(super) fn scope<K: TemplateKind>(template: &K) -> Scope {
    match template.meta().namespace {
        Some(_) => Scope::Namespaced,
        None => Scope::Cluster,
    }
}

/// Where the Jobs of a template lie, and its runtime config if it is namespaced.
pub(super) fn home<'a, K: TemplateKind>(settings: &'a Settings, template: &'a K) -> &'a str {
    template.meta().namespace.as_deref().unwrap_or(&settings.operator_namespace)
}

pub(super) async fn fetch<K: TemplateKind>(
    settings: &Settings,
    reader: &dyn Reader,
    template: &K,
) -> Answers {
    let (spec, namespace) = (template.common(), template.meta().namespace.as_deref());
    let images = catalogue::fetch(reader, namespace, &spec.aim_image_name).await;
    let home = home(settings, template);
    let config = spec.runtime_config_name.as_deref();
    let configs = runtime_config::fetch(reader, home, config).await;
    let (jobs, taken) = jobs(reader, home, template).await;
    let wanted = wanted(settings, template, &images, &configs, &taken);
    let served = served(reader, template).await;
    let asked = wanted.as_ref().zip(jobs.found());
    let asked = asked.and_then(|(wanted, jobs)| Some((wanted, wanted.asked(jobs)?)));
    let course = asked.map(|(_, job)| (job, ending(job)));
    let known = remembered(template, &served, &images.resolve(), course);
    let told = asked.filter(|(wanted, job)| is_telling(known.as_ref(), wanted, job));
    let told = told.map(|(_, job)| job);
    let pods = match told {
        Some(job) => Some(pods(reader, home, job).await),
        None => None,
    };
    let finished = told.filter(|job| is_complete(job)).zip(pods.as_ref());
    Answers {
        output: match finished.and_then(|(_, pods)| succeeded(pods.found()?)) {
            Some(pod) => Some(reader.output(&log_key(home, pod)).await),
            None => None,
        },
        serves_runtime: reader.serves(&runtime_kind(scope(template))),
        users: usage::fetch(reader, template).await,
        configs,
        images,
        served,
        taken,
        jobs,
        pods,
    }
}

/// By the owner: in the operator's namespace a template of the cluster and one of the namespace may
/// have the same name. Beside the template's own, the names of those of the other kind.
async fn jobs<K: TemplateKind>(
    reader: &dyn Reader,
    home: &str,
    template: &K,
) -> (Fetched<Vec<Job>>, Vec<String>) {
    let name = template.meta().name.as_deref().unwrap_or_default();
    let selector = Selector::label(names::TEMPLATE_LABEL, &names::sanitize(name));
    let mut found = list::<Job>(reader, Some(home), &selector).await;
    let mut taken = Vec::new();
    if let Fetched::Found(jobs) = &mut found {
        let is_foreign =
            |job: &&Job| controller(&job.metadata).is_some_and(|owner| owner.kind != K::kind(&()));
        taken =
            jobs.iter().filter(is_foreign).filter_map(|job| job.metadata.name.clone()).collect();
        jobs.retain(|job| is_controlled_by(&job.metadata, template.meta()));
        jobs.sort_by(|a, b| {
            let key =
                |job: &Job| (job.metadata.creation_timestamp.clone(), job.metadata.name.clone());
            key(b).cmp(&key(a))
        });
    }
    (found, taken)
}

/// What the image would be asked with now.
pub(super) fn wanted<K: TemplateKind>(
    settings: &Settings,
    template: &K,
    images: &Images,
    configs: &Configs,
    taken: &[String],
) -> Option<Wanted> {
    let image = images.resolve().ok()??;
    let config = configs.resolve(settings.resolution);
    let runs_with = RunsWith::of(template, config.config());
    Some(Wanted::of(template, &image.spec.image, &runs_with, taken))
}

/// Whether a Job has something to tell: neither is its answer known nor its failure.
fn is_telling(known: Option<&Discovery>, wanted: &Wanted, job: &Job) -> bool {
    !is_answered(known, &wanted.inputs) && !is_spent(known, job)
}

async fn served<K: TemplateKind>(reader: &dyn Reader, template: &K) -> Fetched<String> {
    if !lacks_inputs(template) || !reader.serves(&runtime_kind(scope(template))) {
        return Fetched::Missing;
    }
    let name = template.meta().name.as_deref().unwrap_or_default();
    match template.meta().namespace.as_deref() {
        Some(namespace) => match get::<ServingRuntime>(reader, Some(namespace), name).await {
            Fetched::Found(runtime) => runs(template, &runtime.metadata, &runtime.spec),
            Fetched::Missing => Fetched::Missing,
            Fetched::Failed(error) => Fetched::Failed(error),
        },
        None => match get::<ClusterServingRuntime>(reader, None, name).await {
            Fetched::Found(runtime) => runs(template, &runtime.metadata, &runtime.spec.0),
            Fetched::Missing => Fetched::Missing,
            Fetched::Failed(error) => Fetched::Failed(error),
        },
    }
}

/// A runtime of somebody else tells nothing of this template.
fn runs<K: TemplateKind>(
    template: &K,
    metadata: &ObjectMeta,
    spec: &ServingRuntimeSpec,
) -> Fetched<String> {
    let is_ours = is_controlled_by(metadata, template.meta());
    let container = spec.containers.first().filter(|_| is_ours);
    container.and_then(|container| container.image.clone()).map_or(Fetched::Missing, Fetched::Found)
}

/// Not from a cache: the pods of Jobs carry no label of ours.
async fn pods(reader: &dyn Reader, home: &str, job: &Job) -> Fetched<Vec<Pod>> {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    list_now(reader, Some(home), &Selector::label(names::JOB_NAME_LABEL, name)).await
}

fn succeeded(pods: &[Pod]) -> Option<&Pod> {
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    pods.iter().find(|pod| phase(pod).as_deref() == Some("Succeeded"))
}

fn log_key(home: &str, pod: &Pod) -> LogKey {
    LogKey {
        namespace: home.to_owned(),
        pod: pod.metadata.name.clone().unwrap_or_default(),
        container: CONTAINER.to_owned(),
        container_id: String::new(),
        restart_count: 0,
        previous: false,
    }
}
