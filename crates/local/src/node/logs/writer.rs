//! The log of one run, as it grows.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use jiff::Timestamp;
use tokio::sync::watch;

use super::{
    file_name,
    record::{self, Stream},
};

/// How far a log has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// How often a new file was begun.
    pub(super) generation: u32,
    written: u64,
}

/// Takes the lines of both streams of a run. It never fails: a container must not stand still because
/// a disk is full. What is lost is said in the log as soon as there is room again.
pub struct Writer {
    state: Mutex<State>,
    progress: watch::Sender<Progress>,
    forget: Option<Box<dyn FnOnce() + Send + Sync>>,
}

struct State {
    dir: PathBuf,
    run: u32,
    largest: u64,
    generation: u32,
    file: File,
    length: u64,
    lost: u64,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("progress", &*self.progress.borrow()).finish_non_exhaustive()
    }
}

/// Those who follow the log learn that it is over by the end of `progress`, which is dropped last.
impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(forget) = self.forget.take() {
            forget();
        }
    }
}

impl Writer {
    pub(super) fn new(
        dir: PathBuf,
        run: u32,
        largest: u64,
        progress: watch::Sender<Progress>,
        forget: Box<dyn FnOnce() + Send + Sync>,
    ) -> io::Result<Self> {
        let file = create(&dir, run, 0)?;
        let state = State { dir, run, largest, generation: 0, file, length: 0, lost: 0 };
        Ok(Self { state: Mutex::new(state), progress, forget: Some(forget) })
    }

    /// One line of our own making.
    pub fn say(&self, now: Timestamp, text: &str) {
        let mut records = Vec::new();
        let time = record::time(now);
        for line in text.lines() {
            record::print(&mut records, &time, Stream::Stderr, true, line.as_bytes());
        }
        self.append(&records, now);
    }

    /// Whole records only.
    pub(super) fn append(&self, records: &[u8], now: Timestamp) {
        if records.is_empty() {
            return;
        }
        let generation = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = state.append(records, now) {
                if state.lost == 0 {
                    tracing::warn!(%error, dir = %state.dir.display(), "cannot write a log");
                }
                state.lost += records.len() as u64;
            }
            state.generation
        };
        self.progress.send_modify(|progress| {
            progress.generation = generation;
            progress.written += records.len() as u64;
        });
    }
}

impl State {
    fn append(&mut self, records: &[u8], now: Timestamp) -> io::Result<()> {
        if self.length > 0 && self.length + records.len() as u64 > self.largest {
            self.turn()?;
        }
        if self.lost > 0 {
            let text = format!("{} bytes of output could not be written and are lost", self.lost);
            let mut note = Vec::new();
            record::print(&mut note, &record::time(now), Stream::Stderr, true, text.as_bytes());
            self.write(&note)?;
            self.lost = 0;
        }
        self.write(records)
    }

    /// All or nothing, so that every line in the file is whole.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.file.set_len(self.length)?;
                Err(error)
            }
        }
    }

    /// Begins a new file. The one before stays, the one before that goes.
    fn turn(&mut self) -> io::Result<()> {
        let next = self.generation.saturating_add(1);
        let file = create(&self.dir, self.run, next)?;
        if let Some(old) = self.generation.checked_sub(1) {
            match fs::remove_file(self.dir.join(file_name(self.run, old))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, "cannot remove an old log");
                }
                _ => {}
            }
        }
        (self.file, self.length, self.generation) = (file, 0, next);
        Ok(())
    }
}

/// At its end always, wherever others have cut the file.
fn create(dir: &std::path::Path, run: u32, generation: u32) -> io::Result<File> {
    let path = dir.join(file_name(run, generation));
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_loses_lines_and_says_so_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        let progress = watch::channel(Progress::default()).0;
        let writer = Writer::new(path.clone(), 0, 1000, progress, Box::new(|| ())).unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let disk = std::mem::replace(&mut writer.state.lock().unwrap().file, full);
        writer.say(now, "never seen");
        writer.state.lock().unwrap().file = disk;
        writer.say(now, "seen");
        let text = fs::read_to_string(path.join("0.0.log")).unwrap();
        let lines: Vec<_> = text.lines().map(|line| &line[40..]).collect();
        assert_eq!(lines, ["51 bytes of output could not be written and are lost", "seen"]);
    }
}
