use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use serde_json::{Value, from_value, json};

use super::*;
use crate::controllers::deployment::MAX_REPLICAS;

fn deployment(replicas: i64, surge: Value, unavailable: Value) -> Deployment {
    from_value(json!({"metadata": {"name": "d"}, "spec": {
        "replicas": replicas, "selector": {}, "template": {},
        "strategy": {"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
    }}))
    .unwrap()
}

/// Size and available pods of each, the newest set last.
fn sets(all: &[(i64, i64)], annotations: &Value) -> Sets {
    let mut old: Vec<Set> = all
        .iter()
        .enumerate()
        .map(|(index, (replicas, available))| {
            let set: ReplicaSet = from_value(json!({
                "metadata": {"name": format!("s{index}"), "annotations": annotations,
                    "creationTimestamp": format!("2026-01-01T00:00:0{index}Z")},
                "spec": {"replicas": replicas, "selector": {}},
                "status": {"replicas": replicas, "availableReplicas": available},
            }))
            .unwrap();
            Set::new(Arc::new(set))
        })
        .collect();
    let new = old.pop();
    Sets { new, old }
}

fn sizes(sets: &Sets) -> Vec<i64> {
    sets.all().map(|set| set.replicas).collect()
}

#[test]
fn the_new_set_grows_into_the_room_that_the_surge_leaves() {
    for (desired, surge, all, want) in [
        (4, json!(1), &[(4, 4), (0, 0)][..], 1),
        (4, json!(1), &[(4, 4), (1, 0)], 1),
        (4, json!(1), &[(3, 3), (1, 1)], 2),
        (4, json!("100%"), &[(4, 4), (0, 0)], 4),
        (4, json!(1), &[(0, 0)], 4),
        (2, json!(1), &[(5, 5)], 2),
        (10, json!(3), &[(8, 8), (5, 0)], 5),
    ] {
        let deployment = deployment(desired, surge, json!(1));
        let size = size_of_new(deployment.spec.as_ref().unwrap(), &sets(all, &json!({})));
        assert_eq!(size, want, "{desired} {all:?}");
    }
}

#[test]
fn old_sets_shrink_as_new_pods_become_available() {
    for (reason, desired, unavailable, all, want) in [
        ("nothing new is there", 4, 0, &[(4, 4), (1, 0)][..], [4, 1]),
        ("one may be missing", 4, 1, &[(4, 4), (1, 0)], [3, 1]),
        ("one has been replaced", 4, 0, &[(4, 4), (1, 1)], [3, 1]),
        ("all have been replaced", 4, 0, &[(1, 1), (4, 4)], [0, 4]),
        ("the idle ones go first", 4, 1, &[(4, 2), (1, 0)], [3, 1]),
        ("nobody gains by idle ones", 4, 0, &[(4, 0), (4, 4)], [0, 4]),
        ("a stuck rollout waits", 10, 2, &[(8, 7), (5, 0)], [8, 5]),
    ] {
        let deployment = deployment(desired, json!(1), json!(unavailable));
        let mut sets = sets(all, &json!({}));
        shrink_old(deployment.spec.as_ref().unwrap(), &mut sets);
        assert_eq!(sizes(&sets), want, "{reason}");
    }
}

#[test]
fn the_oldest_set_shrinks_first() {
    let deployment = deployment(4, json!(1), json!(1));
    let mut sets = sets(&[(1, 1), (3, 3), (1, 1)], &json!({}));
    shrink_old(deployment.spec.as_ref().unwrap(), &mut sets);
    assert_eq!(sizes(&sets), [0, 2, 1]);
}

#[test]
fn scaling_is_known_by_what_the_sets_remember() {
    let deployment = deployment(4, json!(1), json!(1));
    let spec = deployment.spec.as_ref().unwrap();
    for (known, all, want) in [
        (json!({DESIRED_REPLICAS: "4"}), &[(4, 4)][..], false),
        (json!({DESIRED_REPLICAS: "3"}), &[(3, 3)], true),
        (json!({DESIRED_REPLICAS: "3"}), &[(0, 0)], false),
        (json!({DESIRED_REPLICAS: "many"}), &[(3, 3)], false),
        (json!({}), &[(3, 3)], false),
    ] {
        assert_eq!(is_scaled(spec, &sets(all, &known)), want, "{known}");
    }
}

#[test]
fn a_new_size_is_shared_in_proportion() {
    for (reason, desired, before, all, want) in [
        ("one set takes all", 5, 3, &[(0, 0), (2, 2)][..], vec![0, 5]),
        ("an old one too while it is alone", 5, 3, &[(2, 2), (0, 0)], vec![5, 0]),
        ("without active ones the newest", 5, 3, &[(0, 0), (0, 0)], vec![0, 5]),
        ("growth by size", 20, 12, &[(8, 8), (4, 2)], vec![15, 7]),
        ("shrinking by size", 5, 12, &[(8, 8), (4, 2)], vec![5, 2]),
        ("of the same size the young one grows", 3, 4, &[(2, 2), (2, 2)], vec![2, 3]),
        ("down to nothing", 0, 12, &[(8, 8), (4, 2)], vec![0, 0]),
    ] {
        let deployment = deployment(desired, json!(2), json!(1));
        let known = json!({MAX_REPLICAS: before.to_string(), DESIRED_REPLICAS: "10"});
        let mut sets = sets(all, &known);
        rescale(&deployment, deployment.spec.as_ref().unwrap(), &mut sets);
        assert_eq!(sizes(&sets), want, "{reason}");
    }
}

#[test]
fn a_full_new_set_needs_no_old_ones() {
    let deployment = deployment(4, json!(2), json!(1));
    let mut sets = sets(&[(2, 2), (4, 4)], &json!({DESIRED_REPLICAS: "4"}));
    rescale(&deployment, deployment.spec.as_ref().unwrap(), &mut sets);
    assert_eq!(sizes(&sets), [0, 4]);
}
