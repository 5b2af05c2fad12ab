//! Health of the parts an object depends on, and the inspectors that read it off Kubernetes objects.

pub mod autoscaler;
pub mod deployment;
mod events;
pub mod http_route;
pub mod job;
pub mod pods;
pub mod pvc;
mod redact;
#[cfg(test)]
mod tests;

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use autoscaler::autoscaler;
pub use deployment::deployment;
pub use http_route::{HttpRouteView, ParentRef, ParentStatus, http_route};
pub use job::job;
pub use pods::{LogKey, PodsView, pods};
pub use pvc::pvc;
pub use redact::redact;

use crate::conditions::reasons as condition_reasons;
use crate::error::Error;
use crate::names::COMPONENT_SUFFIX;
use crate::state::{State, derive_state};

/// Reasons shared by inspectors and domains.
pub mod reasons {
    pub const IMAGE_PULL_AUTH_FAILURE: &str = "ImagePullAuthFailure";
    pub const IMAGE_NOT_FOUND: &str = "ImageNotFound";
    pub const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
    pub const NOT_FOUND: &str = "NotFound";
    pub const NOT_READY: &str = "NotReady";
    pub const CREATING: &str = "Creating";
    pub const RESOLVED: &str = "Resolved";
    pub const PVC_PROVISIONING: &str = "PVCProvisioning";
    pub const PVC_BOUND: &str = "PVCBound";
    pub const PVC_NOT_BOUND: &str = "PVCNotBound";
    pub const PVC_PENDING: &str = "PVCPending";
    pub const PVC_LOST: &str = "PVCLost";
    pub const RETRY_BACKOFF: &str = "RetryBackoff";
    pub const FAILED: &str = "Failed";
    pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
    pub const CONFIG_MAP_NOT_FOUND: &str = "ConfigMapNotFound";
    pub const TERMINATING: &str = "Terminating";
    /// Pods have not started, and nothing is known to hold them up.
    pub const PODS_PENDING: &str = "PodsPending";
}

/// Name of a component: letters and digits, never empty.
///
/// The condition type is this name plus a suffix, so an empty one would speak for the whole object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentName(String);

impl ComponentName {
    /// Anything else is dropped from the text; nothing left gives `Unnamed`.
    pub fn new(text: &str) -> Self {
        let kept: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
        Self(if kept.is_empty() { "Unnamed".to_owned() } else { kept })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn condition_type(&self) -> String {
        format!("{}{COMPONENT_SUFFIX}", self.0)
    }
}

impl From<&str> for ComponentName {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for ComponentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which way a component lies; decides whether waiting for it is Pending or Progressing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dependency {
    #[default]
    Unspecified,
    /// Needed by the object, made by somebody else.
    Upstream,
    /// Made for the object.
    Downstream,
}

/// What the errors of a component hold back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blocks {
    #[default]
    Apply,
    /// For errors read off our own children: only applying a corrected child can repair them.
    Nothing,
}

/// One concrete child that a component speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildRef {
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
}

/// Health of one component.
#[derive(Clone, Debug)]
pub struct ComponentHealth {
    pub component: ComponentName,
    /// Wins over what the errors say.
    pub state: Option<State>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub errors: Vec<Error>,
    pub dependency: Dependency,
    /// Absent when the component is a view over many children.
    pub child: Option<ChildRef>,
    pub blocks: Blocks,
}

impl ComponentHealth {
    /// Ready, with nothing to say.
    pub fn new(component: impl Into<ComponentName>) -> Self {
        Self {
            component: component.into(),
            state: None,
            reason: None,
            message: None,
            errors: Vec::new(),
            dependency: Dependency::default(),
            child: None,
            blocks: Blocks::default(),
        }
    }

    pub fn ready(self, reason: impl Into<String>, message: impl Into<String>) -> Self {
        self.with_state(State::Ready, reason, message)
    }

    pub fn progressing(self, reason: impl Into<String>, message: impl Into<String>) -> Self {
        self.with_state(State::Progressing, reason, message)
    }

    pub fn with_state(
        mut self,
        state: State,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        self.state = Some(state);
        self.reason = Some(reason.into());
        self.message = Some(message.into());
        self
    }

    pub fn failed_with(mut self, errors: Vec<Error>) -> Self {
        self.errors = errors;
        self
    }

    pub fn depends(mut self, dependency: Dependency) -> Self {
        self.dependency = dependency;
        self
    }

    /// Names the one child that this is the health of.
    pub fn about(mut self, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        self.child = Some(ChildRef {
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        });
        self
    }

    pub fn state(&self) -> State {
        self.state.unwrap_or_else(|| derive_state(&self.errors))
    }

    pub fn reason(&self) -> &str {
        let said = self.reason.as_deref();
        said.or_else(|| self.errors.first().map(|error| error.reason.as_str()))
            .unwrap_or(condition_reasons::READY)
    }

    pub fn message(&self) -> &str {
        let said = self.message.as_deref();
        said.or_else(|| self.errors.first().map(|error| error.message.as_str())).unwrap_or_default()
    }
}

/// What an inspector found; the caller adds whose health it is.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    pub state: Option<State>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub errors: Vec<Error>,
}

impl Inspection {
    pub fn of(state: State, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            state: Some(state),
            reason: Some(reason.into()),
            message: Some(message.into()),
            errors: Vec::new(),
        }
    }

    pub fn ready(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(State::Ready, reason, message)
    }

    pub fn progressing(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(State::Progressing, reason, message)
    }

    pub fn failed(error: Error) -> Self {
        Self { errors: vec![error], ..Self::default() }
    }

    /// For a child that is being deleted: however well it looks, it is on its way out, and only the
    /// one that comes after it counts.
    pub fn terminating(kind: &str, child: &ObjectMeta) -> Option<Self> {
        child.deletion_timestamp.as_ref()?;
        Some(Self::progressing(reasons::TERMINATING, format!("{kind} is being deleted")))
    }

    /// Without secrets that somebody may have written into a log.
    fn redacted(mut self) -> Self {
        self.message = self.message.map(|message| redact(&message));
        for error in &mut self.errors {
            error.message = redact(&error.message);
        }
        self
    }

    pub fn state(&self) -> State {
        self.state.unwrap_or_else(|| derive_state(&self.errors))
    }

    pub fn into_component(
        self,
        component: impl Into<ComponentName>,
        dependency: Dependency,
        blocks: Blocks,
    ) -> ComponentHealth {
        ComponentHealth {
            component: component.into(),
            state: self.state,
            reason: self.reason,
            message: self.message,
            errors: self.errors,
            dependency,
            child: None,
            blocks,
        }
    }
}
