//! The golden cases, as far as they are seen without a cluster. What A13 and A14 say of the API server
//! and of objects that are gone is shown elsewhere.

use serde_json::json;
use windlass_api::model::artifact::ModelArtifact;
use windlass_engine::plan::{Ownership, Strategy};
use windlass_engine::state::State;

use super::super::Settings;
use super::super::fixture::*;

#[test]
fn a07_a_new_artifact_gets_a_workspace_and_exactly_one_job() {
    let look = look(&base(), nothing());
    let name = job_name(&first());
    assert_eq!(look.applied(), [format!("PersistentVolumeClaim {CLAIM}"), format!("Job {name}")]);
    assert_eq!((look.deleted(), look.released()), (vec![], vec![]));
    assert!(look.applies);
    for child in &look.plan.apply {
        assert_eq!(child.ownership, Ownership::Owned);
        // What exists is never changed.
        assert_eq!(child.strategy, Strategy::CreateOnce);
    }
    let tiers = look.plan.tiers();
    assert_eq!(tiers.len(), 2, "the Job waits for its workspace");
    assert_eq!(tiers[0][0].key.name, CLAIM);
}

#[test]
fn a07_a_job_just_made_is_reported_pending_under_its_name() {
    let answers = cluster(first_job(json!(null)), vec![]);
    let look = look(&base(), answers);
    let name = job_name(&first());
    assert_eq!(look.phase(), "Pending");
    assert_eq!(look.ready(), ("Unknown", "JobPending", "Job is pending scheduling"));
    assert_eq!(look.status["jobRef"], json!({ "name": name, "namespace": "ml-team" }));
    let created = format!("Created pipeline job {name}");
    assert_eq!(look.events(), [("Normal", "JobCreated", created.as_str())]);
    assert!(look.applied().iter().all(|child| !child.starts_with("Job ")));
}

#[test]
fn a07_a_second_look_makes_no_second_job_and_no_second_event() {
    let answers = cluster(first_job(json!(null)), vec![]);
    let stored = look(&base(), answers.clone()).store(&base());
    let again = look(&stored, answers);
    assert_eq!(again.applied(), [format!("PersistentVolumeClaim {CLAIM}")]);
    assert_eq!(again.events(), []);
    assert_eq!(again.store(&stored), stored);
}

#[test]
fn a08_a_running_job_is_reported_running() {
    let job = first_job(running());
    let pods = vec![pod_of(&job, "Running")];
    let look = look(&base(), cluster(job, pods));
    assert_eq!(look.phase(), "Running");
    assert_eq!(look.ready(), ("Unknown", "JobRunning", "Import/pack/push pipeline is running"));
    assert_eq!(look.status["startTime"], ago(60));
    assert_eq!(look.state, State::Progressing);
    assert_eq!(look.looks_again_after(), None, "its end is an event");
    assert_eq!(look.deleted(), Vec::<String>::new());
}

#[test]
fn a09_a_success_reports_digest_and_reference_and_drops_the_workspace() {
    let job = first_job(complete(30));
    let pods = vec![ended_pod(&job, "Succeeded", DIGEST, 30)];
    let look = look(&base(), cluster(job, pods));
    assert_eq!(look.phase(), "Succeeded");
    assert_eq!(look.ready(), ("True", "Succeeded", "Model artifact pushed successfully"));
    assert_eq!(look.status["digest"], DIGEST);
    assert_eq!(look.status["reference"], "ghcr.io/myorg/models/phi-4:v1.0");
    assert_eq!(look.status["startTime"], ago(600));
    assert_eq!(look.status["completionTime"], ago(30));
    assert_eq!(look.deleted(), [format!("PersistentVolumeClaim {CLAIM}")]);
    assert_eq!(look.applied(), Vec::<String>::new());
    assert_eq!(look.events()[0], ("Normal", "Succeeded", "Artifact pushed successfully"));
    assert_eq!(look.state, State::Ready);
}

#[test]
fn a09_without_a_digest_it_looks_again_after_ten_seconds() {
    let job = first_job(complete(30));
    let look = look(&base(), cluster(job, vec![]));
    assert_eq!((look.phase(), look.looks_again_after()), ("Succeeded", Some(10)));
    assert_eq!(look.status.get("digest"), None);
    assert_eq!(look.status.get("reference"), None);
}

#[test]
fn a10_a_failure_reports_its_cause_and_is_not_tried_again() {
    let job = first_job(broken(30));
    let pods = vec![ended_pod(&job, "Failed", "kit import: repository not found", 30)];
    let look = look(&base(), cluster(job, pods));
    assert_eq!(look.phase(), "Failed");
    assert_eq!(look.ready(), ("False", "JobFailed", "kit import: repository not found"));
    assert_eq!(
        look.events()[0],
        ("Warning", "Failed", "Artifact pipeline failed: kit import: repository not found")
    );
    assert_eq!(look.status["completionTime"], ago(30));
    assert_eq!((look.status.get("digest"), look.status.get("reference")), (None, None));
    assert_eq!(look.deleted(), [format!("PersistentVolumeClaim {CLAIM}")]);
    assert_eq!(look.applied(), Vec::<String>::new());
    assert_eq!(look.state, State::Failed);
}

#[test]
fn a11_a_result_outlives_its_job_to_the_letter() {
    for (artifact, state) in [(succeeded(), State::Ready), (failed(), State::Failed)] {
        let look = look(&artifact, nothing());
        assert_eq!(look.store(&artifact), artifact);
        assert_eq!((look.applied(), look.deleted(), look.released()), (vec![], vec![], vec![]));
        assert_eq!((look.events(), look.looks_again_after()), (vec![], None));
        assert_eq!(look.state, state);
    }
}

#[test]
fn a12_without_job_and_history_it_waits_for_its_job() {
    let look = look(&base(), nothing());
    assert_eq!(look.phase(), "Pending");
    assert_eq!(look.ready(), ("False", "JobNotCreated", "Waiting for job to be created"));
    assert_eq!(look.status.len(), 1);
    assert_eq!(look.events(), []);
}

#[test]
fn a13_an_artifact_without_a_source_is_told_so_and_runs_nothing() {
    let artifact = artifact_with(json!({ "source": { "huggingFace": null } }));
    let look = look(&artifact, nothing());
    assert_eq!(look.phase(), "Pending");
    assert_eq!(look.ready(), ("False", "InvalidSpec", "exactly one source must be specified"));
    assert_eq!(look.plan, Default::default());
    assert_eq!(look.events()[0].0, "Warning");
}

#[test]
fn without_an_image_to_pack_with_nothing_is_run_but_what_runs_goes_on() {
    let settings = Settings { kit_image: String::new(), ..settings() };
    let look = |artifact: &ModelArtifact, answers| look_as(&settings, artifact, answers, &[]);
    let text = "the operator has no image to pack models with: its --kit-image is empty";
    let refused = look(&base(), nothing());
    assert_eq!(refused.ready(), ("False", "InvalidSpec", text));
    assert_eq!(refused.phase(), "Pending");
    assert_eq!(refused.plan, Default::default());

    let job = first_job(running());
    let pod = pod_of(&job, "Running");
    assert_eq!(look(&base(), cluster(job, vec![pod])).phase(), "Running");
    let done = look(&succeeded(), nothing());
    assert_eq!((done.phase(), done.ready().0), ("Succeeded", "True"));
}

#[test]
fn a15_a_new_tag_runs_again_after_the_old_run_is_gone() {
    // Gone already: the Job has expired.
    let next = with(
        &succeeded(),
        json!({ "metadata": { "generation": 2 }, "spec": { "target": { "tag": "v2" } } }),
    );
    let at_once = look(&next, nothing());
    assert_eq!(at_once.phase(), "Pending");
    for cleared in ["digest", "reference", "jobRef", "startTime", "completionTime"] {
        assert_eq!(at_once.status.get(cleared), None, "{cleared}");
    }
    assert_eq!(at_once.applied().len(), 2);
    let job = at_once.body("Job");
    assert_eq!(job["metadata"]["name"], job_name(&run(2, None)));
    assert_ne!(job_name(&run(2, None)), job_name(&first()));
    let target = &job["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"];
    assert_eq!(target, "ghcr.io/myorg/models/phi-4:v2");

    // Still there: first it has to go.
    let old = first_job(complete(300));
    let pods = vec![ended_pod(&old, "Succeeded", DIGEST, 300)];
    let waits = look(&next, cluster(old, pods));
    assert_eq!(waits.applied(), Vec::<String>::new());
    assert_eq!(waits.released(), [job_name(&first())]);
    assert_eq!(
        waits.deleted(),
        [format!("Job {}", job_name(&first())), format!("PersistentVolumeClaim {CLAIM}")]
    );
    let wait = format!("Waiting for Job {} of an earlier run to be gone", job_name(&first()));
    assert_eq!(waits.ready(), ("False", "WaitingForWorkspace", wait.as_str()));
    assert_eq!(waits.phase(), "Pending");
    assert_eq!((waits.status.get("digest"), waits.status.get("reference")), (None, None));
    let stored = waits.store(&next);
    assert_eq!(look(&stored, nothing()).applied().len(), 2);
}
