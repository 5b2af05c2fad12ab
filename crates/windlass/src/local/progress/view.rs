//! All workloads, and what is to be said of each.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};

use super::pod::{Facts, judge};

const HASH: &str = "pod-template-hash";

/// How far something is. The first of several counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// It does not go on by itself.
    Failed,
    /// It is tried again and again, in vain as long as nobody does something.
    Stuck,
    Starting,
    Ending,
    Ready,
    Done,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Stuck => "stuck",
            Self::Starting => "starts",
            Self::Ending => "ends",
            Self::Ready => "ready",
            Self::Done => "done",
        }
    }

    /// There is still something to wait for.
    pub(super) fn is_on_its_way(self) -> bool {
        !matches!(self, Self::Ready | Self::Done)
    }
}

/// What is to be said of one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) state: State,
    /// Why, if there is more to say than the state.
    pub(super) text: String,
    /// Lines for the user to put somewhere, as they are.
    pub(super) paste: Vec<String>,
    pub(super) since: Timestamp,
}

/// A Deployment, a Job or whoever has made the pods, or a pod that nobody has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) state: State,
    /// Of its pods that are to run.
    pub(super) ready: usize,
    pub(super) pods: usize,
    pub(super) text: String,
    pub(super) paste: Vec<String>,
    pub(super) since: Timestamp,
}

/// The most urgent first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct View {
    pub(super) rows: Vec<Row>,
}

impl View {
    pub(super) fn of(facts: &Facts, now: Timestamp) -> Self {
        let mut groups: BTreeMap<(String, String), Vec<Word>> = BTreeMap::new();
        for pod in facts.pods.values() {
            groups.entry(owner(pod)).or_default().push(judge(pod, facts, now));
        }
        let names: Vec<String> = groups.keys().map(|(name, _)| name.clone()).collect();
        let is_shared = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
        let rows = groups.into_iter().filter_map(|((name, kind), words)| {
            // Of two that are called the same it has to be told which one is meant.
            row(if is_shared(&name) { format!("{name} ({kind})") } else { name }, words)
        });
        let mut rows: Vec<Row> = rows.collect();
        rows.sort_by(|a, b| (a.state, &a.name).cmp(&(b.state, &b.name)));
        Self { rows }
    }

    /// How many pods are as they should be.
    pub(super) fn ready(&self) -> usize {
        self.rows.iter().map(|row| row.ready).sum()
    }

    pub(super) fn done(&self) -> usize {
        self.rows.iter().filter(|row| row.state == State::Done).count()
    }
}

fn row(name: String, words: Vec<Word>) -> Option<Row> {
    let runs = |word: &Word| !matches!(word.state, State::Failed | State::Done | State::Ending);
    let is_ready = |word: &&Word| word.state == State::Ready;
    let (ready, pods) =
        (words.iter().filter(is_ready).count(), words.iter().filter(|word| runs(word)).count());
    // Once something runs or has succeeded, what failed before has been made up for.
    let over = |word: &Word| pods > 0 || word.state == State::Done;
    let is_over = words.iter().any(over);
    let left = words.into_iter().filter(|word| !is_over || word.state != State::Failed);
    // One that is done says nothing of those that still run.
    let first = left.min_by_key(|word| (word.state, word.since))?;
    let Word { state, text, paste, since } = first;
    Some(Row { name, state, ready, pods, text, paste, since })
}

/// Name and kind of what a pod belongs to. A ReplicaSet is only the hand of its Deployment.
fn owner(pod: &Pod) -> (String, String) {
    let metadata = &pod.metadata;
    let is_controller = |owner: &&OwnerReference| owner.controller == Some(true);
    let owner = metadata.owner_references.iter().flatten().find(is_controller);
    let own = || (metadata.name.clone().unwrap_or_default(), "Pod".to_owned());
    let (name, kind) = owner.map_or_else(own, |owner| (owner.name.clone(), owner.kind.clone()));
    let hash = metadata.labels.iter().flatten().find(|(key, _)| *key == HASH);
    let bare = hash.and_then(|(_, hash)| name.strip_suffix(hash)?.strip_suffix('-'));
    let (name, kind) = match bare {
        Some(bare) if kind == "ReplicaSet" => (bare.to_owned(), "Deployment".to_owned()),
        _ => (name, kind),
    };
    (format!("{}/{name}", metadata.namespace.as_deref().unwrap_or_default()), kind)
}

#[cfg(test)]
mod tests;
