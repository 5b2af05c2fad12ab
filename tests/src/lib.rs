//! What the scenarios stand on: a real or an embedded API server, an operator process under its shipped rights,
//! somebody who plays the kubelet, a proxy that injects faults, and waiting with a deadline.

// All of this runs only inside tests, where failing loudly is the point.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

pub mod audit;
pub mod cluster;
mod definitions;
mod embedded;
pub mod faults;
pub mod http;
pub mod kubelet;
pub mod logs;
pub mod needs;
pub mod note;
pub mod operator;
pub mod wait;

pub use cluster::{Cluster, Namespaced, Space};
pub use needs::{Need, Tier};
pub use operator::Operator;
pub use wait::{eventually, until};
