//! Reasons of the Ready condition and of events.

pub const COMPLETED: &str = "Completed";
pub const JOB_NOT_CREATED: &str = "JobNotCreated";
pub const SUCCEEDED: &str = "Succeeded";
pub const JOB_FAILED: &str = "JobFailed";
pub const JOB_RUNNING: &str = "JobRunning";
pub const JOB_PENDING: &str = "JobPending";
/// Something of an earlier run is still there, and a new one must not share its workspace.
pub const WAITING_FOR_WORKSPACE: &str = "WaitingForWorkspace";
pub const INVALID_SPEC: &str = "InvalidSpec";
pub const RECONCILE_ERROR: &str = "ReconcileError";

/// Of events alone.
pub const JOB_CREATED: &str = "JobCreated";
pub const FAILED: &str = "Failed";
