//! The rows of the table of states, what pods add to them, and that nothing upsets them.

mod properties;
mod standstill;

use serde_json::{Value, json};

use super::*;
use crate::artifact::fixture::{
    DIGEST, ago, broken, complete, container, ended_pod, first_job, now, pod_of, running,
    terminated, with,
};

fn seen(job: &Job, pods: &[Pod]) -> Observation {
    observe(Evidence { job: Some(job), pods, events: &[], now: now() })
}

fn words(observation: &Observation) -> (Phase, Status, &str, &str) {
    (observation.phase, observation.ready, observation.reason, &observation.message)
}

/// A pod with these container statuses.
fn pod(job: &Job, phase: &str, containers: Value) -> Pod {
    with(&pod_of(job, phase), json!({ "status": { "containerStatuses": containers } }))
}

#[test]
fn a12_no_job_is_pending_and_waits_for_one() {
    let observation = observe(Evidence { job: None, pods: &[], events: &[], now: now() });
    let want = (Phase::Pending, Status::False, "JobNotCreated", "Waiting for job to be created");
    assert_eq!(words(&observation), want);
    assert_eq!((observation.digest.as_str(), observation.told), ("", false));
}

#[test]
fn a07_a_job_without_a_pod_is_pending_scheduling() {
    for status in [json!(null), json!({}), json!({ "active": 0, "succeeded": 0, "failed": 0 })] {
        let observation = seen(&first_job(status), &[]);
        let want = (Phase::Pending, Status::Unknown, "JobPending", "Job is pending scheduling");
        assert_eq!(words(&observation), want);
    }
}

#[test]
fn a08_an_active_job_is_running() {
    let job = first_job(running());
    let want =
        (Phase::Running, Status::Unknown, "JobRunning", "Import/pack/push pipeline is running");
    assert_eq!(words(&seen(&job, &[])), want);
    assert_eq!(words(&seen(&job, &[pod_of(&job, "Running")])), want);
}

#[test]
fn a09_a_success_tells_the_digest_of_its_pod() {
    let job = first_job(complete(30));
    let observation = seen(&job, &[ended_pod(&job, "Succeeded", DIGEST, 30)]);
    let want = (Phase::Succeeded, Status::True, "Succeeded", "Model artifact pushed successfully");
    assert_eq!(words(&observation), want);
    assert_eq!((observation.digest.as_str(), observation.told), (DIGEST, true));
}

#[test]
fn a09_the_digest_may_be_of_the_second_pod() {
    let job = first_job(complete(30));
    let silent = pod_of(&job, "Succeeded");
    let telling = ended_pod(&job, "Succeeded", "sha256:deadbeef", 30);
    assert_eq!(seen(&job, &[silent, telling]).digest, "sha256:deadbeef");
}

#[test]
fn a09_a_success_without_a_message_has_no_digest_yet() {
    let job = first_job(complete(30));
    for pods in [vec![], vec![pod_of(&job, "Succeeded")], vec![ended_pod(&job, "Succeeded", "", 1)]]
    {
        let observation = seen(&job, &pods);
        assert_eq!(observation.message, "Model artifact pushed successfully");
        assert_eq!((observation.phase, observation.digest.as_str()), (Phase::Succeeded, ""));
        assert!(!observation.told);
    }
}

#[test]
fn w08_a_digest_that_never_comes_is_given_up_and_the_message_says_so() {
    for (ended, given_up) in [(0, false), (59, false), (60, true), (3600, true)] {
        let observation = seen(&first_job(complete(ended)), &[]);
        let says_so = observation.message.ends_with("as its pod is gone or told none");
        assert_eq!((observation.phase, says_so), (Phase::Succeeded, given_up), "{ended}");
        assert!(observation.message.starts_with("Model artifact pushed successfully"));
    }
    let timeless = first_job(json!({ "succeeded": 1 }));
    assert!(seen(&timeless, &[]).message.contains("its digest is not known"));
}

#[test]
fn the_last_word_is_that_of_the_container_that_ended_last() {
    let job = first_job(complete(30));
    let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
    let ended = |letter: &str, at: Option<i64>| terminated(0, Some(&digest(letter)), at);
    for (containers, want) in [
        (json!([ended("a", Some(20)), ended("b", Some(10))]), "b"),
        (json!([ended("a", Some(10)), ended("b", Some(20))]), "a"),
        // Without a time it counts as oldest, and gives way to the next one met.
        (json!([ended("a", None), ended("b", Some(20))]), "b"),
        (json!([ended("a", Some(20)), ended("b", None)]), "a"),
        (json!([ended("a", None), ended("b", None)]), "b"),
        (json!([ended("a", Some(20)), ended("b", Some(20))]), "a"),
    ] {
        assert_eq!(seen(&job, &[pod(&job, "Succeeded", containers)]).digest, digest(want));
    }
}

#[test]
fn whitespace_around_a_digest_is_not_part_of_it() {
    let job = first_job(complete(30));
    let observation = seen(&job, &[ended_pod(&job, "Succeeded", &format!(" \n{DIGEST}\t\n"), 30)]);
    assert_eq!(observation.digest, DIGEST);
}

#[test]
fn the_words_of_a_sidecar_are_no_digest() {
    let job = first_job(complete(30));
    for other in
        ["proxy shut down", "exit:0", "code: abc", "sha256:", "sha256:xyz", ":abc", "a:b:c"]
    {
        let both =
            json!([terminated(0, Some(DIGEST), Some(30)), terminated(0, Some(other), Some(1))]);
        assert_eq!(seen(&job, &[pod(&job, "Succeeded", both)]).digest, DIGEST, "{other}");
        let alone = json!([terminated(0, Some(other), Some(1))]);
        let observation = seen(&job, &[pod(&job, "Succeeded", alone)]);
        assert_eq!((observation.digest.as_str(), observation.told), ("", false), "{other}");
    }
}

#[test]
fn init_containers_are_not_listened_to() {
    let job = first_job(complete(30));
    let said = json!([terminated(0, Some(DIGEST), Some(30))]);
    let pod =
        with(&pod_of(&job, "Succeeded"), json!({ "status": { "initContainerStatuses": said } }));
    assert_eq!(seen(&job, &[pod]).digest, "");
}

#[test]
fn a10_the_word_of_the_pod_is_the_cause_of_a_failure() {
    let job = first_job(broken(30));
    let observation =
        seen(&job, &[ended_pod(&job, "Failed", "kit import: repository not found", 30)]);
    let want = (Phase::Failed, Status::False, "JobFailed", "kit import: repository not found");
    assert_eq!(words(&observation), want);
    assert_eq!((observation.digest.as_str(), observation.told), ("", true));
}

#[test]
fn a10_without_a_word_of_the_pod_the_job_speaks() {
    let condition = |message: Value| {
        json!([{ "type": "Failed", "status": "True", "message": message,
                 "lastTransitionTime": ago(30) }])
    };
    for (status, want) in [
        (
            json!({ "failed": 1, "conditions": condition(json!("BackoffLimitExceeded")) }),
            "BackoffLimitExceeded",
        ),
        (
            json!({ "failed": 0, "conditions": condition(json!("DeadlineExceeded")) }),
            "DeadlineExceeded",
        ),
        (json!({ "conditions": condition(json!("DeadlineExceeded")) }), "DeadlineExceeded"),
        (json!({ "failed": 1 }), "Job failed with unknown reason"),
        (
            json!({ "failed": 1, "conditions": condition(json!("")) }),
            "Job failed with unknown reason",
        ),
        (
            json!({ "failed": 1, "conditions": condition(json!(null)) }),
            "Job failed with unknown reason",
        ),
        (
            json!({ "failed": 1, "conditions": [
                { "type": "Failed", "status": "False", "message": "not this one" },
            ]}),
            "Job failed with unknown reason",
        ),
    ] {
        let observation = seen(&first_job(status.clone()), &[]);
        assert_eq!(words(&observation), (Phase::Failed, Status::False, "JobFailed", want));
        assert!(!observation.told, "{status}");
    }
}

#[test]
fn a_success_outweighs_a_failure() {
    let job = first_job(json!({ "succeeded": 1, "failed": 1, "completionTime": ago(30) }));
    assert_eq!(seen(&job, &[]).phase, Phase::Succeeded);
}

#[test]
fn a10_a_long_message_is_cut_to_1024_bytes() {
    let job = first_job(broken(30));
    for (length, want) in [(1023, 1023), (1024, 1024), (1025, 1024), (2000, 1024)] {
        let message = seen(&job, &[ended_pod(&job, "Failed", &"x".repeat(length), 30)]).message;
        assert_eq!((message.len(), message.ends_with("...")), (want, length > 1024), "{length}");
    }
}

#[test]
fn w22_a_message_is_cut_between_characters() {
    let job = first_job(broken(30));
    for text in ["é".repeat(900), "x".to_owned() + &"字".repeat(500), "🦀".repeat(400)] {
        let message = seen(&job, &[ended_pod(&job, "Failed", &text, 30)]).message;
        assert!(message.len() <= 1024 && message.len() > 1024 - 4, "{}", message.len());
        let kept = message.strip_suffix("...").unwrap();
        assert!(text.starts_with(kept));
    }
}

#[test]
fn secrets_in_the_words_of_a_pod_are_hidden() {
    let job = first_job(broken(30));
    let said = "cannot pull with token=hf_abcdefghijklmnop from https://me:pw@host/x";
    let message = seen(&job, &[ended_pod(&job, "Failed", said, 30)]).message;
    assert!(!message.contains("hf_abc") && !message.contains("me:pw"), "{message}");
    assert!(message.starts_with("cannot pull with"), "{message}");
}

#[test]
fn an_end_that_no_program_can_tell_of_is_told_by_the_pod() {
    let job = first_job(broken(30));
    let killed =
        container("kit", json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } }));
    let evicted = with(
        &pod_of(&job, "Failed"),
        json!({ "status": { "reason": "Evicted", "message": "The node was low on resource" } }),
    );
    let wordless = with(&pod_of(&job, "Failed"), json!({ "status": { "reason": "NodeLost" } }));
    for (pod, want) in [
        (pod(&job, "Failed", json!([killed])), "OOMKilled: the node ran out of memory for the pod"),
        (evicted, "Evicted: The node was low on resource"),
        (wordless, "NodeLost: the pod was ended"),
    ] {
        let observation = seen(&job, &[pod]);
        let want = format!("Job has reached the specified backoff limit: {want}");
        assert_eq!((observation.message, observation.told), (want, false));
    }
}

#[test]
fn the_end_of_a_job_waits_a_moment_for_the_end_of_its_pod() {
    for (status, phase) in [(complete(0), Phase::Succeeded), (broken(0), Phase::Failed)] {
        let job = first_job(status.clone());
        for unfinished in ["Pending", "Running"] {
            let observation = seen(&job, &[pod_of(&job, unfinished)]);
            assert_eq!(observation.phase, Phase::Running, "{status}");
            assert_eq!(observation.message, "Import/pack/push pipeline is running");
        }
        // Nothing more is to come.
        assert_eq!(seen(&job, &[]).phase, phase);
        assert_eq!(seen(&job, &[pod_of(&job, "Failed")]).phase, phase);
        assert_eq!(seen(&job, &[ended_pod(&job, "Running", "said", 0)]).phase, phase);
    }
    for (ended, phase) in [(4, Phase::Running), (5, Phase::Failed), (60, Phase::Failed)] {
        let job = first_job(broken(ended));
        assert_eq!(seen(&job, &[pod_of(&job, "Running")]).phase, phase, "{ended}");
    }
    // Nobody knows how long ago, so there is nothing to wait for.
    let job = first_job(json!({ "failed": 1 }));
    assert_eq!(seen(&job, &[pod_of(&job, "Running")]).phase, Phase::Failed);
}

#[test]
fn w16_a_failure_ends_when_its_condition_appears() {
    let at = |job: &Job| finished_at(job).map(|time| time.0.to_string());
    assert_eq!(at(&first_job(complete(30))), Some(ago(30)));
    assert_eq!(at(&first_job(broken(40))), Some(ago(40)));
    assert_eq!(at(&first_job(json!({ "failed": 1 }))), None);
    assert_eq!(at(&first_job(running())), None);
}

#[test]
fn a_job_whose_pod_is_still_being_stopped_has_not_ended() {
    let target = json!({ "type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded",
        "message": "Job was active longer than specified deadline", "lastTransitionTime": ago(3) });
    let job = first_job(json!({ "failed": 1, "terminating": 1, "conditions": [target] }));
    let observation = seen(&job, &[pod_of(&job, "Running")]);
    let text = "The pipeline is being stopped: Job was active longer than specified deadline";
    assert_eq!(words(&observation), (Phase::Running, Status::Unknown, "JobRunning", text));
}

#[test]
fn w10_a_run_that_took_too_long_says_so_whatever_its_program_said_last() {
    let failed = json!({ "type": "Failed", "status": "True", "reason": "DeadlineExceeded",
        "message": "Job was active longer than specified deadline", "lastTransitionTime": ago(30) });
    let job = first_job(json!({ "failed": 1, "conditions": [failed] }));
    let observation = seen(&job, &[ended_pod(&job, "Failed", "downloading 3 of 7", 30)]);
    assert_eq!(observation.message, "Job was active longer than specified deadline");
}

#[test]
fn w06_of_a_long_log_the_end_is_kept() {
    let job = first_job(broken(30));
    let lines: Vec<String> = (0..80).map(|n| format!("copying layer {n} of 80")).collect();
    let log = format!("{}\nFailed: repository not found", lines.join("\n"));
    let observation = seen(&job, &[ended_pod(&job, "Failed", &log, 30)]);
    assert!(observation.message.len() <= 1024);
    assert!(observation.message.starts_with("...\ncopying layer "), "{}", observation.message);
    assert!(observation.message.ends_with("\nFailed: repository not found"));

    let long = format!("first\n{}", "é".repeat(2000));
    let observation = seen(&job, &[ended_pod(&job, "Failed", &long, 30)]);
    assert!(observation.message.starts_with('é') && observation.message.ends_with("..."));
}
