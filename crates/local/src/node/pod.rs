//! What a pod's containers do next, and what is said of them: pure functions of the pod, of what is
//! known of its runs, and of the time.
//!
//! [`step`] gives the next actions, `observe` takes in what came of them, [`status`] says it all in
//! the words of the API.

mod backoff;
mod conditions;
mod observe;
mod phase;
mod restore;
mod status;
mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container as Spec, Pod, PodSpec};
use serde::{Deserialize, Serialize};

pub use backoff::Backoff;
pub use observe::{Probe, Started};
pub(super) use observe::{failed_pre_stop, post_start, unhealthy};
pub use restore::restore;
pub use status::status;
pub(super) use status::time;
pub use step::step;

/// What the node knows of one pod, apart from the object.
#[derive(Clone, Debug)]
pub struct Known {
    pub containers: BTreeMap<String, Container>,
    pub setting: Setting,
    /// Of the pod, once it has one.
    pub address: Option<String>,
    /// When the node took the pod on.
    pub since: Timestamp,
    pub stop: Option<Stop>,
    /// It has to end without any more grace.
    hurried: bool,
    /// The end of the pod was said already, at this or at an earlier start of the node.
    pub over: bool,
    /// The node has started anew and no main container since: they start in their order again.
    restored: bool,
}

/// The pod's volumes and address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting {
    #[default]
    Due,
    Failed {
        tries: u32,
        retry: Timestamp,
    },
    Ready,
}

/// What is known of one container.
#[derive(Clone, Debug, Default)]
pub struct Container {
    pub state: State,
    /// How the run before the present state ended.
    pub last: Option<Ended>,
    pub restarts: i32,
    pub image_id: String,
    pub backoff: Backoff,
    /// The startup probe has passed, if there is one, and the hook after the start has run.
    pub started: bool,
    /// The readiness probe has passed, if there is one.
    pub ready: bool,
    /// Until when the run has to end, once that has been decided.
    pub doomed: Option<Timestamp>,
    /// It has to end because it is not what the pod asks for any more: what is runs next, whatever
    /// the restart policy says.
    outdated: bool,
    /// As it was passed on.
    stopping: Option<Timestamp>,
    /// The present wait has been told as an event.
    told: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum State {
    /// It has not been tried yet.
    #[default]
    Fresh,
    /// It could not even be tried.
    Refused(Refusal),
    Running(Run),
    Ended(Ended),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub id: String,
    pub since: Timestamp,
    pub image: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    pub id: String,
    pub exit_code: i32,
    pub reason: Reason,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub started: Timestamp,
    pub finished: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    Completed,
    Error,
    OOMKilled,
    /// The program could not be started.
    StartError,
    /// The node stopped before it could see the end.
    Unknown,
}

impl Reason {
    pub fn of(exit_code: i32) -> Self {
        if exit_code == 0 { Self::Completed } else { Self::Error }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "Completed",
            Self::Error => "Error",
            Self::OOMKilled => "OOMKilled",
            Self::StartError => "StartError",
            Self::Unknown => "Unknown",
        }
    }
}

/// Why a container could not be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub cause: Cause,
    pub message: String,
    pub since: Timestamp,
    pub retry: Timestamp,
    /// How often in a row.
    pub tries: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing stands for the image.
    Pull,
    /// The same, and the pod does not want it looked for.
    NeverPull,
    ImageName,
    Config,
    /// The node itself is in the way: a full disk, say.
    Create,
}

/// All containers have to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    pub why: Why,
    /// What still runs then is killed.
    pub by: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    Deleted,
    /// It was active for longer than it may be.
    Deadline,
    Evicted(String),
    /// There is nothing left to do, but a sidecar may still run.
    Finished,
    /// The node itself stops. Nothing is said of it: the next start tells how the runs ended.
    Shutdown,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Find an address and fill the volumes.
    Prepare,
    Start(String),
    Stop {
        container: String,
        by: Timestamp,
    },
    /// Nothing runs any more and nothing will: give back what the pod holds.
    Release,
    /// The object may go.
    Remove,
}

/// An event to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub warning: bool,
    pub reason: &'static str,
    pub message: String,
    /// The container it is about, if it is not about the pod.
    pub container: Option<String>,
}

/// What follows from what is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    pub actions: Vec<Action>,
    pub notes: Vec<Note>,
    /// When to look again if nothing happens before.
    pub wake: Option<Timestamp>,
}

impl Step {
    fn wake(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |known| known.min(at)));
    }
}

impl Note {
    fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { warning: false, reason, message: message.into(), container: None }
    }

    pub(super) fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(reason, message) }
    }

    fn of(self, container: &str) -> Self {
        Self { container: Some(container.to_owned()), ..self }
    }

    /// The part of a pod that it is about.
    pub fn field_path(&self, pod: &Pod) -> Option<String> {
        let name = self.container.as_deref()?;
        let list = match container(pod, name)?.0 {
            Role::Main => "containers",
            Role::Init | Role::Sidecar => "initContainers",
        };
        Some(format!("spec.{list}{{{name}}}"))
    }
}

/// What a container is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Init,
    /// An init container that runs as long as the pod.
    Sidecar,
    Main,
}

/// What happens when containers end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Always,
    OnFailure,
    Never,
}

impl Policy {
    fn of(pod: &Pod) -> Self {
        match pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()) {
            Some("OnFailure") => Self::OnFailure,
            Some("Never") => Self::Never,
            _ => Self::Always,
        }
    }

    fn restarts(self, role: Role, ended: &Ended) -> bool {
        match (role, self) {
            (Role::Sidecar, _) | (Role::Main, Self::Always) => true,
            (_, Self::Never) => false,
            _ => ended.exit_code != 0,
        }
    }
}

/// All containers in the order in which they start.
pub fn containers(pod: &Pod) -> impl DoubleEndedIterator<Item = (Role, &Spec)> {
    let spec = pod.spec.as_ref();
    let inits = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let mains = spec.map(|spec| &*spec.containers).unwrap_or_default();
    let inits = inits.iter().map(|init| match init.restart_policy.as_deref() {
        Some("Always") => (Role::Sidecar, init),
        _ => (Role::Init, init),
    });
    inits.chain(mains.iter().map(|main| (Role::Main, main)))
}

/// The container of that name.
pub fn container<'a>(pod: &'a Pod, name: &str) -> Option<(Role, &'a Spec)> {
    containers(pod).find(|(_, container)| container.name == name)
}

/// How long its containers have to end, in seconds. A year is as good as for ever.
pub fn grace(pod: &Pod) -> i64 {
    const YEAR: i64 = 366 * 24 * 3600;
    let spec = pod.spec.as_ref();
    let asked = pod.metadata.deletion_grace_period_seconds;
    let asked = asked.or_else(|| spec.and_then(|spec| spec.termination_grace_period_seconds));
    asked.unwrap_or(30).clamp(0, YEAR)
}

/// As texts name it: with its namespace and uid.
pub(super) fn full_name(pod: &Pod) -> String {
    let meta = &pod.metadata;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}_{}({})", part(&meta.name), part(&meta.namespace), part(&meta.uid))
}

fn has_inits(spec: Option<&PodSpec>) -> bool {
    spec.and_then(|spec| spec.init_containers.as_ref()).is_some_and(|inits| !inits.is_empty())
}

impl Known {
    /// Of a pod that has never run here.
    pub fn new(pod: &Pod, now: Timestamp) -> Self {
        let names = containers(pod).map(|(_, container)| container.name.clone());
        Self {
            containers: names.map(|name| (name, Container::default())).collect(),
            setting: Setting::Due,
            address: None,
            since: now,
            stop: None,
            over: false,
            hurried: false,
            restored: false,
        }
    }

    /// A run of this container goes on.
    pub fn runs(&self, name: &str) -> bool {
        self.containers.get(name).is_some_and(Container::is_running)
    }

    /// How often the container will have been restarted when it is started now.
    pub fn next_restarts(&self, name: &str) -> i32 {
        let known = self.containers.get(name);
        known.map_or(0, |known| known.restarts.saturating_add(i32::from(known.has_run())))
    }

    /// No container runs.
    pub fn is_still(&self) -> bool {
        !self.containers.values().any(Container::is_running)
    }

    /// A main container has been started at some time, so the init containers are behind us.
    fn is_initialised(&self, pod: &Pod) -> bool {
        let mut mains = containers(pod).filter(|(role, _)| *role == Role::Main);
        mains.any(|(_, spec)| self.containers.get(&spec.name).is_some_and(Container::has_run))
    }

    /// Nothing but sidecars would run again.
    fn is_finished(&self, pod: &Pod) -> bool {
        let policy = Policy::of(pod);
        let ended = |role: Role, spec: &Spec| {
            let known = self.containers.get(&spec.name)?;
            match &known.state {
                State::Ended(ended) if !known.restarts(policy, role, ended) => {
                    Some(ended.exit_code)
                }
                _ => None,
            }
        };
        let failed_init = containers(pod)
            .filter(|(role, _)| *role == Role::Init)
            .any(|(role, spec)| ended(role, spec).is_some_and(|code| code != 0));
        let mut mains = containers(pod).filter(|(role, _)| *role == Role::Main);
        failed_init || mains.all(|(role, spec)| ended(role, spec).is_some())
    }
}

impl Container {
    fn restarts(&self, policy: Policy, role: Role, ended: &Ended) -> bool {
        self.outdated || policy.restarts(role, ended)
    }

    fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    fn has_run(&self) -> bool {
        self.last.is_some() || matches!(self.state, State::Running(_) | State::Ended(_))
    }
}
