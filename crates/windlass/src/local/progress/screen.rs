//! Standard error, on which log lines and a drawing that is changed in place come together.
//!
//! The drawing is always the last there is, and the cursor stands below it; it is never hidden, so
//! that nothing has to be restored however this ends.

use std::{
    env,
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::termios::tcgetwinsize;

use super::{
    Form,
    paint::{Line, Size},
};
use crate::operator::logging;

/// Of a terminal that does not tell.
const USUAL: Size = Size { width: 80, height: 24 };

pub(in crate::local) struct Screen {
    form: Form,
    /// It is a terminal that can go back.
    is_terminal: bool,
    has_colour: bool,
    drawn: Mutex<Drawn>,
}

#[derive(Default)]
struct Drawn {
    lines: Vec<Line>,
    /// Nothing more is drawn.
    is_over: bool,
}

impl Screen {
    pub(super) fn of_stderr(form: Form) -> Self {
        let is_dumb = env::var_os("TERM").is_none_or(|name| name == "dumb");
        let is_terminal = io::stderr().is_terminal() && !is_dumb;
        let has_colour = is_terminal && !logging::refuses_colour();
        Self { form, is_terminal, has_colour, drawn: Mutex::default() }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.form != Form::None
    }

    /// What is shown is changed in place.
    pub(super) fn is_drawn(&self) -> bool {
        self.form == Form::Auto && self.is_terminal
    }

    pub(super) fn has_colour(&self) -> bool {
        self.has_colour
    }

    pub(super) fn size(&self) -> Size {
        let found = tcgetwinsize(io::stderr()).ok();
        let found = found.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        found.map_or(USUAL, |size| Size { width: size.ws_col.into(), height: size.ws_row.into() })
    }

    /// Instead of what was drawn before.
    pub(super) fn draw(&self, lines: Vec<Line>) {
        let mut drawn = self.drawn();
        if drawn.lines != lines && !drawn.is_over {
            put(&redraw(&drawn.lines, &lines, self.size().width));
            drawn.lines = lines;
        }
    }

    /// A line above the drawing, where it stays.
    pub(super) fn say(&self, line: &str) {
        self.above(format!("{line}\n").as_bytes());
    }

    /// Somebody else has written below: what was drawn stays where it is.
    pub(super) fn forget(&self) {
        self.drawn().lines.clear();
    }

    /// Nothing is left of the drawing.
    pub(in crate::local) fn finish(&self) {
        self.draw(Vec::new());
        self.drawn().is_over = true;
    }

    fn above(&self, text: &[u8]) {
        let drawn = self.drawn();
        if drawn.lines.is_empty() {
            return put(text);
        }
        let width = self.size().width;
        let mut all = back(&drawn.lines, width).into_bytes();
        all.extend(b"\x1b[J");
        all.extend(text);
        all.extend(redraw(&[], &drawn.lines, width));
        put(&all);
    }

    fn drawn(&self) -> MutexGuard<'_, Drawn> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// At once, so that nothing is seen half done. Who does not look any more is no reason to end.
fn put(bytes: &[u8]) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// To where the drawing begins. In a window that was made narrower it takes more rows than before.
fn back(drawn: &[Line], width: usize) -> String {
    match drawn.iter().map(|line| line.rows(width)).sum::<usize>() {
        0 => "\r".to_owned(),
        rows => format!("\r\x1b[{rows}A"),
    }
}

/// Each line over the old one, so that what stays does not flicker.
fn redraw(old: &[Line], new: &[Line], width: usize) -> Vec<u8> {
    let mut text = if old.is_empty() { String::new() } else { back(old, width) };
    for line in new {
        text.push_str(&line.text);
        // Behind a full row the cursor still stands on its last column.
        let is_full = line.width > 0 && line.width.is_multiple_of(width.max(1));
        let end = if is_full { "\r\n" } else { "\x1b[K\r\n" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{end}");
    }
    if !old.is_empty() {
        text.push_str("\x1b[J");
    }
    text.into_bytes()
}

/// For log lines, each of which is written at once.
impl Write for &Screen {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.above(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
