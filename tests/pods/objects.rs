//! Objects of any kind.

use std::{collections::BTreeSet, time::Duration};

use futures::{StreamExt, stream};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
    discovery::{Discovery, Scope, verbs},
};
use serde_json::Value;
use windlass_tests::wait;

const NAMESPACE: &str = "default";
const AT_ONCE: usize = 8;
/// So often a request is sent whose connection is cut.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) fn documents(text: &str) -> Vec<Value> {
    let parts = text.split("\n---\n").map(|part| serde_saphyr::from_str::<Value>(part).unwrap());
    parts.filter(|part| !part.is_null()).collect()
}

fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let version = object["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = object["kind"].as_str().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    // As kinds without a namespace are called here.
    if kind.starts_with("Cluster") {
        return Api::all_with(client.clone(), &resource);
    }
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::namespaced_with(client.clone(), NAMESPACE, &resource),
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// What came of a request that may be sent twice. One that had no answer is sent again, as any client
/// does, and told.
pub(crate) async fn answer<T, F>(mut send: impl FnMut() -> F) -> kube::Result<T>
where
    F: Future<Output = kube::Result<T>>,
{
    for _ in 1..TRIES {
        match send().await {
            Err(error @ (kube::Error::Service(_) | kube::Error::HyperError(_))) => {
                eprintln!("a request had no answer: {error:?}");
                wait::pass(PAUSE).await;
            }
            answered => return answered,
        }
    }
    send().await
}

pub(crate) async fn apply(client: &Client, object: &Value) {
    let params = PatchParams::apply("somebody").force();
    let (api, patch) = (api(client, object), Patch::Apply(object));
    let applied = answer(|| api.patch(name(object), &params, &patch)).await;
    applied.unwrap_or_else(|error| panic!("{error}: {object}"));
}

pub(crate) async fn get(client: &Client, object: &Value) -> Option<Value> {
    let api = api(client, object);
    let found = answer(|| api.get_opt(name(object))).await.unwrap();
    found.map(|found| serde_json::to_value(found).unwrap())
}

/// As `kubectl delete` does it; one that is gone already is as well.
pub(crate) async fn delete(client: &Client, object: &Value) {
    let (api, params) = (api(client, object), DeleteParams::background());
    match answer(|| api.delete(name(object), &params)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        deleted => drop(deleted.unwrap()),
    }
}

/// Every object there is, but for what comes and goes by itself.
pub(crate) async fn all(client: &Client) -> BTreeSet<String> {
    let discovery = answer(|| Discovery::new(client.clone()).run()).await.unwrap();
    let kinds = discovery.groups().flat_map(|group| group.recommended_resources());
    let kinds = kinds.filter(|(kind, can)| {
        can.supports_operation(verbs::LIST) && !matches!(&*kind.kind, "Event" | "Lease")
    });
    let listed = kinds.map(|(kind, can)| {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let has_namespace = can.scope == Scope::Namespaced;
        async move {
            let everything = ListParams::default();
            let listed = answer(|| api.list_metadata(&everything)).await.unwrap();
            let name = move |metadata: kube::api::ObjectMeta| {
                let namespace = metadata.namespace.filter(|_| has_namespace).unwrap_or_default();
                format!("{} {namespace}/{}", kind.kind, metadata.name.unwrap_or_default())
            };
            listed.items.into_iter().map(move |item| name(item.metadata)).collect::<Vec<_>>()
        }
    });
    let listed: Vec<_> =
        stream::iter(listed.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).collect().await;
    listed.into_iter().flatten().collect()
}

/// Whether it says so itself; what has no status is only read by others.
pub(crate) fn is_ready(object: &Value) -> Result<(), String> {
    let status = &object["status"];
    let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let ready = conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
    let fine = match object["kind"].as_str().unwrap() {
        "AIMRuntimeConfig" | "AIMImage" => true,
        "AIMServiceTemplate" => status["status"] == "Available",
        _ => ready,
    };
    if fine { Ok(()) } else { Err(format!("{}: {status:#}", object["metadata"]["name"])) }
}
