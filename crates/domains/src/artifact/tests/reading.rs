//! What is asked for, and what follows when there is no answer.

use futures::FutureExt;
use serde_json::{Value, json};
use windlass_api::model::artifact::ModelArtifact;
use windlass_engine::domain::Domain;
use windlass_engine::fetch::{Documents, Fetched, Serves};

use super::super::fixture::*;
use super::super::{Answers, ArtifactDomain};

/// The three answers without which nothing can be said, each missing once.
fn unread() -> Vec<Answers> {
    let job = first_job(broken(300));
    let whole = || cluster(job.clone(), vec![ended_pod(&job, "Failed", "other words", 300)]);
    vec![
        Answers { jobs: unreachable(), ..whole() },
        Answers { pods: unreachable(), ..whole() },
        Answers { claim: unreachable(), ..whole() },
        Answers { jobs: unreachable(), ..nothing() },
    ]
}

#[test]
fn an_unread_answer_changes_nothing_in_the_cluster() {
    for artifact in [base(), succeeded(), failed(), annotated(&failed(), "a")] {
        for answers in unread() {
            let look = look(&artifact, answers);
            assert_eq!(look.plan, Default::default());
            assert!(!look.applies);
        }
    }
}

#[test]
fn an_unread_answer_is_told_with_its_cause_and_the_rest_stays() {
    let running_now = stored(json!({
        "observedGeneration": 1,
        "phase": "Running",
        "jobRef": { "name": job_name(&first()), "namespace": "ml-team" },
        "startTime": ago(60),
    }));
    for answers in unread() {
        let look = look(&running_now, answers);
        assert_eq!(look.ready(), ("False", "ReconcileError", "Timeout: the API does not answer"));
        assert_eq!(look.phase(), "Running");
        assert_eq!(look.status["startTime"], ago(60));
        assert_eq!(look.events()[0].1, "ReconcileError");
    }
}

#[test]
fn a_result_stands_while_answers_are_missing_and_afterwards() {
    for artifact in [succeeded(), failed()] {
        for answers in unread() {
            let during = look(&artifact, answers);
            assert_eq!(during.store(&artifact), artifact);
            assert_eq!(during.events(), []);
            let after = look(&during.store(&artifact), nothing());
            assert_eq!(after.store(&artifact), artifact);
        }
    }
}

#[test]
fn an_unread_answer_never_makes_an_old_result_a_new_one() {
    let changed = |artifact: &ModelArtifact| {
        with(
            artifact,
            json!({ "metadata": { "generation": 2 }, "spec": { "target": { "tag": "v2" } } }),
        )
    };
    for artifact in [changed(&succeeded()), changed(&failed()), annotated(&failed(), "a")] {
        for answers in unread() {
            let look = look(&artifact, answers);
            assert_eq!((look.phase(), look.ready().1), ("Pending", "ReconcileError"));
            for field in ["digest", "reference", "startTime", "completionTime", "jobRef"] {
                assert_eq!(look.status.get(field), None, "{field}");
            }
        }
    }
}

/// Without its pods a Job's end is only half known; what is missing could not be told later.
#[test]
fn an_end_is_not_told_while_its_pods_are_unread() {
    for status in [complete(300), broken(300)] {
        let answers = Answers { pods: unreachable(), ..cluster(first_job(status), vec![]) };
        let look = look(&base(), answers);
        assert_eq!(look.phase(), "Pending");
        assert_eq!(look.status.get("completionTime"), None);
    }
}

#[test]
fn a_job_is_not_told_of_over_and_over_while_answers_are_missing() {
    let known = stored(json!({ "observedGeneration": 1, "phase": "Pending" }));
    let answers = Answers { pods: unreachable(), ..cluster(first_job(json!(null)), vec![]) };
    assert_eq!(look(&known, answers).news, []);
}

fn fetched(artifact: &ModelArtifact, objects: Vec<Value>) -> Answers {
    let cluster = Documents { objects, serves: Serves::Definitions };
    let domain = ArtifactDomain::<ModelArtifact>::new(settings());
    // A cluster made of text never keeps one waiting.
    domain.fetch(&cluster, artifact).now_or_never().unwrap()
}

fn document(api_version: &str, kind: &str, object: impl k8s_openapi::serde::Serialize) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.into();
    value
}

fn secret(name: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": "ml-team" },
        "data": data,
    })
}

#[test]
fn only_the_keys_of_secrets_are_kept() {
    let objects = vec![
        secret("hf-token", json!({ "token": "aGZfYWJj" })),
        secret("others", json!({ "token": "eA==" })),
    ];
    let secrets = fetched(&base(), objects).secrets;
    let names: Vec<&str> = secrets.keys().map(String::as_str).collect();
    assert_eq!(names, ["hf-token", "oci-creds"]);
    assert!(secrets["hf-token"].found().unwrap().contains("token"));
    assert!(secrets["oci-creds"].is_missing());
    assert!(!format!("{secrets:?}").contains("hf_abc"));
}

#[test]
fn secrets_are_asked_for_until_the_pod_runs() {
    let job = first_job(running());
    let documents = |phase: &str| {
        vec![document("batch/v1", "Job", &job), document("v1", "Pod", pod_of(&job, phase))]
    };
    assert_eq!(fetched(&base(), documents("Pending")).secrets.len(), 2);
    assert_eq!(fetched(&base(), documents("Running")).secrets.len(), 0);
    assert_eq!(fetched(&succeeded(), vec![]).secrets.len(), 0);
    assert_eq!(fetched(&failed(), vec![]).secrets.len(), 0);
}

/// The form of the credentials decides how the Job looks, so each run has to know it.
#[test]
fn secrets_are_asked_for_before_each_run() {
    let old = document("v1", "Pod", ended_pod(&first_job(complete(300)), "Succeeded", DIGEST, 300));
    let changed = with(&succeeded(), json!({ "metadata": { "generation": 2 } }));
    for artifact in [annotated(&failed(), "a"), changed] {
        assert_eq!(fetched(&artifact, vec![old.clone()]).secrets.len(), 2);
        assert_eq!(fetched(&artifact, vec![]).secrets.len(), 2);
    }
}

#[test]
fn jobs_and_pods_of_other_artifacts_are_not_asked_for() {
    let job = first_job(running());
    let other = |kind: &str, version: &str, object: Value| {
        let mut value = document(version, kind, object);
        value["metadata"]["labels"]["app.kubernetes.io/name"] = "other".into();
        value
    };
    let objects = vec![
        other("Job", "batch/v1", json!(job)),
        other("Pod", "v1", json!(pod_of(&job, "Running"))),
    ];
    let answers = fetched(&base(), objects);
    assert_eq!(answers.jobs.found().unwrap().len(), 0);
    assert_eq!(answers.pods.found().unwrap().len(), 0);
}

#[test]
fn an_older_version_of_the_operator_made_children_that_are_found() {
    let older = with(
        &first_job(running()),
        json!({ "metadata": { "labels": { "app.kubernetes.io/version": "v0.8.0" } } }),
    );
    let answers = fetched(&base(), vec![document("batch/v1", "Job", older)]);
    assert_eq!(answers.jobs.found().unwrap().len(), 1);
}

#[test]
fn events_are_asked_for_about_jobs_without_pods_and_pods_that_do_not_start() {
    // Some servers write the counts that are zero.
    let job = first_job(json!({ "active": 1, "succeeded": 0, "failed": 0 }));
    let of_job = event_about("Job", &job.metadata, "FailedCreate", "quota");
    let placed = json!({ "spec": { "containers": [], "nodeName": "n1" } });
    let pod = with(&pod_of(&job, "Pending"), placed);
    let of_pod = event_about("Pod", &pod.metadata, "FailedMount", "secret");
    let events = || {
        vec![
            document("v1", "Event", &of_job),
            document("v1", "Event", &of_pod),
            document("batch/v1", "Job", &job),
        ]
    };
    let said = |answers: Answers| -> Vec<String> {
        answers.events.into_iter().filter_map(|event| event.message).collect()
    };
    assert_eq!(said(fetched(&base(), events())), ["quota"]);
    let mut with_pod = events();
    with_pod.push(document("v1", "Pod", &pod));
    assert_eq!(said(fetched(&base(), with_pod)), ["secret"]);
    let mut started = events();
    started.push(document("v1", "Pod", pod_of(&job, "Running")));
    assert_eq!(said(fetched(&base(), started)), Vec::<String>::new());
}

#[test]
fn one_unreadable_job_is_an_unread_answer() {
    let mut broken = document("batch/v1", "Job", first_job(running()));
    broken["spec"]["backoffLimit"] = "none".into();
    let answers = fetched(&base(), vec![broken]);
    assert!(matches!(answers.jobs, Fetched::Failed(_)));
}
