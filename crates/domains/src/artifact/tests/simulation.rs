//! That two runs never work at once: over any state of the cluster, and over any course of events.

mod course;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use windlass_api::model::artifact::ModelArtifact;
use windlass_engine::fetch::Fetched;

use super::super::Answers;
use super::super::fixture::*;
use super::super::run::Run;

fn retry() -> impl Strategy<Value = Option<&'static str>> {
    of(select(&["a", "b", ""][..]))
}

fn any_run() -> impl Strategy<Value = Run> {
    (1_i64..4, retry()).prop_map(|(generation, retry)| run(generation, retry))
}

prop_compose! {
    fn any_artifact()(
        generation in 1_i64..4,
        asked in retry(),
        known in of((0_i64..4, retry(), of(select(&["Pending", "Running", "Succeeded", "Failed"][..])))),
        digest in any::<bool>(),
        job in of(any_run()),
    ) -> ModelArtifact {
        let mut artifact = with(&base(), json!({ "metadata": { "generation": generation } }));
        if let Some(asked) = asked {
            artifact = annotated(&artifact, asked);
        }
        let Some((generation, retry, phase)) = known else { return artifact };
        let status = json!({
            "observedGeneration": generation,
            "observedRetry": retry,
            "phase": phase,
            "digest": digest.then_some(DIGEST),
            "jobRef": job.map(|run| json!({ "name": job_name(&run) })),
        });
        with(&artifact, json!({ "status": status }))
    }
}

fn job_status() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        running(),
        complete(0),
        complete(300),
        broken(0),
        broken(300),
        json!({ "failed": 1 }),
        json!({ "succeeded": 1 }),
    ])
}

prop_compose! {
    fn any_job()(
        of in any_run(),
        status in job_status(),
        marked in proptest::bool::weighted(0.7),
        held in any::<bool>(),
        going in any::<bool>(),
        ours in proptest::bool::weighted(0.9),
    ) -> Job {
        let mut job = job_of(&of, status);
        if !marked {
            job = unmarked_job(&format!("phi-4-old{}", of.generation), json!(job.status));
        }
        if !held {
            job.metadata.finalizers = None;
        }
        if !ours {
            job.metadata.owner_references = None;
        }
        if going { deleted(&job) } else { job }
    }
}

fn any_claim() -> impl Strategy<Value = Fetched<PersistentVolumeClaim>> {
    let foreign = with(&claim_of(&first()), json!({ "metadata": { "ownerReferences": null } }));
    let claim = prop_oneof![
        any_run().prop_map(|run| claim_of(&run)),
        Just(unmarked_claim()),
        Just(claim_owned_by("an-older-uid")),
        Just(foreign),
    ];
    let claim = (claim, any::<bool>())
        .prop_map(|(claim, going)| Fetched::Found(if going { deleted(&claim) } else { claim }));
    prop_oneof![
        4 => claim,
        3 => Just(Fetched::Missing),
        1 => Just(unreachable()),
    ]
}

fn any_pod() -> impl Strategy<Value = Pod> {
    let phase = select(&["Pending", "Running", "Succeeded", "Failed", "Unknown"][..]);
    (any_run(), phase, any::<bool>()).prop_map(|(run, phase, tells)| {
        let job = job_of(&run, json!(null));
        if tells { ended_pod(&job, phase, DIGEST, 10) } else { pod_of(&job, phase) }
    })
}

prop_compose! {
    fn any_cluster()(
        mut jobs in vec(any_job(), 0..4),
        claim in any_claim(),
        pods in vec(any_pod(), 0..3),
        is_read in proptest::bool::weighted(0.95),
    ) -> Answers {
        // Two objects of one name do not exist.
        jobs.sort_by_key(|job| job.metadata.name.clone());
        jobs.dedup_by_key(|job| job.metadata.name.clone());
        let jobs = if is_read { Fetched::Found(jobs) } else { unreachable() };
        Answers { jobs, claim, pods: Fetched::Found(pods), ..nothing() }
    }
}

fn is_ours(metadata: &ObjectMeta) -> bool {
    metadata.owner_references.iter().flatten().any(|owner| owner.uid == UID)
}

fn works(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_state_of_the_cluster_leads_to_two_jobs(
        artifact in any_artifact(),
        answers in any_cluster(),
    ) {
        let again = look(&artifact, answers.clone());
        let look = look(&artifact, answers.clone());
        prop_assert_eq!(&look.plan, &again.plan);
        prop_assert!(look.conditions.len() == 1 && look.ready().2.len() <= 1024);
        let jobs = answers.jobs.found().cloned().unwrap_or_default();
        let ours = |name: &str| {
            jobs.iter().any(|job| job.metadata.name.as_deref() == Some(name) && is_ours(&job.metadata))
        };
        for name in look.released() {
            prop_assert!(ours(&name), "{} is not ours to release", name);
        }
        for gone in look.deleted() {
            let name = gone.strip_prefix("Job ");
            prop_assert!(name.is_none_or(ours), "{} is not ours to delete", gone);
        }
        let made: Vec<_> = look.plan.apply.iter().filter(|d| d.kind.kind == "Job").collect();
        prop_assert!(made.len() <= 1);
        let Some(made) = made.first() else { return Ok(()) };
        prop_assert!(!jobs.iter().any(|job| is_ours(&job.metadata)), "another Job is not gone");
        prop_assert!(!answers.pods.found().into_iter().flatten().any(works), "a pod still works");
        prop_assert_eq!(look.deleted(), Vec::<String>::new());
        let wanted = &made.body["metadata"];
        prop_assert_eq!(&wanted["name"], &json!(job_name(&Run::wanted(&artifact, &[]))));
        if let Fetched::Found(PersistentVolumeClaim { metadata, .. }) = &answers.claim
            && is_ours(metadata)
        {
            let marks = metadata.annotations.as_ref();
            prop_assert!(metadata.deletion_timestamp.is_none(), "its workspace is about to go");
            prop_assert!(
                marks.is_none_or(|marks| json!(marks) == wanted["annotations"]),
                "its workspace is of another run"
            );
        }
        prop_assert_eq!(look.plan.tiers()[0][0].key.name.as_str(), CLAIM);
    }

    /// A failure may be told first and then answered by a retry; after that nothing is left to say.
    #[test]
    fn a_status_comes_to_rest_where_the_cluster_does(
        artifact in any_artifact(),
        answers in any_cluster(),
    ) {
        let next = |artifact: &ModelArtifact| look(artifact, answers.clone()).store(artifact);
        let rest = next(&next(&next(&artifact)));
        prop_assert_eq!(next(&rest), rest);
    }
}
