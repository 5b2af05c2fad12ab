//! Lines for a terminal of some size.

use jiff::Timestamp;
use unicode_width::UnicodeWidthChar;

use super::view::{Row, State, View};

/// Of a text that takes several.
const MOST_ROWS: usize = 3;
/// A name that is longer is cut.
const LONGEST_NAME: usize = 40;
/// Where less is left than this beside the other columns, a text begins on a line of its own.
const NARROW: usize = 30;
const INDENT: usize = 4;

/// In columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// As it is written, and how many columns of that are seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) width: usize,
}

impl Line {
    fn new(text: String) -> Self {
        let width = columns(&text);
        Self { text, width }
    }

    /// How many rows it takes, as it wraps.
    pub(super) fn rows(&self, width: usize) -> usize {
        self.width.div_ceil(width.max(1)).max(1)
    }
}

/// All that is not as it should be, and the number of the rest.
pub(super) fn paint(view: &View, size: Size, colour: bool, now: Timestamp) -> Vec<Line> {
    let waiting: Vec<&Row> = view.rows.iter().filter(|row| row.state.is_on_its_way()).collect();
    let names = waiting.iter().map(|row| columns(&row.name)).max().unwrap_or(0);
    let names = names.min(LONGEST_NAME).min(size.width / 3);
    let mut painted: Vec<Vec<Line>> = Vec::new();
    let mut pasted: Vec<&[String]> = Vec::new();
    for row in &waiting {
        let mut lines = paragraph(row, names, size.width, colour, now);
        // What helps several is said once.
        if !row.paste.is_empty() && !pasted.contains(&&*row.paste) {
            pasted.push(&row.paste);
            let indent = " ".repeat(INDENT);
            lines.extend(row.paste.iter().map(|line| Line::new(format!("{indent}{line}"))));
        }
        painted.push(lines);
    }
    fit(painted, rest(view, colour), size)
}

/// What was told to end, and that it can be hurried.
pub(super) fn ending(pods: usize, is_terminal: bool) -> Vec<Line> {
    let again = if is_terminal { "Ctrl-C" } else { "the same signal" };
    let text = match pods {
        0 => return Vec::new(),
        1 => format!("ending 1 pod; {again} once more ends it at once"),
        many => format!("ending {many} pods; {again} once more ends them at once"),
    };
    vec![Line::new(text)]
}

fn rest(view: &View, colour: bool) -> Option<Line> {
    let counts = [(view.ready(), State::Ready), (view.done(), State::Done)];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let text = counts.map(|(count, state)| format!("{count} {}", state.word()));
    let text = text.collect::<Vec<_>>().join(", ");
    let width = columns(&text);
    (width > 0).then(|| Line { text: tint(&text, "2", colour), width })
}

/// As much as there is room for.
fn fit(painted: Vec<Vec<Line>>, rest: Option<Line>, size: Size) -> Vec<Line> {
    let rows = |lines: &[Line]| lines.iter().map(|line| line.rows(size.width)).sum::<usize>();
    // The cursor is below, and a count of what is left out may be needed.
    let room = size.height.saturating_sub(2 + usize::from(rest.is_some()));
    let (mut shown, mut used) = (Vec::new(), 0);
    let all = painted.len();
    for (at, lines) in painted.into_iter().enumerate() {
        used += rows(&lines);
        if used > room {
            shown.push(Line::new(cut(&format!("... and {} more", all - at), size.width)));
            break;
        }
        shown.extend(lines);
    }
    shown.extend(rest);
    // In a window of next to no rows nothing can be drawn again.
    while !shown.is_empty() && rows(&shown) >= size.height {
        shown.pop();
    }
    shown
}

fn paragraph(row: &Row, names: usize, width: usize, colour: bool, now: Timestamp) -> Vec<Line> {
    let code = match row.state {
        State::Failed | State::Stuck => "31",
        State::Starting => "33",
        State::Ending | State::Ready | State::Done => "2",
    };
    let name = cut(&row.name, names);
    let pad = " ".repeat(names.saturating_sub(columns(&name)));
    let word = tint(&format!("{:<6}", row.state.word()), code, colour);
    let ready = match row.pods {
        0 => String::new(),
        pods => format!("{}/{pods}", row.ready),
    };
    let head = format!("{name}{pad}  {word}  {ready:>5}  {:>5}", age(row.since, now));
    // The word has six, and two each stand between.
    let taken = names + 2 + 6 + 2 + ready.len().max(5) + 2 + age(row.since, now).len().max(5);
    if row.text.is_empty() {
        return vec![Line { text: head, width: taken }];
    }
    if taken + 2 + NARROW > width {
        let texts = wrap(&row.text, width.saturating_sub(INDENT).max(1));
        let texts = texts.iter().map(|text| Line::new(format!("{}{text}", " ".repeat(INDENT))));
        return std::iter::once(Line { text: head, width: taken }).chain(texts).collect();
    }
    let texts = wrap(&row.text, width - taken - 2);
    let lines = texts.into_iter().enumerate().map(|(at, text)| {
        let width = taken + 2 + columns(&text);
        let before = if at == 0 { head.clone() } else { " ".repeat(taken) };
        Line { text: format!("{before}  {text}"), width }
    });
    lines.collect()
}

/// At blanks where there are some; what is too long ends in dots.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if lines.len() + 1 == MOST_ROWS || columns(rest) <= width {
            lines.push(cut(rest, width));
            break;
        }
        let most = prefix(rest, width).len().max(rest.chars().next().map_or(1, char::len_utf8));
        let blank = rest[..most].rfind(' ').filter(|at| *at > 0);
        let at = if rest[most..].starts_with(' ') { most } else { blank.unwrap_or(most) };
        lines.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start();
    }
    lines
}

fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let dots = "...".get(..width.min(3)).unwrap_or_default();
    format!("{}{dots}", prefix(text, width - dots.len()))
}

/// The longest one that has no more columns.
fn prefix(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return &text[..at];
        }
    }
    text
}

fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

fn tint(text: &str, code: &str, colour: bool) -> String {
    if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match (seconds, seconds / 60, seconds / 3600) {
        (..120, _, _) => format!("{seconds}s"),
        (_, minutes @ ..10, _) => format!("{minutes}m{}s", seconds % 60),
        (_, minutes @ ..120, _) => format!("{minutes}m"),
        (_, _, hours @ ..48) => format!("{hours}h"),
        (_, _, hours) => format!("{}d", hours / 24),
    }
}

#[cfg(test)]
mod tests;
