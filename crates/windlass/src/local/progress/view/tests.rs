use serde_json::{Value, json};

use super::*;

/// `owner` is the kind and name of what has made it.
fn pod(name: &str, owner: Option<(&str, &str)>, status: Value) -> Pod {
    let owners = owner.map(|(kind, name)| {
        json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": "o", "controller": true}])
    });
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "n", "uid": name, "ownerReferences": owners,
            "labels": {HASH: "abc"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": status,
    }))
    .unwrap()
}

fn ready() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
}

fn unschedulable() -> Value {
    json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]})
}

/// Name, state, ready pods, pods and text of each row.
fn rows(pods: Vec<Pod>) -> Vec<(String, State, usize, usize, String)> {
    let named = |pod: Pod| (pod.metadata.uid.clone().unwrap(), pod);
    let facts = Facts { pods: pods.into_iter().map(named).collect(), ..Facts::default() };
    let view = View::of(&facts, "2026-01-01T00:01:00Z".parse().unwrap());
    let row = |row: Row| (row.name, row.state, row.ready, row.pods, row.text);
    view.rows.into_iter().map(row).collect()
}

#[test]
fn pods_are_told_by_who_has_made_them() {
    let set = Some(("ReplicaSet", "chat-abc"));
    let pods = vec![
        pod("a", set, ready()),
        pod("b", set, unschedulable()),
        pod("c", Some(("Job", "load")), json!({"phase": "Succeeded"})),
        pod("d", None, json!({})),
        pod("e", Some(("ReplicaSet", "own")), ready()),
    ];
    let row = |name: &str, state, ready, pods, text: &str| {
        (name.to_owned(), state, ready, pods, text.to_owned())
    };
    assert_eq!(
        rows(pods),
        [
            row("n/chat", State::Stuck, 1, 2, "no room"),
            row("n/d", State::Starting, 0, 1, ""),
            row("n/own", State::Ready, 1, 1, ""),
            row("n/load", State::Done, 0, 0, ""),
        ]
    );
}

#[test]
fn what_failed_counts_until_it_is_made_up_for() {
    let job = Some(("Job", "j"));
    let failed = || pod("a", job, json!({"phase": "Failed", "reason": "Error"}));
    for (other, want) in [
        (None, State::Failed),
        (Some(json!({})), State::Starting),
        (Some(ready()), State::Ready),
        (Some(json!({"phase": "Succeeded"})), State::Done),
        (Some(json!({"phase": "Failed"})), State::Failed),
    ] {
        let others = other.clone().map(|status| pod("b", job, status));
        let rows = rows([failed()].into_iter().chain(others).collect());
        assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), [want], "{other:?}");
    }
}

#[test]
fn two_of_the_same_name_are_told_apart() {
    let pods = vec![pod("a", Some(("Job", "x")), json!({})), pod("x", None, json!({}))];
    let names: Vec<String> = rows(pods).into_iter().map(|row| row.0).collect();
    assert_eq!(names, ["n/x (Job)", "n/x (Pod)"]);
}

#[test]
fn pods_that_end_do_not_count_as_missing() {
    let mut old = pod("a", Some(("ReplicaSet", "chat-abc")), ready());
    old.metadata.deletion_timestamp = old.metadata.creation_timestamp.clone();
    let new = pod("b", Some(("ReplicaSet", "chat-abc")), ready());
    let rows = rows(vec![old, new]);
    assert_eq!((rows[0].1, rows[0].2, rows[0].3), (State::Ending, 1, 1));
}
