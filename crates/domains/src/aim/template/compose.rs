//! What the answers mean for a template.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};
use windlass_api::aim::template::{Discovery, ModelSource, Profile, ProfileMetadata, TemplateKind};
use windlass_engine::error::{Category, Error, reasons as error_reasons};
use windlass_engine::fetch::Fetched;
use windlass_engine::health::{PodsView, pods, reasons as health_reasons};
use windlass_engine::state::State;

use super::discovery::{
    self, Course, Failure, RunsWith, Wanted, course, ending, has_answer, is_answered, is_asking,
    is_counted, is_spent, lacks_inputs, remembered,
};
use super::fetch::Answers;
use super::health::NO_CONFIG;
use super::usage::{Usage, usage};
use crate::aim::catalogue::Image;
use crate::aim::discovery_log::{self, Discovered};
use crate::aim::runtime_config::{Config, Resolved};
use crate::aim::settings::Settings;

const NO_POD: &str = "no pod could be created";

#[derive(Clone, Debug)]
pub struct Observed {
    pub(super) image: Option<Image>,
    pub(super) config: Resolved,
    pub(super) runs_with: RunsWith,
    /// What the image is to be asked with; nothing without an image.
    pub(super) wanted: Option<Wanted>,
    pub(super) outcome: Outcome,
    pub(super) answer: Answer,
    /// What was remembered of the asking, and what is to be.
    pub(super) known: Option<Discovery>,
    pub(super) record: Option<Discovery>,
    /// Names of Jobs that must go before another is made.
    pub(super) in_the_way: Vec<String>,
    pub(super) serves_runtime: bool,
    pub(super) usage: Usage,
}

/// How far the asking has come.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// Something could not be read, or a runtime config that was asked for does not exist.
    Unread {
        message: String,
        error: Option<Error>,
    },
    NoImage,
    /// There is no Job yet.
    Starting,
    Running {
        obstacle: Option<String>,
    },
    JobFailed,
    /// The Job has ended well, but what it said makes no sense or could not be read.
    ParseFailed {
        message: String,
        error: Option<Error>,
    },
    /// A failure that was told before, about the output if it says so; the next try is due after
    /// this time.
    Waiting {
        left: Duration,
        message: Option<String>,
    },
    /// The answer was just read.
    Discovered,
    /// The answer is an earlier one.
    Answered,
}

/// What the image has said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// Whether there is one, be it one to earlier inputs.
    pub(super) is_given: bool,
    pub(super) sources: Vec<ModelSource>,
    pub(super) profile: Option<Profile>,
}

pub(super) fn compose<K: TemplateKind>(
    settings: &Settings,
    template: &K,
    answers: Answers,
    now: Timestamp,
) -> Observed {
    let config = answers.configs.resolve(settings.resolution);
    let image = answers.images.resolve();
    let found = image.as_ref().ok().and_then(Option::as_ref);
    let runs_with = RunsWith::of(template, config.config());
    let taken = &answers.taken;
    let wanted = found.map(|image| Wanted::of(template, &image.spec.image, &runs_with, taken));
    let job =
        wanted.as_ref().zip(answers.jobs.found()).and_then(|(wanted, jobs)| wanted.asked(jobs));
    let course = |job| (job, course(job, settings.discovery_patience, now));
    let asking = Asking {
        known: remembered(template, &answers.served, &image, job.map(course)),
        job: job.map(course),
        wanted: wanted.as_ref(),
        runs_with: &runs_with,
        answers: &answers,
        now,
    };
    let (outcome, news) = match unread(template, &config, &image, &answers) {
        Some(unread) => (unread, None),
        None => asking.outcome(),
    };
    Observed {
        answer: answer(template, news),
        record: asking.record(&outcome),
        in_the_way: asking.in_the_way(&outcome),
        known: asking.known,
        runs_with,
        usage: usage(template, answers.users.as_ref(), now),
        serves_runtime: answers.serves_runtime,
        image: image.ok().flatten(),
        config,
        wanted,
        outcome,
    }
}

impl Observed {
    pub(super) fn config(&self) -> Option<&Config> {
        self.config.config()
    }

    /// Whether anything has become of the asking since it was last remembered.
    pub(super) fn is_news(&self) -> bool {
        self.known != self.record
    }

    /// Whether the answer that was just read is the one that the template's status tells. Where that has
    /// a record, it would be known; where it has none, the status tells whether anything was asked since.
    pub(super) fn is_stored<K: TemplateKind>(&self, template: &K) -> bool {
        let said = |answer: &Answer| json!([answer.sources, answer.profile]);
        lacks_inputs(template)
            && !template.status().is_some_and(is_asking)
            && comes_back_as(&said(&self.answer), &said(&stored_answer(template)))
    }
}

/// Whether what is found is what was stored, as the API gives it back: `1` for `1.0`, and what is null
/// perhaps not at all.
fn comes_back_as(stored: &Value, found: &Value) -> bool {
    match (stored, found) {
        (Value::Object(stored), Value::Object(found)) => {
            stored.keys().chain(found.keys()).all(|key| {
                let (stored, found) = (stored.get(key), found.get(key));
                comes_back_as(stored.unwrap_or(&Value::Null), found.unwrap_or(&Value::Null))
            })
        }
        (Value::Array(stored), Value::Array(found)) => {
            let mut both = stored.iter().zip(found);
            stored.len() == found.len() && both.all(|(stored, found)| comes_back_as(stored, found))
        }
        (Value::Number(stored), Value::Number(found)) => stored.as_f64() == found.as_f64(),
        (stored, found) => stored == found,
    }
}

fn unread<K: TemplateKind>(
    template: &K,
    config: &Resolved,
    image: &Result<Option<Image>, Error>,
    answers: &Answers,
) -> Option<Outcome> {
    let unread =
        |error: &Error| Outcome::Unread { message: error.to_string(), error: Some(error.clone()) };
    // Templates of the cluster go on without.
    if let (Some(missing), Some(_)) = (config.missing(), &template.meta().namespace) {
        let name = &answers.configs.name;
        let message = format!("{NO_CONFIG}\"{name}\": {missing}");
        return Some(Outcome::Unread { message, error: None });
    }
    let failed = match config {
        Resolved::Failed(error) => Some(error),
        _ => None,
    };
    let failed = failed.or(image.as_ref().err()).or(answers.jobs.error());
    failed.or(answers.served.error()).map(unread)
}

/// The asking of an image, looked at once.
struct Asking<'a> {
    known: Option<Discovery>,
    wanted: Option<&'a Wanted>,
    /// That asks what is wanted, and how it is doing.
    job: Option<(&'a Job, Course)>,
    runs_with: &'a RunsWith,
    answers: &'a Answers,
    now: Timestamp,
}

impl Asking<'_> {
    fn known(&self) -> Option<&Discovery> {
        self.known.as_ref()
    }

    fn outcome(&self) -> (Outcome, Option<Discovered>) {
        let Some(wanted) = self.wanted else { return (Outcome::NoImage, None) };
        if is_answered(self.known(), &wanted.inputs) {
            return (Outcome::Answered, None);
        }
        let telling = self.job.filter(|(job, _)| !is_spent(self.known(), job));
        if let Some((job, Course::Complete)) = telling {
            return match self.read(job) {
                Ok(discovered) => (Outcome::Discovered, Some(discovered)),
                Err(failure) => (failure, None),
            };
        }
        if let Some((job, Course::Running)) = telling {
            let obstacle = self.obstacle(job);
            // What cannot start is lost to nobody if another, made as it should be by now, comes instead.
            if obstacle.is_none() || wanted.is_tried_by(job, self.runs_with) {
                return (Outcome::Running { obstacle }, None);
            }
        }
        if let Some(left) = self.wait(wanted) {
            let message = self.known().and_then(|known| known.last_failure.clone());
            return (Outcome::Waiting { left, message }, None);
        }
        match telling {
            Some((_, Course::Running)) | None => (Outcome::Starting, None),
            Some(_) => (Outcome::JobFailed, None),
        }
    }

    fn wait(&self, wanted: &Wanted) -> Option<Duration> {
        discovery::wait(self.known()?, &wanted.attempt, self.now)
    }

    /// What keeps the pod from running, in its own words. That it has not started yet is no reason, and
    /// pods that have are no longer kept. Why there is none, only events would tell: most often there is
    /// no such service account.
    fn obstacle(&self, job: &Job) -> Option<String> {
        let found = self.answers.pods.as_ref()?.found()?;
        if found.is_empty() {
            return discovery::is_podless(job, self.now).then(|| NO_POD.to_owned());
        }
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        let is_pending = |pod: &&Pod| phase(pod).as_deref() == Some("Pending");
        let found: Vec<Pod> = found.iter().filter(is_pending).cloned().collect();
        let view = PodsView { pods: &found, events: &[], logs: &Default::default() };
        let inspection = pods(&view);
        let failing =
            inspection.errors.first().map(|error| format!("{}: {}", error.reason, error.message));
        let is_held_up = inspection.state() == State::Pending
            && inspection.reason.as_deref() != Some(health_reasons::PODS_PENDING);
        let waiting = is_held_up.then(|| inspection.message.clone()).flatten();
        failing.or(waiting).filter(|_| !found.is_empty())
    }

    fn read(&self, job: &Job) -> Result<Discovered, Outcome> {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let said = |message: String| Outcome::ParseFailed { message, error: None };
        // What may pass is not counted against the image.
        let unread = |what: &str, error: &Error| Outcome::ParseFailed {
            message: format!("{what}: {error}"),
            error: (error.category == Category::Infrastructure).then(|| error.clone()),
        };
        let pods: &[Pod] = match &self.answers.pods {
            Some(Fetched::Found(pods)) => pods,
            Some(Fetched::Failed(error)) => {
                return Err(unread("failed to list pods for job", error));
            }
            Some(Fetched::Missing) | None => &[],
        };
        match &self.answers.output {
            Some(Ok(output)) => {
                discovery_log::parse(output).map_err(|error| said(error.to_string()))
            }
            Some(Err(error)) if error_reasons::LOG_UNREAD.contains(&error.reason.as_str()) => {
                Err(unread("failed to read pod logs", error))
            }
            Some(Err(error)) => Err(unread("failed to get pod logs", error)),
            None if pods.is_empty() => Err(said(format!("no pods found for job {name}"))),
            None => Err(said(format!("no successful pod found for job {name}"))),
        }
    }

    /// What is to be remembered when this pass is over.
    fn record(&self, outcome: &Outcome) -> Option<Discovery> {
        let failure = match outcome {
            Outcome::Answered | Outcome::Discovered => {
                let inputs = self.wanted.map(|wanted| wanted.inputs.clone());
                return Some(Discovery { inputs, ..Discovery::default() });
            }
            Outcome::Running { .. } => {
                let started_job = self.job.and_then(|(job, _)| job.metadata.uid.clone());
                let known = self.known().cloned().unwrap_or_default();
                return Some(Discovery { started_job, ..known });
            }
            Outcome::JobFailed => Failure { message: None, unread: false },
            Outcome::ParseFailed { message, error } => {
                Failure { message: Some(message.as_str()), unread: error.is_some() }
            }
            _ => return self.known().cloned(),
        };
        let ((job, _), wanted) = (self.job?, self.wanted?);
        let attempt = discovery::attempt(job).unwrap_or(&wanted.attempt);
        Some(discovery::failed(self.known(), attempt, job, failure, self.now))
    }

    /// Jobs that ask something else, and those of which nothing more is to come. What has ended by
    /// itself is left to be looked at until another takes its name. Nothing goes in the pass that finds
    /// an answer or a failure: what comes after it must be able to read of it.
    fn in_the_way(&self, outcome: &Outcome) -> Vec<String> {
        let (Some(wanted), Some(jobs)) = (self.wanted, self.answers.jobs.found()) else {
            return Vec::new();
        };
        let unfinished = |job: &Job| ending(job) == Course::Running;
        let goes = |job: &&Job| match outcome {
            Outcome::Unread { .. }
            | Outcome::NoImage
            | Outcome::JobFailed
            | Outcome::ParseFailed { .. }
            | Outcome::Discovered => false,
            Outcome::Starting => true,
            Outcome::Answered => unfinished(job) && !wanted.is_asked_by(job),
            Outcome::Waiting { .. } if wanted.is_asked_by(job) => {
                is_counted(self.known(), job) && unfinished(job)
            }
            _ => !wanted.is_asked_by(job),
        };
        jobs.iter().filter(goes).filter_map(|job| job.metadata.name.clone()).collect()
    }
}

fn stored_answer<K: TemplateKind>(template: &K) -> Answer {
    let status = template.status();
    Answer {
        is_given: has_answer(status),
        sources: status.map(|status| status.model_sources.clone()).unwrap_or_default(),
        profile: status.and_then(|status| status.profile.clone()),
    }
}

fn answer<K: TemplateKind>(template: &K, news: Option<Discovered>) -> Answer {
    let stored = stored_answer(template);
    let Some(Discovered { sources, profile }) = news else { return stored };
    let source = |source: discovery_log::Source| ModelSource {
        name: Some(source.name).filter(|name| !name.is_empty()),
        source_uri: source.uri,
        size: Quantity(source.size),
    };
    Answer {
        is_given: true,
        sources: match sources.is_empty() {
            true => stored.sources,
            false => sources.into_iter().map(source).collect(),
        },
        profile: Some(Profile {
            engine_args: profile.engine_args,
            env_vars: profile.env_vars,
            metadata: Some(ProfileMetadata {
                engine: profile.metadata.engine,
                gpu: profile.metadata.gpu,
                gpu_count: profile.metadata.gpu_count,
                metric: profile.metadata.metric,
                precision: profile.metadata.precision,
            }),
        }),
    }
}
