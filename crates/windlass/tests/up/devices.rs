//! From the devices of the machine to the pods that ask for them. They are shown as the drivers show
//! them, to this `windlass up` alone.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::{
    ends::{log_of, reached},
    progress::{SHELL, create_with},
    running::{Up, World},
    wait::until,
};

/// Two of one maker and one of another; a processor is among those, too.
const SHOWN: &str = "\
    mount -t tmpfs devices /proc/driver && mount -t tmpfs devices /sys/class && \
    mkdir -p /proc/driver/nvidia/gpus/0000:01:00.0 /proc/driver/nvidia/gpus/0000:02:00.0 && \
    nodes=/sys/class/kfd/kfd/topology/nodes && mkdir -p $nodes/0 $nodes/1 && \
    echo 0 > $nodes/0/gpu_id && echo 4711 > $nodes/1/gpu_id";

const SAYS: &str = "echo ${CUDA_VISIBLE_DEVICES-none}:${NVIDIA_VISIBLE_DEVICES-none}:\
                    ${ROCR_VISIBLE_DEVICES-none}";

/// Says what it sees, and stays.
async fn ask_for(up: &Up, name: &str, limits: Value) {
    let script = format!("{SAYS}; trap 'exit 0' TERM; while :; do sleep 0.1; done");
    let container = json!({"name": "c", "image": "sh:1", "args": ["-c", script],
        "resources": {"limits": limits}});
    create_with(up, name, 5, container).await;
}

async fn seen_by(pods: &Api<Pod>, name: &str) -> String {
    reached(pods, name, "Running").await;
    until("words of the pod", || async {
        let said = log_of(pods, name).await;
        if said.is_empty() { Err(said) } else { Ok(said.trim().to_owned()) }
    })
    .await
}

/// Why it is not scheduled.
async fn waits_for(pods: &Api<Pod>, name: &str) -> String {
    until("refusal of the scheduler", || async {
        let pod = pods.get(name).await.unwrap();
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone());
        let unscheduled = conditions.into_iter().flatten().find(|one| {
            one.type_ == "PodScheduled" && one.reason.as_deref() == Some("Unschedulable")
        });
        let message = unscheduled.and_then(|one| one.message);
        message.ok_or_else(|| format!("{:?}", pod.status))
    })
    .await
}

#[tokio::test]
async fn devices_of_the_machine_reach_the_pods_that_ask_for_them_and_others_wait() {
    let world = World::new();
    let Some(up) = world.up_among(SHOWN, &["--image-rule", SHELL]) else { return };
    let client = up.client().await;
    let nodes: Api<Node> = Api::all(client.clone());
    let node = until("the node", || async {
        nodes.get_opt("local").await.unwrap().ok_or_else(|| "there is none".to_owned())
    })
    .await;
    let status = serde_json::to_value(node.status).unwrap();
    for offered in [&status["capacity"], &status["allocatable"]] {
        assert_eq!(offered["nvidia.com/gpu"], "2", "{status}");
        assert_eq!(offered["amd.com/gpu"], "1", "{status}");
    }

    let pods: Api<Pod> = Api::default_namespaced(client);
    ask_for(&up, "both", json!({"nvidia.com/gpu": "2"})).await;
    assert_eq!(seen_by(&pods, "both").await, "0,1:0,1:");
    ask_for(&up, "other", json!({"amd.com/gpu": "1"})).await;
    assert_eq!(seen_by(&pods, "other").await, "::0");
    ask_for(&up, "none", json!({})).await;
    assert_eq!(seen_by(&pods, "none").await, "::");

    ask_for(&up, "late", json!({"nvidia.com/gpu": "1"})).await;
    let message = waits_for(&pods, "late").await;
    let usual = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are \
                 available: 1 No preemption victims found for incoming pod.";
    assert_eq!(message, usual);
    let late = pods.get("late").await.unwrap();
    assert_eq!(late.status.unwrap().phase.as_deref(), Some("Pending"));
    // More than there ever are wait as well, and in the same words.
    ask_for(&up, "many", json!({"amd.com/gpu": "2"})).await;
    let message = waits_for(&pods, "many").await;
    assert_eq!(message, usual.replace("nvidia", "amd"));

    pods.delete("both", &DeleteParams::default()).await.unwrap();
    assert_eq!(seen_by(&pods, "late").await, "0:0:");
    up.terminate();
}
