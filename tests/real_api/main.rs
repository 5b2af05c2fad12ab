//! Scenarios on a real API server: what a user does, and what the cluster then looks like.

// All of this runs only inside tests, where failing loudly is the point.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod zis;

/// A catalogue of images, served through KServe.
mod aim;

/// Models packed and pushed.
mod artifact;
/// Traffic to a second model, its promotion and its withdrawal.
mod canary;
/// From a manifest to Ready, and what Ready means.
mod converge;
/// What the engine promises to any kind, shown by a kind of the tests' own.
mod engine;
/// Killed operators, several operators, broken API servers.
mod faults;
/// What somebody edits or deletes comes back; what is not ours stays as it is.
mod heal;
/// Who may read the operator's metrics.
mod metrics_access;
/// Disaggregated serving: pods, endpoint picker, pool and route.
mod model_service;
/// APIs that come and go.
mod optional;
/// Objects and fields of others.
mod ownership;
/// The program's other commands, and its endpoints.
mod program;
/// Nothing is written where nothing is to be done.
mod quiet;
/// Autoscaling and who owns the number of replicas.
mod replicas;
/// What the API server itself refuses.
mod schema;
