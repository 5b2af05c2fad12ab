//! Plays the kubelet where there is no node: says of pods what a real one would say.

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::ListParams};
use serde_json::{Value, json};

use crate::{
    Space,
    logs::{LogNode, Output},
    until,
};

/// Waits for `count` pods with these labels and makes them ready.
pub async fn run_pods(space: &Space, labels: &str, count: usize) {
    for pod in wait_for_pods(space, labels, count).await {
        set_status(space, &pod, running()).await;
    }
}

/// How a container ends.
#[derive(Clone, Copy)]
pub struct Ending<'a> {
    pub exit_code: i32,
    /// What it leaves in its termination log.
    pub message: &'a str,
}

/// Ends the one pod with these labels.
pub async fn end_pod(space: &Space, labels: &str, ending: Ending<'_>) {
    for pod in wait_for_pods(space, labels, 1).await {
        end_this(space, &pod.name_any(), ending).await;
    }
}

/// Ends the pod of this name.
pub async fn end_this(space: &Space, name: &str, ending: Ending<'_>) {
    let pod: Pod = space.get(name).await.unwrap();
    let Ending { exit_code, message } = ending;
    let container = pod.spec.as_ref().unwrap().containers[0].name.clone();
    let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
    let time = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap().to_string();
    let ended = json!({ "exitCode": exit_code, "message": message,
        "reason": if exit_code == 0 { "Completed" } else { "Error" },
        "startedAt": time, "finishedAt": time });
    let status = json!({ "phase": phase, "containerStatuses": [
        { "name": container, "image": "i", "imageID": "", "ready": false, "restartCount": 0,
          "state": { "terminated": ended } },
    ]});
    set_status(space, &pod, status).await;
}

/// Places the one pod with these labels on a node that nobody looks after: what it uses is in use.
pub async fn place_pod(space: &Space, labels: &str) -> String {
    let name = wait_for_pods(space, labels, 1).await[0].name_any();
    bind(space, &name, "node").await;
    set_status(space, &space.get(&name).await.unwrap(), json!({ "phase": "Running" })).await;
    name
}

/// Ends the one pod with these labels on this node, with this log.
pub async fn end_pod_with_log(
    space: &Space,
    labels: &str,
    node: &LogNode,
    ending: Ending<'_>,
    log: impl Into<Output>,
) {
    let pod = wait_for_pods(space, labels, 1).await[0].name_any();
    node.print(&space.name, &pod, log);
    bind(space, &pod, &node.name).await;
    end_pod(space, labels, ending).await;
}

async fn bind(space: &Space, name: &str, node: &str) {
    let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node } });
    let body = serde_json::to_vec(&binding).unwrap();
    let path = format!("/api/v1/namespaces/{}/pods/{name}/binding", space.name);
    let request = http::Request::post(path).header("content-type", "application/json").body(body);
    space.client.request::<Value>(request.unwrap()).await.unwrap();
}

/// What a kubelet does once the containers of a deleted pod have stopped.
pub async fn remove_pod(space: &Space, name: &str) {
    let params = kube::api::DeleteParams::default().grace_period(0);
    drop(space.api::<Pod>().delete(name, &params).await.unwrap());
}

/// Makes the first container of each such pod wait for the given reason.
pub async fn hold_pods(space: &Space, labels: &str, count: usize, reason: &str, message: &str) {
    for pod in wait_for_pods(space, labels, count).await {
        let container = pod.spec.as_ref().unwrap().containers[0].name.clone();
        let state = json!({ "waiting": { "reason": reason, "message": message } });
        let status = json!({ "phase": "Pending", "containerStatuses": [
            { "name": container, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state },
        ]});
        set_status(space, &pod, status).await;
    }
}

async fn wait_for_pods(space: &Space, labels: &str, count: usize) -> Vec<Pod> {
    until(&format!("{count} pods with {labels}"), || async {
        let params = ListParams::default().labels(labels);
        let pods = space.api::<Pod>().list(&params).await.unwrap().items;
        let alive: Vec<Pod> =
            pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
        if alive.len() == count { Ok(alive) } else { Err(format!("{} pods", alive.len())) }
    })
    .await
}

async fn set_status(space: &Space, pod: &Pod, status: Value) {
    space.edit_status::<Pod>(&pod.name_any(), status).await;
}

fn runs(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))
}

fn running() -> Value {
    // Long enough ago to count as available whatever the deployment asks for.
    let time = "2024-01-01T00:00:00Z";
    json!({ "phase": "Running", "conditions": [
        { "type": "Ready", "status": "True", "lastTransitionTime": time },
        { "type": "ContainersReady", "status": "True", "lastTransitionTime": time },
    ]})
}

/// Makes all pods with these labels ready that exist now.
pub async fn run_all(space: &Space, labels: &str) {
    let params = ListParams::default().labels(labels);
    let pods = space.api::<Pod>().list(&params).await.unwrap().items;
    let waiting = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    stream::iter(waiting.filter(|pod| !runs(pod)))
        .for_each_concurrent(8, |pod| async move { try_set_status(space, &pod, running()).await })
        .await;
}

/// Makes pods ready as they come until there are `count` of them, as more are made in steps.
pub async fn run_all_until(space: &Space, labels: &str, count: usize) {
    until(&format!("{count} running pods with {labels}"), || async {
        run_all(space, labels).await;
        let params = ListParams::default().labels(labels);
        let pods = space.api::<Pod>().list(&params).await.unwrap().items;
        let running = pods.iter().filter(|pod| runs(pod)).count();
        if running == count { Ok(()) } else { Err(format!("{running} of {} pods run", pods.len())) }
    })
    .await;
}

/// A pod that went away meanwhile needs no status.
async fn try_set_status(space: &Space, pod: &Pod, status: Value) {
    let params = kube::api::PatchParams::default();
    let patch = kube::api::Patch::Merge(json!({ "status": status }));
    match space.api::<Pod>().patch_status(&pod.name_any(), &params, &patch).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => panic!("cannot set the status of a pod: {error}"),
    }
}
