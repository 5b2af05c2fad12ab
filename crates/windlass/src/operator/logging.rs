//! Log lines on standard error.

use std::io::IsTerminal;

use anyhow::anyhow;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use super::flags::{Flags, LogFormat};
use crate::exit::BadInput;

pub(super) fn start(flags: &Flags) -> anyhow::Result<()> {
    let bare = !flags.log_level.contains(['=', ',']);
    if bare && flags.log_level.parse::<LevelFilter>().is_err() {
        // It would be taken for the name of a module, and nothing would be logged.
        let text = format!(
            "--log-level must be error, warn, info, debug, trace or off, got {:?}",
            flags.log_level
        );
        return Err(BadInput(text).into());
    }
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
