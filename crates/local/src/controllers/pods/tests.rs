use serde_json::{Value, from_value, json};

use super::*;

const NOW: &str = "2026-01-01T00:01:00Z";

fn pod(name: &str, change: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [], "nodeName": "n"},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"},
        ]},
    });
    json_patch::merge(&mut pod, &change);
    from_value(pod).unwrap()
}

fn unready() -> Value {
    json!({"status": {"conditions": null}})
}

#[test]
fn the_least_missed_go_first() {
    let restarted = json!({"status": {"containerStatuses": [{"name": "c", "image": "i",
        "imageID": "", "ready": true, "restartCount": 3}]}});
    let ready_later = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:20Z"}]}});
    let ordered = [
        pod("unplaced", json!({"spec": {"nodeName": null}})),
        pod("pending", json!({"status": {"phase": "Pending", "conditions": null}})),
        pod("unready", unready()),
        pod("cheap", json!({"metadata": {"annotations": {DELETION_COST: "-5"}}})),
        pod("ready for a short time", ready_later),
        pod("restarted", restarted),
        pod("young", json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:05Z"}})),
        pod("a", json!({})),
        pod("b", json!({})),
        pod("dear", json!({"metadata": {"annotations": {DELETION_COST: "5"}}})),
    ];
    let mut sorted: Vec<&Pod> = ordered.iter().rev().collect();
    sorted.sort_by_cached_key(|pod| removal_order(pod));
    let names = |pods: Vec<&Pod>| pods.into_iter().map(ResourceExt::name_any).collect::<Vec<_>>();
    assert_eq!(names(sorted), names(ordered.iter().collect()));
}

#[test]
fn a_pod_is_available_when_it_was_ready_for_long_enough() {
    for (change, seconds, want) in [
        (json!({}), 0, Some(0)),
        (json!({}), 50, Some(0)),
        (json!({}), 51, Some(1)),
        (json!({}), i32::MAX, Some(i64::from(i32::MAX) - 50)),
        (unready(), 0, None),
        (json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}), 5, Some(5)),
        (json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}), 0, Some(0)),
    ] {
        let pod = pod("p", change.clone());
        let wait = wait_for_available(&pod, seconds, NOW.parse().unwrap());
        assert_eq!(wait, want.map(SignedDuration::from_secs), "{change} {seconds}");
    }
}

#[test]
fn a_pod_is_active_until_it_ends_or_is_deleted() {
    let leaving = json!({"metadata": {"deletionTimestamp": NOW}});
    let over = json!({"metadata": {"deletionTimestamp": NOW}, "status": {"phase": "Failed"}});
    for (change, active, terminating) in [
        (json!({}), true, false),
        (json!({"status": {"phase": "Succeeded"}}), false, false),
        (leaving, false, true),
        (over, false, false),
    ] {
        let pod = pod("p", change.clone());
        assert_eq!((is_active(&pod), is_terminating(&pod)), (active, terminating), "{change}");
    }
}
