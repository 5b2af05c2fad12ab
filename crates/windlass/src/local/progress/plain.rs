//! A line for each change, for what is no terminal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::view::{Row, State, View};

/// What has been said.
#[derive(Debug, Default)]
pub(super) struct Plain {
    rows: BTreeMap<String, Said>,
}

#[derive(Debug, Default)]
struct Said {
    state: Option<State>,
    ready: usize,
    /// The latest since it was ready last, or had another number of ready pods.
    lines: VecDeque<String>,
}

/// So many lines of a row are remembered: what counts its tries says something new for ever.
const REMEMBERED: usize = 32;

impl Said {
    /// Whether it is news. What was said last is forgotten last.
    fn remember(&mut self, line: &str) -> bool {
        let before = self.lines.iter().position(|said| said == line);
        let known = before.and_then(|at| self.lines.remove(at));
        self.lines.push_back(line.to_owned());
        if self.lines.len() > REMEMBERED {
            self.lines.pop_front();
        }
        known.is_none()
    }
}

impl Plain {
    /// What is new.
    pub(super) fn next(&mut self, view: &View) -> Vec<String> {
        let mut lines = Vec::new();
        for row in &view.rows {
            let said = self.rows.entry(row.name.clone()).or_default();
            let is_other = said.ready != row.ready
                || said.state.is_some_and(|state| !state.is_on_its_way())
                    && said.state != Some(row.state);
            if is_other {
                said.lines.clear();
            }
            (said.ready, said.state) = (row.ready, Some(row.state));
            let line = line(row);
            if said.remember(&line) {
                lines.push(line);
                lines.extend(row.paste.iter().map(|line| format!("    {line}")));
            }
        }
        let there: BTreeSet<&String> = view.rows.iter().map(|row| &row.name).collect();
        let is_gone = |name: &String| !there.contains(name);
        lines.extend(
            self.rows.keys().filter(|name| is_gone(name)).map(|name| format!("{name}: gone")),
        );
        self.rows.retain(|name, _| !is_gone(name));
        lines
    }
}

fn line(row: &Row) -> String {
    let Row { name, state, ready, pods, text, .. } = row;
    let mut line = format!("{name}: {}", state.word());
    if *pods > 1 {
        line.push_str(&format!(", {ready} of {pods} ready"));
    }
    if !text.is_empty() {
        line.push_str(&format!(": {text}"));
    }
    line
}

#[cfg(test)]
mod tests;
