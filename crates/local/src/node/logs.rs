//! What containers say, on disk.
//!
//! Each run of a container has a file, and a second one while the first is full. A line of them is
//! the time, the stream, `F` or `P` for a whole line or a part of a long one, and the text.

mod pump;
mod reader;
mod record;
mod tail;
#[cfg(test)]
mod tests;
mod words;
mod writer;

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use futures::{
    future::{BoxFuture, FutureExt},
    stream,
};
use rustix::fs::OFlags;
use tokio::{sync::watch, task::spawn_blocking};

pub use pump::pump;
pub use record::Stream;
pub use words::last_words;
pub use writer::Writer;

use super::places::Places;
use crate::http::{LogOptions, LogRun, LogStream, Logs};
use reader::{Reader, Step};
use writer::Progress;

/// The logs of all containers of the node.
#[derive(Debug)]
pub struct ContainerLogs {
    places: Places,
    /// The runs that still go on.
    running: Arc<Mutex<BTreeMap<LogRun, watch::Receiver<Progress>>>>,
    /// A file grows to this size.
    largest: u64,
}

const LARGEST: u64 = 10 * 1024 * 1024;

impl ContainerLogs {
    pub fn new(places: Places) -> Arc<Self> {
        Self::with_limit(places, LARGEST)
    }

    fn with_limit(places: Places, largest: u64) -> Arc<Self> {
        Arc::new(Self { places, running: Arc::default(), largest })
    }

    /// Starts the log of a run. That of the run before is kept, older ones are removed. The run is
    /// over for those who follow it when the writer is dropped.
    pub fn start(&self, run: LogRun) -> io::Result<Arc<Writer>> {
        let dir = self.dir(&run)?;
        super::volumes::make_dir(&dir)?;
        for (file, number, _) in files(&dir)? {
            if number == run.run || number.saturating_add(1) < run.run {
                fs::remove_file(dir.join(file))?;
            }
        }
        let (progress, told) = watch::channel(Progress::default());
        let (running, known) = (self.running.clone(), run.clone());
        let forget = move || {
            running.lock().unwrap_or_else(PoisonError::into_inner).remove(&known);
        };
        let writer = Writer::new(dir, run.run, self.largest, progress, Box::new(forget))?;
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(run, told);
        Ok(Arc::new(writer))
    }

    fn dir(&self, run: &LogRun) -> io::Result<PathBuf> {
        self.places.logs(&run.pod, &run.container).map_err(io::Error::other)
    }

    fn progress(&self, run: &LogRun) -> Option<watch::Receiver<Progress>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }
}

impl Logs for ContainerLogs {
    fn read(&self, run: LogRun, options: LogOptions) -> BoxFuture<'_, io::Result<LogStream>> {
        async move {
            let dir = self.dir(&run)?;
            // Asked before the files are looked at: what is written later is told of.
            let progress = self.progress(&run);
            let follow = options.follow;
            let opened = spawn_blocking(move || Reader::open(dir, run.run, &options, follow)).await;
            let reader = opened.map_err(io::Error::other)??;
            let progress = progress.filter(|_| follow);
            let state = Following { reader, progress };
            Ok(Box::pin(stream::try_unfold(state, next)) as LogStream)
        }
        .boxed()
    }
}

struct Following {
    reader: Reader,
    /// Of a run that is followed.
    progress: Option<watch::Receiver<Progress>>,
}

/// The next piece, once there is one.
async fn next(mut state: Following) -> io::Result<Option<(axum::body::Bytes, Following)>> {
    let mut is_over = state.progress.is_none();
    loop {
        // Seen before reading: whatever comes after wakes us again.
        let generation = state.progress.as_mut().map(|told| told.borrow_and_update().generation);
        let (reader, step) = spawn_blocking(move || {
            let step = state.reader.step(generation);
            (state.reader, step)
        })
        .await
        .map_err(io::Error::other)?;
        state.reader = reader;
        match (step?, &mut state.progress) {
            (Step::Piece(piece), _) => return Ok(Some((piece.into(), state))),
            (Step::Waiting, Some(told)) if !is_over => {
                // What the container said last may not be read yet.
                is_over = told.changed().await.is_err();
            }
            (Step::Over | Step::Waiting, _) => return Ok(None),
        }
    }
}

fn file_name(run: u32, generation: u32) -> String {
    format!("{run}.{generation}.log")
}

/// The logs in a directory: name, run and generation, in their order. Other files are left out.
fn files(dir: &Path) -> io::Result<Vec<(String, u32, u32)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let numbers = name.strip_suffix(".log").and_then(|rest| rest.split_once('.'));
        let numbers = numbers.and_then(|(run, generation)| {
            Some((run.parse::<u32>().ok()?, generation.parse::<u32>().ok()?))
        });
        if let Some((run, generation)) = numbers {
            found.push((name.to_owned(), run, generation));
        }
    }
    found.sort_by_key(|(_, run, generation)| (*run, *generation));
    Ok(found)
}

/// Opens a plain file: a process may have put a link or a pipe in its place.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a plain file")),
    }
}
