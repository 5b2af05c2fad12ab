//! Reads the log of one run, and what is added to it.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
};

use super::{
    file_name, files, open,
    record::{self, LONGEST},
    tail::Tail,
};
use crate::http::LogOptions;

const PIECE: usize = 64 * 1024;

/// What a step of reading gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Piece(Vec<u8>),
    /// All that is there has been read.
    Waiting,
    /// Nothing more is wanted.
    Over,
}

/// Where it is in the files. Waits for the disk.
#[derive(Debug)]
pub(super) struct Reader {
    dir: PathBuf,
    run: u32,
    current: Option<Part>,
    later: VecDeque<Part>,
    generation: u32,
    /// The start of a record whose end was not there yet.
    rest: Vec<u8>,
    format: Format,
}

#[derive(Debug)]
struct Part {
    generation: u32,
    file: File,
    /// How much there was at first, if nothing later is wanted.
    left: Option<u64>,
}

impl Reader {
    /// Everything is opened at once, so that nothing vanishes while it is read.
    pub(super) fn open(
        dir: PathBuf,
        run: u32,
        options: &LogOptions,
        follow: bool,
    ) -> io::Result<Self> {
        let mut parts = Vec::new();
        for (name, _, generation) in files(&dir)?.into_iter().filter(|(_, of, _)| *of == run) {
            match open(&dir.join(name)) {
                Ok(file) => parts.push((generation, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if parts.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut tail = options.tail_lines.map(Tail::new);
        let mut later = VecDeque::new();
        for (generation, mut file) in parts.into_iter().rev() {
            let length = file.metadata()?.len();
            let start = match &mut tail {
                Some(tail) => tail.start(&file, length)?,
                None => None,
            };
            file.seek(SeekFrom::Start(start.unwrap_or(0)))?;
            let left = (!follow).then(|| length - start.unwrap_or(0).min(length));
            later.push_front(Part { generation, file, left });
            if start.is_some() {
                break;
            }
        }
        let generation = later.back().map_or(0, |part| part.generation);
        let format = Format::new(options);
        Ok(Self { dir, run, current: None, later, generation, rest: Vec::new(), format })
    }

    /// Reads on. `newest` is the generation that is written to, if that is known.
    pub(super) fn step(&mut self, newest: Option<u32>) -> io::Result<Step> {
        loop {
            if self.format.is_over() {
                return Ok(Step::Over);
            }
            let Some(part) = self.current.as_mut() else {
                match self.later.pop_front() {
                    Some(part) => self.current = Some(part),
                    None => return Ok(Step::Waiting),
                }
                continue;
            };
            let mut out = Vec::new();
            let read = read_some(part, &mut self.rest)?;
            if read == 0 {
                let left_behind = newest.is_some_and(|newest| newest > part.generation);
                if self.later.is_empty() && !(left_behind && self.find_newer()?) {
                    return Ok(Step::Waiting);
                }
                // A record without an end is what a crash left of it.
                self.rest.clear();
                self.current = self.later.pop_front();
            } else {
                self.format.lines(&mut self.rest, &mut out);
            }
            if !out.is_empty() {
                return Ok(Step::Piece(out));
            }
        }
    }

    /// Opens the files that were begun since.
    fn find_newer(&mut self) -> io::Result<bool> {
        for (_, run, generation) in files(&self.dir)? {
            if run != self.run || generation <= self.generation {
                continue;
            }
            match open(&self.dir.join(file_name(self.run, generation))) {
                Ok(file) => {
                    self.generation = generation;
                    self.later.push_back(Part { generation, file, left: None });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(!self.later.is_empty())
    }
}

fn read_some(part: &mut Part, into: &mut Vec<u8>) -> io::Result<usize> {
    let most = part.left.map_or(PIECE as u64, |left| left.min(PIECE as u64));
    let read = (&mut part.file).take(most).read_to_end(into)?;
    if let Some(left) = &mut part.left {
        *left -= (read as u64).min(*left);
    }
    Ok(read)
}

/// Turns records into what was asked for.
#[derive(Debug)]
struct Format {
    /// As records have it.
    since: Option<String>,
    timestamps: bool,
    /// How many bytes may still be given.
    left: Option<u64>,
    at_start_of_line: bool,
}

impl Format {
    fn new(options: &LogOptions) -> Self {
        Self {
            since: options.since.map(record::time),
            timestamps: options.timestamps,
            left: options.limit_bytes,
            at_start_of_line: true,
        }
    }

    fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// All complete records of `bytes`; the rest stays there. What has no end within the length of a
    /// record is none of ours and is given as it is.
    fn lines(&mut self, bytes: &mut Vec<u8>, out: &mut Vec<u8>) {
        let mut done = 0;
        while let Some(end) = bytes[done..].iter().position(|byte| *byte == b'\n') {
            self.line(&bytes[done..done + end], out);
            done += end + 1;
        }
        if bytes.len() - done > 2 * LONGEST {
            self.line(&bytes[done..], out);
            done = bytes.len();
        }
        bytes.drain(..done);
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) {
        match record::parse(line) {
            None if line.is_empty() => {}
            // Somebody else has written here.
            None => {
                self.give(line, out);
                self.give(b"\n", out);
                self.at_start_of_line = true;
            }
            Some(record) => {
                if self.since.as_ref().is_some_and(|since| record.time < since.as_bytes()) {
                    return;
                }
                if self.timestamps && self.at_start_of_line {
                    self.give(record.time, out);
                    self.give(b" ", out);
                }
                self.give(record.text, out);
                if record.whole {
                    self.give(b"\n", out);
                }
                self.at_start_of_line = record.whole;
            }
        }
    }

    fn give(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(left) = &mut self.left else { return out.extend_from_slice(bytes) };
        let fits = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
        out.extend_from_slice(&bytes[..fits]);
        *left -= fits as u64;
    }
}
