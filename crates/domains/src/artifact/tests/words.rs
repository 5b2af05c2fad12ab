//! What the condition says of Secrets, and what the Job makes of them.

use serde_json::{Value, json};
use windlass_engine::error::Error;
use windlass_engine::fetch::Fetched;

use super::super::Answers;
use super::super::fixture::*;

const TOKEN: &[&str] = &["token"];
const DOCKER: &[&str] = &[".dockerconfigjson"];
const LOGIN: &[&str] = &["password", "username"];

fn forbidden() -> Fetched<&'static [&'static str]> {
    Fetched::Failed(Error::auth("Forbidden", "secrets is forbidden"))
}

/// Whether there is no Job yet, or one whose pod waits.
fn before_the_pod_runs() -> [Answers; 2] {
    let job = first_job(json!({ "active": 1 }));
    let pods = vec![pod_of(&job, "Pending")];
    [nothing(), cluster(job, pods)]
}

#[test]
fn w10_a_secret_that_is_missing_is_named_before_and_after_the_job_is_made() {
    for (token, credentials, want) in [
        (
            Fetched::Missing,
            Fetched::Found(DOCKER),
            "Secret hf-token does not exist; the pod waits for it",
        ),
        (
            Fetched::Found(&["other"][..]),
            Fetched::Found(DOCKER),
            "Secret hf-token has no key token; the pod waits for it",
        ),
        (
            Fetched::Found(TOKEN),
            Fetched::Missing,
            "Secret oci-creds does not exist; the pod waits for it",
        ),
        (
            Fetched::Found(TOKEN),
            Fetched::Found(&["username"][..]),
            "Secret oci-creds has no key .dockerconfigjson; the pod waits for it",
        ),
    ] {
        for answers in before_the_pod_runs() {
            let secrets =
                secrets(&[("hf-token", token.clone()), ("oci-creds", credentials.clone())]);
            let look = look(&base(), Answers { secrets, ..answers });
            assert_eq!(look.ready().2, want);
            assert!(["JobNotCreated", "JobRunning"].contains(&look.ready().1));
        }
    }
}

#[test]
fn secrets_that_are_there_or_may_not_be_read_are_not_spoken_of() {
    let good = [("hf-token", Fetched::Found(TOKEN)), ("oci-creds", Fetched::Found(DOCKER))];
    let old = [("hf-token", Fetched::Found(TOKEN)), ("oci-creds", Fetched::Found(LOGIN))];
    let hidden = [("hf-token", forbidden()), ("oci-creds", forbidden())];
    for given in [&good[..], &old[..], &hidden[..], &[]] {
        let look = look(&base(), Answers { secrets: secrets(given), ..nothing() });
        assert_eq!(look.ready().2, "Waiting for job to be created");
        assert_eq!(look.applied().len(), 2, "a missing Secret may come later; the pod waits");
    }
}

#[test]
fn a_missing_secret_is_no_cause_of_an_end() {
    let job = first_job(broken(30));
    let secrets = secrets(&[("hf-token", Fetched::Missing)]);
    let look = look(&base(), Answers { secrets, ..cluster(job, vec![]) });
    assert_eq!(look.ready().2, "Job has reached the specified backoff limit");
}

#[test]
fn the_form_of_the_credentials_decides_how_the_job_logs_in() {
    for (keys, login) in [
        (Fetched::Found(DOCKER), false),
        (Fetched::Found(LOGIN), true),
        // Both: the newer form wins.
        (Fetched::Found(&[".dockerconfigjson", "password", "username"][..]), false),
        (Fetched::Found(&["username"][..]), false),
        (Fetched::Missing, false),
        (forbidden(), false),
    ] {
        let secrets = secrets(&[("oci-creds", keys.clone())]);
        let look = look(&base(), Answers { secrets, ..nothing() });
        let pod = &look.body("Job")["spec"]["template"]["spec"];
        let names: Vec<&Value> = pod["containers"][0]["env"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|variable| &variable["name"])
            .collect();
        assert_eq!(names.contains(&&json!("OCI_USER")), login, "{keys:?}");
        let mounts = pod["volumes"].as_array().map_or(0, Vec::len);
        assert_eq!(mounts, if login { 1 } else { 2 }, "{keys:?}");
    }
}

#[test]
fn what_stands_still_is_told_before_what_is_missing_is_not_known() {
    let job = first_job(running());
    let unscheduled = json!({ "status": { "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available",
    }]}});
    let pods = vec![with(&pod_of(&job, "Pending"), unscheduled)];
    let look = look(&base(), cluster(job, pods));
    assert_eq!(look.ready().2, "The pod does not start: 0/3 nodes are available");
    assert_eq!((look.phase(), look.looks_again_after()), ("Running", Some(15)));
}

#[test]
fn going_on_is_no_event() {
    let job = first_job(running());
    let known = look(&base(), cluster(job.clone(), vec![])).store(&base());
    let pods = vec![pod_of(&job, "Running")];
    assert_eq!(look(&known, cluster(job, pods)).events(), []);
}
