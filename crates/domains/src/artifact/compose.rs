//! What the answers mean: which run is wanted, what belongs to it, and what stands in its way.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use windlass_api::model::artifact::{ArtifactKind, ArtifactStatus};
use windlass_engine::error::Error;
use windlass_engine::fetch::Fetched;

use super::Settings;
use super::fetch::{Answers, has_ended, is_owned_by, job_of, phase};
use super::names::{HOLD, Names};
use super::observe::{Evidence, Observation, observe};
use super::run::{Run, newest};
use super::status::Phase;

/// Everything that plan, health and status speak of.
#[derive(Clone, Debug)]
pub struct Observed {
    pub(super) names: Names,
    pub(super) run: Run,
    /// The Job of this run.
    pub(super) job: Option<Job>,
    /// Jobs of other runs, and one of this run that is deleted before it has a result.
    pub(super) stale: Vec<Job>,
    /// An unfinished Job of an artifact of this name and kind that is gone.
    pub(super) namesake: Option<String>,
    pub(super) claim: Workspace,
    /// A pod that still works for a Job that is not this run's.
    pub(super) lingering: Option<String>,
    pub(super) observation: Observation,
    /// The stored status tells how this run ended.
    pub(super) is_told: bool,
    /// It does, and nothing can be learnt any more.
    pub(super) settled: bool,
    /// No pod of the Job is left that could still tell something.
    pub(super) no_pods: bool,
    /// There is a Job, but no pod of it has started.
    pub(super) stands_still: bool,
    pub(super) secrets: BTreeMap<String, Fetched<BTreeSet<String>>>,
    /// An answer without which nothing can be said.
    pub(super) unread: Option<Error>,
    pub(super) refusal: Option<Refusal>,
    pub(super) now: Timestamp,
}

/// Why nothing is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The schema's own words; an object may have been stored before it had them.
    #[error("exactly one source must be specified")]
    NoSource,
    /// Nothing that the spec could help.
    #[error("the operator has no image to pack models with: its --kit-image is empty")]
    NoImage,
}

impl Refusal {
    /// What has to be changed.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::NoSource => "spec.source",
            Self::NoImage => "--kit-image",
        }
    }
}

/// The claim under the workspace's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Workspace {
    Absent,
    OfThisRun,
    /// Of this run, but on its way out.
    Going,
    /// Of an earlier run, or of an earlier artifact of this name.
    Stale,
    /// Of an artifact of this name, but of the other kind. It goes when that one has ended.
    OfTheOtherKind,
    /// Somebody else's.
    Foreign,
}

/// Something of the past that a new run must not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Blocker {
    Job(String),
    Pod(String),
    Claim,
}

impl Observed {
    /// What has to be gone before this run may have its workspace and its Job.
    pub(super) fn blocker(&self) -> Option<Blocker> {
        let stale = self.stale.first().and_then(|job| job.metadata.name.clone());
        let claim =
            matches!(self.claim, Workspace::Stale | Workspace::Going | Workspace::OfTheOtherKind);
        stale
            .or_else(|| self.namesake.clone())
            .map(Blocker::Job)
            .or_else(|| self.lingering.clone().map(Blocker::Pod))
            .or_else(|| claim.then_some(Blocker::Claim))
    }

    /// Whether this run has ended.
    pub(super) fn is_over(&self) -> bool {
        self.settled || self.observation.phase.is_terminal()
    }
}

pub(super) fn compose<K: ArtifactKind>(
    settings: &Settings,
    artifact: &K,
    answers: Answers,
    now: Timestamp,
) -> Observed {
    let names = Names::of(artifact);
    let unread = [answers.jobs.error(), answers.pods.error(), answers.claim.error()];
    let unread = unread.into_iter().flatten().next().cloned();
    let (jobs, others) = by_owner(answers.jobs, names.uid());
    let run = Run::wanted(artifact, &jobs);
    let status = artifact.status();
    let current = newest(jobs.iter().filter(|job| {
        run.made(&job.metadata, status) && (!is_deleting(&job.metadata) || has_result(job))
    }));
    let current = current.and_then(|job| job.metadata.name.clone());
    let (mut own, stale): (Vec<Job>, Vec<Job>) =
        jobs.into_iter().partition(|job| current.is_some() && job.metadata.name == current);
    let job = own.pop();
    let (pods, mut past) = by_job(answers.pods, current.as_deref());
    // The other kind may have an artifact of this name, and its pods look the same.
    past.retain(|pod| {
        let is_its = |job: &Job| job_of(pod) == job.metadata.name.as_deref();
        !others.iter().any(|job| is_its(job) && is_of_another_kind::<K>(&job.metadata))
    });
    let of_namesake = |job: &&Job| owners(&job.metadata).any(is_of_kind::<K>) && !has_ended(job);
    let namesake = others.iter().find(of_namesake).and_then(|job| job.metadata.name.clone());
    let evidence = Evidence { job: job.as_ref(), pods: &pods, events: &answers.events, now };
    // An end of which only a part was read would be told once and for all.
    let observation = observe(match unread {
        Some(_) => Evidence { job: None, ..evidence },
        None => evidence,
    });
    let is_told = run.is_told(status);
    let settled = is_told && !(job.is_some() && learns(artifact, &observation));
    Observed {
        claim: workspace::<K>(&names, answers.claim, &run, status),
        lingering: past.iter().find(|pod| still_works(pod)).and_then(|p| p.metadata.name.clone()),
        settled,
        is_told,
        no_pods: pods.is_empty(),
        stands_still: job.is_some() && pods.iter().all(|pod| phase(pod) == Some("Pending")),
        observation,
        secrets: answers.secrets,
        refusal: refusal(settings, artifact, job.is_some() || settled),
        unread,
        namesake,
        stale,
        job,
        run,
        names,
        now,
    }
}

/// A run that has begun needs no image any more.
fn refusal<K: ArtifactKind>(settings: &Settings, artifact: &K, has_begun: bool) -> Option<Refusal> {
    if artifact.spec().source.hugging_face.is_none() {
        return Some(Refusal::NoSource);
    }
    (!has_begun && settings.kit_image.is_empty()).then_some(Refusal::NoImage)
}

/// Whether the Job still tells more than the stored status does.
fn learns<K: ArtifactKind>(artifact: &K, observation: &Observation) -> bool {
    let has_digest = artifact.status().is_some_and(|status| status.digest.is_some());
    let has_end = artifact.status().is_some_and(|status| status.completion_time.is_some());
    match observation.phase {
        Phase::Succeeded => observation.told || !has_digest,
        Phase::Failed => observation.told || !has_end,
        Phase::Pending | Phase::Running => false,
    }
}

fn by_owner(jobs: Fetched<Vec<Job>>, uid: &str) -> (Vec<Job>, Vec<Job>) {
    let Fetched::Found(jobs) = jobs else { return <_>::default() };
    jobs.into_iter().partition(|job| is_owned_by(&job.metadata, uid))
}

fn owners(child: &ObjectMeta) -> impl Iterator<Item = &OwnerReference> {
    child.owner_references.iter().flatten()
}

fn is_of_kind<K: ArtifactKind>(owner: &OwnerReference) -> bool {
    owner.kind == K::kind(&()) && is_of_group::<K>(owner)
}

fn is_of_group<K: ArtifactKind>(owner: &OwnerReference) -> bool {
    owner.api_version.split('/').next() == Some(&*K::group(&()))
}

/// One without an owner was left behind, by what cannot be told.
fn is_of_another_kind<K: ArtifactKind>(child: &ObjectMeta) -> bool {
    owners(child).next().is_some() && !owners(child).any(is_of_kind::<K>)
}

fn is_deleting(child: &ObjectMeta) -> bool {
    child.deletion_timestamp.is_some()
}

/// A Job that expires or is deleted after its end is still worth reading, for as long as it is held.
/// A predecessor's is not held, but may still be there.
fn has_result(job: &Job) -> bool {
    (is_held(job) || Run::marked(&job.metadata).is_none()) && has_ended(job)
}

pub(super) fn is_held(job: &Job) -> bool {
    job.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == HOLD)
}

/// The pods of the Job, and the others.
fn by_job(pods: Fetched<Vec<Pod>>, job: Option<&str>) -> (Vec<Pod>, Vec<Pod>) {
    let Fetched::Found(pods) = pods else { return <_>::default() };
    pods.into_iter().partition(|pod| job.is_some() && job_of(pod) == job)
}

fn still_works(pod: &Pod) -> bool {
    !matches!(phase(pod), Some("Succeeded" | "Failed"))
}

fn workspace<K: ArtifactKind>(
    names: &Names,
    claim: Fetched<PersistentVolumeClaim>,
    run: &Run,
    status: Option<&ArtifactStatus>,
) -> Workspace {
    let Fetched::Found(PersistentVolumeClaim { metadata, .. }) = claim else {
        return Workspace::Absent;
    };
    let ours = is_owned_by(&metadata, names.uid());
    let going = is_deleting(&metadata);
    match (ours, run.made(&metadata, status)) {
        (true, true) if going => Workspace::Going,
        (true, true) => Workspace::OfThisRun,
        (true, false) => Workspace::Stale,
        // Its own artifact is gone, and the garbage collector takes it next.
        (false, _) if owners(&metadata).any(is_of_kind::<K>) => Workspace::Stale,
        (false, _) if owners(&metadata).any(is_of_group::<K>) => Workspace::OfTheOtherKind,
        (false, _) => Workspace::Foreign,
    }
}
