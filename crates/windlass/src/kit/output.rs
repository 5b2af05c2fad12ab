//! What is told: lines for people on standard output, warnings and errors on the other, and with
//! `--json` nothing but one object on standard output.

use std::{
    fmt,
    io::{self, Write},
    sync::{Mutex, PoisonError},
};

use serde::Serialize;
use tracing::{Event, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};
use windlass_kit::{Digest, manifest::Manifest};

use super::{
    flags::{Global, Level},
    progress::Progress,
};

pub(super) struct Output {
    level: Level,
    pub(super) json: bool,
    pub(super) progress: Progress,
    /// Of the last artifact that was told of.
    told: Mutex<Option<Digest>>,
}

/// What a command has done, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) digest: Digest,
    pub(super) reference: String,
    pub(super) bytes: u64,
    pub(super) layers: usize,
}

impl Summary {
    pub(super) fn new(digest: &Digest, reference: impl fmt::Display, manifest: &Manifest) -> Self {
        Self {
            digest: digest.clone(),
            reference: reference.to_string(),
            bytes: manifest.layers.iter().map(|layer| layer.size).sum(),
            layers: manifest.layers.len(),
        }
    }
}

impl Output {
    pub(super) fn new(flags: &Global) -> Self {
        let level = flags.level();
        log(level);
        let progress = Progress::new(flags.style(), flags.json);
        Self { level, json: flags.json, progress, told: Mutex::new(None) }
    }

    /// A line on the way.
    pub(super) fn info(&self, text: impl fmt::Display) {
        if self.level <= Level::Info {
            self.line(&text.to_string());
        }
    }

    /// Beside what was asked for, which others may read.
    pub(super) fn note(&self, text: impl fmt::Display) {
        if self.level <= Level::Info {
            let text = capital(&text.to_string());
            self.progress.aside(|| eprintln!("{text}"));
        }
    }

    pub(super) fn warn(&self, text: impl fmt::Display) {
        if self.level <= Level::Warn {
            let text = capital(&text.to_string());
            self.progress.aside(|| eprintln!("[WARN ] {text}"));
        }
    }

    /// The last line of a command, which others parse; told at any level.
    pub(super) fn result(&self, text: impl fmt::Display, summary: &Summary) -> anyhow::Result<()> {
        self.end();
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(summary.digest.clone());
        match self.json {
            true => self.object(summary),
            false => self.data(format!("{}\n", capital(&text.to_string()))),
        }
    }

    /// The digest that a command has ended with.
    pub(super) fn told(&self) -> Option<Digest> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn object(&self, object: &impl Serialize) -> anyhow::Result<()> {
        self.data(format!("{}\n", serde_json::to_string(object)?))
    }

    /// What was asked for.
    pub(super) fn data(&self, text: impl AsRef<str>) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_ref().as_bytes())?;
        stdout.flush()?;
        Ok(())
    }

    /// Nothing is drawn any more.
    pub(super) fn end(&self) {
        self.progress.end();
    }

    fn line(&self, text: &str) {
        let text = capital(text);
        self.progress.aside(|| match self.json {
            true => eprintln!("{text}"),
            // Who does not read it does not need it.
            false => drop(writeln!(io::stdout(), "{text}")),
        });
    }
}

/// As a sentence begins. What is no word, such as the name of an artifact, stays as it is.
pub(super) fn capital(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    if !first.chars().all(char::is_alphabetic) {
        return text.to_owned();
    }
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// What the libraries tell. Only ours, since others might tell of headers, and tokens stand in those.
fn log(level: Level) {
    let level = match level {
        Level::Trace => LevelFilter::TRACE,
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    let filter = EnvFilter::new(format!("off,windlass={level},windlass_kit={level}"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // It is started once in a process, except in tests.
    drop(lines.with_ansi(false).event_format(Line).try_init());
}

struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(writer, "[{:<5}] ", event.metadata().level().as_str())?;
        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        writeln!(writer, "{}", capital(&text))
    }
}
