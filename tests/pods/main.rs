//! Pods as processes, under `windlass up` as a user has it. The containers run `stand-in`, and what
//! is there of them is counted on the machine.
//!
//! - `examples`: everything in the folder of examples comes up, and goes without a trace
//! - `gateway`: requests reach the pods, in their shares, and none is lost while pods change
//! - `account`: what their processes may do in the API
//! - `kubectl`: what it shows of them while they run
//! - `limits`: what they may use of the machine
//! - `churn`: changes and crashes at random, and what is left at rest
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

mod account;
mod churn;
mod examples;
mod gateway;
mod kubectl;
mod limits;
mod machine;
mod objects;
mod rules;
mod traffic;
mod up;
