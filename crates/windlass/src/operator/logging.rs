//! Log lines on standard error.

use std::io::IsTerminal;

use anyhow::anyhow;
use tracing_subscriber::EnvFilter;

use super::flags::{Flags, LogFormat};
use crate::exit::BadInput;

pub(super) fn start(flags: &Flags) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&flags.log_level).map_err(|error| {
        BadInput(format!("--log-level {:?} cannot be used: {error}", flags.log_level))
    })?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match flags.log_format {
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
        LogFormat::Text => subscriber.try_init(),
    };
    started.map_err(|error| anyhow!("cannot start logging: {error}"))
}
