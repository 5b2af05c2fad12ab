//! `windlass kit` as a user has it: processes, their files, registries and a hub. What it prints about
//! a folder alone is in the transcripts.
//!
//! - `anew`: what a later run does not take over from an earlier one
//! - `listed`: what a registry has besides models, and what it lets go
//! - `round_trip`: from a folder to a registry and back, in both forms
//! - `refused`: what it does not do, and by which exit code that is known
//! - `resume`: what is not sent again after a kill
//! - `at_once`: several on one storage, ends in the middle, full disks
//! - `disk`: what is not written to it
//! - `evil`: artifacts that somebody has made to do harm
//! - `helpers`: passwords that another program keeps
//! - `import`: models of a hub, of an address, of git and of a folder; `imported`: of hubs that are hard
//!   to import from
//! - `memory`: what it takes of it
//! - `signals`: what ends a command that waits
//! - `tokens`: of registries, which last for a moment only
//! - `told`: what programs are told
//! - `trust`: whose certificates count, and for whom
//! - `others`: what the libraries of other tools read of ours and make for us (`go`, a program of Go)
//! - `registries`: against Debian's docker-registry (`debian`), and through somebody who cuts (`cut`)
//! - `signed`: by whom
//! - `shown`: progress on a terminal and elsewhere
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

mod anew;
mod at_once;
/// Where the tools keep what they build.
#[path = "../../../../xtask/src/cache.rs"]
#[allow(unreachable_pub, reason = "it is a part of another crate")]
mod cache;
mod cut;
mod debian;
mod disk;
mod evil;
mod front;
mod go;
mod helpers;
mod hub;
mod import;
mod imported;
mod listed;
mod memory;
#[path = "../../../../tests/src/note.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a part of another crate")]
mod note;
mod others;
mod refused;
mod registries;
mod resume;
mod round_trip;
mod server;
mod shown;
mod signals;
mod signed;
/// As the scenarios of `up` see it.
#[path = "../up/terminal.rs"]
#[allow(dead_code, reason = "it is a part of another test")]
mod terminal;
mod tokens;
mod told;
mod trust;
#[path = "../../../../tests/src/wait.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a part of another crate")]
mod wait;
mod web;
mod world;
