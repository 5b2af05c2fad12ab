//! The serving pods, role by role.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use windlass_engine::conditions::{ConditionUpdate, Observability, Status};
use windlass_engine::fetch::Fetched;
use windlass_engine::health::{self, Inspection, PodsView};

use crate::model_service::compose::{Observed, live};
use crate::model_service::names::{ROLE_LABEL, Role};
use crate::model_service::{reasons, replicas};

/// Ways in which pods wait that say nothing of why.
const PLAIN_WAITING: [&str; 5] =
    ["PodsPending", "PodsStarting", "PodsProgressing", "Pulling", "PodsReady"];

pub(crate) struct RoleHealth {
    pub(crate) role: Role,
    present: bool,
    /// Nothing is known of the Deployment.
    unreadable: bool,
    pub(crate) desired: i32,
    pub(crate) ready: i32,
    pub(super) inspection: Inspection,
    /// Whether the Deployment is what the spec asks for; until then its pods tell of another time.
    is_current: bool,
    /// What keeps pods waiting, where they say.
    pub(super) obstacle: Option<String>,
}

/// The roles that the spec asks for; where it makes no sense, those that there are.
pub(crate) fn roles(observed: &Observed) -> Vec<RoleHealth> {
    let answers = &observed.answers;
    let wants_prefill = match &observed.meaning {
        Ok(meaning) => meaning.prefill.is_some(),
        Err(_) => answers.prefill.found().is_some(),
    };
    let prefill = wants_prefill.then(|| of(observed, Role::Prefill, &answers.prefill));
    [of(observed, Role::Decode, &answers.decode)].into_iter().chain(prefill).collect()
}

fn of(observed: &Observed, role: Role, answer: &Fetched<Deployment>) -> RoleHealth {
    if let Some(error) = answer.error() {
        return RoleHealth {
            role,
            present: true,
            unreadable: true,
            desired: 0,
            ready: 0,
            inspection: Inspection::failed(error.clone()),
            is_current: true,
            obstacle: None,
        };
    }
    let deployment = live(answer);
    let pods = deployment.and_then(|_| pods(observed, role));
    let obstacle = pods.as_ref().and_then(obstacle);
    let status = deployment.and_then(|deployment| deployment.status.as_ref());
    RoleHealth {
        role,
        present: deployment.is_some(),
        unreadable: false,
        desired: deployment.map_or(0, replicas::size),
        ready: status.and_then(|status| status.ready_replicas).unwrap_or_default(),
        inspection: health::deployment(deployment, pods),
        is_current: deployment.is_none_or(|live| is_current(observed, role, live)),
        obstacle,
    }
}

fn is_current(observed: &Observed, role: Role, live: &Deployment) -> bool {
    // A spec that makes no sense asks for nothing.
    let Ok(meaning) = &observed.meaning else { return true };
    let workload = match role {
        Role::Decode => Some(&meaning.decode),
        Role::Prefill => meaning.prefill.as_ref(),
    };
    workload.is_none_or(|workload| workload.is_carried_out_by(live))
}

fn pods(observed: &Observed, role: Role) -> Option<Inspection> {
    let all = observed.answers.pods.found()?;
    let pods: Vec<Pod> = all.iter().filter(|pod| is_of(pod, role)).cloned().collect();
    let view =
        PodsView { pods: &pods, events: &observed.answers.events, logs: &observed.answers.logs };
    Some(health::pods(&view))
}

fn is_of(pod: &Pod, role: Role) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(ROLE_LABEL)).is_some_and(|value| value == role.as_str())
}

/// What keeps pods waiting, where they say.
pub(super) fn obstacle(pods: &Inspection) -> Option<String> {
    let reason = pods.reason.as_deref().filter(|reason| !PLAIN_WAITING.contains(reason))?;
    let message = pods.message.as_deref().filter(|message| !message.is_empty());
    Some(message.unwrap_or(reason).to_owned())
}

impl RoleHealth {
    pub(super) fn is_missing(&self) -> bool {
        !self.present
    }

    pub(super) fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// Every pod is of the current revision, and there are as many as are wanted.
    pub(super) fn is_settled(&self) -> bool {
        self.is_current && self.inspection.state().is_ready() && self.ready >= self.desired
    }

    /// What pods of an older revision suffer from may be what the new one cures.
    pub(super) fn has_failed(&self) -> bool {
        self.is_current && self.inspection.state().is_error()
    }

    pub(super) fn name(&self) -> &'static str {
        self.role.as_str()
    }

    pub(super) fn title(&self) -> &'static str {
        match self.role {
            Role::Decode => "Decode",
            Role::Prefill => "Prefill",
        }
    }

    pub(super) fn reason(&self) -> &str {
        if !self.is_current {
            return reasons::ROLLING_OUT;
        }
        match said(self.inspection.reason.as_deref(), &self.inspection, |e| &e.reason) {
            // As the Deployment itself names it.
            "RolloutStalled" => reasons::PROGRESS_DEADLINE_EXCEEDED,
            reason => reason,
        }
    }

    pub(super) fn message(&self) -> &str {
        if !self.is_current {
            return "The Deployment is yet to be brought up to date";
        }
        said(self.inspection.message.as_deref(), &self.inspection, |e| &e.message)
    }

    /// What is wrong here is told by `Ready`, in an event too.
    pub(super) fn condition(&self) -> ConditionUpdate {
        let type_ = match self.role {
            Role::Decode => reasons::DECODE_READY,
            Role::Prefill => reasons::PREFILL_READY,
        };
        let (reason, message) = self.standing();
        let ready = self.desired > 0 && self.is_settled();
        ConditionUpdate::new(type_, Status::from(ready), reason, message)
            .with(Observability::silent())
    }

    /// While pods start the same is said throughout: each step would be another write of the status.
    fn standing(&self) -> (&str, String) {
        if self.is_missing() || self.has_failed() {
            return (self.reason(), self.message().to_owned());
        }
        if self.desired == 0 {
            return (reasons::SCALED_TO_ZERO, "Scaled to zero pods".to_owned());
        }
        if self.is_settled() {
            return (self.reason(), self.message().to_owned());
        }
        let waiting = "Waiting for pods of the current revision to become ready";
        let message = match &self.obstacle {
            Some(obstacle) => format!("{waiting}: {obstacle}"),
            None => waiting.to_owned(),
        };
        (reasons::ROLLING_OUT, message)
    }
}

fn said<'a>(
    own: Option<&'a str>,
    inspection: &'a Inspection,
    of_error: impl Fn(&'a windlass_engine::error::Error) -> &'a String,
) -> &'a str {
    let error = inspection.errors.first().map(|error| of_error(error).as_str());
    own.or(error).unwrap_or_default()
}
