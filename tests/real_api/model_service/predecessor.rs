mod objects;

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Secret},
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_tests::{
    Operator, Space, audit, eventually, kubelet,
    operator::{METRICS, Setup},
};

use super::{OURS, create, everything, find, see, wait};
use objects::{DECODE, Of};

const MANAGER: &str = "manager";

/// As the predecessor writes: a plain create of the whole object.
async fn write(space: &Space, object: &Value) {
    let (group, version) =
        object["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", "v1"));
    let kind = object["kind"].as_str().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let client = space.client.clone();
    let api: Api<DynamicObject> = if kind.starts_with("Cluster") {
        Api::all_with(client, &resource)
    } else {
        Api::namespaced_with(client, &space.name, &resource)
    };
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
    api.create(&params, &serde_json::from_value(object.clone()).unwrap()).await.unwrap();
}

/// Its finalizer comes with an update of the whole service, and with it fields that nobody asked for.
async fn write_finalizer(space: &Space) -> ModelService {
    let mut service = space.get::<ModelService>("a").await.unwrap();
    service.metadata.finalizers = Some(vec!["model.otterscale.io/epp-cluster-rbac".to_owned()]);
    let mut service = serde_json::to_value(service).unwrap();
    service["spec"]["decode"]["resources"] = json!({});
    service["spec"]["prefill"]["resources"] = json!({});
    service["spec"]["prefill"]["parallelism"] = json!({});
    service["spec"]["inferencePool"]["endpointPicker"]["resources"] = json!({});
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
    let service = serde_json::from_value(service).unwrap();
    space.api::<ModelService>().replace("a", &params, &service).await.unwrap()
}

async fn write_status(space: &Space, service: &ModelService) {
    let generation = service.metadata.generation;
    let status = json!({
        "phase": "Ready", "observedGeneration": generation,
        "decodeReady": 2, "decodeReplicas": 2, "prefillReady": 1, "prefillReplicas": 1,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "AllReplicasReady",
            "message": "All 3 replicas are ready", "observedGeneration": generation,
            "lastTransitionTime": "2024-01-01T00:00:00Z",
        }],
    });
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..Default::default() };
    let patch = Patch::Merge(json!({ "status": status }));
    space.api::<ModelService>().patch_status("a", &params, &patch).await.unwrap();
}

fn is_ours(object: &Value) -> bool {
    let managers = object["metadata"]["managedFields"].as_array();
    let by = |who: &str| managers.into_iter().flatten().any(|entry| entry["manager"] == who);
    by("model-operator") && !by(MANAGER)
}

/// Names and uids of the pods there are.
async fn pods(space: &Space) -> BTreeMap<String, Option<String>> {
    let found = space.api::<Pod>().list(&ListParams::default().labels(OURS)).await.unwrap();
    found.iter().map(|pod| (pod.name_any(), pod.uid())).collect()
}

/// All that the predecessor leaves, with its pods running.
async fn leave_everything(space: &Space) -> Vec<Value> {
    create(space, "a", everything()).await;
    let service = write_finalizer(space).await;
    let objects = Of { service: &service, namespace: &space.name, split: true }.everything();
    for object in &objects {
        write(space, object).await;
    }
    kubelet::run_all_until(space, OURS, 6).await;
    let token = || space.get::<Secret>("a-epp-sa-metrics-reader-secret");
    let filled = |secret: &Option<Secret>| secret.as_ref().is_some_and(|s| s.data.is_some());
    eventually("the token", token, filled).await;
    write_status(space, &service).await;
    for name in ["a-decode", "a-prefill", "a-epp"] {
        let available = |now: &Value| now["status"]["availableReplicas"] == now["spec"]["replicas"];
        see(space, "Deployment", name, available).await;
    }
    let mut left = Vec::new();
    for object in &objects {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        left.push(find(space, kind.as_str().unwrap(), name.as_str().unwrap()).await.unwrap());
    }
    left
}

/// What the predecessor wanted is what is wanted; the Secret is not even looked at.
fn assert_content_stays(before: &Value, now: &Value) {
    let field = match before["kind"].as_str().unwrap() {
        "Secret" => "",
        "Deployment" => "/spec/template",
        "ConfigMap" => "/data",
        "Role" | "ClusterRole" => "/rules",
        "RoleBinding" | "ClusterRoleBinding" => "/subjects",
        "DestinationRule" => "/spec/host",
        _ => "/spec",
    };
    assert_eq!(now.pointer(field), before.pointer(field), "{field} of {before}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_the_predecessor_made_is_taken_over_in_place() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("whole").await;
    let left = leave_everything(&space).await;
    assert_eq!(left.len(), 17);
    let pods_before = pods(&space).await;

    let setup = Setup::default().with(METRICS);
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    wait(&space, "a", "EPPReady", "True", "DeploymentAvailable").await;
    wait(&space, "a", "Ready", "True", "AllReplicasReady").await;
    for before in &left {
        let kind = before["kind"].as_str().unwrap();
        let name = before["metadata"]["name"].as_str().unwrap();
        // Secrets are never read, so what others hold there stays theirs.
        let taken = |now: &Value| kind == "Secret" || is_ours(now);
        let now = see(&space, kind, name, taken).await;
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "{kind} {name}");
        assert_content_stays(before, &now);
    }
    assert_eq!(pods(&space).await, pods_before, "no pod was replaced");

    // Its rule asked for TLS on the metrics port too, which does not speak it.
    let rule = find(&space, "DestinationRule", "a-epp").await.unwrap();
    assert!(rule["spec"]["trafficPolicy"].get("tls").is_none(), "M20: {rule}");

    // The next pass, and another process, find nothing left to do.
    let settled = crate::quiet::settle(&cluster, &operator).await;
    operator.kill();
    operator.restart(&space, &setup);
    operator.wait_for_passes(1).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], []);
    assert!(
        !audit::writes(&cluster.audit_log, &operator.user).iter().any(|w| w.verb == "delete"),
        "nothing was deleted"
    );
    assert_eq!(pods(&space).await, pods_before, "no pod was replaced");

    // What it left is cleaned up with the service.
    let rbac = format!("{}-a-epp", space.name);
    space.delete::<ModelService>("a").await;
    eventually("its end", || space.get::<ModelService>("a"), Option::is_none).await;
    assert!(find(&space, "ClusterRole", &rbac).await.is_none());
    assert!(find(&space, "ClusterRoleBinding", &rbac).await.is_none());
}

/// As after a restore from a backup: its labels are all that tells whose they are.
#[tokio::test(flavor = "multi_thread")]
async fn m03_what_the_predecessor_made_is_adopted_without_its_owner() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("restored").await;
    let mut left = leave_everything(&space).await;
    left.retain(|object| object["metadata"]["ownerReferences"].is_array());
    left.retain(|object| object["kind"] != "Secret");
    for object in &left {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        let lost = json!({ "metadata": { "ownerReferences": null } });
        super::edit(&space, kind.as_str().unwrap(), name.as_str().unwrap(), &lost).await;
    }
    let pods_before = pods(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    let service = space.get::<ModelService>("a").await.unwrap();
    for before in &left {
        let kind = before["kind"].as_str().unwrap();
        let name = before["metadata"]["name"].as_str().unwrap();
        let adopted = |now: &Value| {
            now["metadata"]["ownerReferences"][0]["uid"].as_str() == service.uid().as_deref()
        };
        let now = see(&space, kind, name, adopted).await;
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "{kind} {name}");
    }
    wait(&space, "a", "Ready", "True", "AllReplicasReady").await;
    assert_eq!(pods(&space).await, pods_before, "no pod was replaced");
}

#[tokio::test(flavor = "multi_thread")]
async fn serving_pods_of_the_predecessor_are_not_replaced() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("taken").await;
    let service = create(&space, "a", json!({})).await;
    let of = Of { service: &service, namespace: &space.name, split: false };
    write(&space, &of.serving(DECODE)).await;
    let read = || async { space.get::<Deployment>("a-decode").await.unwrap() };
    let template =
        |d: &Deployment| serde_json::to_value(&d.spec.as_ref().unwrap().template).unwrap();
    let before = read().await;

    let _operator = Operator::start(&cluster, &space).await;
    wait(&space, "a", "Ready", "False", "PodsStarting").await;
    let ours = |deployment: &Deployment| is_ours(&serde_json::to_value(deployment).unwrap());
    let taken = eventually("the take-over", read, ours).await;
    assert_eq!(template(&taken), template(&before));
    assert_eq!(taken.uid(), before.uid());

    // With the next change of what the pods are, they get what is new.
    let change = json!({ "spec": { "engine": { "args": ["--max-model-len=4096"] } } });
    space.edit::<ModelService>("a", change).await;
    let is_new = |deployment: &Deployment| {
        let template = template(deployment);
        template["spec"]["containers"][0]["readinessProbe"].is_object()
            && template["metadata"]["labels"].get("app.kubernetes.io/version").is_none()
    };
    eventually("the new form", read, is_new).await;
}
