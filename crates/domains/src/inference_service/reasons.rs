//! Condition types, reasons and event reasons of this domain.

/// Components; their condition types end in `Ready`.
pub const PRIMARY: &str = "Primary";
pub const CANARY: &str = "Canary";
pub const SERVICE: &str = "Service";
pub const ROUTE: &str = "Route";
pub const AUTOSCALER: &str = "Autoscaler";

/// Whether the traffic is split as the spec asks. Informational: Ready does not depend on it.
pub const TRAFFIC_SPLIT_APPLIED: &str = "TrafficSplitApplied";

pub const APPLIED: &str = "Applied";
pub const CANARY_NOT_READY: &str = "CanaryNotReady";
/// The live Service or route does not split as it should yet.
pub const SPLIT_PENDING: &str = "SplitPending";
pub const APPROXIMATE: &str = "Approximate";
pub const GATEWAY_API_MISSING: &str = "GatewayAPIMissing";
pub const PROMOTING: &str = "Promoting";
pub const DRAINING: &str = "Draining";

/// The new primary does not come up while the canary carries the traffic.
pub const PROMOTION_STALLED: &str = "PromotionStalled";
pub const INVALID_SPEC: &str = "InvalidSpec";
pub const SCALED_TO_ZERO: &str = "ScaledToZero";
pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
pub const SERVICE_CREATED: &str = "ServiceCreated";

/// Events, said once for each generation.
pub const UNAUTHENTICATED_ENDPOINT: &str = "UnauthenticatedEndpoint";
pub const AUTOSCALING_INCOMPLETE: &str = "AutoscalingIncomplete";
pub const PROBE_TIMEOUT_EXCEEDS_INTERVAL: &str = "ProbeTimeoutExceedsInterval";
