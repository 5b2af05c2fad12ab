//! Reads the children and what explains their state. Decides nothing; failures are kept.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Event, Pod, Secret, Service};
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::serving::zerfoo_inference_service::{SecretKeyRef, ZerfooInferenceService};
use windlass_engine::fetch::{Fetched, Reader, Selector, exists, get, list};
use windlass_engine::health::pods::{LogKey, log_requests};
use windlass_engine::kind::Kind;

use super::names::{NAME_LABEL, Names, Track};
use super::replicas;

/// Logs and events are asked of the API each time, and one pod's are usually like the next one's.
const PODS_TO_EXPLAIN: usize = 2;

/// Answers of the API as they came.
#[derive(Clone, Debug)]
pub struct Answers {
    pub primary: Fetched<Deployment>,
    pub canary: Fetched<Deployment>,
    pub service: Fetched<Service>,
    pub primary_service: Fetched<Service>,
    pub canary_service: Fetched<Service>,
    pub autoscaler: Fetched<HorizontalPodAutoscaler>,
    /// `None` where the API does not know routes.
    pub route: Option<Fetched<HttpRoute>>,
    pub pods: Fetched<Vec<Pod>>,
    pub events: Vec<Event>,
    pub logs: BTreeMap<LogKey, String>,
    /// Secrets that the pods need, looked up only while there is a pod to be missed.
    pub secrets: Vec<(String, Fetched<()>)>,
}

pub(super) async fn fetch(reader: &dyn Reader, service: &ZerfooInferenceService) -> Answers {
    let names = Names::of(service);
    let namespace = names.namespace();
    let track = |track| names.track(track);
    let primary = get::<Deployment>(reader, namespace, &track(Track::Primary)).await;
    let route = if reader.serves(&Kind::of::<HttpRoute>()) {
        Some(get(reader, namespace, &names.route()).await)
    } else {
        None
    };
    let selector = Selector::label(NAME_LABEL, names.name());
    let pods = list::<Pod>(reader, namespace, &selector).await;
    let known = pods.found().map_or(&[][..], Vec::as_slice);
    Answers {
        canary: get(reader, namespace, &track(Track::Canary)).await,
        service: get(reader, namespace, &names.service()).await,
        primary_service: get(reader, namespace, &track(Track::Primary)).await,
        canary_service: get(reader, namespace, &track(Track::Canary)).await,
        autoscaler: get(reader, namespace, &names.autoscaler()).await,
        events: events(reader, known).await,
        logs: logs(reader, known).await,
        secrets: secrets(reader, service, &primary).await,
        primary,
        route,
        pods,
    }
}

/// Events of pods that have a node but do not start; why a pod has no node it says itself.
async fn events(reader: &dyn Reader, pods: &[Pod]) -> Vec<Event> {
    let mut events = Vec::new();
    for pod in pods.iter().filter(|pod| is_stuck_on_its_node(pod)).take(PODS_TO_EXPLAIN) {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let selector = Selector::field("involvedObject.uid", uid);
        let found = list::<Event>(reader, pod.metadata.namespace.as_deref(), &selector).await;
        // Without events there is still the pod's own word.
        events.extend(found.found().into_iter().flatten().cloned());
    }
    events
}

pub(super) fn is_stuck_on_its_node(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    phase == Some("Pending") && node.is_some() && pod.metadata.deletion_timestamp.is_none()
}

async fn logs(reader: &dyn Reader, pods: &[Pod]) -> BTreeMap<LogKey, String> {
    let mut logs = BTreeMap::new();
    for key in log_requests(pods).into_iter().take(PODS_TO_EXPLAIN) {
        if let Ok(text) = reader.log(&key).await {
            logs.insert(key, text);
        }
    }
    logs
}

async fn secrets(
    reader: &dyn Reader,
    service: &ZerfooInferenceService,
    primary: &Fetched<Deployment>,
) -> Vec<(String, Fetched<()>)> {
    // Pods that run have found their secrets; asking again would cost a request each pass.
    if primary.found().is_some_and(runs_in_full) {
        return Vec::new();
    }
    let mut answers: Vec<(String, Fetched<()>)> = Vec::new();
    for SecretKeyRef { name, .. } in secret_refs(service) {
        if answers.iter().all(|(known, _)| known != name) {
            let namespace = service.metadata.namespace.as_deref();
            answers.push((name.clone(), exists::<Secret>(reader, namespace, name).await));
        }
    }
    answers
}

fn runs_in_full(deployment: &Deployment) -> bool {
    let status = deployment.status.as_ref();
    let available = status.and_then(|status| status.available_replicas).unwrap_or_default();
    available >= replicas::size(deployment)
}

fn secret_refs(service: &ZerfooInferenceService) -> impl Iterator<Item = &SecretKeyRef> {
    let auth = service.spec.auth.as_ref().and_then(|auth| auth.api_key_secret_ref.as_ref());
    auth.into_iter().chain(&service.spec.hugging_face_token_secret_ref)
}
