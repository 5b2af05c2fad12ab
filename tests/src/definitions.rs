//! Custom resource definitions, applied by a client: the embedded API needs no kubectl.

use std::{fs, process::Command};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::Value;

use crate::{cluster, eventually};

const AT_ONCE: usize = 8;
/// What our kinds make, read or refer to. Others have many more, and every test would read them.
const KINDS: [&str; 9] = [
    "ClusterServingRuntime",
    "DestinationRule",
    "Gateway",
    "HTTPRoute",
    "InferencePool",
    "InferenceService",
    "PodMonitor",
    "ServiceMonitor",
    "ServingRuntime",
];

/// Those that `windlass crds` prints.
pub(crate) fn ours() -> Vec<Value> {
    documents(&cluster::run(Command::new(cluster::binary()).arg("crds")), |_| true)
}

/// Those of the named sets that matter here.
pub(crate) fn of_others(names: &[&str]) -> Result<Vec<Value>, String> {
    let folders = xtask::cluster::ensure_crds(names).map_err(|error| format!("{error:#}"))?;
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let files = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    // By their text, as reading them takes a while.
    let wanted = |crd: &str| KINDS.iter().any(|kind| crd.contains(&format!("    kind: {kind}\n")));
    Ok(files.flat_map(|text| documents(&text, wanted)).collect())
}

fn documents(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<Value> {
    text.split("\n---")
        .filter(|document| document.contains("kind: CustomResourceDefinition") && wanted(document))
        .map(|document| serde_saphyr::from_str(document.trim_start_matches("---")).unwrap())
        .collect()
}

/// Returns when they are served.
pub(crate) async fn apply(client: &Client, definitions: &[Value]) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("test").force();
    let applied = stream::iter(definitions).map(|definition| {
        let (api, params) = (api.clone(), &params);
        let name = definition["metadata"]["name"].as_str().unwrap();
        async move { api.patch(name, params, &Patch::Apply(definition)).await }
    });
    let applied: Vec<_> = applied.buffer_unordered(AT_ONCE).try_collect().await.unwrap();
    for definition in applied {
        let name = definition.metadata.name.unwrap();
        let read = || async { api.get(&name).await.unwrap() };
        eventually(&format!("{name} to be served"), read, is_established).await;
    }
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}
