use super::*;
use crate::error::Category::ResourceExhaustion;

fn ended(code: i32, reason: &str, finished: u8) -> Value {
    json!({"exitCode": code, "reason": reason, "containerID": format!("c://{code}"),
           "finishedAt": format!("2026-01-01T00:{finished:02}:00Z")})
}

fn named(name: &str, state: Value) -> Value {
    let mut value = container(state);
    value["name"] = json!(name);
    value
}

fn failed(containers: Vec<Value>) -> Value {
    json!({"phase": "Failed", "containerStatuses": containers})
}

/// A main container that ended with this code, and what its log said.
fn with_log(code: i32, reason: &str, log: &str) -> Inspection {
    let pods = one(failed(vec![container(json!({"terminated": ended(code, reason, 1)}))]));
    let logs = log_requests(&pods).into_iter().map(|key| (key, log.to_owned())).collect();
    super::super::pods(&PodsView { pods: &pods, events: &[], logs: &logs })
}

#[test]
fn the_termination_reason_decides_where_the_log_does_not() {
    for (code, reason, want, category) in [
        (137, "OOMKilled", "PodOOMKilled", ResourceExhaustion),
        (1, "Error", "PodFailed", InvalidSpec),
        (128, "ContainerCannotRun", "PodFailed", InvalidSpec),
        (1, "DeadlineExceeded", "PodDeadlineExceeded", InvalidSpec),
        (1, "Evicted", "PodEvicted", Infrastructure),
    ] {
        let got = brief(with_log(code, reason, ""));
        assert_eq!(got, (State::Degraded, want.into(), Some(category)), "{reason}");
    }
}

#[test]
fn w13_logs_tell_the_class_of_a_failure() {
    for (log, reason, category) in [
        ("RBAC: clusterrole x not found", "PlatformError", Infrastructure),
        ("pods is forbidden: User cannot list resource", "PlatformError", Infrastructure),
        ("Repository Not Found for url", "SourceNotFound", InvalidSpec),
        ("401 Client Error. Repository Not Found", "SourceNotFound", InvalidSpec),
        ("Cannot access gated repo for url", "AuthError", Auth),
        ("error 403 Forbidden from https://hf.co/x", "AuthError", Auth),
        ("OSError: No space left on device", "StorageFull", ResourceExhaustion),
        ("nothing of note", "PodFailed", InvalidSpec),
        ("layer s3 sha256:a4040b", "PodFailed", InvalidSpec),
    ] {
        let got = brief(with_log(1, "Error", log));
        assert_eq!(got, (State::Degraded, reason.into(), Some(category)), "{log}");
    }
    assert_eq!(classify_log("disk is full"), Some(LogClass::Storage));
    assert_eq!(classify_log("all is well"), None);
}

#[test]
fn the_message_quotes_the_telling_line_or_the_last_three() {
    let told = message(with_log(1, "Error", "start\n  ENOSPC: write \nend"));
    assert_eq!(
        told,
        "Storage full error detected in pod logs: Container main failed with exit code 1\n\n\
         Log excerpt:\nENOSPC: write"
    );
    let untold = message(with_log(1, "Error", "1\n2\n3\n4\n"));
    assert_eq!(untold, "Container main failed with exit code 1\n\nLog excerpt:\n2\n3\n4");
}

#[test]
fn w12_a_failed_exit_is_preferred_to_a_finished_sidecar() {
    let status = failed(vec![
        named("proxy", json!({"terminated": ended(0, "Completed", 1)})),
        named("late", json!({"terminated": ended(137, "Error", 3)})),
        named("main", json!({"terminated": ended(2, "Error", 2)})),
    ]);
    let got = message(inspect(&one(status), &[]));
    assert_eq!(got, "Container main failed with exit code 2");
}

#[test]
fn w12_a_native_sidecar_is_asked_last() {
    let mut pods = one(json!({"phase": "Failed", "initContainerStatuses": [
        named("side", json!({"terminated": ended(143, "Error", 1)})),
        named("setup", json!({"terminated": ended(1, "Error", 2)})),
    ]}));
    pods[0].spec = Some(object(json!({"containers": [], "initContainers": [
        {"name": "side", "restartPolicy": "Always"}, {"name": "setup"},
    ]})));
    assert_eq!(message(inspect(&pods, &[])), "Init container setup failed with exit code 1");
}

#[test]
fn a_pod_that_failed_without_containers_speaks_for_itself() {
    for (status, reason, text) in [
        (json!({"phase": "Failed"}), "PodFailed", "Pod failed"),
        (json!({"phase": "Failed", "message": "gone"}), "PodFailed", "gone"),
        (
            json!({"phase": "Failed", "reason": "DeadlineExceeded"}),
            "PodDeadlineExceeded",
            "Pod failed",
        ),
        (
            json!({"phase": "Failed", "reason": "OutOfcpu", "message": "full"}),
            "PodRejected",
            "full",
        ),
    ] {
        let got = inspect(&one(status), &[]);
        assert_eq!((brief(got.clone()).1.as_str(), message(got).as_str()), (reason, text));
    }
}

fn crashing(state: Value, restarts: i32, last: Value) -> Vec<Pod> {
    let mut value = container(state);
    value["restartCount"] = json!(restarts);
    value["lastState"] = json!({"terminated": last});
    one(json!({"phase": "Running", "containerStatuses": [value]}))
}

#[test]
fn w12_a_crash_loop_is_a_failure_and_not_a_start() {
    let backing_off = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let running = json!({"running": {}});
    for (state, restarts, last, want) in [
        (backing_off.clone(), 1, ended(1, "Error", 1), "CrashLoopBackOff"),
        (backing_off.clone(), 1, ended(0, "Completed", 1), "CrashLoopBackOff"),
        (backing_off, 4, ended(137, "OOMKilled", 1), "PodOOMKilled"),
        (running.clone(), 2, ended(1, "Error", 1), "CrashLoopBackOff"),
        (running.clone(), 1, ended(1, "Error", 1), "PodsStarting"),
        (running, 5, ended(0, "Completed", 1), "PodsStarting"),
    ] {
        assert_eq!(shown(&crashing(state, restarts, last)).1, want);
    }
}

#[test]
fn w12_one_ready_pod_does_not_hide_a_crashing_one() {
    let mut pods =
        crashing(json!({"waiting": {"reason": "CrashLoopBackOff"}}), 3, ended(1, "Error", 1));
    pods.push(pod("b", "h1", 0, ready()));
    assert_eq!(shown(&pods).1, "CrashLoopBackOff");
}

#[test]
fn w26_only_unexplained_ends_are_worth_reading_a_log_for() {
    let backing_off = || json!({"waiting": {"reason": "CrashLoopBackOff"}});
    for (pods, want) in [
        (one(ready()), None),
        (crashing(backing_off(), 1, ended(1, "Error", 1)), Some(("c://1", 1, false))),
        (crashing(json!({"running": {}}), 3, ended(1, "Error", 1)), Some(("c://1", 3, true))),
        (crashing(backing_off(), 1, ended(137, "OOMKilled", 1)), None),
        (crashing(backing_off(), 1, ended(0, "Completed", 1)), None),
        (one(json!({"phase": "Failed", "reason": "Evicted"})), None),
    ] {
        let keys = log_requests(&pods);
        let got: Vec<_> = keys
            .iter()
            .map(|key| (key.container_id.as_str(), key.restart_count, key.previous))
            .collect();
        assert_eq!(got, want.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn secrets_in_logs_and_messages_are_not_passed_on() {
    let told = message(with_log(1, "Error", "start\nfetch https://u:p@h.example/ token=abc123\n"));
    assert_eq!(
        told,
        "Container main failed with exit code 1\n\n\
         Log excerpt:\nstart\nfetch https://***@h.example/ token=***"
    );
    let url = "https://r.example/blob?X-Amz-Signature=abc123: 403 Forbidden";
    let pods = one(waiting_for("ErrImagePull", url));
    let told = message(inspect(&pods, &[]));
    assert_eq!(told, "Container main: https://r.example/blob?X-Amz-Signature=*** 403 Forbidden");
    let mut state = ended(1, "Error", 1);
    state["message"] = json!("password=hunter2");
    let pods = one(failed(vec![container(json!({"terminated": state}))]));
    assert_eq!(
        message(inspect(&pods, &[])),
        "Container main failed with exit code 1: password=***"
    );
}

#[test]
fn an_excerpt_has_its_limit() {
    let long = "ä".repeat(2000);
    let told = message(with_log(1, "Error", &long));
    let excerpt = told.split("Log excerpt:\n").nth(1).unwrap();
    assert!(excerpt.len() <= 1024 && excerpt.ends_with("ä…"), "{}", excerpt.len());
}
