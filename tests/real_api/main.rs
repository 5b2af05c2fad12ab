//! Scenarios: what a user does, and what the cluster then looks like.
//!
//! This source is built twice, as `real_api` and as `embedded`, and runs on the API server of that name.

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

use windlass_tests::{Cluster, Need, Tier};

const TIER: Tier = Tier::of(env!("CARGO_CRATE_NAME"));

/// A cluster that other tests use too. `None`, said aloud, where it lacks what the scenario needs.
async fn shared(needs: &[Need]) -> Option<Cluster> {
    Cluster::shared(TIER, needs).await
}

/// The same for scenarios without any kind of ours or of others.
async fn bare(needs: &[Need]) -> Option<Cluster> {
    Cluster::bare(TIER, needs).await
}

/// A cluster that the test may break, with these definitions of others.
async fn private(crds: &[&str], needs: &[Need]) -> Option<Cluster> {
    Cluster::private(TIER, crds, needs).await
}
