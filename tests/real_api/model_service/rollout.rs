use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use futures::StreamExt;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_tests::{
    Operator, Space, eventually, kubelet,
    operator::{METRICS, Setup},
    until,
};

use super::{condition, create, make_ready, of_kind, pods_of, run_pods, wait};

const IMAGE: &str = "vllm/vllm-openai:v9";

async fn change_engine(space: &Space, engine: Value) {
    space.edit::<ModelService>("a", json!({ "spec": { "engine": engine } })).await;
}

/// Asks for the new image in another second than that of the pods there are: their age, which tells
/// old from new, is counted in seconds.
async fn ask_for_new_pods(space: &Space) {
    let pods = space.api::<Pod>().list(&ListParams::default()).await.unwrap();
    let newest = pods.iter().filter_map(|pod| pod.creation_timestamp()).max().unwrap().0;
    eventually(
        "another second",
        async || jiff::Timestamp::now().as_second(),
        |now| *now > newest.as_second(),
    )
    .await;
    change_engine(space, json!({ "image": IMAGE })).await;
}

/// Selects the pods of the new image, once there is a set of them.
async fn new_pods(space: &Space) -> String {
    until("a set of new pods", || async {
        let sets = space.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap();
        let image = |set: &&ReplicaSet| serde_json::to_string(&set.spec).unwrap().contains(IMAGE);
        let hash = sets.iter().find(image).map(|set| set.labels()["pod-template-hash"].clone());
        hash.map(|hash| format!("pod-template-hash={hash}")).ok_or("none".to_owned())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn m08_a_new_image_that_never_starts_is_a_failure_with_the_cause_that_the_pod_gives() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("image").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    make_ready(&space, "a").await;

    ask_for_new_pods(&space).await;
    let text = format!("Back-off pulling image \"{IMAGE}\": manifest unknown");
    kubelet::hold_pods(&space, &new_pods(&space).await, 1, "ImagePullBackOff", &text).await;
    let failed = |object: &Value| object["status"]["phase"] == "Failed";
    let object = eventually("failure", || super::read(&space, "a"), failed).await;
    for type_ in ["Ready", "DecodeReady"] {
        let told = condition(&object, type_);
        assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("ImageNotFound")));
        assert!(told["message"].as_str().unwrap().contains(&text), "{told}");
    }
    assert_eq!(object["status"]["observedGeneration"], object["metadata"]["generation"]);

    // A wrong image does not stand in the way of the right one.
    change_engine(&space, json!({ "image": "vllm/vllm-openai:v10" })).await;
    let object = make_ready(&space, "a").await;
    assert_eq!(object["status"]["phase"], "Ready");
}

/// The Deployment of the picker says nothing new when its pod comes to wait for another reason.
#[tokio::test(flavor = "multi_thread")]
async fn m09_a_picker_that_does_not_start_is_told_with_the_cause_that_its_pod_gives() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("picker").await;
    let operator = Operator::start_with(&cluster, &space, &Setup::default().with(METRICS)).await;
    create(&space, "a", json!({})).await;
    wait(&space, "a", "EPPReady", "False", "RollingOut").await;
    crate::quiet::settle(&cluster, &operator).await;
    for (waits, reason) in
        [("ErrImagePull", "ImageNotFound"), ("CrashLoopBackOff", "CrashLoopBackOff")]
    {
        let text = format!("{waits}: example.com/epp:1: not found");
        kubelet::hold_pods(&space, "inferencepool=a-epp", 1, waits, &text).await;
        wait(&space, "a", "EPPReady", "False", reason).await;
    }
    make_ready(&space, "a").await;
    wait(&space, "a", "EPPReady", "True", "DeploymentAvailable").await;
}

/// As if the time had passed: the Deployment controller itself then finds the deadline exceeded.
async fn age(space: &Space, name: &str) {
    let deployment = space.get::<Deployment>(name).await.unwrap();
    let mut conditions = json!(deployment.status.unwrap().conditions);
    for condition in conditions.as_array_mut().unwrap() {
        condition["lastUpdateTime"] = json!("2024-01-01T00:00:00Z");
    }
    space.edit_status::<Deployment>(name, json!({ "conditions": conditions })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m08_a_rollout_past_its_deadline_has_failed_for_want_of_what_its_pod_lacks() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("deadline").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    make_ready(&space, "a").await;

    ask_for_new_pods(&space).await;
    let selector = new_pods(&space).await;
    let text = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu";
    let pod = until("a new pod", || async {
        let pods = space.api::<Pod>().list(&ListParams::default().labels(&selector)).await.unwrap();
        pods.items.first().map(ResourceExt::name_any).ok_or("none".to_owned())
    })
    .await;
    let unscheduled = json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled",
        "status": "False", "reason": "Unschedulable", "message": text }] });
    space.edit_status::<Pod>(&pod, unscheduled).await;
    let waits = |object: &Value| {
        condition(object, "DecodeReady")["message"].as_str().is_some_and(|now| now.contains(text))
    };
    eventually("the scheduler's words", || super::read(&space, "a"), waits).await;

    until("a deadline that has passed", || async {
        age(&space, "a-decode").await;
        let deployment = super::find(&space, "Deployment", "a-decode").await.unwrap();
        let conditions = deployment["status"]["conditions"].to_string();
        if conditions.contains("ProgressDeadlineExceeded") { Ok(()) } else { Err(conditions) }
    })
    .await;
    let object = wait(&space, "a", "Ready", "False", "ProgressDeadlineExceeded").await;
    assert_eq!(object["status"]["phase"], "Failed");
    let message = condition(&object, "Ready")["message"].as_str().unwrap();
    assert!(message.starts_with("decode: ") && message.contains(text), "{message}");
}

/// What happened, with the version of the object, which counts through all kinds.
type Story = Arc<Mutex<Vec<(u64, Happening)>>>;

#[derive(Clone, Debug)]
enum Happening {
    PoolIsNarrow(bool),
    /// Name, role and arguments.
    PodIsThere(String, String, String),
    PodIsGone(String),
}

fn told(object: &DynamicObject, deleted: bool) -> Happening {
    let name = object.name_any();
    if object.types.as_ref().is_some_and(|types| types.kind == "InferencePool") {
        let selector = &object.data["spec"]["selector"]["matchLabels"];
        return Happening::PoolIsNarrow(selector["llm-d.ai/role"] == "decode");
    }
    if deleted {
        return Happening::PodIsGone(name);
    }
    // A Deployment counts as a pod: from now on it may have one like this at any time.
    let template = object.data.pointer("/spec/template").unwrap_or(&object.data);
    let args = template["spec"]["containers"][0]["args"].as_array().unwrap();
    let length = args.iter().find(|arg| arg.to_string().contains("max-model")).unwrap();
    let component = &object.labels()["app.kubernetes.io/component"];
    Happening::PodIsThere(name, component.replace("model-", ""), length.to_string())
}

/// Takes notes for as long as the test runs.
fn record(api: Api<DynamicObject>, selector: &str, story: &Story) {
    let (params, story) = (WatchParams::default().labels(selector), story.clone());
    tokio::spawn(async move {
        let mut events = api.watch(&params, "0").await.unwrap().boxed();
        while let Some(Ok(event)) = events.next().await {
            let (object, deleted) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                _ => continue,
            };
            let version = object.resource_version().unwrap().parse().unwrap();
            story.lock().unwrap().push((version, told(&object, deleted)));
        }
    });
}

/// Tells the story again and returns in how many of its moments a decode and a prefill pod of two
/// revisions were there. In each of them the pool must have been narrow.
fn moments_apart(story: &Story) -> usize {
    let mut story = story.lock().unwrap().clone();
    story.sort_by_key(|(version, _)| *version);
    let (mut narrow, mut pods, mut apart) = (false, BTreeMap::new(), 0);
    for (version, happening) in story {
        match happening {
            Happening::PoolIsNarrow(is) => narrow = is,
            Happening::PodIsThere(name, role, args) => drop(pods.insert(name, (role, args))),
            Happening::PodIsGone(name) => drop(pods.remove(&name)),
        }
        let of = |role: &str| -> BTreeSet<&String> {
            pods.values().filter(|pod| pod.0 == role).map(|pod| &pod.1).collect()
        };
        let (decode, prefill) = (of("decode"), of("prefill"));
        if decode.iter().any(|one| prefill.iter().any(|other| one != other)) {
            apart += 1;
            assert!(
                narrow,
                "at version {version} the pool offers pods of two revisions: {pods:#?}"
            );
        }
    }
    apart
}

async fn is_narrow(space: &Space) -> bool {
    let pool = super::find(space, "InferencePool", "a").await.unwrap();
    pool["spec"]["selector"]["matchLabels"]["llm-d.ai/role"] == "decode"
}

/// Whether all pods of both roles are of this length and as many as are wanted.
async fn have_rolled(space: &Space, length: u32) -> bool {
    let arg = format!("--max-model-len={length}");
    for (role, count) in [("decode", 2), ("prefill", 2)] {
        let labels = ListParams::default().labels(&pods_of("a", role));
        let pods = space.api::<Pod>().list(&labels).await.unwrap().items;
        let new = |pod: &Pod| serde_json::to_string(pod).unwrap().contains(&arg);
        if pods.len() != count || !pods.iter().all(new) {
            return false;
        }
    }
    true
}

async fn roll(space: &Space, length: u32) {
    until("the end of the rollout", || async {
        run_pods(space).await;
        if have_rolled(space, length).await { Ok(()) } else { Err(String::new()) }
    })
    .await;
}

async fn ask_for(space: &Space, length: u32) {
    change_engine(space, json!({ "args": [format!("--max-model-len={length}")] })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_two_revisions_are_never_offered_together_not_even_by_a_killed_operator() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("pairs").await;
    let setup = Setup::default().with(METRICS);
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    create(&space, "a", json!({ "prefill": { "replicas": 2 }, "routingProxy": {} })).await;
    make_ready(&space, "a").await;
    wait(&space, "a", "RolesPaired", "True", "Paired").await;
    let story = Story::default();
    let serving = "app.kubernetes.io/component in (model-decode,model-prefill)";
    record(of_kind(&space, "Deployment"), serving, &story);
    record(of_kind(&space, "Pod"), serving, &story);
    record(of_kind(&space, "InferencePool"), super::OURS, &story);

    ask_for(&space, 4096).await;
    wait(&space, "a", "RolesPaired", "False", "DecodeAlone").await;
    roll(&space, 4096).await;
    make_ready(&space, "a").await;
    wait(&space, "a", "RolesPaired", "True", "Paired").await;
    eventually("a whole pool", || is_narrow(&space), |narrow| !narrow).await;
    assert!(moments_apart(&story) > 0, "old and new pods were there at once");

    // Killed in the middle, it leaves the pool narrow until it is back, however far the pods have come.
    ask_for(&space, 2048).await;
    wait(&space, "a", "RolesPaired", "False", "DecodeAlone").await;
    operator.kill();
    roll(&space, 2048).await;
    assert!(is_narrow(&space).await, "nobody was there to widen it");
    operator.restart(&space, &setup);
    make_ready(&space, "a").await;
    eventually("a whole pool", || is_narrow(&space), |narrow| !narrow).await;
    moments_apart(&story);
}
