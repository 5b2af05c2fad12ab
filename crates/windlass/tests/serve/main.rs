//! `windlass serve` as a process, with a model that the tests write themselves.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

mod answers;
mod ends;
mod process;
mod refused;
#[path = "../../../inference/tests/it/tiny.rs"]
mod tiny;
