//! Condition types and reasons of this domain.

use windlass_engine::conditions::types;

/// Whether a template was found.
pub const RESOLVED: &str = "Resolved";
pub const CACHE_READY: &str = "CacheReady";
pub const RUNTIME_READY: &str = "RuntimeReady";
pub const ROUTING_READY: &str = "RoutingReady";
/// True is the bad side of this one, as users know it.
pub const FAILURE: &str = "Failure";

/// All conditions of a service.
pub const TYPES: [&str; 7] = [
    CACHE_READY,
    ROUTING_READY,
    FAILURE,
    RESOLVED,
    RUNTIME_READY,
    types::PROGRESSING,
    types::READY,
];

/// Reason of `Resolved`, and of `Failure` where there is none.
pub const RESOLVED_REASON: &str = "Resolved";

pub const TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";
pub const TEMPLATE_NOT_AVAILABLE: &str = "TemplateNotAvailable";
/// Stands in for the reason of a template that gives none.
pub const TEMPLATE_DEGRADED: &str = "TemplateDegraded";
pub const RUNTIME_CONFIG_MISSING: &str = "RuntimeConfigMissing";
pub const IMAGE_NOT_FOUND: &str = "ImageNotFound";
pub const NO_MODEL_SOURCES: &str = "NoModelSources";

pub const CREATING_RUNTIME: &str = "CreatingRuntime";
/// Of all conditions of a service that runs.
pub const RUNNING: &str = "RuntimeReady";
pub const RUNTIME_FAILED: &str = "RuntimeFailed";

pub const CONFIGURING_ROUTE: &str = "ConfiguringRoute";
pub const ROUTE_READY: &str = "RouteReady";
pub const ROUTE_FAILED: &str = "RouteFailed";
pub const ROUTE_TEMPLATE_INVALID: &str = "RouteTemplateInvalid";

pub const CACHE_WARM: &str = "CacheWarm";
pub const WAITING_FOR_CACHE: &str = "WaitingForCache";

/// Something that the judgement rests on could not be read.
pub const VALIDATION_FAILED: &str = "ValidationFailed";
