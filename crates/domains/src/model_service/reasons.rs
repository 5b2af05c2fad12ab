//! Condition types, reasons and event reasons of this domain.

/// One for each role; what `Ready` says of both together.
pub const DECODE_READY: &str = "DecodeReady";
pub const PREFILL_READY: &str = "PrefillReady";
/// Whether the endpoint picker runs. Informational, like all that follow: `Ready` speaks of the
/// serving pods.
pub const EPP_READY: &str = "EPPReady";
/// Whether a gateway has taken the pool.
pub const POOL_ACCEPTED: &str = "PoolAccepted";
/// Whether the gateway has taken the route.
pub const ROUTE_ACCEPTED: &str = "RouteAccepted";
/// Whether the mesh knows how to reach the endpoint picker.
pub const MESH_CONFIGURED: &str = "MeshConfigured";
/// Whether Prometheus knows what to scrape.
pub const MONITORS_READY: &str = "MonitorsReady";
/// Whether the endpoint picker may check the tokens of those who read its metrics.
pub const METRICS_AUTH_READY: &str = "MetricsAuthReady";
/// Whether prefill and decode pods work together, or decode pods alone.
pub const ROLES_PAIRED: &str = "RolesPaired";

/// Reasons of `Ready`.
pub const DEPLOYMENT_NOT_FOUND: &str = "DeploymentNotFound";
pub const PODS_STARTING: &str = "PodsStarting";
pub const PARTIALLY_READY: &str = "PartiallyReady";
pub const ALL_REPLICAS_READY: &str = "AllReplicasReady";
pub const ROLLING_OUT: &str = "RollingOut";
pub const SCALED_TO_ZERO: &str = "ScaledToZero";
pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
pub const INVALID_SPEC: &str = "InvalidSpec";
pub const CONFLICT: &str = "Conflict";
pub const UNREACHABLE: &str = "Unreachable";

/// Reasons of the others.
pub const API_MISSING: &str = "APIMissing";
pub const CREATING: &str = "Creating";
pub const CONFIGURED: &str = "Configured";
pub const ACCEPTED: &str = "Accepted";
pub const AWAITING_GATEWAY: &str = "AwaitingGateway";
pub const PAIRED: &str = "Paired";
pub const DECODE_ALONE: &str = "DecodeAlone";

/// Events.
pub const EVENT_READY: &str = "Ready";
pub const EVENT_FAILED: &str = "Failed";
pub const PLAIN_HTTP: &str = "PlainHTTP";

/// A write that the API refused or did not answer.
pub const RECONCILE_ERROR: &str = "ReconcileError";
