//! `windlass up` and `windlass down`: the API, its store and the operator in one process, for a
//! machine without a cluster.

mod api;
mod down;
mod gateway;
mod home;
mod install;
mod lock;
mod node;
mod open_files;
mod own_rules;
mod progress;
mod registry;
mod shell;
mod signals;
mod sweep;
mod third_party;
mod up;

pub(crate) use down::{Flags as DownFlags, run as down};
pub(crate) use shell::word as shell_word;
pub(crate) use up::{Flags as UpFlags, run as up};
