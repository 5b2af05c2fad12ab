//! What came of the actions, and what containers did on their own.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container as Spec, Pod};

use super::{
    Cause, Container, Ended, Known, Note, Refusal, Role, Run, Setting, State, Stop, Why,
    backoff::growing, container, grace,
};

/// Of all pods together when the node stops; `windlass down` waits a little longer.
const LAST_GRACE: SignedDuration = SignedDuration::from_secs(20);
/// A wait for something that only the user can mend: each time the pod is looked at.
const SYNC: SignedDuration = SignedDuration::from_secs(10);
const PULL: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(10), SignedDuration::from_secs(300));
const MOUNT: (SignedDuration, SignedDuration) =
    (SignedDuration::from_millis(500), SignedDuration::from_secs(120));

/// A probe of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    Startup,
    Readiness,
    Liveness,
}

impl Probe {
    pub fn of(self, spec: &Spec) -> Option<&k8s_openapi::api::core::v1::Probe> {
        match self {
            Self::Startup => spec.startup_probe.as_ref(),
            Self::Readiness => spec.readiness_probe.as_ref(),
            Self::Liveness => spec.liveness_probe.as_ref(),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }
}

/// A container that was started, or for which at least a program was found.
#[derive(Clone, Debug)]
pub struct Started {
    pub id: String,
    pub image_id: String,
    pub at: Timestamp,
    /// Why the program could not be started.
    pub failed: Option<String>,
}

impl Known {
    /// The volumes are filled and the address is there.
    pub fn prepared(&mut self, address: &str) {
        self.address = Some(address.to_owned());
        self.setting = Setting::Ready;
    }

    pub fn not_prepared(&mut self, now: Timestamp) {
        let tries = match self.setting {
            Setting::Failed { tries, .. } => tries.saturating_add(1),
            _ => 1,
        };
        self.setting = Setting::Failed { tries, retry: now + growing(MOUNT.0, MOUNT.1, tries) };
    }

    /// A process was started, or could not be.
    pub fn started(&mut self, pod: &Pod, name: &str, started: Started) -> Vec<Note> {
        let (Some((role, spec)), Some(known)) =
            (container(pod, name), self.containers.get_mut(name))
        else {
            return Vec::new();
        };
        self.restored &= role != Role::Main;
        known.new_run();
        known.image_id = started.image_id;
        let image = spec.image.clone().unwrap_or_default();
        let mut notes = vec![
            Note::normal(
                "Pulled",
                format!(
                    "Container image {image:?} already present on machine and can be accessed by \
                     the pod"
                ),
            )
            .of(name),
            Note::normal("Created", "Container created").of(name),
        ];
        let Some(message) = started.failed else {
            notes.push(Note::normal("Started", "Container started").of(name));
            known.state = State::Running(Run { id: started.id, since: started.at, image });
            known.started = spec.startup_probe.is_none() && post_start(spec).is_none();
            known.ready = known.started && role != Role::Init && spec.readiness_probe.is_none();
            return notes;
        };
        notes.push(Note::warning("Failed", format!("Error: {message}")).of(name));
        known.state = State::Ended(Ended {
            id: started.id,
            exit_code: 128,
            reason: super::Reason::StartError,
            message,
            started: started.at,
            finished: started.at,
        });
        notes
    }

    /// A container could not be tried. It is told only when it is news.
    pub fn refused(
        &mut self,
        pod: &Pod,
        name: &str,
        cause: Cause,
        message: String,
        now: Timestamp,
    ) -> Vec<Note> {
        let (Some((_, spec)), Some(known)) = (container(pod, name), self.containers.get_mut(name))
        else {
            return Vec::new();
        };
        let before = match &known.state {
            State::Refused(before) if before.cause == cause => Some(before.clone()),
            State::Ended(ended) => {
                known.last = Some(ended.clone());
                None
            }
            _ => None,
        };
        let tries = before.as_ref().map_or(1, |before| before.tries.saturating_add(1));
        let wait = match cause {
            Cause::Pull => growing(PULL.0, PULL.1, tries),
            _ => SYNC,
        };
        let news = before.is_none_or(|before| cause == Cause::Pull || before.message != message);
        let image = spec.image.as_deref().unwrap_or_default();
        let notes = if news { refusal(cause, image, &message) } else { Vec::new() };
        known.told = false;
        known.state =
            State::Refused(Refusal { cause, message, since: now, retry: now + wait, tries });
        notes.into_iter().map(|note| note.of(name)).collect()
    }

    /// The hook after the start has run. One that fails ends the container.
    pub fn hook_done(&mut self, pod: &Pod, name: &str, ok: bool, now: Timestamp) -> Vec<Note> {
        let (Some((role, spec)), Some(known)) =
            (container(pod, name), self.containers.get_mut(name))
        else {
            return Vec::new();
        };
        if !known.is_running() {
            return Vec::new();
        }
        if ok {
            known.started = spec.startup_probe.is_none();
            known.ready = known.started && role != Role::Init && spec.readiness_probe.is_none();
            return Vec::new();
        }
        known.doomed.get_or_insert(now + SignedDuration::from_secs(grace(pod)));
        vec![
            Note::warning("FailedPostStartHook", "PostStartHook failed").of(name),
            Note::normal("Killing", "FailedPostStartHook").of(name),
        ]
    }

    pub fn ended(&mut self, name: &str, ended: Ended) {
        if let Some(known) = self.containers.get_mut(name)
            && known.is_running()
        {
            known.state = State::Ended(ended);
            known.started = false;
            known.ready = false;
            known.doomed = None;
            known.stopping = None;
            known.told = false;
        }
    }

    /// A probe has failed or passed as often as it takes.
    pub fn probed(
        &mut self,
        pod: &Pod,
        name: &str,
        probe: Probe,
        passed: bool,
        now: Timestamp,
    ) -> Vec<Note> {
        let (Some((_, spec)), Some(known)) = (container(pod, name), self.containers.get_mut(name))
        else {
            return Vec::new();
        };
        if !known.is_running() {
            return Vec::new();
        }
        match (probe, passed) {
            (Probe::Startup, true) => {
                known.started = true;
                known.ready = spec.readiness_probe.is_none();
            }
            (Probe::Readiness, passed) => known.ready = passed,
            (Probe::Liveness, true) => {}
            // A container that is to end anyway is left to it.
            (_, false) if known.doomed.is_some() || self.stop.is_some() => {}
            (_, false) => {
                let own = probe.of(spec).and_then(|probe| probe.termination_grace_period_seconds);
                let grace = own.unwrap_or_else(|| grace(pod)).clamp(0, i64::from(i32::MAX));
                known.doomed = Some(now + SignedDuration::from_secs(grace));
                let probe = probe.as_str().to_lowercase();
                let text = format!("Container {name} failed {probe} probe, will be restarted");
                return vec![Note::normal("Killing", text).of(name)];
            }
        }
        Vec::new()
    }

    /// The pod takes up more than it may.
    pub fn evict(&mut self, pod: &Pod, message: String, now: Timestamp) -> Vec<Note> {
        if self.stop.is_some() {
            return Vec::new();
        }
        let by = now + SignedDuration::from_secs(grace(pod));
        self.stop = Some(Stop { why: Why::Evicted(message.clone()), by });
        vec![Note::warning("Evicted", message)]
    }

    /// The node stops, and whoever has stopped it does not wait for ever.
    pub fn shut_down(&mut self, pod: &Pod, now: Timestamp) {
        let by = now + SignedDuration::from_secs(grace(pod)).min(LAST_GRACE);
        let by = self.stop.as_ref().map_or(by, |stop| stop.by.min(by));
        self.stop = Some(Stop { why: Why::Shutdown, by });
    }

    /// The node stops, and nobody waits for it.
    pub fn hurry(&mut self, now: Timestamp) {
        self.stop = Some(Stop { why: Why::Shutdown, by: now });
        self.hurried = true;
    }

    /// The object is gone, and nobody waits for its containers any more.
    pub fn forsaken(&mut self, now: Timestamp) {
        let by = now + SignedDuration::from_secs(2);
        let by = self.stop.as_ref().map_or(by, |stop| stop.by.min(by));
        self.stop = Some(Stop { why: Why::Deleted, by });
    }
}

/// A probe that failed, each time.
pub(in crate::node) fn unhealthy(name: &str, probe: Probe, text: &str) -> Note {
    Note::warning("Unhealthy", format!("{} probe failed: {text}", probe.as_str())).of(name)
}

pub(in crate::node) fn failed_pre_stop(name: &str) -> Note {
    Note::warning("FailedPreStopHook", "PreStopHook failed").of(name)
}

pub(in crate::node) fn post_start(
    spec: &Spec,
) -> Option<&k8s_openapi::api::core::v1::LifecycleHandler> {
    spec.lifecycle.as_ref().and_then(|hooks| hooks.post_start.as_ref())
}

impl Container {
    /// What was said of the run before is said of it no more.
    fn new_run(&mut self) {
        if self.has_run() {
            self.restarts = self.restarts.saturating_add(1);
        }
        if let State::Ended(ended) = &self.state {
            self.last = Some(ended.clone());
        }
        self.started = false;
        self.ready = false;
        self.doomed = None;
        self.outdated = false;
        self.stopping = None;
        self.told = false;
    }
}

fn refusal(cause: Cause, image: &str, message: &str) -> Vec<Note> {
    match cause {
        Cause::Pull => vec![
            Note::warning("Failed", format!("Failed to pull image {image:?}: {message}")),
            Note::warning("Failed", "Error: ErrImagePull"),
        ],
        Cause::NeverPull => vec![
            Note::warning("ErrImageNeverPull", message),
            Note::warning("Failed", "Error: ErrImageNeverPull"),
        ],
        Cause::ImageName => vec![
            Note::warning("InspectFailed", message),
            Note::warning("Failed", "Error: InvalidImageName"),
        ],
        Cause::Config | Cause::Create => vec![Note::warning("Failed", format!("Error: {message}"))],
    }
}
