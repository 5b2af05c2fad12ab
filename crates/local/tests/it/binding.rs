use serde_json::{Value, json};
use windlass_local::controllers::Settings;

use crate::{
    api::{Answer, Api},
    controlled::{Controlled, PODS, pod},
};

const NODES: &str = "/api/v1/nodes";

fn node(gpus: &str) -> Value {
    let amounts = json!({"cpu": "1", "memory": "1Gi", "pods": "110", "nvidia.com/gpu": gpus});
    json!({"metadata": {"name": "here"}, "status": {"capacity": amounts, "allocatable": amounts}})
}

fn gpu(name: &str) -> Value {
    let resources = json!({"limits": {"nvidia.com/gpu": "1"}});
    pod(name, json!({"containers": [{"name": "c", "image": "i", "resources": resources}]}))
}

fn scheduled(answer: &Answer) -> Value {
    let conditions = answer.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == "PodScheduled").unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_get_the_node_when_there_is_one() {
    let cluster = Controlled::new(Settings::default()).await;
    let early = cluster.api.post(PODS, pod("early", json!({}))).await.is(201);
    let mut node = node("0");
    node.as_object_mut().unwrap().remove("status");
    cluster.api.post(NODES, node).await.is(201);
    cluster.api.post(PODS, pod("late", json!({}))).await.is(201);
    for name in ["early", "late"] {
        let path = format!("{PODS}/{name}");
        let bound = cluster.api.until(&path, |a| a.body["spec"]["nodeName"] == "here").await;
        assert_eq!(scheduled(&bound)["status"], "True");
    }
    let event = cluster.event("Scheduled").await;
    assert_eq!(event["source"]["component"], "default-scheduler");
    // Nothing was said while there was no node.
    assert_eq!(scheduled(&early), Value::Null);
    let path = "/api/v1/namespaces/default/events?fieldSelector=reason%3DFailedScheduling";
    assert_eq!(cluster.api.get(path).await.body["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_more_than_there_is_waits_until_somebody_goes() {
    let cluster = Controlled::new(Settings::default()).await;
    cluster.api.post(NODES, node("1")).await.is(201);
    let amounts = json!({"status": {"allocatable": {"nvidia.com/gpu": "1"}}});
    cluster.api.merge(&format!("{NODES}/here/status"), amounts).await.is(200);
    cluster.api.post(PODS, gpu("first")).await.is(201);
    let first = format!("{PODS}/first");
    cluster.api.until(&first, |a| a.body["spec"]["nodeName"] == "here").await;
    cluster.api.post(PODS, gpu("second")).await.is(201);
    let second = format!("{PODS}/second");
    let refused = cluster.api.until(&second, |a| scheduled(a)["status"] == "False").await;
    let condition = scheduled(&refused);
    assert_eq!(condition["reason"], "Unschedulable");
    let message = condition["message"].as_str().unwrap();
    let usual = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";
    assert!(message.starts_with(usual), "{message}");
    let event = cluster.event("FailedScheduling").await;
    assert_eq!((&event["message"], &event["type"]), (&condition["message"], &json!("Warning")));
    assert_eq!(refused.body["status"]["phase"], "Pending");

    let options = json!({"gracePeriodSeconds": 0});
    cluster.api.delete_with(&first, options).await.is(200);
    let bound = cluster.api.until(&second, |a| a.body["spec"]["nodeName"] == "here").await;
    assert_eq!(scheduled(&bound)["status"], "True");
}

#[tokio::test(flavor = "multi_thread")]
async fn processors_count_only_if_asked_for() {
    for (strict_resources, want) in [(false, "True"), (true, "False")] {
        let settings = Settings { strict_resources, ..Settings::default() };
        let cluster = Controlled::new(settings).await;
        cluster.api.post(NODES, node("0")).await.is(201);
        let amounts = json!({"status": {"allocatable": {"cpu": "1", "pods": "9"}}});
        cluster.api.merge(&format!("{NODES}/here/status"), amounts).await.is(200);
        let resources = json!({"requests": {"cpu": "2"}});
        let large = json!({"containers": [{"name": "c", "image": "i", "resources": resources}]});
        cluster.api.post(PODS, pod("large", large)).await.is(201);
        let path = format!("{PODS}/large");
        cluster.api.until(&path, |answer| scheduled(answer)["status"] == want).await;
    }
}

#[tokio::test]
async fn a_binding_is_for_the_pod_in_the_state_that_it_names() {
    let api = Api::new().await;
    let path = format!("{PODS}/p/binding");
    let binding = |uid: &Value, version: &Value| {
        json!({"metadata": {"name": "p", "uid": uid, "resourceVersion": version},
            "target": {"kind": "Node", "name": "n"}})
    };
    let made = api.post(PODS, pod("p", json!({}))).await.is(201).body;
    let (uid, version) = (&made["metadata"]["uid"], &made["metadata"]["resourceVersion"]);
    for (binding, want) in [
        (binding(&json!("u"), version), "UID in precondition: u, UID in object meta: "),
        (
            binding(uid, &json!("1")),
            "ResourceVersion in precondition: 1, ResourceVersion in object meta: ",
        ),
    ] {
        let refused = api.post(&path, binding).await.fails(409, "Conflict");
        assert_eq!(refused.body["details"]["kind"], "pods");
        assert!(refused.text.contains(want), "{}", refused.text);
    }
    api.post(&path, binding(uid, version)).await.is(201);
}

#[tokio::test]
async fn a_pod_behind_a_gate_says_so_and_gets_no_node() {
    let api = Api::new().await;
    let gated = pod("p", json!({"schedulingGates": [{"name": "ex.io/gate"}]}));
    let condition = scheduled(&api.post(PODS, gated).await.is(201));
    assert_eq!(
        (&condition["status"], &condition["reason"], &condition["message"]),
        (
            &json!("False"),
            &json!("SchedulingGated"),
            &json!("Scheduling is blocked due to non-empty scheduling gates")
        )
    );
    assert!(condition["lastTransitionTime"].is_string(), "{condition}");
    let binding = json!({"target": {"kind": "Node", "name": "n"}});
    let refused = api.post(&format!("{PODS}/p/binding"), binding).await.fails(409, "Conflict");
    assert_eq!(
        refused.body["message"],
        "Operation cannot be fulfilled on pods/binding \"p\": pod p has non-empty \
         .spec.schedulingGates"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_waits_for_its_claim() {
    let home = tempfile::tempdir().unwrap();
    let volumes = Some(home.path().to_owned());
    let cluster = Controlled::new(Settings { volumes, ..Settings::default() }).await;
    cluster.api.post(NODES, node("0")).await.is(201);
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    cluster.api.post(PODS, pod("p", json!({"volumes": volumes}))).await.is(201);
    let path = format!("{PODS}/p");
    let refused = cluster.api.until(&path, |a| scheduled(a)["status"] == "False").await;
    let message = scheduled(&refused)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("persistentvolumeclaim \"c\" not found"), "{message}");
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    cluster.api.post(claims, claim).await.is(201);
    cluster.api.until(&path, |a| a.body["spec"]["nodeName"] == "here").await;
}
