//! `windlass kit` as a user has it: processes, their files, registries and a hub. What it prints about
//! a folder alone is in the transcripts.
//!
//! - `round_trip`: from a folder to a registry and back, in both forms
//! - `refused`: what it does not do, and by which exit code that is known
//! - `resume`: what is not sent again after a kill
//! - `import`: models of a hub
//! - `shown`: progress on a terminal and elsewhere
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

mod front;
mod hub;
mod import;
mod refused;
mod resume;
mod round_trip;
mod server;
mod shown;
/// As the scenarios of `up` see it.
#[path = "../up/terminal.rs"]
#[allow(dead_code, reason = "it is a part of another test")]
mod terminal;
#[path = "../../../../tests/src/wait.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a part of another crate")]
mod wait;
mod world;
