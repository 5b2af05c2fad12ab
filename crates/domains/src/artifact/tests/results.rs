//! Results: where they come from, how long they are waited for, and that nothing spoils them later.

use serde_json::json;
use windlass_engine::error::Error;
use windlass_engine::fetch::Fetched;
use windlass_engine::state::{Failure, Phase as Step};

use super::super::Answers;
use super::super::fixture::*;

#[test]
fn w02_the_reference_is_where_the_job_pushed_to() {
    let retargeted = artifact_with(json!({ "target": { "tag": "v9" } }));
    let job = first_job(complete(30));
    let pods = vec![ended_pod(&job, "Succeeded", DIGEST, 30)];
    let pushed = look(&retargeted, cluster(job.clone(), pods.clone()));
    assert_eq!(pushed.status["reference"], "ghcr.io/myorg/models/phi-4:v1.0");
    let odd = with(&job, json!({ "spec": { "template": { "spec": { "containers": [] } } } }));
    let look = look(&retargeted, cluster(odd, pods));
    assert_eq!(
        (look.status["digest"].as_str(), look.status.get("reference")),
        (Some(DIGEST), None)
    );
}

#[test]
fn w02_a_changed_spec_leaves_neither_digest_nor_reference() {
    let changed = with(
        &succeeded(),
        json!({ "metadata": { "generation": 2 }, "spec": { "target": { "tag": "v2" } } }),
    );
    let job = first_job(complete(300));
    let pods = vec![ended_pod(&job, "Succeeded", DIGEST, 300)];
    for answers in [nothing(), cluster(job, pods)] {
        let look = look(&changed, answers);
        assert_eq!((look.status.get("digest"), look.status.get("reference")), (None, None));
    }
}

#[test]
fn w07_the_cause_of_a_failure_outlives_its_pod_and_its_job() {
    let job = first_job(broken(300));
    for answers in [cluster(job, vec![]), nothing()] {
        let look = look(&failed(), answers);
        assert_eq!(look.ready(), ("False", "JobFailed", "kit import: repository not found"));
        assert_eq!((look.events(), look.store(&failed())), (vec![], failed()));
    }
}

#[test]
fn w07_a_result_without_a_condition_is_completed() {
    for (phase, ready) in [("Succeeded", "True"), ("Failed", "False")] {
        let artifact = stored(json!({ "observedGeneration": 1, "phase": phase }));
        let look = look(&artifact, nothing());
        assert_eq!(look.ready(), (ready, "Completed", "Pipeline completed; Job was cleaned up"));
        assert_eq!(look.phase(), phase);
    }
}

#[test]
fn w08_looking_for_a_digest_ends_and_then_the_job_may_go() {
    let pushed = stored(json!({ "observedGeneration": 1, "phase": "Succeeded" }));
    for (ended, again, released) in [(10, Some(10), 0), (59, Some(10), 0), (60, None, 1)] {
        let look = look(&pushed, cluster(first_job(complete(ended)), vec![]));
        assert_eq!(look.looks_again_after(), again, "{ended}");
        assert_eq!(look.released().len(), released, "{ended}");
        assert_eq!(look.ready().2.contains("its digest is not known"), released == 1, "{ended}");
        assert_eq!(look.phase(), "Succeeded");
    }
}

#[test]
fn w08_a_digest_that_comes_late_is_taken() {
    let pushed = stored(json!({ "observedGeneration": 1, "phase": "Succeeded" }));
    let job = first_job(complete(20));
    let pods = vec![ended_pod(&job, "Succeeded", DIGEST, 20)];
    let look = look(&pushed, cluster(job, pods));
    assert_eq!(look.status["digest"], DIGEST);
    assert_eq!(look.status["reference"], "ghcr.io/myorg/models/phi-4:v1.0");
}

#[test]
fn w13_a_job_is_let_go_only_after_its_result_is_stored() {
    let job = first_job(complete(30));
    let pods = vec![ended_pod(&job, "Succeeded", DIGEST, 30)];
    let answers = cluster(job, pods);
    let over = look(&base(), answers.clone());
    assert_eq!((over.released(), over.looks_again_after()), (vec![], Some(0)));
    let next = look(&over.store(&base()), answers);
    assert_eq!((next.released(), next.looks_again_after()), (vec![job_name(&first())], None));
}

#[test]
fn a_failure_whose_pod_is_not_seen_to_end_is_looked_at_again() {
    let early = first_job(broken(1));
    let pods = vec![pod_of(&early, "Running")];
    let waits = look(&base(), cluster(early, pods));
    assert_eq!((waits.phase(), waits.looks_again_after()), ("Running", Some(5)));

    let later = first_job(broken(6));
    let pods = vec![pod_of(&later, "Running")];
    let fails = look(&base(), cluster(later.clone(), pods));
    assert_eq!((fails.phase(), fails.looks_again_after()), ("Failed", Some(10)));
    assert_eq!(fails.ready().2, "Job has reached the specified backoff limit");

    // The pod's own word is worth more, even if it comes after the result was stored.
    let stored = fails.store(&base());
    let pods = vec![ended_pod(&later, "Failed", "kit import: repository not found", 5)];
    let told = look(&stored, cluster(later, pods));
    assert_eq!(told.ready().2, "kit import: repository not found");
    assert_eq!(told.released(), [job_name(&first())]);
}

#[test]
fn a_pod_that_does_not_start_is_looked_at_again() {
    let job = first_job(running());
    for pods in [vec![], vec![pod_of(&job, "Pending")]] {
        assert_eq!(look(&base(), cluster(job.clone(), pods)).looks_again_after(), Some(15));
    }
}

#[test]
fn w16_times_and_job_are_those_of_the_current_run() {
    let second = with(&failed(), json!({ "metadata": { "generation": 2 } }));
    let job = job_of(&run(2, None), running());
    let claim = Fetched::Found(claim_of(&run(2, None)));
    let look = look(&second, Answers { claim, ..cluster(job, vec![]) });
    assert_eq!(look.status["jobRef"]["name"], job_name(&run(2, None)));
    assert_eq!(look.status["startTime"], ago(60));
    assert_eq!(look.status.get("completionTime"), None);
}

#[test]
fn w19_an_end_is_told_once() {
    let job = first_job(broken(30));
    let said = "100%s failed {} %d";
    let pods = vec![ended_pod(&job, "Failed", said, 30)];
    let over = look(&base(), cluster(job.clone(), pods.clone()));
    // Words of others are not a format, and come out as they are.
    let message = format!("Artifact pipeline failed: {said}");
    let created = format!("Created pipeline job {}", job_name(&first()));
    assert_eq!(
        over.events(),
        [("Warning", "Failed", message.as_str()), ("Normal", "JobCreated", created.as_str())]
    );
    let again = look(&over.store(&base()), cluster(job, pods));
    assert_eq!(again.events(), []);
}

/// Deleting what is left may fail long after the end; that does not change how the run ended.
#[test]
fn w07_a_write_that_fails_after_the_end_does_not_touch_the_result() {
    let failure = || Failure {
        phase: Step::Delete,
        error: Error::infrastructure("Timeout", "delete failed for PersistentVolumeClaim"),
    };
    let claim = || Answers { claim: Fetched::Found(claim_of(&first())), ..nothing() };
    let troubled = look_after(&succeeded(), claim(), &[failure()]);
    assert_eq!(troubled.ready(), look(&succeeded(), nothing()).ready());
    assert_eq!(troubled.ready().0, "True");
    assert_eq!(troubled.phase(), "Succeeded");

    let troubled = look_after(&failed(), claim(), &[failure()]);
    assert_eq!(troubled.ready(), ("False", "JobFailed", "kit import: repository not found"));
}

/// A predecessor that could not clear up after a change told the old end under the new generation.
#[test]
fn w03_an_end_told_together_with_an_error_is_not_the_end_of_this_run() {
    let lie = json!({ "conditions": [ready("False", "ReconcileError", "cannot delete the Job")] });
    let lost = with(&succeeded(), json!({ "status": lie }));
    let look = look(&lost, nothing());
    assert_eq!(look.phase(), "Pending");
    assert_eq!(look.status.get("digest"), None);
    assert_eq!(look.applied().len(), 2, "workspace and Job: {:?}", look.applied());
}
