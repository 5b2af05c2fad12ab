//! The program's other commands, and its endpoints.

use std::{path::PathBuf, process::Command};

use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use windlass_engine::compare::difference;
use windlass_tests::{
    Need, Operator, Space, cluster,
    cluster::run_with_input,
    eventually, http,
    operator::{METRICS, Setup},
    until,
};

use crate::zis;

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

fn windlass(arguments: &[&str]) -> Result<String, String> {
    run_with_input(Command::new(cluster::binary()).args(arguments), "")
}

/// What a manifest becomes; its first document alone, the rest of a case is the cluster around it.
pub(crate) fn render(space: &Space, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let parts = text.split("\n---\n").map(|part| serde_saphyr::from_str::<Value>(part).unwrap());
    let mut object = parts.into_iter().find(|part| !part.is_null()).unwrap();
    object["metadata"]["namespace"] = json!(space.name);
    let mut command = Command::new(cluster::binary());
    let answer = run_with_input(command.args(["render", "-f", "-"]), &object.to_string());
    // Cases of specs that are refused have nothing to apply.
    documents(&answer.unwrap_or_default())
}

fn documents(rendered: &str) -> Vec<Value> {
    let documents = rendered.split("---\n").filter(|part| !part.trim().is_empty());
    documents.map(|part| serde_saphyr::from_str(part).unwrap()).collect()
}

/// The controller that writes it, which is its field manager.
pub(crate) fn manager(object: &Value) -> &str {
    let labels = &object["metadata"]["labels"];
    match labels["app.kubernetes.io/managed-by"].as_str().unwrap() {
        // Several controllers share this value.
        "aim-controller" => "aim-namespace-template-controller",
        manager => manager,
    }
}

fn api(space: &Space, object: &Value) -> Api<DynamicObject> {
    let (group, version) =
        object["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", "v1"));
    let kind = object["kind"].as_str().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if object["metadata"]["namespace"].is_null() {
        return Api::all_with(space.client.clone(), &resource);
    }
    Api::namespaced_with(space.client.clone(), &space.name, &resource)
}

/// As the operator applies it; returns what the API server made of it.
pub(crate) async fn apply(space: &Space, object: &Value) -> Value {
    let params = PatchParams::apply(manager(object)).force();
    let name = object["metadata"]["name"].as_str().unwrap();
    let live = api(space, object).patch(name, &params, &Patch::Apply(object)).await.unwrap();
    serde_json::to_value(live).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rendered_examples_are_accepted_by_the_api_server() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("render").await;
    let mut count = 0;
    for entry in std::fs::read_dir(examples()).unwrap() {
        let path = entry.unwrap().path();
        let file = path.to_str().unwrap();
        let rendered = windlass(&["render", "-n", &space.name, "-f", file]).unwrap();
        let dry_run = ["apply", "--dry-run=server", "--server-side", "-f", "-"];
        let answer = cluster.kubectl(&dry_run, &rendered);
        assert!(answer.contains("serverside-applied (server dry run)"), "{file}: {answer}");
        cluster.kubectl(&["-n", &space.name, "apply", "--dry-run=server", "-f", file], "");
        count += 1;
    }
    assert!(count >= 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn render_prints_what_the_operator_makes() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("same").await;
    let _operator = Operator::start(&cluster, &space).await;
    let mut count = 0;
    for entry in std::fs::read_dir(examples()).unwrap() {
        let path = entry.unwrap().path();
        let file = path.to_str().unwrap();
        cluster.kubectl(&["-n", &space.name, "apply", "-f", file], "");
        let rendered = windlass(&["render", "-n", &space.name, "-f", file]).unwrap();
        for rendered in documents(&rendered) {
            until(&format!("what {file} is rendered to"), || same(&space, &rendered)).await;
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

/// Whether the operator has made just this: every field, and no other of its own.
async fn same(space: &Space, rendered: &Value) -> Result<(), String> {
    let mut desired = rendered.clone();
    let live = match rendered["kind"].as_str() {
        // Its name depends on what identifies its parent in the cluster.
        Some("Job") => {
            let labels = rendered["metadata"]["labels"].as_object().unwrap();
            // All of them: two Jobs may differ in no other than the one that names the parent.
            let labels: Vec<String> = labels
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap()))
                .collect();
            let of_parent = ListParams::default().labels(&labels.join(","));
            api(space, rendered).list(&of_parent).await.unwrap().items.pop()
        }
        _ => api(space, rendered)
            .get_opt(rendered["metadata"]["name"].as_str().unwrap())
            .await
            .unwrap(),
    };
    let live = serde_json::to_value(live.ok_or("nothing")?).unwrap();
    desired["metadata"]["name"] = live["metadata"]["name"].clone();
    // Made without looking, so there is no record of fields to compare.
    if rendered["kind"] == "Secret" {
        return Ok(());
    }
    // Whose it is only the cluster can tell.
    if rendered["metadata"]["namespace"].is_string() {
        assert_eq!(live["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
        desired["metadata"]["ownerReferences"] = live["metadata"]["ownerReferences"].clone();
    }
    // The same is true of what was made without looking.
    let uid = "model.otterscale.io/token-secret-uid";
    if let Some(known) = live["metadata"]["annotations"].get(uid) {
        desired["metadata"]["annotations"][uid] = known.clone();
    }
    match difference(&desired, &live, manager(&desired), "") {
        None => Ok(()),
        Some(found) => Err(format!("{found:?}\n{desired}\n{live}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_install_is_accepted_by_the_api_server() {
    let Some(cluster) = crate::private(&[], &[Need::Kubectl]).await else { return };
    let manifests = windlass(&["manifests"]).unwrap();
    cluster.kubectl(&["apply", "--server-side", "-f", "-"], &manifests);
    let again = cluster.kubectl(&["diff", "--server-side", "-f", "-"], &manifests);
    assert_eq!(again, "", "applied twice it changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_tells_its_health_and_its_metrics() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("metrics").await;
    let setup = Setup::default().with(METRICS).with("--health-probe-bind-address=127.0.0.1:0");
    let operator = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "a", json!({})).await;
    zis::make_ready(&space, "a", 2).await;
    let probes = operator.address("probes").await;
    assert_eq!(http::get(&probes, "/healthz").unwrap(), "ok");
    assert_eq!(http::get(&probes, "/readyz").unwrap().lines().next(), Some("ok"));
    let metrics = http::get(&operator.address("metrics").await, "/metrics").unwrap();
    for want in [
        "windlass_reconciles_total{kind=\"ZerfooInferenceService\",outcome=\"success\"}",
        "windlass_reconcile_duration_seconds_bucket",
        "windlass_queue_depth{kind=\"ZerfooInferenceService\"}",
        "windlass_api_requests_total{verb=\"patch\",kind=\"deployments\",status=\"2xx\"}",
        "windlass_leader 1",
    ] {
        assert!(metrics.contains(want), "{want} in\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_without_a_cluster_waits_for_one() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("waits").await;
    let setup = Setup { server: Some("http://127.0.0.1:9".to_owned()), ..Setup::default() };
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    eventually(
        "it to say so",
        || async { operator.log() },
        |log| log.contains("cannot reach the Kubernetes API"),
    )
    .await;
    assert!(operator.is_running());
    assert!(operator.terminate());
}
