//! The last words of a container, which its status tells.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use super::{
    ContainerLogs, open,
    reader::{Reader, Step},
};
use crate::http::{LogOptions, LogRun};

const LONGEST: u64 = 4096;
const LONGEST_OF_LOG: usize = 2048;
const LINES_OF_LOG: u64 = 80;

/// The end of what the container left in its file, or, if that is empty and `fall_back` says so, of
/// its log. That is for containers that failed under the policy `FallbackToLogsOnError`.
///
/// Waits for the disk.
pub fn last_words(logs: &ContainerLogs, run: &LogRun, fall_back: bool) -> String {
    let file = logs.places.last_words(&run.pod, &run.container);
    let file = file.map_err(io::Error::other);
    let said = match file.and_then(|file| end_of(&file)) {
        Ok(said) => said,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return format!("Error on reading termination log: {error}"),
    };
    let said = match said.is_empty() && fall_back {
        true => end_of_log(logs, run).unwrap_or_default(),
        false => said,
    };
    String::from_utf8_lossy(&said).into_owned()
}

fn end_of(file: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST)))?;
    let mut end = Vec::new();
    file.take(LONGEST).read_to_end(&mut end)?;
    Ok(end)
}

fn end_of_log(logs: &ContainerLogs, run: &LogRun) -> io::Result<Vec<u8>> {
    let options = LogOptions { tail_lines: Some(LINES_OF_LOG), ..Default::default() };
    let mut reader = Reader::open(logs.dir(run)?, run.run, &options, false)?;
    let mut end = Vec::new();
    while let Step::Piece(piece) = reader.step(None)? {
        end.extend_from_slice(&piece);
        let over = end.len().saturating_sub(LONGEST_OF_LOG);
        end.drain(..over);
    }
    Ok(end)
}
