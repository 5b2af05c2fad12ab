//! How pods end.

use super::*;

#[test]
fn a_pod_ends_when_nothing_is_to_be_restarted() {
    for (policy, codes, phase) in [
        ("Never", [0, 0], "Succeeded"),
        ("Never", [0, 1], "Failed"),
        ("Never", [137, 0], "Failed"),
        ("OnFailure", [0, 0], "Succeeded"),
        ("OnFailure", [0, 1], "Running"),
        ("Always", [0, 0], "Running"),
    ] {
        let mut life = Life::new(json!({
            "restartPolicy": policy,
            "containers": [{"name": "a"}, {"name": "b"}],
        }));
        life.settle();
        life.end("a", codes[0]);
        life.end("b", codes[1]);
        life.step();
        assert_eq!(life.phase(), phase, "{policy} {codes:?}");
        let reason = match phase {
            "Succeeded" => "False PodCompleted",
            "Failed" => "False PodFailed",
            _ => continue,
        };
        assert_eq!(life.says("Ready"), reason);
        assert_eq!(life.says("ContainersReady"), reason);
        assert_eq!(life.says("PodReadyToStartContainers"), "False");
        let initialised = if phase == "Succeeded" { "True PodCompleted" } else { "True" };
        assert_eq!(life.says("Initialized"), initialised);
        assert_eq!(life.step(), [], "released once");
        assert!(life.state("a").ends_with(&codes[0].to_string()));
    }
}

#[test]
fn one_container_that_ended_leaves_the_others_running() {
    let mut life = Life::new(json!({
        "restartPolicy": "Never",
        "containers": [{"name": "a"}, {"name": "b"}],
    }));
    life.settle();
    life.end("a", 0);
    assert_eq!(life.settle(), []);
    assert_eq!((life.phase(), life.state("a")), ("Running".into(), "Completed 0".into()));
    assert_eq!(life.says("Ready"), "False ContainersNotReady containers with unready status: [a]");
}

#[test]
fn sidecars_are_stopped_in_reverse_once_the_work_is_done() {
    let mut life = Life::new(json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "initContainers": [
            {"name": "s1", "restartPolicy": "Always"},
            {"name": "s2", "restartPolicy": "Always"},
        ],
        "containers": [{"name": "c"}],
    }));
    life.settle();
    life.told();
    life.end("c", 0);
    let by = life.now + SignedDuration::from_secs(5);
    assert_eq!(life.settle(), [Action::Stop { container: "s2".into(), by }]);
    assert_eq!(life.phase(), "Running");
    assert_eq!(life.told(), ["Killing Stopping container s2"]);
    life.after(4);
    life.end("s2", 143);
    // It has two seconds at least.
    let by = by + SignedDuration::from_secs(1);
    assert_eq!(life.settle(), [Action::Stop { container: "s1".into(), by }]);
    life.end("s1", 137);
    assert_eq!(life.settle(), [Action::Release]);
    assert_eq!(life.phase(), "Succeeded", "the exit of a sidecar does not count");
}

#[test]
fn a_deleted_pod_ends_in_order_and_goes() {
    let mut life = Life::new(json!({
        "initContainers": [{"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}, {"name": "b"}],
    }));
    life.settle();
    life.told();
    life.delete(30);
    let by = life.now + SignedDuration::from_secs(30);
    let stop = |name: &str, by| Action::Stop { container: name.into(), by };
    assert_eq!(life.settle(), [stop("b", by), stop("a", by)]);
    assert_eq!(life.told(), ["Killing Stopping container b", "Killing Stopping container a"]);
    // A later deletion can only hurry it.
    life.delete(60);
    assert_eq!(life.settle(), []);
    life.delete(5);
    let sooner = life.now + SignedDuration::from_secs(5);
    assert_eq!(life.settle(), [stop("b", sooner), stop("a", sooner)]);
    assert_eq!(life.told(), [""; 0]);
    life.end("a", 0);
    life.end("b", 143);
    assert_eq!(life.settle(), [stop("s", sooner)]);
    life.end("s", 0);
    assert_eq!(life.settle(), [Action::Release, Action::Remove, Action::Remove]);
    assert_eq!((life.phase(), life.state("b")), ("Failed".into(), "Error 143".into()));
}

#[test]
fn a_deleted_pod_starts_nothing_any_more() {
    let mut life = Life::new(one("Always"));
    life.delete(30);
    assert_eq!(life.step(), [Action::Release, Action::Remove]);
    assert_eq!(
        (life.phase(), life.state("c")),
        ("Failed".into(), "waiting ContainerCreating".into())
    );
}

#[test]
fn a_pod_that_is_active_too_long_fails() {
    let mut spec = one("Always");
    spec["activeDeadlineSeconds"] = json!(60);
    spec["terminationGracePeriodSeconds"] = json!(3);
    let mut life = Life::new(spec);
    life.settle();
    life.told();
    assert_eq!(life.wake, Some(life.now + SignedDuration::from_secs(60)));
    life.after(60);
    let by = life.now + SignedDuration::from_secs(3);
    assert_eq!(life.settle(), [Action::Stop { container: "c".into(), by }]);
    let overdue = "Pod was active on the node longer than the specified deadline";
    assert_eq!(
        life.told(),
        [format!("DeadlineExceeded {overdue}"), "Killing Stopping container c".into()]
    );
    assert_eq!(life.phase(), "Running");
    life.end("c", 0);
    assert_eq!(life.settle(), [Action::Release]);
    let status = life.status();
    assert_eq!(life.phase(), "Failed");
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
    assert_eq!(status.message.as_deref(), Some(overdue));
}

#[test]
fn an_evicted_pod_fails_with_its_reason() {
    let mut life = Life::new(one("Always"));
    life.settle();
    life.told();
    let notes = life.known.evict(&life.pod, "too much".into(), life.now);
    life.notes.extend(notes);
    life.settle();
    life.end("c", 0);
    life.settle();
    assert_eq!(life.told(), ["Evicted too much", "Killing Stopping container c"]);
    let status = life.status();
    assert_eq!(
        (status.phase.as_deref(), status.reason.as_deref()),
        (Some("Failed"), Some("Evicted"))
    );
}

#[test]
fn a_failed_liveness_probe_restarts_the_container() {
    for (probe, own, name) in [
        (Probe::Liveness, None, "liveness"),
        (Probe::Startup, None, "startup"),
        (Probe::Liveness, Some(1), "liveness"),
    ] {
        let probe_spec = json!({"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": own});
        let mut life = Life::new(json!({
            "restartPolicy": "OnFailure",
            "containers": [{"name": "c", "livenessProbe": probe_spec, "startupProbe": probe_spec}],
        }));
        life.settle();
        life.told();
        life.probe("c", probe, false);
        let by = life.now + SignedDuration::from_secs(own.unwrap_or(30));
        assert_eq!(life.settle(), [Action::Stop { container: "c".into(), by }]);
        let text = format!("Killing Container c failed {name} probe, will be restarted");
        assert_eq!(life.told(), [text]);
        life.probe("c", probe, false);
        assert_eq!(life.settle(), []);
        life.end("c", 137);
        assert_eq!(life.settle(), [start_of("c")]);
        assert_eq!(life.container("c").restart_count, 1);
    }
}

#[test]
fn the_end_of_the_node_says_nothing_of_its_pods() {
    let mut life = Life::new(one("Never"));
    life.settle();
    life.known.shut_down(&life.pod, life.now);
    assert!(matches!(&*life.settle(), [Action::Stop { .. }]));
    life.end("c", 143);
    assert_eq!(life.settle(), []);
    assert!(life.known.is_still());
}

#[test]
fn who_is_in_a_hurry_gives_nobody_more_time() {
    let mut life = Life::new(json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 600,
        "initContainers": [{"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "c"}],
    }));
    life.settle();
    life.known.shut_down(&life.pod, life.now);
    let stop = |container: &str, by| Action::Stop { container: container.into(), by };
    assert_eq!(life.settle(), [stop("c", life.now + SignedDuration::from_secs(20))]);
    life.after(5);
    life.known.hurry(life.now);
    assert_eq!(life.settle(), [stop("c", life.now)]);
    life.end("c", 137);
    assert_eq!(life.settle(), [stop("s", life.now)]);
}

#[test]
fn a_hook_after_the_start_holds_the_start_back_and_may_fail() {
    let spec = json!({"containers": [
        {"name": "c", "lifecycle": {"postStart": {"exec": {"command": ["x"]}}}},
    ]});
    for ok in [true, false] {
        let mut life = Life::new(spec.clone());
        life.settle();
        assert_eq!(life.container("c").started, Some(false));
        life.told();
        let notes = life.known.hook_done(&life.pod, "c", ok, life.now);
        life.notes.extend(notes);
        let actions = life.settle();
        assert_eq!((life.container("c").ready, actions.is_empty()), (ok, ok));
        assert_eq!(life.told().len(), if ok { 0 } else { 2 });
    }
}

#[test]
fn a_new_image_is_run_whatever_the_restart_policy() {
    for (policy, code) in [("Never", 143), ("OnFailure", 0), ("Always", 0)] {
        let mut life = Life::new(one(policy));
        life.settle();
        life.pod.spec.as_mut().unwrap().containers[0].image = Some("j".into());
        assert!(matches!(&*life.settle(), [Action::Stop { .. }]), "{policy}");
        life.end("c", code);
        assert_eq!(life.phase(), "Running", "{policy}");
        assert_eq!(life.settle(), [start_of("c")], "{policy}");
        assert_eq!(life.container("c").restart_count, 1, "{policy}");
        life.end("c", 0);
        life.settle();
        let want = if policy == "Always" { "Running" } else { "Succeeded" };
        assert_eq!(life.phase(), want, "{policy}");
    }
}

#[test]
fn a_deleted_pod_does_not_run_its_new_image() {
    let mut life = Life::new(one("Never"));
    life.settle();
    life.pod.spec.as_mut().unwrap().containers[0].image = Some("j".into());
    life.settle();
    life.delete(30);
    life.settle();
    life.end("c", 143);
    let actions = life.settle();
    assert!(actions.contains(&Action::Remove) && !actions.contains(&start_of("c")), "{actions:?}");
}
