//! Waiting, and what for.

use super::*;

#[test]
fn a_failing_container_waits_longer_each_time() {
    let mut life = Life::new(one("Always"));
    life.settle();
    life.told();
    life.end("c", 1);
    assert_eq!(life.settle(), [start_of("c")], "the first restart is at once");
    assert_eq!((life.container("c").restart_count, life.last("c")), (1, "Error 1".into()));
    for (wait, text) in [
        (10, "10s"),
        (20, "20s"),
        (40, "40s"),
        (80, "1m20s"),
        (160, "2m40s"),
        (300, "5m0s"),
        (300, "5m0s"),
    ] {
        life.told();
        life.end("c", 1);
        assert_eq!(life.settle(), []);
        assert_eq!((life.phase(), life.state("c")), ("Running".into(), "Error 1".into()));
        life.after(1);
        assert_eq!(life.settle(), []);
        let message = format!("back-off {text} restarting failed container=c pod=p_ns(u)");
        assert_eq!(life.state("c"), format!("waiting CrashLoopBackOff: {message}"));
        assert_eq!((life.phase(), life.last("c")), ("Running".into(), "Error 1".into()));
        assert_eq!(
            life.says("Ready"),
            "False ContainersNotReady containers with unready status: [c]"
        );
        assert_eq!(life.told(), ["BackOff Back-off restarting failed container c in pod p_ns(u)"]);
        life.after(wait - 2);
        assert_eq!(life.settle(), [], "not yet after {wait}");
        assert_eq!(life.wake, Some(life.now + SignedDuration::from_secs(1)));
        life.after(1);
        assert_eq!(life.settle(), [start_of("c")]);
    }
    assert_eq!(life.container("c").restart_count, 8);
}

#[test]
fn ten_minutes_of_running_make_up_for_the_failures() {
    for (ran, wait) in [(599, true), (600, true), (601, false)] {
        let mut life = Life::new(one("Always"));
        life.settle();
        life.end("c", 1);
        life.settle();
        life.after(ran);
        life.end("c", 1);
        assert_eq!(life.settle().is_empty(), wait, "{ran}");
    }
}

#[test]
fn a_program_that_cannot_be_started_is_an_error_with_its_text() {
    let mut life = Life::new(one("Always"));
    life.step();
    life.known.prepared("127.64.0.1");
    let text = "exec: \"nope\": executable file not found in $PATH";
    for count in 0..2 {
        assert_eq!(life.step(), [start_of("c")]);
        life.fail_to_start("c", text);
        assert_eq!(life.container("c").restart_count, count);
    }
    assert_eq!(life.step(), []);
    assert_eq!(life.state("c"), format!("waiting RunContainerError: {text}"));
    assert_eq!((life.last("c"), life.phase()), ("StartError 128".into(), "Running".into()));
    assert!(life.told().contains(&format!("Failed Error: {text}")));
    life.after(10);
    assert_eq!(life.step(), [start_of("c")]);
}

#[test]
fn a_program_that_cannot_be_started_fails_a_pod_that_restarts_nothing() {
    let mut life = Life::new(one("Never"));
    life.step();
    life.known.prepared("127.64.0.1");
    life.step();
    life.fail_to_start("c", "no");
    assert_eq!(life.step(), [Action::Release]);
    assert_eq!((life.phase(), life.state("c")), ("Failed".into(), "StartError 128".into()));
}

#[test]
fn an_image_that_nothing_stands_for_is_looked_for_again() {
    let mut life = Life::new(one("Always"));
    life.step();
    life.known.prepared("127.64.0.1");
    life.told();
    for wait in [10, 20, 40, 80, 160, 300, 300] {
        assert_eq!(life.step(), [start_of("c")]);
        let notes = life.known.refused(&life.pod, "c", Cause::Pull, "no rule".into(), life.now);
        life.notes.extend(notes);
        assert_eq!(life.step(), []);
        assert_eq!(life.state("c"), "waiting ErrImagePull: no rule");
        assert_eq!(
            life.told(),
            ["Failed Failed to pull image \"i\": no rule", "Failed Error: ErrImagePull"]
        );
        life.after(1);
        assert_eq!(life.step(), []);
        let text = "Back-off pulling image \"i\": ErrImagePull: no rule";
        assert_eq!(life.state("c"), format!("waiting ImagePullBackOff: {text}"));
        assert_eq!(
            life.told(),
            ["BackOff Back-off pulling image \"i\"", "Failed Error: ImagePullBackOff"]
        );
        assert_eq!(life.phase(), "Pending");
        life.after(wait - 1);
    }
}

#[test]
fn what_only_the_user_can_mend_is_told_once_and_tried_every_ten_seconds() {
    for (cause, reason, told) in [
        (Cause::Config, "CreateContainerConfigError", "Failed Error: text"),
        (Cause::Create, "CreateContainerError", "Failed Error: text"),
        (Cause::NeverPull, "ErrImageNeverPull", "ErrImageNeverPull text"),
        (Cause::ImageName, "InvalidImageName", "InspectFailed text"),
    ] {
        let mut life = Life::new(one("Always"));
        life.step();
        life.known.prepared("127.64.0.1");
        for round in 0..3 {
            assert_eq!(life.step(), [start_of("c")], "{reason}");
            let notes = life.known.refused(&life.pod, "c", cause, "text".into(), life.now);
            life.notes.extend(notes);
            assert_eq!(life.step(), []);
            assert_eq!(life.state("c"), format!("waiting {reason}: text"));
            let all = life.told();
            assert_eq!(all.first().map(|first| &**first), (round == 0).then_some(told));
            assert_eq!(life.wake, Some(life.now + SignedDuration::from_secs(10)));
            life.after(10);
        }
    }
}

#[test]
fn a_missing_volume_is_waited_for() {
    let mut life = Life::new(one("Always"));
    for wait in [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 120_000, 120_000] {
        assert_eq!(life.step(), [Action::Prepare]);
        life.known.not_prepared(life.now);
        assert_eq!(life.step(), []);
        assert_eq!(life.state("c"), "waiting ContainerCreating");
        assert_eq!(life.wake, Some(life.now + SignedDuration::from_millis(wait)));
        life.now += SignedDuration::from_millis(wait);
    }
}

#[test]
fn a_failed_init_container_is_tried_again_unless_the_pod_never_restarts() {
    for (policy, phase) in [("Always", "Pending"), ("OnFailure", "Pending"), ("Never", "Failed")] {
        let mut life = Life::new(json!({
            "restartPolicy": policy,
            "initContainers": [{"name": "i"}],
            "containers": [{"name": "c"}],
        }));
        life.settle();
        life.end("i", 1);
        let actions = life.settle();
        match phase {
            "Failed" => assert_eq!(actions, [Action::Release]),
            _ => assert_eq!(actions, [start_of("i")]),
        }
        assert_eq!(life.phase(), phase, "{policy}");
        assert_eq!(life.state("c"), "waiting PodInitializing");
        assert_eq!(
            life.says("Initialized"),
            "False ContainersNotInitialized containers with incomplete status: [i]"
        );
        if phase == "Failed" {
            assert_eq!(life.state("i"), "Error 1");
            assert_eq!(life.says("Ready"), "False PodFailed");
            continue;
        }
        life.end("i", 1);
        life.settle();
        life.after(1);
        life.settle();
        assert!(life.state("i").starts_with("waiting CrashLoopBackOff"), "{}", life.state("i"));
        assert_eq!(life.phase(), "Pending");
    }
}
