//! Names that users, dashboards and other controllers see, and the rules for deriving new ones.

use std::time::Duration;

/// How long an unreachable dependency leaves the last known state alone.
pub const INFRASTRUCTURE_GRACE: Duration = Duration::from_secs(10);

/// A component's condition type is its name plus this.
pub const COMPONENT_SUFFIX: &str = "Ready";
