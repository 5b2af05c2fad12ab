mod failing;

use serde_json::{Value, json};

use super::*;
use crate::error::Category::{
    Auth, Infrastructure, InvalidSpec, MissingDownstream, MissingUpstream,
};
use crate::health::tests::{brief, message, object};

type Brief = (State, String, Option<crate::error::Category>);

/// A pod of ReplicaSet `web-<hash>`, made at the given minute.
fn pod(name: &str, hash: &str, minute: u8, status: Value) -> Pod {
    object(json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name,
            "creationTimestamp": format!("2026-01-01T00:{minute:02}:00Z"),
            "labels": {"pod-template-hash": hash},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": hash,
                                 "name": format!("web-{hash}"), "controller": true}],
        },
        "spec": {"containers": []},
        "status": status,
    }))
}

fn one(status: Value) -> Vec<Pod> {
    vec![pod("a", "h1", 0, status)]
}

fn ready() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
}

fn container(state: Value) -> Value {
    json!({"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
           "state": state})
}

fn waiting_for(reason: &str, message: &str) -> Value {
    let state = json!({"waiting": {"reason": reason, "message": message}});
    json!({"phase": "Pending", "containerStatuses": [container(state)]})
}

fn event(reason: &str, message: &str, time: (&str, &str)) -> Event {
    let mut value = json!({
        "metadata": {}, "reason": reason, "message": message,
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "ns", "uid": "a"},
    });
    value[time.0] = json!(time.1);
    object(value)
}

fn inspect(pods: &[Pod], events: &[Event]) -> Inspection {
    super::pods(&PodsView { pods, events, logs: &BTreeMap::new() })
}

fn shown(pods: &[Pod]) -> Brief {
    brief(inspect(pods, &[]))
}

#[test]
fn phases_tell_how_far_healthy_pods_are() {
    for (pods, state, reason, category) in [
        (vec![], State::Progressing, "NoPods", Some(MissingDownstream)),
        (one(ready()), State::Ready, "PodsReady", None),
        (one(json!({"phase": "Succeeded"})), State::Ready, "PodsReady", None),
        (one(json!({"phase": "Running"})), State::Starting, "PodsStarting", None),
        (one(json!({"phase": "Pending"})), State::Pending, "PodsPending", None),
        (one(json!({"phase": "Unknown"})), State::Progressing, "PodsProgressing", None),
    ] {
        assert_eq!(shown(&pods), (state, reason.into(), category));
    }
}

#[test]
fn w12_image_pull_errors_are_told_apart_by_whole_words() {
    for (said, reason, category) in [
        ("401 Unauthorized", "ImagePullAuthFailure", Auth),
        ("pull access denied", "ImagePullAuthFailure", Auth),
        ("no basic auth credentials", "ImagePullAuthFailure", Auth),
        ("manifest unknown", "ImageNotFound", MissingUpstream),
        ("registry/x:y: not found", "ImageNotFound", MissingUpstream),
        ("Back-off pulling image \"x@sha256:a4013f404b\"", "ImagePullBackOff", Infrastructure),
        ("dial tcp: lookup registry: no such host", "ImagePullBackOff", Infrastructure),
    ] {
        for waits in ["ImagePullBackOff", "ErrImagePull"] {
            let got = shown(&one(waiting_for(waits, said)));
            assert_eq!(got, (State::Degraded, reason.into(), Some(category)), "{said}");
        }
    }
    let got = inspect(&one(waiting_for("ErrImagePull", "404")), &[]);
    assert_eq!(message(got), "Container main: 404");
}

#[test]
fn a_backing_off_pull_is_explained_by_the_event_of_its_last_attempt() {
    let pods = one(waiting_for("ImagePullBackOff", "Back-off pulling image"));
    let failed = event(
        "Failed",
        "Failed to pull image \"x\": 401 Unauthorized",
        ("lastTimestamp", "2026-01-01T00:00:00Z"),
    );
    assert_eq!(brief(inspect(&pods, &[failed])).1, "ImagePullAuthFailure");
}

#[test]
fn containers_that_cannot_start_say_what_is_missing_or_wrong() {
    for (waits, said, reason, category) in [
        ("InvalidImageName", "couldn't parse", "InvalidImageName", InvalidSpec),
        ("ErrImageNeverPull", "not present", "ImageNotFound", MissingUpstream),
        (
            "CreateContainerConfigError",
            "secret \"token\" not found",
            "SecretNotFound",
            MissingUpstream,
        ),
        (
            "CreateContainerConfigError",
            "couldn't find key k in ConfigMap ns/c",
            "ConfigMapNotFound",
            MissingUpstream,
        ),
        (
            "CreateContainerConfigError",
            "container has runAsNonRoot",
            "CreateContainerConfigError",
            InvalidSpec,
        ),
        ("RunContainerError", "exec: no such file", "RunContainerError", InvalidSpec),
    ] {
        let got = shown(&one(waiting_for(waits, said)));
        assert_eq!(got, (State::Degraded, reason.into(), Some(category)), "{waits} {said}");
    }
}

#[test]
fn w12_the_newest_event_counts_whichever_of_its_times_is_set() {
    let pods = one(json!({"phase": "Pending"}));
    let early = "2026-01-01T00:01:00.000000Z";
    let late = "2026-01-01T00:02:00.000000Z";
    let scheduling = |field| event("FailedScheduling", "no node", (field, early));
    let pulling = |field, time| event("Pulling", "Pulling image", (field, time));
    for (events, state, reason) in [
        (vec![scheduling("lastTimestamp")], State::Pending, "FailedScheduling"),
        (vec![pulling("lastTimestamp", early)], State::Progressing, "Pulling"),
        (
            vec![scheduling("lastTimestamp"), pulling("eventTime", late)],
            State::Progressing,
            "Pulling",
        ),
        (
            vec![scheduling("eventTime"), pulling("lastTimestamp", "2026-01-01T00:00:00Z")],
            State::Pending,
            "FailedScheduling",
        ),
        (
            vec![scheduling("eventTime"), event("Scheduled", "", ("eventTime", late))],
            State::Pending,
            "PodsPending",
        ),
    ] {
        let got = brief(inspect(&pods, &events));
        assert_eq!(got, (state, reason.into(), None));
    }
    let mut series = scheduling("eventTime");
    series.series =
        Some(object(json!({"count": 4, "lastObservedTime": "2026-01-01T00:03:00.000000Z"})));
    let got = brief(inspect(&pods, &[series, pulling("eventTime", late)]));
    assert_eq!(got.1, "FailedScheduling");
}

#[test]
fn a_volume_of_a_missing_secret_or_config_map_is_a_missing_reference() {
    let pods = one(json!({"phase": "Pending"}));
    for (said, reason, category) in [
        (
            "MountVolume.SetUp failed for volume \"v\" : secret \"s\" not found",
            "SecretNotFound",
            Some(MissingUpstream),
        ),
        (
            "MountVolume.SetUp failed for volume \"secret\" : configmap \"c\" not found",
            "ConfigMapNotFound",
            Some(MissingUpstream),
        ),
        ("references non-existent secret key: k", "SecretNotFound", Some(MissingUpstream)),
        ("failed to sync secret cache: timed out", "FailedMount", None),
    ] {
        let mount = event("FailedMount", said, ("lastTimestamp", "2026-01-01T00:00:00Z"));
        let (_, got, got_category) = brief(inspect(&pods, &[mount]));
        assert_eq!((got.as_str(), got_category), (reason, category), "{said}");
    }
}

#[test]
fn without_events_the_pod_itself_tells_that_no_node_fits() {
    let status = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"},
    ]});
    let got = inspect(&one(status), &[]);
    assert_eq!(brief(got.clone()), (State::Pending, "Unschedulable".into(), None));
    assert_eq!(message(got), "0/3");
}

#[test]
fn events_of_a_namesake_and_overtaken_ones_are_ignored() {
    let mut foreign = event("FailedMount", "x", ("lastTimestamp", "2026-01-01T00:00:00Z"));
    foreign.involved_object.uid = Some("before".into());
    let stale = event("FailedScheduling", "x", ("lastTimestamp", "2026-01-01T00:00:00Z"));
    let mut pods = one(json!({"phase": "Pending"}));
    pods[0].spec.as_mut().unwrap().node_name = Some("n1".into());
    assert_eq!(brief(inspect(&pods, &[foreign, stale])).1, "PodsPending");
}

#[test]
fn w12_only_the_newest_revision_counts() {
    let broken = waiting_for("ErrImagePull", "not found");
    let old_ready_new_broken = [pod("old", "h1", 0, ready()), pod("new", "h2", 5, broken.clone())];
    assert_eq!(shown(&old_ready_new_broken).1, "ImageNotFound");
    let old_broken_new_ready = [pod("old", "h1", 0, broken), pod("new", "h2", 5, ready())];
    assert_eq!(shown(&old_broken_new_ready).1, "PodsReady");
}

#[test]
fn pods_on_their_way_out_count_only_when_there_are_no_others() {
    let mut leaving = pod("a", "h1", 0, waiting_for("ErrImagePull", "not found"));
    leaving.metadata.deletion_timestamp = Some(object(json!("2026-01-01T00:00:00Z")));
    assert_eq!(shown(std::slice::from_ref(&leaving)).1, "ImageNotFound");
    assert_eq!(shown(&[leaving, pod("b", "h1", 0, ready())]).1, "PodsReady");
}

#[test]
fn a_failed_pod_that_was_replaced_is_history() {
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"});
    let old = pod("old", "h1", 0, evicted);
    assert_eq!(shown(std::slice::from_ref(&old)).1, "PodEvicted");
    assert_eq!(shown(&[old.clone(), pod("new", "h1", 5, ready())]).1, "PodsReady");
    // Older than the failed one, so not its replacement.
    let late =
        pod("late", "h1", 9, old.status.clone().map(|s| serde_json::to_value(s).unwrap()).unwrap());
    assert_eq!(shown(&[pod("first", "h1", 5, ready()), late]).1, "PodEvicted");
}
