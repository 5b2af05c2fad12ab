//! Log lines on standard error. The flags of zap, which the Go originals log by, act where there is
//! something alike.

use std::{
    fmt::{self, Display},
    io::IsTerminal,
};

use anyhow::anyhow;
use clap::{ArgAction, Args, ValueEnum};
use jiff::Timestamp;
use tracing_subscriber::{
    EnvFilter,
    filter::LevelFilter,
    fmt::{
        MakeWriter,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
};

use crate::exit::BadInput;

#[derive(Debug, Clone, Args)]
#[group(id = "logging")]
pub(crate) struct Flags {
    /// Form of log lines; for `operator` json unless given, for `up` text
    #[arg(long, env = "WINDLASS_LOG_FORMAT", alias = "zap-encoder")]
    log_format: Option<Format>,
    /// Least level to log: error, warn, info, debug, trace; or directives such as `info,kube=debug`;
    /// for `operator` info unless given, for `up` warn
    #[arg(long, env = "WINDLASS_LOG_LEVEL", alias = "zap-log-level")]
    log_level: Option<String>,
}

/// What zap has beyond that.
#[derive(Debug, Clone, Default, Args)]
#[group(id = "zap")]
pub(crate) struct Zap {
    /// Form of the times in log lines: rfc3339 to the microsecond unless given
    #[arg(long, env = "WINDLASS_ZAP_TIME_ENCODING")]
    zap_time_encoding: Option<TimeEncoding>,
    /// Text instead of json, and debug instead of info
    #[arg(
        long, env = "WINDLASS_ZAP_DEVEL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = false, action = ArgAction::Set
    )]
    zap_devel: bool,
    /// Has no effect: log lines carry the causes of an error and no stack
    #[arg(long, env = "WINDLASS_ZAP_STACKTRACE_LEVEL", value_name = "LEVEL")]
    zap_stacktrace_level: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    #[value(alias = "console")]
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TimeEncoding {
    /// Seconds since 1970
    Epoch,
    /// Milliseconds since 1970
    Millis,
    /// Nanoseconds since 1970
    Nano,
    Iso8601,
    Rfc3339,
    Rfc3339nano,
}

/// How a command logs unless told otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usual {
    format: Format,
    level: &'static str,
}

impl Usual {
    /// For what collects logs.
    pub(crate) const OPERATOR: Self = Self { format: Format::Json, level: "info" };
    /// For a person at a terminal.
    pub(crate) const UP: Self = Self { format: Format::Text, level: "warn" };
}

pub(crate) fn start(flags: &Flags, zap: &Zap, usual: Usual) -> anyhow::Result<()> {
    start_on(flags, zap, usual, std::io::stderr)
}

/// The same, where standard error is shared with something else.
pub(crate) fn start_on<W>(flags: &Flags, zap: &Zap, usual: Usual, out: W) -> anyhow::Result<()>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let usual = zap.or(usual);
    let filter = flags.filter(usual)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_timer(Clock(zap.zap_time_encoding))
        .with_writer(out)
        .with_ansi(std::io::stderr().is_terminal() && !refuses_colour());
    let started = match flags.format(usual) {
        Format::Json => subscriber.json().flatten_event(true).try_init(),
        Format::Text => subscriber.try_init(),
    };
    started.map_err(|error| anyhow!("cannot start logging: {error}"))?;
    if zap.zap_stacktrace_level.is_some() {
        tracing::warn!(flag = "--zap-stacktrace-level", "this flag has no effect");
    }
    Ok(())
}

/// By the convention of no-color.org.
pub(crate) fn refuses_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

impl Zap {
    fn or(&self, usual: Usual) -> Usual {
        if self.zap_devel { Usual { format: Format::Text, level: "debug" } } else { usual }
    }
}

impl Flags {
    /// What is written beside log lines has to fit them.
    pub(crate) fn is_json(&self, usual: Usual) -> bool {
        self.format(usual) == Format::Json
    }

    fn format(&self, usual: Usual) -> Format {
        self.log_format.unwrap_or(usual.format)
    }

    fn filter(&self, usual: Usual) -> Result<EnvFilter, BadInput> {
        let given = self.log_level.as_deref().unwrap_or(usual.level);
        let level = of_zap(given).unwrap_or(given);
        let bare = !level.contains(['=', ',']);
        if bare && level.parse::<LevelFilter>().is_err() {
            // It would be taken for the name of a module, and nothing would be logged.
            return Err(BadInput(format!(
                "--log-level must be error, warn, info, debug, trace or off, got {given:?}"
            )));
        }
        EnvFilter::try_new(level)
            .map_err(|error| BadInput(format!("--log-level {given:?} cannot be used: {error}")))
    }
}

/// What zap calls otherwise: its numbers rise with the detail, and only crashes are worse than errors.
fn of_zap(level: &str) -> Option<&'static str> {
    match (level, level.parse::<u8>()) {
        ("panic", _) => Some("error"),
        (_, Ok(0)) => Some("info"),
        (_, Ok(1)) => Some("debug"),
        (_, Ok(_)) => Some("trace"),
        _ => None,
    }
}

struct Clock(Option<TimeEncoding>);

impl FormatTime for Clock {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        match self.0 {
            Some(encoding) => write!(writer, "{}", encoding.show(Timestamp::now())),
            None => SystemTime.format_time(writer),
        }
    }
}

impl TimeEncoding {
    fn show(self, time: Timestamp) -> Box<dyn Display> {
        match self {
            // As fractions, to the precision that zap has too.
            Self::Epoch => Box::new(time.as_duration().as_secs_f64()),
            Self::Millis => Box::new(time.as_duration().as_millis_f64()),
            Self::Nano => Box::new(time.as_nanosecond()),
            Self::Iso8601 => Box::new(time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()),
            Self::Rfc3339 => Box::new(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            Self::Rfc3339nano => Box::new(time),
        }
    }
}

#[cfg(test)]
mod tests;
