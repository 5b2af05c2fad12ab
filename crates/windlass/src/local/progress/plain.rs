//! A line for each change, for what is no terminal.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Since it was ready last, or had another number of ready pods.
    lines: BTreeSet<String>,
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
            if said.lines.insert(line.clone()) {
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
