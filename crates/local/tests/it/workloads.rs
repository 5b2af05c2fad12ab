//! Deployments, ReplicaSets and Jobs, with pods that do what the test says.

use serde_json::{Value, json};

use windlass_local::controllers::Settings;

use crate::{
    api::{Answer, Api},
    controlled::{Controlled, PODS},
};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const EVENTS: &str = "/api/v1/namespaces/default/events";

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": image}]}})
}

fn deployment(spec: Value) -> Value {
    let mut body = json!({"metadata": {"name": "d"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "a"}}, "template": template("one")}});
    json_patch::merge(&mut body, &json!({"spec": spec}));
    body
}

fn job(spec: Value) -> Value {
    let mut body = json!({"metadata": {"name": "j"}, "spec": {
        "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i"}]}}}});
    json_patch::merge(&mut body, &json!({"spec": spec}));
    body
}

fn at(collection: &str, name: &str) -> String {
    format!("{collection}/{name}")
}

fn items(answer: &Answer) -> Vec<Value> {
    answer.body["items"].as_array().cloned().unwrap_or_default()
}

fn is_alive(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null()
        && !matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"))
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// Waits until there are so many pods alive.
async fn pods(api: &Api, count: usize) -> Vec<Value> {
    let alive =
        |answer: &Answer| -> Vec<Value> { items(answer).into_iter().filter(is_alive).collect() };
    let answer = api.until(PODS, |answer| alive(answer).len() == count).await;
    alive(&answer)
}

async fn set_status(api: &Api, pod: &Value, status: Value) {
    let path = format!("{PODS}/{}/status", name(pod));
    api.merge(&path, json!({"status": status})).await.is(200);
}

async fn make_ready(api: &Api, pod: &Value) {
    let ready =
        json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    set_status(api, pod, json!({"phase": "Running", "conditions": [ready]})).await;
}

async fn end(api: &Api, pod: &Value, phase: &str) {
    set_status(api, pod, json!({"phase": phase})).await;
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

fn types(object: &Value) -> Vec<&str> {
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().map(|one| one["type"].as_str().unwrap()).collect()
}

/// Until the condition has this reason.
async fn told(api: &Api, path: &str, kind: &str, reason: &str) -> Value {
    api.until(path, |answer| condition(&answer.body, kind)["reason"] == reason).await.body
}

async fn events(api: &Api, kind: &str) -> Vec<String> {
    let told = items(&api.get(EVENTS).await.is(200)).into_iter();
    let told = told.filter(|event| event["involvedObject"]["kind"] == kind);
    let text = |part: &Value| part.as_str().unwrap_or_default().to_owned();
    told.map(|event| format!("{} {}", text(&event["reason"]), text(&event["message"]))).collect()
}

#[tokio::test]
async fn a_deployment_becomes_available_with_its_pods() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    api.post(DEPLOYMENTS, deployment(json!({}))).await.is(201);
    let path = at(DEPLOYMENTS, "d");
    let pods = pods(api, 2).await;
    let waiting = api.until(&path, |d| d.body["status"]["unavailableReplicas"] == 2).await.body;
    assert_eq!(condition(&waiting, "Available")["reason"], "MinimumReplicasUnavailable");
    assert_eq!(waiting["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    for pod in &pods {
        make_ready(api, pod).await;
    }
    let done = told(api, &path, "Progressing", "NewReplicaSetAvailable").await;
    assert_eq!(condition(&done, "Available")["reason"], "MinimumReplicasAvailable");
    let mut status = done["status"].clone();
    status["conditions"] = Value::Null;
    let want = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
        "readyReplicas": 2, "availableReplicas": 2, "terminatingReplicas": 0, "conditions": null});
    assert_eq!(status, want);
    let sets = items(&api.get(SETS).await);
    let set = name(&sets[0]);
    let hash = sets[0]["metadata"]["labels"]["pod-template-hash"].as_str().unwrap();
    assert_eq!(set, format!("d-{hash}"));
    assert!(name(&pods[0]).starts_with(&format!("{set}-")), "{}", name(&pods[0]));
    let managers: Vec<&str> = done["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["subresource"] == "status")
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect();
    assert_eq!(managers, ["kube-controller-manager"]);
    let want = format!("ScalingReplicaSet Scaled up replica set {set} from 0 to 2");
    assert_eq!(events(api, "Deployment").await, [want]);
    let created = events(api, "ReplicaSet").await;
    assert_eq!(created.len(), 2, "{created:?}");
    assert!(created[0].starts_with("SuccessfulCreate Created pod: d-"), "{created:?}");
}

#[tokio::test]
async fn a_rolling_update_never_has_too_few_pods() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    let rolling = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    api.post(DEPLOYMENTS, deployment(json!({"strategy": rolling}))).await.is(201);
    let path = at(DEPLOYMENTS, "d");
    for pod in pods(api, 2).await {
        make_ready(api, &pod).await;
    }
    told(api, &path, "Progressing", "NewReplicaSetAvailable").await;
    api.merge(&path, json!({"spec": {"template": template("two")}})).await.is(200);
    let image = |pod: &Value| pod["spec"]["containers"][0]["image"].clone();
    for _ in 0..2 {
        let young = |pods: &[Value]| {
            let unready = |pod: &&Value| image(pod) == "two" && condition(pod, "Ready").is_null();
            pods.iter().find(unready).cloned()
        };
        let three = api.until(PODS, |answer| young(&items(answer)).is_some()).await;
        let old =
            items(&three).iter().filter(|pod| condition(pod, "Ready")["status"] == "True").count();
        assert_eq!(old, 2, "{}", three.text);
        make_ready(api, &young(&items(&three)).unwrap()).await;
    }
    let done = api.until(&path, |d| {
        d.body["status"]["updatedReplicas"] == 2 && d.body["status"]["replicas"] == 2
    });
    let done = done.await.body;
    assert_eq!(done["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    let sizes: Vec<i64> = items(&api.get(SETS).await)
        .iter()
        .map(|set| set["spec"]["replicas"].as_i64().unwrap())
        .collect();
    assert_eq!(sizes.iter().sum::<i64>(), 2, "{sizes:?}");
    assert_eq!(sizes.len(), 2);
}

#[tokio::test]
async fn a_stuck_rollout_is_told_after_the_deadline() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    let hurried = deployment(json!({"progressDeadlineSeconds": 1, "minReadySeconds": 0}));
    api.post(DEPLOYMENTS, hurried).await.is(201);
    let stuck = told(api, &at(DEPLOYMENTS, "d"), "Progressing", "ProgressDeadlineExceeded").await;
    let told = condition(&stuck, "Progressing");
    assert_eq!(told["status"], "False");
    assert!(told["message"].as_str().unwrap().ends_with("\" has timed out progressing."), "{told}");
}

#[tokio::test]
async fn recreation_ends_the_old_pods_first() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    api.post(DEPLOYMENTS, deployment(json!({"strategy": {"type": "Recreate"}}))).await.is(201);
    let old = pods(api, 2).await;
    for pod in &old {
        let binding = json!({"target": {"kind": "Node", "name": "n"}});
        api.post(&format!("{PODS}/{}/binding", name(pod)), binding).await.is(201);
        make_ready(api, pod).await;
    }
    let path = at(DEPLOYMENTS, "d");
    api.merge(&path, json!({"spec": {"template": template("two")}})).await.is(200);
    let leaving = api.until(&path, |d| d.body["status"]["terminatingReplicas"] == 2).await;
    assert_eq!(items(&api.get(SETS).await).len(), 1, "{}", leaving.text);
    for pod in &old {
        let now = json!({"gracePeriodSeconds": 0});
        api.delete_with(&at(PODS, name(pod)), now).await.is(200);
    }
    for pod in pods(api, 2).await {
        assert_eq!(pod["spec"]["containers"][0]["image"], "two");
    }
}

#[tokio::test]
async fn a_replica_set_adopts_and_releases_by_labels() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    let orphan = json!({"metadata": {"name": "orphan", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.post(PODS, orphan).await.is(201);
    let set = json!({"metadata": {"name": "r"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "a"}}, "template": template("one")}});
    api.post(SETS, set).await.is(201);
    let owner = |pod: &Value| pod["metadata"]["ownerReferences"][0]["name"].clone();
    assert!(pods(api, 2).await.iter().all(|pod| owner(pod) == "r"));
    let released = json!({"metadata": {"labels": {"app": "other"}}});
    api.merge(&at(PODS, "orphan"), released).await.is(200);
    pods(api, 3).await;
    api.until(&at(PODS, "orphan"), |pod| owner(&pod.body).is_null()).await;
    api.merge(&at(SETS, "r"), json!({"spec": {"replicas": 0}})).await.is(200);
    assert_eq!(name(&pods(api, 1).await[0]), "orphan");
    let path = at(SETS, "r");
    api.until(&path, |set| {
        set.body["status"]["observedGeneration"] == 2 && set.body["status"]["replicas"] == 0
    })
    .await;
}

#[tokio::test]
async fn refused_pods_are_told_of() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    let account = json!({"template": {"spec": {"serviceAccountName": "missing"}}});
    api.post(DEPLOYMENTS, deployment(account)).await.is(201);
    let path = at(DEPLOYMENTS, "d");
    let failed = told(api, &path, "ReplicaFailure", "FailedCreate").await;
    let message = condition(&failed, "ReplicaFailure")["message"].as_str().unwrap();
    assert!(message.contains("serviceaccount \"missing\" not found"), "{message}");
    let account = json!({"metadata": {"name": "missing"}});
    api.post("/api/v1/namespaces/default/serviceaccounts", account).await.is(201);
    pods(api, 2).await;
    api.until(&path, |d| condition(&d.body, "ReplicaFailure").is_null()).await;
}

#[tokio::test]
async fn a_job_completes_with_its_pod() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    api.post(JOBS, job(json!({}))).await.is(201);
    let path = at(JOBS, "j");
    let pod = pods(api, 1).await.remove(0);
    assert_eq!(pod["metadata"]["finalizers"], json!(["batch.kubernetes.io/job-tracking"]));
    let running = api.until(&path, |job| job.body["status"]["active"] == 1).await.body;
    let mut status = running["status"].clone();
    assert!(status["startTime"].is_string());
    status["startTime"] = Value::Null;
    let want = json!({"active": 1, "ready": 0, "terminating": 0, "startTime": null,
        "uncountedTerminatedPods": {}});
    assert_eq!(status, want);
    end(api, &pod, "Succeeded").await;
    let done = told(api, &path, "Complete", "CompletionsReached").await;
    assert_eq!(types(&done), ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(done["status"]["succeeded"], 1);
    assert!(done["status"]["completionTime"].is_string());
    assert_eq!(done["status"]["uncountedTerminatedPods"], json!({}));
    let ended = api.get(&at(PODS, name(&pod))).await.is(200).body;
    assert_eq!(ended["metadata"]["finalizers"], Value::Null);
    let completed = "Completed Job completed".to_owned();
    api.until(EVENTS, |events| events.text.contains("Job completed")).await;
    assert!(events(api, "Job").await.contains(&completed));
}

#[tokio::test]
async fn a_job_fails_beyond_its_limit() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    api.post(JOBS, job(json!({"backoffLimit": 0}))).await.is(201);
    end(api, &pods(api, 1).await[0], "Failed").await;
    let failed = told(api, &at(JOBS, "j"), "Failed", "BackoffLimitExceeded").await;
    assert_eq!(types(&failed), ["FailureTarget", "Failed"]);
    assert_eq!(failed["status"]["failed"], 1);
    api.until(EVENTS, |events| events.text.contains("BackoffLimitExceeded")).await;
}

#[tokio::test]
async fn a_job_ends_its_pods_at_the_deadline_and_goes_after_its_time() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    let short = json!({"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 1});
    api.post(JOBS, job(short)).await.is(201);
    pods(api, 1).await;
    let failed = told(api, &at(JOBS, "j"), "Failed", "DeadlineExceeded").await;
    assert_eq!(failed["status"]["failed"], 1);
    pods(api, 0).await;
    api.until_gone(&at(JOBS, "j")).await;
}

#[tokio::test]
async fn a_suspended_job_has_no_pods() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    api.post(JOBS, job(json!({"suspend": true}))).await.is(201);
    let path = at(JOBS, "j");
    let suspended = told(api, &path, "Suspended", "JobSuspended").await;
    assert_eq!(suspended["status"]["startTime"], Value::Null);
    api.merge(&path, json!({"spec": {"suspend": false}})).await.is(200);
    pods(api, 1).await;
    let resumed = told(api, &path, "Suspended", "JobResumed").await;
    assert!(resumed["status"]["startTime"].is_string());
    api.merge(&path, json!({"spec": {"suspend": true}})).await.is(200);
    told(api, &path, "Suspended", "JobSuspended").await;
    pods(api, 0).await;
    let again = api.until(&path, |job| job.body["status"]["terminating"] == 0).await.body;
    assert_eq!(
        (&again["status"]["failed"], &again["status"]["startTime"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn pods_of_a_deleted_job_go_or_stay_without_its_finalizer() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    for policy in ["Background", "Foreground", "Orphan"] {
        api.post(JOBS, job(json!({}))).await.is(201);
        let pod = pods(api, 1).await.remove(0);
        let path = at(PODS, name(&pod));
        api.delete_with(&at(JOBS, "j"), json!({"propagationPolicy": policy})).await.is(200);
        api.until_gone(&at(JOBS, "j")).await;
        match policy {
            "Orphan" => {
                api.until(&path, |pod| pod.body["metadata"]["finalizers"].is_null()).await;
            }
            _ => api.until_gone(&path).await,
        }
    }
}

#[tokio::test]
async fn deleting_a_deployment_takes_everything_along() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    api.post(DEPLOYMENTS, deployment(json!({}))).await.is(201);
    pods(api, 2).await;
    let foreground = json!({"propagationPolicy": "Foreground"});
    api.delete_with(&at(DEPLOYMENTS, "d"), foreground).await.is(200);
    api.until_gone(&at(DEPLOYMENTS, "d")).await;
    api.until(SETS, |sets| items(sets).is_empty()).await;
    pods(api, 0).await;
}

#[tokio::test]
async fn a_namespace_with_workloads_can_go() {
    let controlled = Controlled::new(Settings::default()).await;
    let api = &controlled.api;
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await.is(201);
    api.post(&DEPLOYMENTS.replace("default", "n"), deployment(json!({}))).await.is(201);
    api.post(&JOBS.replace("default", "n"), job(json!({}))).await.is(201);
    let there = PODS.replace("default", "n");
    api.until(&there, |pods| items(pods).len() == 3).await;
    api.delete("/api/v1/namespaces/n").await.is(200);
    api.until_gone("/api/v1/namespaces/n").await;
    assert!(items(&api.get(&there).await).is_empty());
}
