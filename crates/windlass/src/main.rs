//! The `windlass` program.

// This crate is the edge: it is meant to write to the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod config;
mod demo;
mod documents;
mod exit;
mod install;
mod instead_of;
mod kinds;
mod kit;
mod local;
mod names;
mod operator;
mod output;
mod registry;
mod render;
mod schema;
mod serve;

#[cfg(test)]
#[path = "../../inference/tests/it/tiny.rs"]
mod tiny;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
