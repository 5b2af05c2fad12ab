//! Asking an image: with what, whether again, and when.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::LocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use windlass_api::aim::template::{
    Discovery, Phase, Profile, ProfileMetadata, TemplateKind, TemplateStatus,
};
use windlass_engine::conditions::{Status, find};
use windlass_engine::error::Error;
use windlass_engine::fetch::Fetched;
use windlass_engine::health::job::{is_complete, is_failed};
use windlass_engine::names::hash;
use windlass_engine::runtime_config::merge_pull_secrets;

use super::health::{DISCOVERED, FAILURE, PROGRESSING, parse_failure};
use super::objects::job::INPUTS_ANNOTATION;
use super::reasons;
use crate::aim::catalogue::Image;
use crate::aim::names;
use crate::aim::runtime_config::Config;

/// After the first failure; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_secs(60);
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

/// Stands for inputs that nobody knows any more.
const UNKNOWN: &str = "unknown";

/// A pod is made within moments of its Job, if it can be.
const FIRST_POD: SignedDuration = SignedDuration::from_secs(30);

/// Stands for what an answer depends on.
fn inputs<K: TemplateKind>(template: &K, image: &str) -> String {
    hash(&json!([image, template.common().parameters]).to_string(), 16)
}

/// What is remembered of the asking. Where no record is stored, because a predecessor kept none or an
/// earlier definition of the kind drops it, the rest of the status and what is there tell of it. Nothing
/// if what would tell could not be read.
pub(super) fn remembered<K: TemplateKind>(
    template: &K,
    served: &Fetched<String>,
    image: &Result<Option<Image>, Error>,
    asked: Option<(&Job, Course)>,
) -> Option<Discovery> {
    let status = template.status()?;
    if status.discovery.is_some() {
        return status.discovery.clone();
    }
    let told = asked.map(|(job, course)| told(status, job, course)).unwrap_or_default();
    let inputs = match lacks_inputs(template) {
        true => Some(answered_inputs(template, served, image)?),
        false => None,
    };
    let record = Discovery { inputs, ..told };
    // An answer that does not count must be known for that whatever becomes of the state that speaks
    // against it.
    (has_traces(status) || record != Discovery::default()).then_some(record)
}

/// To what an answer was one of which that is not stored: what runs by it shows the image. Where nothing
/// does, it is taken for one of the present image if it still counted and nobody has asked another since.
fn answered_inputs<K: TemplateKind>(
    template: &K,
    served: &Fetched<String>,
    image: &Result<Option<Image>, Error>,
) -> Option<String> {
    let phase = template.status().and_then(|status| status.status.as_deref());
    let present = image.as_ref().map(Option::as_ref);
    let answered_by = match (served, present) {
        (Fetched::Found(image), _) => Some(image),
        _ if phase != Some(Phase::Available.as_str()) => None,
        (Fetched::Failed(_), _) | (_, Err(_)) => return None,
        (Fetched::Missing, Ok(_)) if template.status().is_some_and(is_asking) => None,
        (Fetched::Missing, Ok(image)) => image.map(|image| &image.spec.image),
    };
    Some(answered_by.map_or(UNKNOWN.to_owned(), |image| inputs(template, image)))
}

/// What a status without a record tells of the Job that is there: what is said of the progress is said
/// of it. One that goes on has not failed, whatever is said of the one before it.
fn told(status: &TemplateStatus, job: &Job, course: Course) -> Discovery {
    let Some(progress) = find(&status.conditions, PROGRESSING) else { return Discovery::default() };
    let job_uid = job.metadata.uid.clone();
    match progress.reason.as_str() {
        reasons::DISCOVERY_RUNNING => Discovery { started_job: job_uid, ..Discovery::default() },
        reasons::DISCOVERY_FAILED | reasons::DISCOVERY_PARSE_FAILED
            if course != Course::Running =>
        {
            let failure = find(&status.conditions, FAILURE);
            let message = failure.and_then(|told| told.message.strip_prefix(&parse_failure("")));
            let is_parsed = progress.reason == reasons::DISCOVERY_PARSE_FAILED;
            Discovery {
                // Another failure has taken the place of the words, so they must be found out again.
                unread: is_parsed && message.is_none(),
                failed_inputs: attempt(job).map(str::to_owned),
                failures: 1,
                last_failure_time: Some(progress.last_transition_time.clone()),
                last_failed_job: job_uid,
                last_failure: message.map(str::to_owned),
                ..Discovery::default()
            }
        }
        _ => Discovery::default(),
    }
}

/// Whether the last that a status tells of the asking is not that it was answered.
pub(super) fn is_asking(status: &TemplateStatus) -> bool {
    let progress = find(&status.conditions, PROGRESSING);
    progress.is_some_and(|progress| progress.reason != reasons::AVAILABLE)
}

/// Whether there is an answer of which is not stored to what.
pub(super) fn lacks_inputs<K: TemplateKind>(template: &K) -> bool {
    template.status().is_some_and(is_said)
}

fn has_inputs(status: &TemplateStatus) -> bool {
    status.discovery.as_ref().is_some_and(|discovery| discovery.inputs.is_some())
}

/// Whether what is remembered is an answer to these inputs.
pub(super) fn is_answered(known: Option<&Discovery>, inputs: &str) -> bool {
    known.is_some_and(|known| known.inputs.as_deref() == Some(inputs))
}

/// Whether there is an answer, be it one to earlier inputs.
pub(super) fn has_answer(status: Option<&TemplateStatus>) -> bool {
    status.is_some_and(|status| has_inputs(status) || is_said(status))
}

/// Whether a status of a predecessor, who kept no record, tells of an answer. What was asked after it,
/// to no effect or none yet, may have been another image.
fn is_said(status: &TemplateStatus) -> bool {
    status.discovery.is_none() && has_traces(status) && !is_spoken_against(status)
}

fn is_spoken_against(status: &TemplateStatus) -> bool {
    let is_failed = status.status.as_deref() == Some(Phase::Failed.as_str());
    is_failed || discovered(status) == Some(Status::False)
}

/// That it is Available does not outlive the loss of the image; what was discovered does. An empty
/// profile was there before any answer.
pub(in crate::aim) fn has_traces(status: &TemplateStatus) -> bool {
    let nothing = Profile { metadata: Some(ProfileMetadata::default()), ..Profile::default() };
    let has_profile = |profile: &Profile| *profile != nothing && *profile != Profile::default();
    status.status.as_deref() == Some(Phase::Available.as_str())
        || discovered(status) == Some(Status::True)
        || !status.model_sources.is_empty()
        || status.profile.as_ref().is_some_and(has_profile)
}

fn discovered(status: &TemplateStatus) -> Option<Status> {
    find(&status.conditions, DISCOVERED).map(|told| Status::parse(&told.status))
}

/// What a Job has to be to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) job: String,
    /// What the answer depends on.
    pub(super) inputs: String,
    /// The same, and what decides whether there will be one.
    pub(super) attempt: String,
}

impl Wanted {
    /// `taken` are the names of Jobs that belong to a namesake.
    pub(super) fn of<K: TemplateKind>(
        template: &K,
        image: &str,
        runs_with: &RunsWith,
        taken: &[String],
    ) -> Self {
        let name = template.meta().name.as_deref().unwrap_or_default();
        let aim_image_name = &template.common().aim_image_name;
        let job = names::discovery_job(name, aim_image_name, image);
        let inputs = inputs(template, image);
        let RunsWith { service_account, pull_secrets } = runs_with;
        let rest = json!([service_account, pull_secrets, template.env()]).to_string();
        Self {
            job: match taken.contains(&job) {
                true => names::discovery_job_beside(&K::kind(&()), name, aim_image_name, image),
                false => job,
            },
            attempt: format!("{inputs}.{}", hash(&rest, 8)),
            inputs,
        }
    }

    /// The Job that asks the question.
    pub(super) fn asked<'a>(&self, jobs: &'a [Job]) -> Option<&'a Job> {
        jobs.iter().find(|job| self.is_asked_by(job))
    }

    /// Whether its answer is one to the question, or may become one. A Job that does not say what it
    /// was asked with is of a predecessor, whose names tell as much.
    pub(super) fn is_asked_by(&self, job: &Job) -> bool {
        match attempt(job) {
            Some(attempt) if is_failed(job) => attempt == self.attempt,
            Some(attempt) => attempt.split('.').next() == Some(&self.inputs),
            None => job.metadata.name.as_ref() == Some(&self.job),
        }
    }

    /// Whether another Job would do nothing else. One of a predecessor shows what it runs with.
    pub(super) fn is_tried_by(&self, job: &Job, runs_with: &RunsWith) -> bool {
        match attempt(job) {
            Some(attempt) => attempt == self.attempt,
            None => RunsWith::of_job(job) == *runs_with,
        }
    }
}

/// What a Job was made with, if it says so.
pub(super) fn attempt(job: &Job) -> Option<&str> {
    job.metadata.annotations.as_ref()?.get(INPUTS_ANNOTATION).map(String::as_str)
}

/// What a Job has to have to run, besides what it asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunsWith {
    pub(super) service_account: Option<String>,
    pub(super) pull_secrets: Vec<LocalObjectReference>,
}

impl RunsWith {
    /// Secrets of the runtime config, then of the template, each once.
    pub(super) fn of<K: TemplateKind>(template: &K, config: Option<&Config>) -> Self {
        let spec = config.map(|config| &config.spec);
        let account = spec.and_then(|spec| spec.service_account_name.clone());
        let secrets = spec.map_or(&[][..], |spec| &spec.image_pull_secrets);
        Self {
            service_account: account.filter(|account| !account.is_empty()),
            pull_secrets: merge_pull_secrets(secrets, template.image_pull_secrets()),
        }
    }

    fn of_job(job: &Job) -> Self {
        let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        let account = pod.and_then(|pod| pod.service_account_name.clone());
        let secrets = pod.and_then(|pod| pod.image_pull_secrets.as_deref());
        Self {
            service_account: account.filter(|account| !account.is_empty()),
            pull_secrets: merge_pull_secrets(secrets.unwrap_or_default(), &[]),
        }
    }
}

/// How a Job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    Running,
    /// It has not ended in a time in which it should have.
    TooLong,
    Complete,
    Failed,
}

pub(super) fn course(job: &Job, patience: Duration, now: Timestamp) -> Course {
    let begun = job.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let patience = SignedDuration::try_from(patience).unwrap_or(SignedDuration::MAX);
    let is_late = begun.is_some_and(|begun| now.duration_since(begun) > patience);
    match ending(job) {
        Course::Running if is_late => Course::TooLong,
        course => course,
    }
}

/// The same without a look at the clock.
pub(super) fn ending(job: &Job) -> Course {
    match (is_complete(job), is_failed(job)) {
        (true, _) => Course::Complete,
        (false, true) => Course::Failed,
        (false, false) => Course::Running,
    }
}

/// Whether a Job that has no pod should have had one by now. Who has suspended it wants none, and one
/// that nobody has begun with tells of no obstacle.
pub(super) fn is_podless(job: &Job, now: Timestamp) -> bool {
    let count = |count: Option<i32>| count.unwrap_or_default();
    let had_pods = job.status.as_ref().is_some_and(|status| {
        let ended = count(status.failed) + count(status.succeeded);
        count(status.active) + count(status.ready) + ended > 0
    });
    let is_suspended = job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
    let begun =
        job.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0);
    let is_late = begun.is_some_and(|begun| now.duration_since(begun) > FIRST_POD);
    is_late && !had_pods && !is_suspended
}

/// Whether this Job has nothing more to tell: its failure is known.
pub(super) fn is_spent(known: Option<&Discovery>, job: &Job) -> bool {
    let unread = known.is_some_and(|known| known.unread) && is_complete(job);
    is_counted(known, job) && !unread
}

/// Whether the failure of this Job has been counted already.
pub(super) fn is_counted(known: Option<&Discovery>, job: &Job) -> bool {
    let counted = known.and_then(|known| known.last_failed_job.as_ref());
    counted.is_some() && counted == job.metadata.uid.as_ref()
}

/// What went wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure<'a> {
    /// About the output; nothing if the Job itself has failed.
    pub(super) message: Option<&'a str>,
    pub(super) unread: bool,
}

/// The record after a failure of this Job; the answer to earlier inputs, if any, stands.
pub(super) fn failed(
    known: Option<&Discovery>,
    attempt: &str,
    job: &Job,
    failure: Failure<'_>,
    now: Timestamp,
) -> Discovery {
    if is_counted(known, job) {
        let mut known = known.cloned().unwrap_or_default();
        known.unread &= failure.unread;
        known.last_failure = failure.message.map(str::to_owned);
        return known;
    }
    let known = known.cloned().unwrap_or_default();
    let again = known.failed_inputs.as_deref() == Some(attempt);
    Discovery {
        inputs: known.inputs,
        failed_inputs: Some(attempt.to_owned()),
        last_failure: failure.message.map(str::to_owned),
        unread: failure.unread,
        failures: if again { known.failures.saturating_add(1) } else { 1 },
        // The API keeps whole seconds.
        last_failure_time: Some(Time(now.round(Unit::Second).unwrap_or(now))),
        last_failed_job: job.metadata.uid.clone(),
        started_job: None,
    }
}

/// How long to wait before the next try.
pub(super) fn wait(record: &Discovery, attempt: &str, now: Timestamp) -> Option<Duration> {
    if record.failed_inputs.as_deref() != Some(attempt) {
        return None;
    }
    let doublings = record.failures.checked_sub(1)?.min(16);
    let delay = (FIRST_DELAY * 2_u32.pow(doublings)).min(LONGEST_DELAY);
    let since = record.last_failure_time.as_ref().map(|time| now.duration_since(time.0))?;
    // A clock that was set back must not make it wait for ever.
    let since = Duration::try_from(since).unwrap_or_default();
    delay.checked_sub(since).filter(|left| !left.is_zero())
}
