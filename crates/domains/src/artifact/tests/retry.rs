//! The retry annotation, from the failed artifact to the next result.

use serde_json::json;
use windlass_engine::fetch::Fetched;

use super::super::Answers;
use super::super::fixture::*;
use super::super::run::Run;

fn again() -> Run {
    run(1, Some("a"))
}

#[test]
fn a_failed_artifact_is_run_again_once_its_old_job_is_gone() {
    let asked = annotated(&failed(), "a");
    let old = first_job(broken(300));
    let waits = look(&asked, cluster(old, vec![]));
    assert_eq!(waits.released(), [job_name(&first())]);
    assert_eq!(waits.deleted().len(), 2);
    assert_eq!(waits.applied(), Vec::<String>::new());
    assert_eq!((waits.phase(), waits.ready().1), ("Pending", "WaitingForWorkspace"));
    assert_eq!(waits.status["observedRetry"], "a");
    assert_eq!(waits.status.get("completionTime"), None);

    let made = look(&waits.store(&asked), nothing());
    assert_eq!(made.applied()[1], format!("Job {}", job_name(&again())));
    let annotations = json!({ "model.otterscale.io/generation": "1", "windlass.dev/retry": "a" });
    assert_eq!(made.body("Job")["metadata"]["annotations"], annotations);
    assert_eq!(made.body("PersistentVolumeClaim")["metadata"]["annotations"], annotations);
}

#[test]
fn the_same_value_never_runs_twice() {
    let asked = annotated(&failed(), "a");
    let job = job_of(&again(), broken(30));
    let pods = vec![ended_pod(&job, "Failed", "again not found", 30)];
    let over = look(&asked, cluster(job.clone(), pods.clone()));
    assert_eq!((over.phase(), over.ready().2), ("Failed", "again not found"));
    let stored = over.store(&asked);
    for answers in [cluster(job, pods), nothing()] {
        let look = look(&stored, answers);
        assert_eq!((look.applied(), look.phase()), (vec![], "Failed"));
        assert_eq!(look.ready().2, "again not found");
    }
}

#[test]
fn a_value_set_while_running_counts_after_the_failure() {
    let running_now = stored(json!({
        "observedGeneration": 1,
        "phase": "Running",
        "jobRef": { "name": job_name(&first()), "namespace": "ml-team" },
    }));
    let asked = annotated(&running_now, "a");
    let job = first_job(running());
    let pods = vec![pod_of(&job, "Running")];
    let goes_on = look(&asked, cluster(job, pods));
    assert_eq!((goes_on.phase(), goes_on.deleted()), ("Running", vec![]));
    assert_eq!(goes_on.status.get("observedRetry"), None);

    let ended = first_job(broken(30));
    let pods = vec![ended_pod(&ended, "Failed", "not found", 30)];
    let fails = look(&goes_on.store(&asked), cluster(ended.clone(), pods.clone()));
    assert_eq!(fails.phase(), "Failed");
    let then = look(&fails.store(&asked), cluster(ended, pods));
    assert_eq!((then.phase(), &then.status["observedRetry"]), ("Pending", &json!("a")));
    assert_eq!(then.deleted().len(), 2);
}

#[test]
fn a_value_on_a_succeeded_artifact_does_nothing() {
    let asked = annotated(&succeeded(), "a");
    let job = first_job(complete(300));
    let pods = vec![ended_pod(&job, "Succeeded", DIGEST, 300)];
    for answers in [nothing(), cluster(job, pods)] {
        let look = look(&asked, answers);
        assert_eq!(look.store(&asked), asked);
        assert_eq!(look.applied(), Vec::<String>::new());
        assert!(look.deleted().iter().all(|gone| !gone.starts_with("Job ")));
    }
}

#[test]
fn a_changed_spec_wins_over_a_value() {
    let asked = with(&annotated(&failed(), "a"), json!({ "metadata": { "generation": 2 } }));
    let made = look(&asked, nothing());
    assert_eq!(made.applied()[1], format!("Job {}", job_name(&run(2, Some("a")))));
    // The new run answers the value as well: it is not run once more when it fails.
    let job = job_of(&run(2, Some("a")), broken(30));
    let claim = Fetched::Found(claim_of(&run(2, Some("a"))));
    let answers = Answers { claim, ..cluster(job, vec![]) };
    let over = look(&made.store(&asked), answers.clone());
    assert_eq!(over.phase(), "Failed");
    let stays = look(&over.store(&asked), answers);
    assert_eq!((stays.phase(), stays.applied()), ("Failed", vec![]));
}

#[test]
fn a_predecessors_failed_job_is_run_again_too_even_if_it_cannot_be_deleted_at_once() {
    let asked = annotated(&failed(), "a");
    let old = unmarked_job("phi-4-x7k2p", broken(300));
    let answers = Answers { claim: Fetched::Missing, ..cluster(old, vec![]) };
    let once = look(&asked, answers.clone());
    assert_eq!(once.deleted(), ["Job phi-4-x7k2p"]);
    let still = look(&once.store(&asked), answers);
    assert_eq!((still.deleted(), still.phase()), (vec!["Job phi-4-x7k2p".to_owned()], "Pending"));
}

/// The status tells only of the run before: nobody has stored the result of this one yet.
#[test]
fn w13_the_job_of_a_retry_is_held_until_its_own_result_is_stored() {
    let asked = annotated(&failed(), "a");
    let job = job_of(&again(), complete(300));
    let pods = vec![ended_pod(&job, "Succeeded", DIGEST, 300)];
    let claim = Fetched::Found(claim_of(&again()));
    let answers = Answers { claim, ..cluster(job, pods) };
    let over = look(&asked, answers.clone());
    assert_eq!((over.phase(), &over.status["digest"]), ("Succeeded", &json!(DIGEST)));
    assert_eq!((over.released(), over.looks_again_after()), (vec![], Some(0)));
    let next = look(&over.store(&asked), answers);
    assert_eq!(next.released(), [job_name(&again())]);
}
