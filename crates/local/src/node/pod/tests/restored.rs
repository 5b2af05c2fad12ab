//! After a new start of the node.

use super::*;
use crate::node::record::Record;

fn record(id: &str, restarts: i32, ended: Option<Ended>) -> Record {
    Record {
        id: id.into(),
        restarts,
        image_id: "sha256:1".into(),
        started: "2026-01-01T00:00:00Z".parse().unwrap(),
        token: "t".into(),
        process: None,
        group: None,
        ended,
    }
}

/// What the next start knows of it.
fn again(life: &Life, records: &[(&str, Record)]) -> Life {
    let records = records.iter().map(|(name, record)| ((*name).into(), record.clone())).collect();
    let now = life.now + SignedDuration::from_secs(60);
    let mut pod = life.pod.clone();
    pod.status = Some(life.status());
    let known = restore(&pod, &records, now);
    Life { pod, known, now, notes: Vec::new(), wake: None, runs: 10 }
}

#[test]
fn a_run_that_nobody_saw_end_is_unknown_and_starts_again() {
    let mut life = Life::new(one("Always"));
    life.settle();
    let mut life = again(&life, &[("c", record("run-1", 0, None))]);
    assert_eq!(life.settle(), [Action::Prepare, start_of("c")]);
    let container = life.container("c");
    assert_eq!((container.restart_count, life.last("c")), (1, "Unknown 255".into()));
    assert_eq!(life.known.address.as_deref(), Some("127.64.0.1"));
    assert_eq!(life.phase(), "Running");
}

#[test]
fn a_run_of_a_pod_that_never_restarts_has_failed() {
    let mut life = Life::new(one("Never"));
    life.settle();
    let mut life = again(&life, &[]);
    assert_eq!(life.settle(), [Action::Release]);
    assert_eq!((life.phase(), life.state("c")), ("Failed".into(), "Unknown 255".into()));
}

#[test]
fn a_run_that_the_api_never_heard_of_counts() {
    let mut life = Life::new(one("Always"));
    life.step();
    life.known.prepared("127.64.0.1");
    life.step();
    let mut life = again(&life, &[("c", record("run-1", 0, None))]);
    life.settle();
    assert_eq!((life.container("c").restart_count, life.last("c")), (1, "Unknown 255".into()));
}

#[test]
fn an_end_that_only_the_record_knows_is_told() {
    let mut life = Life::new(one("Never"));
    life.settle();
    let ended = Ended {
        id: "run-1".into(),
        exit_code: 0,
        reason: Reason::Completed,
        message: "done".into(),
        started: life.now,
        finished: life.now,
    };
    let mut life = again(&life, &[("c", record("run-1", 0, Some(ended)))]);
    life.settle();
    assert_eq!((life.phase(), life.state("c")), ("Succeeded".into(), "Completed 0".into()));
}

#[test]
fn what_was_over_stays_over() {
    let mut life = Life::new(one("Never"));
    life.settle();
    life.end("c", 0);
    life.settle();
    let before = life.status();
    let mut life = again(&life, &[]);
    assert_eq!(life.settle(), []);
    assert_eq!(life.status(), before);
}

#[test]
fn containers_start_in_order_again() {
    let mut life = Life::new(json!({
        "initContainers": [
            {"name": "i"},
            {"name": "s", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}},
        ],
        "containers": [{"name": "c"}],
    }));
    life.settle();
    life.end("i", 0);
    life.settle();
    life.probe("s", Probe::Startup, true);
    life.settle();
    assert_eq!(life.phase(), "Running");
    let mut life = again(&life, &[]);
    assert_eq!(life.settle(), [Action::Prepare, start_of("s")], "what was done is not done again");
    life.probe("s", Probe::Startup, true);
    assert_eq!(life.settle(), [start_of("c")]);
    assert_eq!(life.phase(), "Running");
}

#[test]
fn a_container_that_waited_has_its_last_end() {
    let mut life = Life::new(one("Always"));
    life.settle();
    for _ in 0..2 {
        life.end("c", 3);
        life.settle();
        life.after(1);
        life.settle();
    }
    assert!(life.state("c").starts_with("waiting CrashLoopBackOff"));
    let mut life = again(&life, &[]);
    assert_eq!(life.settle(), [Action::Prepare, start_of("c")]);
    assert_eq!((life.container("c").restart_count, life.last("c")), (2, "Error 3".into()));
}
