//! How far a service is that has all it needs.

use windlass_api::foreign::inference_service::{InferenceService, InferenceServiceStatus};
use windlass_engine::conditions::{Status, types};
use windlass_engine::state::State;

use super::Report;
use crate::aim::service::compose::{Child, Observed};
use crate::aim::service::reasons;

const NOT_CREATED: &str = "InferenceService not yet created";

impl Report {
    /// `routed` says that nothing about routing stands in the way.
    pub(super) fn running(&mut self, observed: &Observed, routed: bool) {
        let live = match &observed.inference_service {
            Child::Present(live) => live,
            Child::Absent => {
                self.absent("Waiting for InferenceService creation", NOT_CREATED);
                return;
            }
            Child::Unserved => {
                let message = "The cluster does not know InferenceServices; install KServe";
                self.absent(message, NOT_CREATED);
                return;
            }
            // Counts as absent, but for the words: it may be there.
            Child::Unread(error) => {
                let message = format!("InferenceService cannot be read: {error}");
                self.absent(&message, &message);
                return;
            }
        };
        if is_ready(live) && routed {
            self.state = State::Running;
            let reason = reasons::RUNNING;
            let message = "InferenceService is ready";
            self.set(reasons::RUNTIME_READY, Status::True, reason, message);
            self.set(types::PROGRESSING, Status::False, reason, "Service is running");
            let message = "AIMService is ready to serve traffic";
            self.set(types::READY, Status::True, reason, message);
        } else {
            self.unready(live, routed);
        }
    }

    fn absent(&mut self, runtime: &str, ready: &str) {
        if self.state != State::Failed {
            self.state = State::Starting;
        }
        let reason = reasons::CREATING_RUNTIME;
        self.set(reasons::RUNTIME_READY, Status::False, reason, runtime);
        let message = "Reconciling InferenceService resources";
        self.set(types::PROGRESSING, Status::True, reason, message);
        self.set(types::READY, Status::False, reason, ready);
    }

    fn unready(&mut self, live: &InferenceService, routed: bool) {
        if !matches!(self.state, State::Failed | State::Degraded) {
            self.state = State::Starting;
        }
        let (reason, message) = if let Some(failure) = failure(live) {
            self.state = State::Degraded;
            self.set(reasons::FAILURE, Status::True, reasons::RUNTIME_FAILED, failure);
            (reasons::RUNTIME_FAILED, failure)
        } else if routed {
            (reasons::CREATING_RUNTIME, "Waiting for InferenceService to become ready")
        } else {
            (reasons::CONFIGURING_ROUTE, "Waiting for HTTPRoute to become ready")
        };
        self.set(reasons::RUNTIME_READY, Status::False, reason, message);
        let progress = "InferenceService reconciliation in progress";
        self.set(types::PROGRESSING, Status::True, reason, progress);
        self.set(types::READY, Status::False, reason, message);
    }
}

fn is_ready(live: &InferenceService) -> bool {
    let conditions = live.status.iter().flat_map(|status| &status.conditions);
    let mut ready = conditions.filter(|condition| condition.type_ == types::READY);
    ready.any(|condition| Status::parse(&condition.status) == Status::True)
}

/// The words of the last failure, which may be none.
fn failure(live: &InferenceService) -> Option<&str> {
    let status: &InferenceServiceStatus = live.status.as_ref()?;
    let failure = status.model_status.as_ref()?.last_failure_info.as_ref()?;
    Some(failure.message.as_deref().or(failure.reason.as_deref()).unwrap_or_default())
}
