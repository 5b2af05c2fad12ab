//! A tiny cluster in which anything may happen between two passes.

use windlass_api::model::artifact::ArtifactStatus;
use windlass_engine::plan::Plan;

use super::super::super::HOLD;
use super::super::super::names::JOB_NAME_LABEL;
use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Pass {
        deletes_work: bool,
        status_is_stored: bool,
    },
    /// The Job gets a pod, and it runs.
    PodStarts,
    PodEnds {
        well: bool,
    },
    /// The pods of Jobs that are gone end, too.
    PodsAreCollected,
    ClaimIsCollected,
    /// After its time, or by hand.
    JobIsDeleted,
    SpecChanges,
    Retry(&'static str),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (proptest::bool::weighted(0.8), proptest::bool::weighted(0.8)).prop_map(
            |(deletes_work, status_is_stored)| Step::Pass { deletes_work, status_is_stored },
        ),
        4 => Just(Step::PodStarts),
        4 => any::<bool>().prop_map(|well| Step::PodEnds { well }),
        3 => Just(Step::PodsAreCollected),
        3 => Just(Step::ClaimIsCollected),
        1 => Just(Step::JobIsDeleted),
        1 => Just(Step::SpecChanges),
        2 => select(&["a", "b", ""][..]).prop_map(Step::Retry),
    ]
}

struct World {
    artifact: ModelArtifact,
    jobs: Vec<Job>,
    claim: Option<PersistentVolumeClaim>,
    pods: Vec<Pod>,
}

impl World {
    fn new() -> Self {
        Self { artifact: base(), jobs: Vec::new(), claim: None, pods: Vec::new() }
    }

    /// As a predecessor leaves it that is replaced in the middle of a run.
    fn taken_over() -> Self {
        let told = json!({
            "observedGeneration": 1,
            "phase": "Running",
            "jobRef": { "name": "phi-4-x7k2p", "namespace": "ml-team" },
        });
        let job = unmarked_job("phi-4-x7k2p", running());
        let pods = vec![pod_of(&job, "Running")];
        Self { artifact: stored(told), jobs: vec![job], claim: Some(unmarked_claim()), pods }
    }

    fn answers(&self) -> Answers {
        Answers {
            jobs: Fetched::Found(self.jobs.clone()),
            claim: self.claim.clone().map_or(Fetched::Missing, Fetched::Found),
            pods: Fetched::Found(self.pods.clone()),
            ..nothing()
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Pass { deletes_work, status_is_stored } => {
                self.pass(deletes_work, status_is_stored);
            }
            Step::PodStarts => self.pod_starts(),
            Step::PodEnds { well } => self.pod_ends(well),
            Step::PodsAreCollected => {
                let known: Vec<_> = self.jobs.iter().map(|job| job.metadata.name.clone()).collect();
                self.pods.retain(|pod| known.contains(&job_name_of(pod)));
            }
            Step::ClaimIsCollected => {
                let going =
                    |claim: &PersistentVolumeClaim| claim.metadata.deletion_timestamp.is_some();
                if self.pods.is_empty() && self.claim.as_ref().is_some_and(going) {
                    self.claim = None;
                }
            }
            Step::JobIsDeleted => {
                if let Some(name) = self.jobs.first().and_then(|job| job.metadata.name.clone()) {
                    self.delete_job(&name);
                }
            }
            Step::SpecChanges => {
                let next = self.artifact.metadata.generation.unwrap() + 1;
                self.artifact = with(&self.artifact, json!({ "metadata": { "generation": next } }));
            }
            Step::Retry(value) => self.artifact = annotated(&self.artifact, value),
        }
    }

    /// The rounds of the engine: it looks again after it has written.
    fn pass(&mut self, deletes_work: bool, status_is_stored: bool) {
        for _ in 0..3 {
            let plan = look(&self.artifact, self.answers()).plan;
            if !self.apply(&plan, deletes_work) {
                break;
            }
        }
        let last = look(&self.artifact, self.answers());
        if status_is_stored {
            self.artifact = last.store(&self.artifact);
        }
    }

    /// Whether anything was written.
    fn apply(&mut self, plan: &Plan, deletes_work: bool) -> bool {
        let before = (self.jobs.clone(), self.claim.clone());
        let deletes = !plan.delete.is_empty() || !plan.release.is_empty();
        if deletes && !deletes_work {
            // Nothing is applied where something in the way could not be deleted.
            return false;
        }
        for held in &plan.release {
            let named = |job: &&mut Job| job.metadata.name.as_ref() == Some(&held.key.name);
            if let Some(job) = self.jobs.iter_mut().find(named) {
                job.metadata.finalizers = None;
            }
        }
        self.jobs.retain(|job| !is_gone(&job.metadata));
        for gone in &plan.delete {
            match gone.kind.kind.as_ref() {
                "Job" => self.delete_job(&gone.key.name),
                // A pod that refers to it keeps it, even if that has ended.
                _ => self.claim = self.claim.as_ref().map(deleted),
            }
        }
        if self.pods.is_empty() && !plan.delete.is_empty() {
            self.take(Step::ClaimIsCollected);
        }
        for tier in plan.tiers() {
            for desired in tier {
                let mut body = desired.body.clone();
                body["metadata"]["ownerReferences"] = json!([{
                    "apiVersion": "model.otterscale.io/v1alpha1",
                    "kind": "ModelArtifact",
                    "name": "phi-4",
                    "uid": UID,
                }]);
                body["metadata"]["creationTimestamp"] = ago(600).into();
                if desired.kind.kind == "Job" {
                    let exists = self.jobs.iter().any(|job| named(job, &desired.key.name));
                    if !exists {
                        self.jobs.push(serde_json::from_value(body).unwrap());
                    }
                } else if self.claim.is_none() {
                    self.claim = Some(serde_json::from_value(body).unwrap());
                }
            }
        }
        before != (self.jobs.clone(), self.claim.clone())
    }

    fn delete_job(&mut self, name: &str) {
        for job in self.jobs.iter_mut().filter(|job| named(job, name)) {
            *job = deleted(job);
        }
        self.jobs.retain(|job| !is_gone(&job.metadata));
    }

    fn pod_starts(&mut self) {
        let idle = self
            .jobs
            .iter_mut()
            .find(|job| job.status.is_none() && job.metadata.deletion_timestamp.is_none());
        if let Some(job) = idle {
            *job = with(job, json!({ "status": running() }));
            self.pods.push(pod_of(job, "Running"));
        }
    }

    fn pod_ends(&mut self, well: bool) {
        let Some(pod) = self.pods.iter_mut().find(|pod| works(pod)) else { return };
        let name = job_name_of(pod);
        let Some(job) = self.jobs.iter_mut().find(|job| job.metadata.name == name) else {
            *pod = with(pod, json!({ "status": { "phase": "Failed" } }));
            return;
        };
        let status = if well { complete(300) } else { broken(300) };
        job.status = serde_json::from_value(status).unwrap();
        let said = if well { digest_of(job) } else { "no such model".to_owned() };
        *pod = ended_pod(job, if well { "Succeeded" } else { "Failed" }, &said, 300);
    }

    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert!(self.jobs.len() <= 1, "two Jobs: {:?}", self.jobs);
        let working = self.pods.iter().filter(|pod| works(pod)).count();
        prop_assert!(working <= 1, "two pods work at once");
        // A Job never meets the workspace of another run.
        if let (Some(job), Some(claim)) = (self.jobs.first(), &self.claim)
            && job.metadata.deletion_timestamp.is_none()
        {
            let status = self.artifact.status.clone().unwrap_or_default();
            let has_ended = job.status.clone().unwrap_or_default().active.is_none();
            // What a predecessor made without marks is of the first run.
            let marks = claim.metadata.annotations.clone().unwrap_or(first().annotations());
            let same = job.metadata.annotations.clone().unwrap_or(first().annotations()) == marks;
            prop_assert!(same || has_ended, "{:?} {:?}", status, claim.metadata);
        }
        let status = self.artifact.status.clone().unwrap_or_default();
        if let Some(digest) = &status.digest {
            prop_assert_eq!(digest, &digest_for(&status), "a result of another run");
        }
        Ok(())
    }

    /// Nothing unforeseen happens any more.
    fn come_to_rest(&mut self) {
        for _ in 0..12 {
            self.take(Step::Pass { deletes_work: true, status_is_stored: true });
            self.take(Step::PodStarts);
            self.take(Step::PodEnds { well: true });
            self.take(Step::PodsAreCollected);
            self.take(Step::ClaimIsCollected);
        }
    }
}

/// What the pod of a run tells: another digest for each generation.
fn digest_of(job: &Job) -> String {
    let marks = job.metadata.annotations.as_ref();
    let generation = marks.map_or("1", |marks| marks["model.otterscale.io/generation"].as_str());
    format!("sha256:{generation:0>64}")
}

fn digest_for(status: &ArtifactStatus) -> String {
    format!("sha256:{:0>64}", status.observed_generation.unwrap_or_default())
}

fn named(job: &Job, name: &str) -> bool {
    job.metadata.name.as_deref() == Some(name)
}

fn job_name_of(pod: &Pod) -> Option<String> {
    pod.metadata.labels.as_ref()?.get(JOB_NAME_LABEL).cloned()
}

fn is_gone(metadata: &ObjectMeta) -> bool {
    let held = metadata.finalizers.iter().flatten().any(|finalizer| finalizer == HOLD);
    metadata.deletion_timestamp.is_some() && !held
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_course_of_events_has_two_runs_at_work_and_each_comes_to_its_end(
        steps in vec(step(), 0..40),
        is_taken_over in any::<bool>(),
    ) {
        let mut world = if is_taken_over { World::taken_over() } else { World::new() };
        for step in steps {
            world.take(step);
            world.check()?;
        }
        world.come_to_rest();
        world.check()?;
        let status = world.artifact.status.clone().unwrap_or_default();
        prop_assert_eq!(status.observed_generation, world.artifact.metadata.generation);
        let phase = status.phase.as_deref();
        prop_assert!(matches!(phase, Some("Succeeded" | "Failed")), "{:?}", status);
        prop_assert!(world.jobs.iter().all(|job| job.metadata.finalizers.is_none()), "not held");
        // Until its time is up, the pod keeps what is left of the workspace.
        let before = world.artifact.clone();
        world.take(Step::JobIsDeleted);
        world.come_to_rest();
        prop_assert_eq!(world.claim, None);
        prop_assert_eq!(world.artifact, before, "an end is an end");
    }
}
