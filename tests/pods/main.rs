//! Pods as processes, under `windlass up` as a user has it. The containers run `stand-in`, and what
//! is there of them is counted on the machine.
//!
//! - `demo`: `windlass demo`, which runs a model
//! - `examples`: everything in the folder of examples comes up, and goes without a trace
//! - `gateway`: requests reach the pods, in their shares, and none is lost while pods change
//! - `kserve`: services of KServe that a runtime of the whole cluster serves
//! - `account`: what their processes may do in the API
//! - `kubectl`: what it shows of them while they run
//! - `limits`: what they may use of the machine
//! - `packing`: models that its own registry has, from a hub to their servers
//! - `churn`: changes and crashes at random, and what is left at rest
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

mod account;
mod churn;
mod demo;
mod examples;
mod gateway;
/// As the tests of `windlass kit` have it.
#[path = "../../crates/windlass/tests/kit/hub.rs"]
#[allow(dead_code, reason = "it is a part of another test")]
mod hub;
mod kserve;
mod kubectl;
mod limits;
mod machine;
mod objects;
mod packing;
mod rules;
/// As the tests of the engine have it.
#[path = "../../crates/inference/tests/it/tiny.rs"]
mod tiny;
mod traffic;
mod up;
