//! Reads what a service is made of and what was made for it. Decides nothing; failures are kept.
//!
//! What was asked for, found or not, wakes the service when it changes. So everything that a
//! judgement rests on is asked for, even where the answer seems known.

use windlass_api::aim::service::AimService;
use windlass_api::aim::template::{AimClusterServiceTemplate, AimServiceTemplate};
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::foreign::inference_service::InferenceService;
use windlass_engine::fetch::{Fetched, Reader, Selector, get, list};
use windlass_engine::kind::Kind;

use super::resolution;
use crate::aim::catalogue::{self, Images};
use crate::aim::derived;
use crate::aim::runtime_config::{self, Configs};
use crate::aim::template::{has_traces, is_served};

/// Answers of the API as they came. Kinds that the API may not know are `None` where it does not.
#[derive(Clone, Debug)]
pub struct Answers {
    pub(super) templates: Templates,
    /// Under the template's image name; `None` without a template.
    pub(super) images: Option<Images>,
    pub(super) configs: Configs,
    pub(super) inference_service: Option<Fetched<InferenceService>>,
    pub(super) route: Option<Fetched<HttpRoute>>,
}

/// What tells which template a service gets. What was not asked for is missing, or an empty list.
#[derive(Clone, Debug)]
pub(super) struct Templates {
    /// Under the service's image name, where it names no template itself.
    pub(super) images: Images,
    pub(super) own_base: Fetched<AimServiceTemplate>,
    pub(super) cluster_base: Fetched<AimClusterServiceTemplate>,
    /// What the derived template is called, or would be.
    pub(super) derived_name: String,
    pub(super) derived: Fetched<AimServiceTemplate>,
    /// All services of the namespace; asked for where the derived template may have to be made anew.
    pub(super) services: Fetched<Vec<AimService>>,
    /// Whether anything is served by it; asked for on the same occasion.
    pub(super) is_served: Fetched<bool>,
    pub(super) all_own: Fetched<Vec<AimServiceTemplate>>,
    pub(super) all_cluster: Fetched<Vec<AimClusterServiceTemplate>>,
}

pub(super) async fn fetch(reader: &dyn Reader, service: &AimService) -> Answers {
    let namespace = service.metadata.namespace.as_deref();
    let name = service.metadata.name.as_deref().unwrap_or_default();
    let templates = templates(reader, service).await;
    let resolution = resolution::resolve(service, &templates).ok();
    let spec = resolution.as_ref().and_then(|found| found.spec());
    let images = match spec {
        Some((spec, scope)) => Some(catalogue::fetch(reader, scope, &spec.aim_image_name).await),
        None => None,
    };
    let config = resolution::config_name(service, spec.map(|(spec, _)| spec));
    let configs = runtime_config::fetch(reader, namespace.unwrap_or_default(), config).await;
    let inference_service = if reader.serves(&Kind::of::<InferenceService>()) {
        Some(get(reader, namespace, name).await)
    } else {
        None
    };
    let route = if reader.serves(&Kind::of::<HttpRoute>()) {
        Some(get(reader, namespace, name).await)
    } else {
        None
    };
    Answers { images, configs, inference_service, route, templates }
}

async fn templates(reader: &dyn Reader, service: &AimService) -> Templates {
    let namespace = service.metadata.namespace.as_deref();
    let image = match resolution::named_template(service) {
        Some(_) => "",
        None => service.spec.aim_image_name.as_str(),
    };
    let mut answers = Templates {
        images: catalogue::fetch(reader, namespace, image).await,
        own_base: Fetched::Missing,
        cluster_base: Fetched::Missing,
        derived_name: String::new(),
        derived: Fetched::Missing,
        services: Fetched::Missing,
        is_served: Fetched::Missing,
        all_own: Fetched::Found(Vec::new()),
        all_cluster: Fetched::Found(Vec::new()),
    };
    let Ok(Some(base)) = resolution::base_name(service, &answers.images) else {
        return answers;
    };
    answers.own_base = get(reader, namespace, &base).await;
    answers.cluster_base = get(reader, None, &base).await;
    let Some(overrides) = &service.spec.overrides else { return answers };
    answers.derived_name = derived::name(&base, overrides);
    answers.derived = get(reader, namespace, &answers.derived_name).await;
    let beside = derived::name_beside(&base, overrides);
    if let Some(beside) = beside.filter(|name| resolution::goes_by(service, &answers, name)) {
        answers.derived = get(reader, namespace, &beside).await;
        answers.derived_name = beside;
    }
    let everything = Selector::default();
    if answers.derived.found().is_some() {
        if let Some(outdated) = resolution::outdated(service, &answers) {
            // Of what was never told anything nothing can be served.
            answers.is_served = match outdated.status.as_ref().is_some_and(has_traces) {
                true => is_served(reader, outdated).await,
                false => Fetched::Found(false),
            };
            answers.services = list(reader, namespace, &everything).await;
        }
        return answers;
    }
    // Where the API does not know a kind there is nothing of it.
    if reader.serves(&Kind::of::<AimServiceTemplate>()) {
        answers.all_own = list(reader, namespace, &everything).await;
    }
    if reader.serves(&Kind::of::<AimClusterServiceTemplate>()) {
        answers.all_cluster = list(reader, None, &everything).await;
    }
    answers
}
