//! What is told of each step: a line that changes in place on a terminal, a line for each change
//! elsewhere.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{kit::size_of as exact_size, operator::logging::refuses_colour};

/// The room of the names of steps.
const NAME: usize = 9;
/// Of a download, elsewhere than on a terminal, so many parts are told.
const PARTS: u64 = 4;

#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    is_terminal: bool,
    has_colour: bool,
    width: usize,
}

impl Terminal {
    pub(super) fn of_process() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
        let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 20);
        Self {
            is_terminal,
            has_colour: is_terminal && !refuses_colour(),
            width: width.unwrap_or(80),
        }
    }

    pub(super) fn step(self, name: &'static str) -> Step {
        Step { name, terminal: self, started: Instant::now(), said: Mutex::default() }
    }

    /// Whoever does not listen any more is no reason to end.
    pub(super) fn say(self, text: &str) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    /// A part of a line.
    pub(super) fn add(self, text: &str) {
        let mut out = io::stdout().lock();
        let _ = write!(out, "{text}").and_then(|()| out.flush());
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.coloured("1", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.coloured("2", text)
    }

    fn coloured(self, code: &str, text: &str) -> String {
        match self.has_colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// One that is under way.
pub(super) struct Step {
    name: &'static str,
    terminal: Terminal,
    started: Instant,
    /// The last note, and how many parts of a download were told.
    said: Mutex<(String, u64)>,
}

impl Step {
    /// What it waits for. The same is told once.
    pub(super) fn note(&self, text: &str) {
        let text = text.lines().next().unwrap_or_default();
        let mut said = self.said();
        if said.0 == text {
            return;
        }
        text.clone_into(&mut said.0);
        let line = format!("· {:NAME$} {text}", self.name);
        match self.terminal.is_terminal {
            // Without the last column, which some terminals break the line at.
            true => self.terminal.add(&format!("\r\x1b[2K{}", cut(&line, self.terminal.width - 1))),
            false => self.terminal.say(&line),
        }
    }

    /// So much of a download has come.
    pub(super) fn received(&self, bytes: u64, of: u64) {
        let part = (bytes.min(of) * PARTS).checked_div(of).unwrap_or(0);
        let is_new = std::mem::replace(&mut self.said().1, part) != part;
        if is_new || self.terminal.is_terminal {
            self.note(&format!("downloads: {} of {}", size_of(bytes), size_of(of)));
        }
    }

    pub(super) fn done(&self, text: &str) {
        let mark = self.terminal.coloured("32", "✓");
        let took = format!("{:.1} s", self.started.elapsed().as_secs_f32());
        let took = self.terminal.faint(&took);
        let clear = if self.terminal.is_terminal { "\r\x1b[2K" } else { "" };
        self.said().0.clear();
        self.terminal.say(&format!("{clear}{mark} {:NAME$} {text}  {took}", self.name));
    }

    fn said(&self) -> MutexGuard<'_, (String, u64)> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Step {
    /// What is said of a step that was not done stays, and the next begins a line of its own.
    fn drop(&mut self) {
        if self.terminal.is_terminal && !self.said().0.is_empty() {
            self.terminal.say("");
        }
    }
}

/// In units that downloads are told in.
pub(super) fn size_of(bytes: u64) -> String {
    exact_size(bytes)
}

/// So that it takes at most so many columns.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| {
        let rest = room.checked_sub(c.width().unwrap_or(0));
        room = rest.unwrap_or(0);
        rest.is_some()
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line() {
        for (text, width, want) in [
            ("short", 10, "short"),
            ("exactly10!", 10, "exactly10!"),
            ("longer than", 8, "longer …"),
        ] {
            assert_eq!(cut(text, width), want);
        }
    }
}
