//! Reasons of the conditions and events of templates.

pub const FAILED: &str = "Failed";
pub const IMAGE_NOT_FOUND: &str = "ImageNotFound";
pub const DISCOVERY_RUNNING: &str = "DiscoveryRunning";
pub const JOB_PENDING: &str = "JobPending";
pub const RECONCILING: &str = "Reconciling";
pub const JOB_FAILED: &str = "JobFailed";
pub const DISCOVERY_FAILED: &str = "DiscoveryFailed";
pub const DISCOVERY_PARSE_FAILED: &str = "DiscoveryParseFailed";
pub const DISCOVERED: &str = "Discovered";
pub const AVAILABLE: &str = "Available";

pub const EVENT_DEFAULT_CONFIG_NOT_FOUND: &str = "DefaultRuntimeConfigNotFound";
pub const EVENT_CONFIG_RESOLVED: &str = "RuntimeConfigResolved";
pub const EVENT_CONFIG_NOT_FOUND: &str = "RuntimeConfigNotFound";
pub const EVENT_DISCOVERY_STARTED: &str = "DiscoveryStarted";
pub const EVENT_DISCOVERY_SUCCEEDED: &str = "DiscoverySucceeded";
