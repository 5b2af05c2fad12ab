//! From meaning to changes: what to apply, what to delete, when to look again.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use windlass_api::model::artifact::ArtifactKind;
use windlass_engine::plan::{Ownership, Plan, Strategy, When};

use super::Settings;
use super::compose::{Observed, Workspace, is_held};
use super::objects::claim::claim;
use super::objects::job::{Blueprint, Credentials, job};
use super::observe::{LAG, PATIENCE, finished_at, is_past};

/// While a digest is missing.
const DIGEST_POLL: Duration = Duration::from_secs(10);
/// Events of pods that do not start are not watched.
const STANDSTILL_POLL: Duration = Duration::from_secs(15);

pub(super) fn plan<K: ArtifactKind>(
    settings: &Settings,
    artifact: &K,
    observed: &Observed,
) -> Plan {
    let mut plan = Plan::default();
    if observed.unread.is_some() || observed.refusal.is_some() {
        return plan;
    }
    clear_the_past(&mut plan, observed);
    if observed.is_over() {
        conclude(&mut plan, observed);
    } else {
        go_on(&mut plan, settings, artifact, observed);
    }
    plan
}

/// Jobs of other runs go at once, with their pods; then their workspace can go.
fn clear_the_past(plan: &mut Plan, observed: &Observed) {
    let namespace = observed.names.namespace();
    for job in &observed.stale {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        if is_held(job) {
            plan.release::<Job>(namespace, name);
        }
        plan.delete::<Job>(namespace, name, When::BeforeApply);
    }
    if observed.claim == Workspace::Stale {
        delete_claim(plan, observed);
    }
}

fn delete_claim(plan: &mut Plan, observed: &Observed) {
    let name = observed.names.claim();
    plan.delete::<PersistentVolumeClaim>(observed.names.namespace(), &name, When::BeforeApply);
}

/// The result is there: the workspace goes, and once the result is stored the Job may expire.
fn conclude(plan: &mut Plan, observed: &Observed) {
    if observed.claim == Workspace::OfThisRun {
        delete_claim(plan, observed);
    }
    let Some(job) = &observed.job else { return };
    // Of a Job that is deleted, the pods go first.
    let too_late = observed.no_pods && job.metadata.deletion_timestamp.is_some();
    let waits = !observed.observation.told && !too_late && !is_past(job, observed.now, PATIENCE);
    if waits {
        plan.requeue_after(DIGEST_POLL);
    } else if is_held(job) && observed.is_told {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        plan.release::<Job>(observed.names.namespace(), name);
    } else if is_held(job) {
        // Only the status of this pass stores the result; the next one lets the Job go.
        plan.requeue_after(Duration::ZERO);
    }
}

fn go_on<K: ArtifactKind>(plan: &mut Plan, settings: &Settings, artifact: &K, observed: &Observed) {
    let spec = artifact.spec();
    let Observed { names, run, .. } = observed;
    if observed.blocker().is_some() {
        return;
    }
    plan.apply(&claim(names, &settings.version, run, &spec.storage));
    if observed.job.is_some() {
        plan.requeue_after = next_look(observed);
        return;
    }
    let blueprint =
        Blueprint { names, settings, spec, run, credentials: credentials(artifact, observed) };
    plan.add(&job(blueprint), Ownership::Owned, Strategy::CreateOnce);
}

fn next_look(observed: &Observed) -> Option<Duration> {
    let has_ended = observed.job.as_ref().is_some_and(|job| finished_at(job).is_some());
    if has_ended {
        return Some(LAG.unsigned_abs());
    }
    observed.stands_still.then_some(STANDSTILL_POLL)
}

/// Where the Secret may not be read it is taken for what it should be.
fn credentials<K: ArtifactKind>(artifact: &K, observed: &Observed) -> Credentials {
    let secret = artifact.spec().target.credentials_secret_ref.as_ref();
    let keys = secret.and_then(|secret| observed.secrets.get(&secret.name)?.found());
    keys.and_then(Credentials::of).unwrap_or(Credentials::DockerConfig)
}
