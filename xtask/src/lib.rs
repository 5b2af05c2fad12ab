//! The project's own tools, as a library and as `cargo xtask`.
//!
//! - [`cluster`]: a real Kubernetes control plane on one machine. The scenario tests use this part
//!   as a library to start private control planes.
//! - [`demo`]: a model served on this machine, or the operator at work on such a control plane, for people.
//! - [`bench`]: how fast it is, in numbers.
//! - [`churn`]: changes and crashes at random on a local cluster.
//! - [`fuzz`]: foreign input of all sorts for whatever reads it.
//! - [`check`]: what must hold before a commit; [`tidy`] and [`generate`] are its own rules.
//! - [`types`]: what the embedded API knows of the built-in kinds.
//! - [`test`]: runs every tier of tests this machine can and counts them.
//!
//! Everything blocks and uses processes, files and nothing else: no client library, no runtime. Only
//! the benchmark needs both, and has them behind the feature `bench`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks there")]

pub mod bench;
pub mod cache;
pub mod check;
pub mod churn;
pub mod cluster;
pub mod demo;
pub mod fuzz;
pub mod generate;
mod interrupt;
mod program;
mod scratch;
pub mod test;
pub mod tidy;
pub mod types;
pub mod workspace;
