//! What the node writes down for itself of each run, so that its next start can tell the process
//! from others and end it: `run.json` in the directory of the pod.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::pod::Ended;

const FILE: &str = "run.json";

/// The latest run of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub id: String,
    pub restarts: i32,
    pub image_id: String,
    pub started: Timestamp,
    /// Also in the environment of the process.
    pub token: String,
    /// Missing while the process is being made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Identity>,
    /// The control group it is in, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// A process that no other is ever taken for. It leads a group of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    pub pid: i32,
    /// In ticks since the machine started.
    pub start: u64,
    /// Which start of the machine that was.
    pub boot: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("cannot make sense of {}", .0.display())]
    Parse(PathBuf, #[source] serde_json::Error),
    #[error("cannot write {}", .0.display())]
    Write(PathBuf, #[source] io::Error),
}

/// All records of one pod.
#[derive(Debug)]
pub struct Records {
    file: PathBuf,
    runs: BTreeMap<String, Record>,
}

impl Records {
    /// Of the pod with this directory, which may have none.
    pub fn read(dir: &Path) -> Result<Self, Error> {
        let file = dir.join(FILE);
        let runs = match fs::read(&file) {
            Ok(text) => {
                serde_json::from_slice(&text).map_err(|error| Error::Parse(file.clone(), error))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(Error::Read(file, error)),
        };
        Ok(Self { file, runs })
    }

    /// Of a pod of which nothing can be read.
    pub fn none(dir: &Path) -> Self {
        Self { file: dir.join(FILE), runs: BTreeMap::new() }
    }

    pub fn runs(&self) -> &BTreeMap<String, Record> {
        &self.runs
    }

    pub fn put(&mut self, container: &str, record: Record) -> Result<(), Error> {
        self.runs.insert(container.to_owned(), record);
        self.write()
    }

    /// The end is worth keeping, but a run without one is told as well.
    pub fn end(&mut self, container: &str, ended: &Ended) -> Result<(), Error> {
        match self.runs.get_mut(container) {
            Some(record) if record.id == ended.id => record.ended = Some(ended.clone()),
            _ => return Ok(()),
        }
        self.write()
    }

    /// The whole file at once: a crash leaves the old one or the new one.
    fn write(&self) -> Result<(), Error> {
        let beside = self.file.with_extension("new");
        let text = serde_json::to_vec(&self.runs)
            .map_err(|error| Error::Parse(self.file.clone(), error))?;
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &self.file));
        written.map_err(|error| Error::Write(self.file.clone(), error))
    }
}
