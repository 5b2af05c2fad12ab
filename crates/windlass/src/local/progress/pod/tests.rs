use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().unwrap()
}

/// A pod of one container, made a minute ago.
fn pod(state: Value, more: Value) -> Pod {
    let mut status = json!({"name": "c", "image": "i", "imageID": "", "ready": false,
        "restartCount": 0, "started": true, "state": state});
    for (key, value) in more.as_object().into_iter().flatten() {
        status[key] = value.clone();
    }
    with(json!({"phase": "Running", "containerStatuses": [status]}))
}

fn with(status: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": status,
    }))
    .unwrap()
}

fn warned(reason: &str, message: &str) -> Facts {
    let at = "2026-01-01T00:00:50Z".parse().unwrap();
    let warning = Warning { reason: reason.into(), message: message.into(), at };
    Facts { warnings: [("u".to_owned(), warning)].into(), ..Facts::default() }
}

fn said(pod: &Pod, facts: &Facts) -> (State, String) {
    let word = judge(pod, facts, now());
    (word.state, word.text)
}

#[test]
fn a_container_says_why_it_waits() {
    let waiting =
        |reason: &str, message: &str| json!({"waiting": {"reason": reason, "message": message}});
    let ended = |code: i32, reason: &str, message: &str| json!({"terminated": {"exitCode": code, "reason": reason, "message": message}});
    let running = |at: &str| json!({"running": {"startedAt": format!("2026-01-01T00:00:{at}Z")}});
    let loops = "back-off 10s restarting failed container=c pod=p_n(u)";
    let last = |end: Value, count: i32| json!({"lastState": end, "restartCount": count});
    for (state, more, want) in [
        (waiting("ContainerCreating", ""), json!({}), (State::Starting, "")),
        (
            waiting("ImagePullBackOff", "Back-off pulling image \"x\": ErrImagePull: no rule"),
            json!({}),
            (State::Stuck, "no rule"),
        ),
        (waiting("ErrImagePull", "no rule"), json!({}), (State::Stuck, "no rule")),
        (
            waiting("CreateContainerConfigError", "secret \"s\" not found"),
            json!({}),
            (State::Stuck, "CreateContainerConfigError: secret \"s\" not found"),
        ),
        (ended(3, "Error", "a\nb\n"), json!({}), (State::Stuck, "exit code 3: b")),
        (
            waiting("CrashLoopBackOff", loops),
            last(ended(3, "Error", "oops"), 1),
            (State::Stuck, "crash loop, restarted once: exit code 3: oops"),
        ),
        (
            waiting("CrashLoopBackOff", loops),
            last(ended(137, "OOMKilled", ""), 4),
            (State::Stuck, "crash loop, restarted 4 times: out of memory, exit code 137"),
        ),
        (
            waiting("RunContainerError", "exec: \"x\": not found"),
            last(ended(128, "StartError", "exec: \"x\": not found"), 0),
            (State::Stuck, "cannot be started: exec: \"x\": not found"),
        ),
        // It has run for two seconds, which proves nothing yet.
        (
            running("58"),
            json!({"lastState": ended(3, "Error", ""), "restartCount": 2, "ready": true}),
            (State::Stuck, "crash loop, restarted 2 times: exit code 3"),
        ),
        (running("10"), json!({}), (State::Starting, "waits for its readiness probe")),
        (
            running("10"),
            json!({"started": false}),
            (State::Starting, "waits for its startup probe"),
        ),
        (ended(0, "Completed", ""), json!({}), (State::Starting, "")),
        (json!({}), json!({}), (State::Starting, "")),
    ] {
        let (state, text) = said(&pod(state.clone(), more), &Facts::default());
        assert_eq!((state, text.as_str()), want, "{state:?}");
    }
}

#[test]
fn a_pod_says_why_it_waits() {
    let ready = |status: &str| json!({"type": "Ready", "status": status});
    let refused = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."});
    for (status, want) in [
        (json!({}), (State::Starting, "")),
        (
            json!({"phase": "Pending", "conditions": [refused]}),
            (State::Stuck, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
        ),
        (json!({"phase": "Running", "conditions": [ready("True")]}), (State::Ready, "")),
        (json!({"phase": "Running", "conditions": [ready("False")]}), (State::Starting, "")),
        (json!({"phase": "Succeeded"}), (State::Done, "")),
        (
            json!({"phase": "Failed", "reason": "Evicted", "message": "too large"}),
            (State::Failed, "Evicted: too large"),
        ),
        (json!({"phase": "Failed"}), (State::Failed, "")),
    ] {
        let (state, text) = said(&with(status.clone()), &Facts::default());
        assert_eq!((state, text.as_str()), want, "{status}");
    }
}

#[test]
fn events_tell_what_the_status_does_not() {
    let creating = pod(json!({"waiting": {"reason": "ContainerCreating"}}), json!({}));
    let mount = warned("FailedMount", "MountVolume.SetUp failed for volume \"v\"");
    let want = "FailedMount: MountVolume.SetUp failed for volume \"v\"";
    assert_eq!(said(&creating, &mount), (State::Stuck, want.into()));

    let running = |at: &str| pod(json!({"running": {"startedAt": at}}), json!({}));
    let probe = warned("Unhealthy", "Readiness probe failed: connection refused");
    let want = "waits for its readiness probe: Readiness probe failed: connection refused";
    assert_eq!(said(&running("2026-01-01T00:00:50.7Z"), &probe).1, want);
    // What was said of the run before.
    let want = "waits for its readiness probe";
    assert_eq!(said(&running("2026-01-01T00:00:51Z"), &probe).1, want);
    // Volumes that were missing are there.
    assert_eq!(said(&running("2026-01-01T00:00:51Z"), &mount).1, want);
}

#[test]
fn a_silent_end_is_told_by_the_last_line_of_its_log() {
    let ended = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
    let loops = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let running = json!({"running": {"startedAt": "2026-01-01T00:00:59Z"}});
    let again = json!({"restartCount": 2, "lastState": ended});
    for (state, more, number, is_previous) in [
        (ended.clone(), json!({}), 0, false),
        (loops, again.clone(), 2, false),
        (running, again, 1, true),
    ] {
        let pod = pod(state, more);
        let mut facts = Facts { pods: [("u".to_owned(), pod.clone())].into(), ..Facts::default() };
        let runs: Vec<Run> = facts.runs().collect();
        assert_eq!(
            runs.iter().map(|run| (run.number, run.is_previous)).collect::<Vec<_>>(),
            [(number, is_previous)]
        );
        facts.lines = runs.into_iter().map(|run| (run, "no\x1b[2J memory\n".into())).collect();
        let text = said(&pod, &facts).1;
        assert!(text.ends_with("exit code 3: no [2J memory"), "{text:?}");
    }
    // Those that have said something, and those that never ran, have no line to look for.
    for ended in [
        json!({"terminated": {"exitCode": 3, "message": "said"}}),
        json!({"terminated": {"exitCode": 128, "reason": "StartError"}}),
        json!({"terminated": {"exitCode": 0}}),
    ] {
        let pods = [("u".to_owned(), pod(ended, json!({})))].into();
        assert_eq!(Facts { pods, ..Facts::default() }.runs().count(), 0);
    }
}

#[test]
fn lines_to_paste_are_apart_from_the_text() {
    let message =
        "Back-off pulling image \"x\": ErrImagePull: no rule; add:\n\n[[image]]\nmatch = \"x\"";
    let state = json!({"waiting": {"reason": "ImagePullBackOff", "message": message}});
    let word = judge(&pod(state, json!({})), &Facts::default(), now());
    assert_eq!(word.text, "no rule; add:");
    assert_eq!(word.paste, ["[[image]]", "match = \"x\""]);
}

#[test]
fn one_of_several_containers_is_named() {
    let one = |name: &str, state: Value, ready: bool| {
        json!({"name": name, "image": "i", "imageID": "", "ready": ready, "restartCount": 0,
            "started": false, "state": state})
    };
    let runs = json!({"running": {"startedAt": "2026-01-01T00:00:10Z"}});
    let initialising = json!({"waiting": {"reason": "PodInitializing"}});
    let first = with(json!({
        "initContainerStatuses": [one("i", runs.clone(), false)],
        "containerStatuses": [one("c", initialising.clone(), false)],
    }));
    let want = (State::Starting, "init container i runs".to_owned());
    assert_eq!(said(&first, &Facts::default()), want);
    let ended = json!({"terminated": {"exitCode": 1}});
    let failing = with(json!({
        "initContainerStatuses": [one("i", ended, false)],
        "containerStatuses": [one("c", initialising, false)],
    }));
    let want = (State::Stuck, "container i: exit code 1".to_owned());
    assert_eq!(said(&failing, &Facts::default()), want);
}

#[test]
fn a_pod_that_is_deleted_ends_since_it_was_told() {
    let mut pod = with(json!({"phase": "Running"}));
    let by: Timestamp = "2026-01-01T00:01:25Z".parse().unwrap();
    pod.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(by));
    pod.metadata.deletion_grace_period_seconds = Some(30);
    let word = judge(&pod, &Facts::default(), now());
    assert_eq!(word.state, State::Ending);
    assert_eq!(now().duration_since(word.since).as_secs(), 5);
    pod.metadata.deletion_grace_period_seconds = Some(i64::MAX);
    assert_eq!(judge(&pod, &Facts::default(), now()).state, State::Ending);
}

#[test]
fn what_may_run_is_counted_at_the_end() {
    let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
    for (state, more, want) in [
        (json!({"running": {}}), json!({}), 1),
        // The status comes a little later than the process.
        (waiting("ContainerCreating"), json!({}), 1),
        (waiting("ImagePullBackOff"), json!({}), 0),
        (json!({"terminated": {"exitCode": 0}}), json!({}), 0),
    ] {
        let pods = [("u".to_owned(), pod(state.clone(), more))].into();
        assert_eq!(Facts { pods, ..Facts::default() }.running(), want, "{state}");
    }
    let pods = [("u".to_owned(), with(json!({"phase": "Succeeded"})))].into();
    assert_eq!(Facts { pods, ..Facts::default() }.running(), 0);
}

#[test]
fn the_latest_warning_counts_and_goes_with_its_pod() {
    let event = |reason: &str, at: &str| -> Told {
        serde_json::from_value(json!({
            "metadata": {}, "involvedObject": {"uid": "u"}, "reason": reason, "message": "m",
            "lastTimestamp": format!("2026-01-01T00:00:{at}Z"),
        }))
        .unwrap()
    };
    let mut facts = Facts::default();
    for (reason, at, want) in [
        ("FailedMount", "10", "FailedMount"),
        ("Unhealthy", "20", "Unhealthy"),
        ("FailedMount", "15", "Unhealthy"),
        ("BackOff", "30", "Unhealthy"),
    ] {
        facts.hear_warning(Event::Apply(event(reason, at)));
        assert_eq!(facts.warnings["u"].reason, want);
    }
    facts.hear(Event::Apply(with(json!({}))));
    facts.forget("2026-01-02T00:00:00Z".parse().unwrap());
    assert_eq!((facts.pods.len(), facts.warnings.len()), (1, 1));
    facts.hear(Event::Delete(with(json!({}))));
    assert!(facts.pods.is_empty() && facts.warnings.is_empty());
    // One that comes when the pod is gone already.
    facts.hear_warning(Event::Apply(event("FailedMount", "40")));
    facts.forget(now());
    assert_eq!(facts.warnings.len(), 1);
    facts.forget("2026-01-01T00:02:00Z".parse().unwrap());
    assert!(facts.warnings.is_empty());
}
