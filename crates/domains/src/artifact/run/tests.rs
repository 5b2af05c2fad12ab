use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::artifact::fixture::{
    ago, annotated, base, deleted, failed, first, first_job, job_of, run, running, stored,
    succeeded, unmarked_job, with,
};
use crate::artifact::names::Names;

fn of_generation(artifact: &windlass_api::model::artifact::ModelArtifact, generation: i64) -> Run {
    Run::wanted(&with(artifact, json!({ "metadata": { "generation": generation } })), &[])
}

#[test]
fn a_new_artifact_is_in_the_run_of_its_generation() {
    assert_eq!(Run::wanted(&base(), &[]), first());
    assert_eq!(of_generation(&base(), 7), run(7, None));
}

#[test]
fn an_annotation_from_the_beginning_is_answered_by_the_first_run() {
    let artifact = annotated(&base(), "a");
    assert_eq!(Run::wanted(&artifact, &[]), run(1, Some("a")));
    let failed = with(
        &artifact,
        json!({ "status": { "observedGeneration": 1, "observedRetry": "a", "phase": "Failed" } }),
    );
    assert_eq!(Run::wanted(&failed, &[]), run(1, Some("a")));
}

#[test]
fn only_a_failed_artifact_is_run_again_and_each_value_counts_once() {
    let told = |phase: &str, answered: Option<&str>| {
        stored(json!({ "observedGeneration": 1, "phase": phase, "observedRetry": answered }))
    };
    for (phase, answered, asked, want) in [
        ("Failed", None, "a", run(1, Some("a"))),
        ("Failed", Some("a"), "a", run(1, Some("a"))),
        ("Failed", Some("a"), "b", run(1, Some("b"))),
        // A value may come back, but not as the answer to itself.
        ("Failed", Some("b"), "a", run(1, Some("a"))),
        ("Failed", None, "", run(1, Some(""))),
        ("Succeeded", None, "a", run(1, None)),
        ("Succeeded", Some("a"), "b", run(1, Some("a"))),
        ("Running", None, "a", run(1, None)),
        ("Pending", Some("a"), "b", run(1, Some("a"))),
        // Nobody knows what such a word means, so it is not taken for a failure.
        ("Unheard-of", None, "a", run(1, None)),
    ] {
        let artifact = annotated(&told(phase, answered), asked);
        assert_eq!(Run::wanted(&artifact, &[]), want, "{phase} {answered:?} {asked}");
    }
}

#[test]
fn a_value_that_is_taken_away_asks_for_nothing() {
    let told = json!({ "observedGeneration": 1, "phase": "Failed", "observedRetry": "a" });
    assert_eq!(Run::wanted(&stored(told), &[]), run(1, Some("a")));
}

#[test]
fn w01_a_new_generation_is_a_new_run_whatever_the_phase() {
    for artifact in [base(), succeeded(), failed()] {
        assert_eq!(of_generation(&artifact, 2), run(2, None));
        assert_eq!(of_generation(&annotated(&artifact, "a"), 2), run(2, Some("a")));
    }
}

#[test]
fn a_job_without_a_stored_status_tells_which_run_it_is() {
    let made = job_of(&run(1, Some("a")), running());
    let artifact = annotated(&base(), "b");
    assert_eq!(Run::wanted(&artifact, std::slice::from_ref(&made)), run(1, Some("a")));
    let going = deleted(&made);
    assert_eq!(Run::wanted(&artifact, &[going]), run(1, Some("b")));
    let old = job_of(&run(1, Some("a")), running());
    let next = with(&artifact, json!({ "metadata": { "generation": 2 } }));
    assert_eq!(Run::wanted(&next, &[old]), run(2, Some("b")));
}

#[test]
fn a_status_without_a_generation_tells_of_no_run() {
    for status in [json!({}), json!({ "observedGeneration": 0, "phase": "Failed" })] {
        assert_eq!(Run::stored(stored(status).status.as_ref()), None);
    }
    assert_eq!(Run::stored(failed().status.as_ref()), Some(first()));
}

#[test]
fn w12_of_several_jobs_the_newest_counts_and_names_decide_between_equals() {
    let made = |name: &str, at: i64| {
        with(
            &unmarked_job(name, running()),
            json!({ "metadata": { "creationTimestamp": ago(at) } }),
        )
    };
    let name = |jobs: &[Job]| newest(jobs.iter()).and_then(|job| job.metadata.name.clone());
    assert_eq!(name(&[made("b", 9), made("a", 5), made("c", 7)]).as_deref(), Some("a"));
    assert_eq!(name(&[made("a", 5), made("b", 5)]).as_deref(), Some("b"));
    assert_eq!(name(&[made("b", 5), made("a", 5)]).as_deref(), Some("b"));
    assert_eq!(name(&[]), None);
}

#[test]
fn a_mark_that_cannot_be_read_is_no_mark() {
    let odd = with(
        &first_job(running()),
        json!({ "metadata": { "annotations": { GENERATION_ANNOTATION: "one" } } }),
    );
    assert_eq!(Run::marked(&odd.metadata), None);
    let whole = Run::marked(&first_job(running()).metadata);
    assert_eq!(whole, Some(first()));
}

fn is_dns_subdomain(name: &str) -> bool {
    let label = |text: &str| {
        let edge =
            |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        edge(text.chars().next())
            && edge(text.chars().last())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    !name.is_empty() && name.split('.').all(label)
}

proptest! {
    #[test]
    fn marks_are_read_back_as_they_were_written(
        generation in any::<i64>(),
        retry in proptest::option::of(".*"),
    ) {
        let run = Run { generation, retry };
        let child = ObjectMeta { annotations: Some(run.annotations()), ..Default::default() };
        prop_assert_eq!(Run::marked(&child), Some(run));
    }

    #[test]
    fn w12_job_names_are_valid_and_differ_between_runs(
        name in "[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?",
        uids in proptest::collection::btree_set("[0-9a-f-]{1,36}", 1..3),
        generations in proptest::collection::btree_set(1_i64..1000, 1..3),
        retries in proptest::collection::btree_set(proptest::option::of("[a-z0-9/]{0,6}"), 1..4),
    ) {
        prop_assume!(is_dns_subdomain(&name));
        let mut names = BTreeSet::new();
        let mut count = 0;
        for uid in &uids {
            let artifact = with(&base(), json!({ "metadata": { "name": name, "uid": uid } }));
            for generation in &generations {
                for retry in &retries {
                    let run = Run { generation: *generation, retry: retry.clone() };
                    let made = Names::of(&artifact).job(&run);
                    prop_assert_eq!(&made, &Names::of(&artifact).job(&run));
                    prop_assert!(made.len() <= 63 && is_dns_subdomain(&made), "{}", made);
                    names.insert(made);
                    count += 1;
                }
            }
        }
        prop_assert_eq!(names.len(), count);
    }
}

/// The one pair that is easily mistaken for each other.
#[test]
fn w12_an_empty_retry_has_a_name_of_its_own() {
    let names = Names::of(&base());
    assert_ne!(names.job(&run(1, None)), names.job(&run(1, Some(""))));
}
