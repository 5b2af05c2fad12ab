//! Health of a Deployment, explained by its pods where it is not well.

#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus};

use super::Inspection;
use crate::error::Error;
use crate::state::State;

/// `pods` is what the pod inspector says of the same Deployment's pods, where they were looked at.
pub fn deployment(deployment: Option<&Deployment>, pods: Option<Inspection>) -> Inspection {
    let Some(deployment) = deployment else {
        let error = Error::missing_downstream("DeploymentNotFound", "Deployment not found");
        return Inspection::failed(error);
    };
    if let Some(leaving) = Inspection::terminating("Deployment", &deployment.metadata) {
        return leaving;
    }
    let unknown = DeploymentStatus::default();
    let status = deployment.status.as_ref().unwrap_or(&unknown);
    let generation = deployment.metadata.generation.unwrap_or_default();
    if status.observed_generation.unwrap_or_default() < generation {
        let message = "Deployment controller has not seen the latest change yet";
        return Inspection::progressing("RolloutPending", message);
    }
    if let Some(condition) = condition(status, "ReplicaFailure", "True") {
        return Inspection::failed(replica_failure(condition));
    }
    let Some(delay) = Delay::of(deployment, status) else {
        return Inspection::ready("DeploymentAvailable", "Deployment is available");
    };
    match pods {
        // Why pods fail is the better answer than that they are missing.
        Some(pods) if pods.state().is_error() => pods,
        pods => delay.inspection(pods.as_ref()),
    }
}

/// In what way a Deployment is not there yet.
struct Delay {
    state: State,
    reason: &'static str,
    message: String,
}

impl Delay {
    fn of(deployment: &Deployment, status: &DeploymentStatus) -> Option<Self> {
        let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let updated = status.updated_replicas.unwrap_or_default();
        let available = status.available_replicas.unwrap_or_default();
        let total = status.replicas.unwrap_or_default();
        if let Some(stalled) = condition(status, "Progressing", "False")
            && stalled.reason.as_deref() == Some("ProgressDeadlineExceeded")
        {
            let message = stalled.message.clone().unwrap_or_default();
            return Some(Self { state: State::Degraded, reason: "RolloutStalled", message });
        }
        // Pods of the old version may be all that is available, so they have to be gone as well.
        let rolling = match total - updated {
            _ if updated < wanted => Some(format!("{updated} of {wanted} pods are up to date")),
            1 => Some("1 old pod still runs".to_owned()),
            old if old > 1 => Some(format!("{old} old pods still run")),
            _ => None,
        };
        if let Some(message) = rolling {
            return Some(Self { state: State::Progressing, reason: "RollingOut", message });
        }
        (available < wanted).then(|| Self {
            state: State::Starting,
            reason: "WaitingForPods",
            message: format!("{available} of {wanted} pods are available"),
        })
    }

    fn inspection(self, pods: Option<&Inspection>) -> Inspection {
        let Self { state, reason, message } = self;
        let detail = pods
            .filter(|pods| !pods.state().is_ready())
            .and_then(|pods| pods.message.as_deref())
            .filter(|detail| !detail.is_empty());
        let message = match detail {
            Some(detail) => format!("{message}: {detail}"),
            None => message,
        };
        Inspection::of(state, reason, message)
    }
}

/// Pods were refused before they existed, so only this condition can tell why.
fn replica_failure(condition: &DeploymentCondition) -> Error {
    let message = condition.message.as_deref().unwrap_or("Pods cannot be created");
    let says = |word: &str| message.contains(word);
    if says("quota") {
        Error::resource_exhaustion("ReplicaFailure", message)
    } else if says("failed calling webhook") {
        Error::infrastructure("ReplicaFailure", message)
    } else {
        Error::invalid_spec("ReplicaFailure", message)
    }
}

fn condition<'a>(
    status: &'a DeploymentStatus,
    type_: &str,
    value: &str,
) -> Option<&'a DeploymentCondition> {
    let conditions = status.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_ && condition.status == value)
}
