use serde_json::{Value, from_value, json};

use super::*;
use crate::controllers::deployment::{DESIRED_REPLICAS, HASH, MAX_REPLICAS};

const THEN: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-01T00:01:00Z";

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": image}]}})
}

/// Two wanted, one more or one less allowed, `new` is the image.
fn deployment(change: Value) -> Deployment {
    let mut body = json!({
        "metadata": {"name": "d", "namespace": "ns", "uid": "d", "generation": 1,
            "annotations": {REVISION: "2"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "progressDeadlineSeconds": 60, "revisionHistoryLimit": 1, "template": template("new"),
            "strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
        "status": {"observedGeneration": 1, "conditions": [progressing("ReplicaSetUpdated", THEN)]},
    });
    json_patch::merge(&mut body, &change);
    from_value(body).unwrap()
}

fn progressing(reason: &str, at: &str) -> Value {
    let status = if reason == reasons::PAUSED { "Unknown" } else { "True" };
    json!({"type": "Progressing", "status": status, "reason": reason, "message": "",
        "lastUpdateTime": at, "lastTransitionTime": at})
}

/// Of this image, revision and size, of which so many pods are available.
fn set(image: &str, revision: i64, size: i64, available: i64) -> Arc<ReplicaSet> {
    let mut template = template(image);
    template["metadata"]["labels"][HASH] = json!(image);
    Arc::new(
        from_value(json!({
            "metadata": {"name": format!("d-{image}"), "uid": image, "generation": 1,
                "creationTimestamp": THEN, "annotations": {REVISION: revision.to_string(),
                    DESIRED_REPLICAS: "2", MAX_REPLICAS: "3"}},
            "spec": {"replicas": size, "selector": {}, "template": template},
            "status": {"replicas": size, "readyReplicas": available,
                "availableReplicas": available, "terminatingReplicas": 0, "observedGeneration": 1},
        }))
        .unwrap(),
    )
}

fn plan(deployment: &Deployment, sets: &[Arc<ReplicaSet>], pods: &[Arc<Pod>]) -> Plan {
    let known = Known {
        deployment,
        spec: deployment.spec.as_ref().unwrap(),
        sets: Sets::of(deployment, sets.to_vec()),
        pods,
        now: NOW.parse().unwrap(),
    };
    known.plan()
}

fn actions(plan: &Plan) -> Vec<String> {
    let told = |action: &Action| match action {
        Action::Create(set) => {
            let replicas = set.spec.as_ref().unwrap().replicas.unwrap();
            format!("create {replicas} revision {}", set.annotations()[REVISION])
        }
        Action::Annotate { set, annotations } => {
            format!("annotate {} {}", set.name_any(), annotations[REVISION])
        }
        Action::Scale { set, from, to } => format!("scale {} {from} {to}", set.name_any()),
        Action::Delete(set) => format!("delete {}", set.name_any()),
    };
    plan.actions.iter().map(told).collect()
}

fn reason(plan: &Plan) -> (String, String) {
    let condition = status::condition(&plan.status, PROGRESSING).unwrap();
    (condition.status.clone(), condition.reason.clone().unwrap())
}

fn told(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[test]
fn a_rollout_goes_step_by_step() {
    let deployment = deployment(json!({}));
    for (reason, sets, want) in [
        ("first", vec![], vec!["create 2 revision 1"]),
        ("a new template", vec![set("old", 2, 2, 2)], vec!["create 1 revision 3"]),
        ("nothing is ready", vec![set("old", 1, 2, 2), set("new", 2, 1, 0)], vec![]),
        ("one is ready", vec![set("old", 1, 2, 2), set("new", 2, 1, 1)], vec!["scale d-old 2 1"]),
        (
            "there is room again",
            vec![set("old", 1, 1, 1), set("new", 2, 1, 1)],
            vec!["scale d-new 1 2"],
        ),
        ("all are there", vec![set("old", 1, 0, 0), set("new", 2, 2, 2)], vec![]),
        (
            "back to an old one",
            vec![set("x", 3, 2, 2), set("new", 2, 0, 0)],
            vec!["annotate d-new 4"],
        ),
    ] {
        assert_eq!(actions(&plan(&deployment, &sets, &[])), want, "{reason}");
    }
}

#[test]
fn recreation_waits_for_the_last_old_pod() {
    let recreate = json!({"type": "Recreate", "rollingUpdate": null});
    let deployment = deployment(json!({"spec": {"strategy": recreate}}));
    let old = |phase: &str| -> Arc<Pod> {
        let owner = json!({"uid": "old", "name": "d-old", "kind": "ReplicaSet",
            "apiVersion": "apps/v1", "controller": true});
        let meta = json!({"name": "p", "ownerReferences": [owner]});
        Arc::new(from_value(json!({"metadata": meta, "status": {"phase": phase}})).unwrap())
    };
    for (reason, sets, pods, want) in [
        ("running", vec![set("old", 1, 2, 2)], vec![], vec!["scale d-old 2 0"]),
        ("ending", vec![set("old", 1, 0, 0)], vec![old("Running")], vec![]),
        ("ended", vec![set("old", 1, 0, 0)], vec![old("Failed")], vec!["create 2 revision 2"]),
        ("gone", vec![set("old", 1, 0, 0)], vec![], vec!["create 2 revision 2"]),
        ("made", vec![set("old", 1, 0, 0), set("new", 2, 0, 0)], vec![], vec!["scale d-new 0 2"]),
    ] {
        assert_eq!(actions(&plan(&deployment, &sets, &pods)), want, "{reason}");
    }
}

#[test]
fn a_pause_is_said_first_and_stops_the_rollout_only() {
    let paused = |reason: &str| {
        deployment(json!({"spec": {"paused": true, "replicas": 3},
            "status": {"conditions": [progressing(reason, THEN)]}}))
    };
    let sets = [set("old", 1, 2, 2)];
    let first = plan(&paused("ReplicaSetUpdated"), &sets, &[]);
    assert_eq!((actions(&first), reason(&first)), (vec![], told("Unknown", reasons::PAUSED)));
    let then = plan(&paused(reasons::PAUSED), &sets, &[]);
    assert_eq!(actions(&then), ["scale d-old 2 3"]);
    let resumed =
        deployment(json!({"status": {"conditions": [progressing(reasons::PAUSED, THEN)]}}));
    let plan = plan(&resumed, &sets, &[]);
    assert_eq!((actions(&plan), reason(&plan)), (vec![], told("Unknown", reasons::RESUMED)));
}

#[test]
fn a_new_size_is_no_rollout() {
    let grown = deployment(json!({"spec": {"replicas": 4}}));
    let sets = [set("old", 1, 2, 2), set("new", 2, 1, 0)];
    let plan = plan(&grown, &sets, &[]);
    assert_eq!(actions(&plan), ["scale d-old 2 3", "scale d-new 1 2"]);
}

#[test]
fn old_sets_go_beyond_the_limit_when_the_rollout_is_over() {
    let counts = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
    let complete =
        deployment(json!({"metadata": {"annotations": {REVISION: "9"}}, "status": counts}));
    let sets = [set("b", 2, 0, 0), set("a", 1, 0, 0), set("c", 3, 0, 0), set("new", 9, 2, 2)];
    assert_eq!(actions(&plan(&complete, &sets, &[])), ["delete d-a", "delete d-b"]);
    let under_way = deployment(json!({"metadata": {"annotations": {REVISION: "9"}}}));
    assert_eq!(actions(&plan(&under_way, &sets, &[])), [""; 0]);
}

#[test]
fn progress_is_told_and_so_is_its_lack() {
    let sets = [set("new", 2, 2, 0)];
    let seen = json!({"replicas": 2, "updatedReplicas": 2, "unavailableReplicas": 2});
    let with = |since: &str, reason: &str, counts: &Value| {
        let mut status = counts.clone();
        status["conditions"] = json!([progressing(reason, since)]);
        deployment(json!({"status": status}))
    };
    for (case, deployment, sets, want) in [
        ("more pods", with(THEN, "x", &json!({})), &sets[..], told("True", reasons::UPDATED)),
        ("not for long", with("2026-01-01T00:00:30Z", "x", &seen), &sets, told("True", "x")),
        ("at the deadline", with(THEN, "x", &seen), &sets, told("True", "x")),
        (
            "after the deadline",
            with("2025-12-31T23:59:59Z", "x", &seen),
            &sets,
            told("False", reasons::TIMED_OUT),
        ),
        (
            "all available",
            with(THEN, "x", &seen),
            &[set("new", 2, 2, 2)],
            told("True", reasons::COMPLETE),
        ),
        (
            "complete before",
            with("2025-12-31T00:00:00Z", reasons::COMPLETE, &seen),
            &sets,
            told("True", reasons::COMPLETE),
        ),
    ] {
        assert_eq!(reason(&plan(&deployment, sets, &[])), want, "{case}");
    }
}

#[test]
fn the_deadline_brings_the_next_look() {
    let seen = json!({"status": {"replicas": 2, "updatedReplicas": 2, "unavailableReplicas": 2}});
    let waiting = plan(&deployment(seen), &[set("new", 2, 2, 0)], &[]);
    assert_eq!(waiting.again, Some(SignedDuration::from_secs(1)));
    let complete = plan(&deployment(json!({})), &[set("new", 2, 2, 2)], &[]);
    assert_eq!(complete.again, None);
    let without = deployment(json!({"spec": {"progressDeadlineSeconds": null}}));
    let plan = plan(&without, &[set("new", 2, 2, 0)], &[]);
    assert_eq!((plan.again, status::condition(&plan.status, PROGRESSING)), (None, None));
}

#[test]
fn what_has_no_deadline_is_not_looked_at_again_and_again() {
    // All long ago.
    let at = |reason: &str| progressing(reason, "2025-01-01T00:00:00Z");
    let paused = json!({"spec": {"paused": true}, "status": {"conditions": [at(reasons::PAUSED)]}});
    let leaving = json!({"metadata": {"deletionTimestamp": THEN}, "status": {"conditions": [at(reasons::UPDATED)]}});
    let complete = json!({"status": {"conditions": [at(reasons::COMPLETE)]}});
    for (reason, change) in
        [("paused", paused), ("leaving", leaving), ("one of its pods was lost later", complete)]
    {
        let plan = plan(&deployment(change), &[set("new", 2, 2, 1)], &[]);
        assert_eq!((actions(&plan), plan.again), (vec![], None), "{reason}");
    }
}

#[test]
fn status_counts_all_sets() {
    let deployment = deployment(json!({}));
    let plan = plan(&deployment, &[set("old", 1, 2, 2), set("new", 2, 1, 0)], &[]);
    let mut status = serde_json::to_value(&plan.status).unwrap();
    status["conditions"] = Value::Null;
    let want = json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 1,
        "readyReplicas": 2, "availableReplicas": 2, "unavailableReplicas": 1,
        "terminatingReplicas": 0, "conditions": null});
    assert_eq!(status, want);
}

#[test]
fn a_failure_to_make_pods_is_told_until_it_is_over() {
    let mut failing = (*set("new", 2, 2, 0)).clone();
    failing.status.as_mut().unwrap().conditions = from_value(json!([{"type": "ReplicaFailure",
        "status": "True", "reason": "FailedCreate", "message": "no", "lastTransitionTime": THEN}]))
    .unwrap();
    let failed = plan(&deployment(json!({})), &[Arc::new(failing)], &[]);
    let told = status::condition(&failed.status, "ReplicaFailure").unwrap();
    assert_eq!(
        (told.reason.as_deref(), told.message.as_deref()),
        (Some("FailedCreate"), Some("no"))
    );
    let after = Deployment { status: Some(failed.status), ..deployment(json!({})) };
    let over = plan(&after, &[set("new", 2, 2, 0)], &[]);
    assert_eq!(status::condition(&over.status, "ReplicaFailure"), None);
}
