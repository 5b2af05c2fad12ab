//! What is left of earlier runs, of a predecessor, and of others: it goes, or it is waited for.

use serde_json::{Value, json};
use windlass_api::model::artifact::ModelArtifact;
use windlass_engine::fetch::Fetched;

use super::super::Answers;
use super::super::fixture::*;

fn second_generation(artifact: &ModelArtifact) -> ModelArtifact {
    with(artifact, json!({ "metadata": { "generation": 2 } }))
}

fn nobody() -> Vec<String> {
    Vec::new()
}

#[test]
fn w01_a_changed_spec_runs_again_whatever_the_last_result() {
    for artifact in [succeeded(), failed()] {
        let look = look(&second_generation(&artifact), nothing());
        assert_eq!(look.applied().len(), 2);
        assert_eq!((look.phase(), look.ready().1), ("Pending", "JobNotCreated"));
    }
}

#[test]
fn w03_marks_tell_an_old_job_even_if_the_status_has_moved_on() {
    // The old Job could not be deleted, but the status was written.
    let old = first_job(running());
    let pods = vec![pod_of(&old, "Running")];
    let moved_on = stored(json!({ "observedGeneration": 2, "phase": "Pending" }));
    let look = look(&second_generation(&moved_on), cluster(old, pods));
    assert_eq!(look.applied(), nobody());
    assert_eq!(look.deleted().len(), 2);
    assert_eq!((look.phase(), look.status.get("jobRef")), ("Pending", None));
}

/// The same where the old Job and workspace are a predecessor's, and carry no marks.
#[test]
fn w03_a_failed_clean_up_does_not_make_a_predecessors_job_the_new_one() {
    for status in [running(), complete(300), broken(300)] {
        let job = unmarked_job("phi-4-x7k2p", status.clone());
        let before = stored(json!({
            "observedGeneration": 1,
            "phase": "Running",
            "jobRef": { "name": "phi-4-x7k2p", "namespace": "ml-team" },
        }));
        let answers = Answers { claim: Fetched::Found(unmarked_claim()), ..cluster(job, vec![]) };
        let changed = second_generation(&before);
        let once = look(&changed, answers.clone());
        assert_eq!((once.deleted().len(), once.phase()), (2, "Pending"), "{status}");
        let again = look(&once.store(&changed), answers);
        assert_eq!((again.deleted().len(), again.phase()), (2, "Pending"), "{status}");
        assert_eq!((again.applied(), again.status.get("jobRef")), (nobody(), None), "{status}");
    }
}

#[test]
fn a_predecessors_job_is_taken_over_with_its_workspace() {
    let told = |phase: &str| {
        stored(json!({
            "observedGeneration": 1,
            "phase": phase,
            "jobRef": { "name": "phi-4-x7k2p", "namespace": "ml-team" },
        }))
    };
    for (artifact, status, phase) in [
        (base(), running(), "Running"),
        (stored(json!({ "phase": "Pending" })), running(), "Running"),
        (told("Running"), running(), "Running"),
        (told("Pending"), running(), "Running"),
        (told("Running"), broken(300), "Failed"),
        (told("Running"), complete(300), "Succeeded"),
        (stored(json!({ "observedGeneration": 1, "phase": "Running" })), running(), "Running"),
    ] {
        let job = unmarked_job("phi-4-x7k2p", status);
        let answers = Answers { claim: Fetched::Found(unmarked_claim()), ..cluster(job, vec![]) };
        let look = look(&artifact, answers);
        assert_eq!(look.phase(), phase);
        assert_eq!(look.status["jobRef"]["name"], "phi-4-x7k2p");
        assert_eq!(look.news, [], "somebody else has made it, and told of it");
        assert_eq!(look.released(), nobody());
        let over = phase != "Running";
        assert_eq!(look.deleted().len(), usize::from(over), "{phase}");
        assert!(look.applied().iter().all(|child| !child.starts_with("Job ")));
    }
}

#[test]
fn w04_a_workspace_on_its_way_out_is_waited_for() {
    let wait = format!("Waiting for PersistentVolumeClaim {CLAIM} of an earlier run to be gone");
    for claim in [claim_of(&first()), claim_of(&run(1, Some("a"))), unmarked_claim()] {
        for artifact in [base(), second_generation(&succeeded())] {
            let answers = Answers { claim: Fetched::Found(deleted(&claim)), ..nothing() };
            let look = look(&artifact, answers);
            assert_eq!(look.applied(), nobody());
            assert_eq!(look.ready(), ("False", "WaitingForWorkspace", wait.as_str()));
            assert_eq!((look.phase(), look.events()), ("Pending", vec![]));
        }
    }
}

#[test]
fn w04_a_workspace_of_another_run_goes_before_a_job_is_made() {
    for claim in [claim_of(&run(2, None)), claim_of(&run(1, Some("a")))] {
        let look = look(&base(), Answers { claim: Fetched::Found(claim), ..nothing() });
        assert_eq!(look.applied(), nobody());
        assert_eq!(look.deleted(), [format!("PersistentVolumeClaim {CLAIM}")]);
    }
}

#[test]
fn w04_a_pod_that_still_works_is_waited_for() {
    let old = first_job(running());
    for (phase, waits) in [
        ("Pending", true),
        ("Running", true),
        ("Unknown", true),
        ("Succeeded", false),
        ("Failed", false),
    ] {
        let pods = Fetched::Found(vec![pod_of(&old, phase)]);
        let look = look(&second_generation(&succeeded()), Answers { pods, ..nothing() });
        assert_eq!(look.applied().is_empty(), waits, "{phase}");
        if waits {
            let name = format!("{}-pod", job_name(&first()));
            let wait = format!("Waiting for pod {name} of an earlier run to end");
            assert_eq!(look.ready(), ("False", "WaitingForWorkspace", wait.as_str()));
        }
    }
}

#[test]
fn pods_of_the_other_kinds_artifact_of_this_name_are_not_waited_for() {
    let owned_by = |owner: Value| {
        with(
            &first_job(running()),
            json!({ "metadata": { "name": "x", "ownerReferences": owner } }),
        )
    };
    let of = |kind: &str| {
        json!([{
            "apiVersion": "model.otterscale.io/v1alpha1", "kind": kind, "name": "phi-4", "uid": "u2",
        }])
    };
    for (owner, waits) in [
        (of("Artifact"), false),
        // An earlier artifact of this name, on its way out with all that it had.
        (of("ModelArtifact"), true),
        // Orphaned, and nobody can say by whom.
        (json!(null), true),
    ] {
        let job = owned_by(owner.clone());
        let pods = vec![pod_of(&job, "Running")];
        let answers = Answers { claim: Fetched::Missing, ..cluster(job, pods) };
        let look = look(&base(), answers);
        assert_eq!(look.applied().is_empty(), waits, "{owner}");
        assert_eq!((look.deleted(), look.released()), (nobody(), nobody()));
    }
}

#[test]
fn w05_a_finished_pod_holds_its_workspace_but_nothing_else() {
    let job = first_job(complete(300));
    let pods = vec![ended_pod(&job, "Succeeded", DIGEST, 300)];
    let answers =
        Answers { claim: Fetched::Found(deleted(&claim_of(&first()))), ..cluster(job, pods) };
    let look = look(&succeeded(), answers);
    assert_eq!((look.phase(), look.ready().1), ("Succeeded", "Succeeded"));
    assert_eq!(look.deleted(), nobody());
}

#[test]
fn a_workspace_that_is_deleted_under_a_running_job_does_not_end_it() {
    let job = first_job(running());
    let pods = vec![pod_of(&job, "Running")];
    let answers =
        Answers { claim: Fetched::Found(deleted(&claim_of(&first()))), ..cluster(job, pods) };
    let look = look(&base(), answers);
    assert_eq!((look.phase(), look.ready().1), ("Running", "JobRunning"));
    assert_eq!((look.deleted(), look.applied()), (nobody(), nobody()));
}

#[test]
fn w12_of_several_jobs_the_newest_stays_and_the_others_go() {
    let made = |name: &str, seconds: i64| {
        let at = json!({ "metadata": { "creationTimestamp": ago(seconds) } });
        with(&unmarked_job(name, running()), at)
    };
    let jobs = vec![made("phi-4-aaaaa", 30), made("phi-4-bbbbb", 10), made("phi-4-ccccc", 20)];
    let answers = Answers { jobs: Fetched::Found(jobs), ..nothing() };
    let look = look(&base(), answers);
    assert_eq!(look.deleted(), ["Job phi-4-aaaaa", "Job phi-4-ccccc"]);
    assert_eq!(look.status["jobRef"]["name"], "phi-4-bbbbb");
    assert_eq!((look.phase(), look.applied()), ("Running", nobody()));
}

#[test]
fn jobs_of_others_are_neither_read_nor_deleted() {
    let foreign = with(
        &first_job(running()),
        json!({ "metadata": { "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "c1",
        }]}}),
    );
    let look = look(&base(), Answers { jobs: Fetched::Found(vec![foreign]), ..nothing() });
    assert_eq!((look.deleted(), look.released()), (nobody(), nobody()));
    assert_eq!((look.phase(), look.applied().len()), ("Pending", 2));
}

#[test]
fn a_job_deleted_by_hand_is_let_go_and_made_again_once_its_pod_has_ended() {
    let job = first_job(running());
    let name = job_name(&first());
    let pods = vec![pod_of(&job, "Running")];
    let running_now = look(&base(), cluster(job.clone(), pods.clone())).store(&base());
    let going = look(&running_now, cluster(deleted(&job), pods.clone()));
    assert_eq!(going.released(), [name.as_str()]);
    assert_eq!((going.applied(), going.phase()), (nobody(), "Pending"));
    assert_eq!(going.ready().1, "WaitingForWorkspace");
    assert_eq!(going.status.get("jobRef"), None);

    let waiting = going.store(&running_now);
    let without_job = Answers { jobs: Fetched::Found(vec![]), ..cluster(job.clone(), pods) };
    let lingers = look(&waiting, without_job);
    assert_eq!(lingers.applied(), nobody());
    assert!(lingers.ready().2.starts_with("Waiting for pod "), "{:?}", lingers.ready());

    let without_pod = Answers { claim: Fetched::Found(claim_of(&first())), ..nothing() };
    let again = look(&lingers.store(&waiting), without_pod);
    assert_eq!(again.applied()[1], format!("Job {name}"));
    let remade = look(&again.store(&waiting), cluster(first_job(json!(null)), vec![]));
    assert_eq!(remade.news.len(), 1, "it was made once more, and that is told");
}

#[test]
fn w13_a_held_job_that_is_deleted_after_its_end_is_still_read() {
    let by_condition = json!({ "conditions": [{
        "type": "Failed", "status": "True", "message": "DeadlineExceeded",
        "lastTransitionTime": ago(300),
    }]});
    for (status, phase) in
        [(complete(300), "Succeeded"), (broken(300), "Failed"), (by_condition, "Failed")]
    {
        let job = deleted(&first_job(status));
        let pods = vec![ended_pod(&job, phase, DIGEST, 300)];
        let look = look(&base(), cluster(job, pods));
        assert_eq!(look.phase(), phase);
        assert_eq!(look.status["jobRef"]["name"], job_name(&first()));
        assert_eq!(look.released(), nobody(), "not before its result is stored");
    }
}

#[test]
fn w18_a_foreign_workspace_is_neither_used_nor_deleted() {
    let ownerless = with(&claim_of(&first()), json!({ "metadata": { "ownerReferences": null } }));
    let of_a_set = with(
        &claim_of(&first()),
        json!({ "metadata": { "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "s1",
        }]}}),
    );
    let of_another_group = with(
        &claim_of(&first()),
        json!({ "metadata": { "ownerReferences": [{
            "apiVersion": "example.com/v1", "kind": "ModelArtifact", "name": "phi-4", "uid": "s1",
        }]}}),
    );
    for claim in [ownerless, of_a_set, of_another_group] {
        let fresh = look(&base(), Answers { claim: Fetched::Found(claim.clone()), ..nothing() });
        assert_eq!(fresh.deleted(), nobody());
        // Refused when it is written, for it is not ours; the Job is of a later tier and not made.
        let tiers = fresh.plan.tiers();
        assert_eq!((tiers.len(), tiers[0][0].key.name.as_str()), (2, CLAIM));
        // A result does not touch it either.
        for artifact in [succeeded(), failed()] {
            let answers = Answers { claim: Fetched::Found(claim.clone()), ..nothing() };
            assert_eq!(look(&artifact, answers).deleted(), nobody());
        }
    }
}

#[test]
fn a_workspace_of_an_earlier_artifact_of_this_name_is_waited_for() {
    let claim = Fetched::Found(claim_owned_by("an-older-uid"));
    let look = look(&base(), Answers { claim, ..nothing() });
    assert_eq!(look.applied(), nobody());
    assert_eq!(look.ready().1, "WaitingForWorkspace");
}

#[test]
fn what_is_left_of_other_runs_goes_after_the_end_too() {
    let old = job_of(&run(1, Some("older")), broken(900));
    let jobs = vec![old, first_job(complete(300))];
    let answers = Answers { jobs: Fetched::Found(jobs), ..nothing() };
    let look = look(&succeeded(), answers);
    assert_eq!(look.deleted(), [format!("Job {}", job_name(&run(1, Some("older"))))]);
    assert_eq!(look.phase(), "Succeeded");
}
