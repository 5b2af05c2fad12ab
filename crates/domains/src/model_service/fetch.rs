//! Reads the children and what explains their state. Decides nothing; failures are kept.
//!
//! All of it comes from watch caches, except events and logs of pods that do not start. Secrets are
//! not read at all: what is missing shows in the pods.

use std::collections::BTreeMap;
use std::future::Future;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Pod, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use windlass_api::foreign::destination_rule::DestinationRule;
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::foreign::inference_pool::InferencePool;
use windlass_api::foreign::pod_monitor::PodMonitor;
use windlass_api::foreign::service_monitor::ServiceMonitor;
use windlass_engine::fetch::{Fetched, Reader, Selector, get, list};
use windlass_engine::health::pods::{LogKey, log_requests};
use windlass_engine::kind::Kind;

use super::names::{NAME_LABEL, Names, Role};
use super::objects::epp_deployment;

/// Logs and events are asked of the API each time, and one pod's are usually like the next one's.
const PODS_TO_EXPLAIN: usize = 2;

/// Answers of the API as they came. Kinds that the API may not know are `None` where it does not.
#[derive(Clone, Debug)]
pub struct Answers {
    pub decode: Fetched<Deployment>,
    pub prefill: Fetched<Deployment>,
    pub epp: Fetched<Deployment>,
    pub epp_account: Fetched<ServiceAccount>,
    pub epp_service: Fetched<Service>,
    pub pool: Option<Fetched<InferencePool>>,
    /// A pool under the picker's name, as very old versions made it.
    pub legacy_pool: Option<Fetched<InferencePool>>,
    pub route: Option<Fetched<HttpRoute>>,
    pub rule: Option<Fetched<DestinationRule>>,
    pub decode_monitor: Option<Fetched<PodMonitor>>,
    pub prefill_monitor: Option<Fetched<PodMonitor>>,
    pub service_monitor: Option<Fetched<ServiceMonitor>>,
    pub cluster_role: Fetched<ClusterRole>,
    pub cluster_role_binding: Fetched<ClusterRoleBinding>,
    /// The serving pods.
    pub pods: Fetched<Vec<Pod>>,
    /// The picker's pods, looked up only while some are missed.
    pub epp_pods: Fetched<Vec<Pod>>,
    pub events: Vec<Event>,
    pub logs: BTreeMap<LogKey, String>,
}

pub(super) async fn fetch(reader: &dyn Reader, names: &Names) -> Answers {
    let namespace = names.namespace();
    let (name, epp_name) = (names.name(), names.epp());
    let (decode, prefill) = (names.role(Role::Decode), names.role(Role::Prefill));
    let pools = reader.serves(&Kind::of::<InferencePool>());
    let routes = reader.serves(&Kind::of::<HttpRoute>());
    let rules = reader.serves(&Kind::of::<DestinationRule>());
    let pod_monitors = reader.serves(&Kind::of::<PodMonitor>());
    let service_monitors = reader.serves(&Kind::of::<ServiceMonitor>());
    let epp = get::<Deployment>(reader, namespace, epp_name).await;
    let epp_pods = epp_pods(reader, names, &epp).await;
    let pods = list::<Pod>(reader, namespace, &Selector::label(NAME_LABEL, name)).await;
    let known = [&pods, &epp_pods].map(|pods| pods.found().map_or(&[][..], Vec::as_slice));
    Answers {
        decode: get(reader, namespace, &decode).await,
        prefill: get(reader, namespace, &prefill).await,
        epp_account: get(reader, namespace, epp_name).await,
        epp_service: get(reader, namespace, epp_name).await,
        pool: if_served(pools, get(reader, namespace, name)).await,
        legacy_pool: if_served(pools, get(reader, namespace, epp_name)).await,
        route: if_served(routes, get(reader, namespace, name)).await,
        rule: if_served(rules, get(reader, namespace, epp_name)).await,
        decode_monitor: if_served(pod_monitors, get(reader, namespace, &decode)).await,
        prefill_monitor: if_served(pod_monitors, get(reader, namespace, &prefill)).await,
        service_monitor: if_served(service_monitors, get(reader, namespace, epp_name)).await,
        cluster_role: get(reader, None, &names.cluster_rbac()).await,
        cluster_role_binding: get(reader, None, &names.cluster_rbac()).await,
        events: events(reader, known).await,
        logs: logs(reader, known).await,
        epp,
        pods,
        epp_pods,
    }
}

/// Asking about a kind that the API does not know would cost a request and give no answer.
async fn if_served<T>(
    served: bool,
    answer: impl Future<Output = Fetched<T>>,
) -> Option<Fetched<T>> {
    if served { Some(answer.await) } else { None }
}

async fn epp_pods(
    reader: &dyn Reader,
    names: &Names,
    epp: &Fetched<Deployment>,
) -> Fetched<Vec<Pod>> {
    let is_short = |deployment: &Deployment| {
        let status = deployment.status.clone().unwrap_or_default();
        let updated = status.updated_replicas.unwrap_or_default();
        status.available_replicas.unwrap_or_default() < super::replicas::size(deployment)
            || updated < super::replicas::size(deployment)
    };
    if !epp.found().is_some_and(is_short) {
        return Fetched::Found(Vec::new());
    }
    let labels = epp_deployment::pod_selector(names);
    let selector = Selector { labels, ..Selector::default() };
    list(reader, names.namespace(), &selector).await
}

/// Events of pods whose volumes or network do not come; everything else a pod says itself.
async fn events(reader: &dyn Reader, pods: [&[Pod]; 2]) -> Vec<Event> {
    let mut events = Vec::new();
    for pod in
        pods.into_iter().flatten().filter(|pod| is_stuck_on_its_node(pod)).take(PODS_TO_EXPLAIN)
    {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let selector = Selector::field("involvedObject.uid", uid);
        let found = list::<Event>(reader, pod.metadata.namespace.as_deref(), &selector).await;
        // Without events there is still the pod's own word.
        events.extend(found.found().into_iter().flatten().cloned());
    }
    events
}

/// Placed, but not yet so far that its containers could be started.
pub(super) fn is_stuck_on_its_node(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let mut conditions = status.conditions.iter().flatten();
    let unprepared =
        conditions.any(|c| c.type_ == "PodReadyToStartContainers" && c.status == "False");
    status.phase.as_deref() == Some("Pending")
        && node.is_some()
        && unprepared
        && pod.metadata.deletion_timestamp.is_none()
}

async fn logs(reader: &dyn Reader, pods: [&[Pod]; 2]) -> BTreeMap<LogKey, String> {
    let mut logs = BTreeMap::new();
    for key in pods.into_iter().flat_map(log_requests).take(PODS_TO_EXPLAIN) {
        if let Ok(text) = reader.log(&key).await {
            logs.insert(key, text);
        }
    }
    logs
}
