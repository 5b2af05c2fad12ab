//! What the API server has recorded of the operator's requests.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
};

use anyhow::{Context, Result};
use serde::Deserialize;

const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// The requests of one user, read off the audit log as it grows.
pub(super) struct Ledger {
    log: PathBuf,
    user: String,
    /// Where the part begins that was not read yet.
    offset: u64,
}

impl Ledger {
    pub(super) fn new(log: PathBuf, user: String) -> Self {
        Self { log, user, offset: 0 }
    }

    /// The requests since the last call. The API server records a request before it answers it, so
    /// none is missed whose answer was seen.
    pub(super) fn read(&mut self) -> Result<Tally> {
        let text = self.rest().with_context(|| format!("cannot read {}", self.log.display()))?;
        // The last line may be half written.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.offset += whole as u64;
        Ok(Tally::of(&text[..whole], &self.user))
    }

    fn rest(&self) -> std::io::Result<String> {
        let mut file = File::open(&self.log)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// Numbers of requests, leases left out: they are written by the clock, not by the work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// By verb and resource, which is empty if it is not about objects.
    counts: BTreeMap<(String, String), u64>,
}

impl Tally {
    pub(super) fn of(log: &str, user: &str) -> Self {
        let mut tally = Self::default();
        // Most lines are of others, and finding text is faster than parsing it.
        for line in log.lines().filter(|line| line.contains(user)) {
            let Ok(entry) = serde_json::from_str::<Entry>(line) else { continue };
            if entry.user.username == user && entry.is_counted() {
                let resource = entry.resource();
                *tally.counts.entry((entry.verb, resource)).or_default() += 1;
            }
        }
        tally
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(super) fn by_verb(&self) -> BTreeMap<&str, u64> {
        let mut by_verb = BTreeMap::new();
        for ((verb, _), count) in &self.counts {
            *by_verb.entry(verb.as_str()).or_default() += count;
        }
        by_verb
    }

    pub(super) fn writes(&self) -> u64 {
        self.of_writes().map(|(_, count)| count).sum()
    }

    /// For people: what was written, how often.
    pub(super) fn describe_writes(&self) -> String {
        let parts = self.of_writes().map(|((verb, what), count)| format!("{verb} {what} {count}"));
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    }

    fn of_writes(&self) -> impl Iterator<Item = (&(String, String), &u64)> {
        self.counts.iter().filter(|((verb, _), _)| WRITES.contains(&verb.as_str()))
    }

    pub(super) fn add(&mut self, other: Self) {
        for (key, count) in other.counts {
            *self.counts.entry(key).or_default() += count;
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    stage: String,
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct ObjectRef {
    resource: Option<String>,
    subresource: Option<String>,
}

impl Entry {
    /// Each request once: a watch when it begins, as its end comes minutes later or never.
    fn is_counted(&self) -> bool {
        let stage = if self.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
        self.stage == stage && self.resource() != "leases"
    }

    fn resource(&self) -> String {
        let part = |part: fn(&ObjectRef) -> &Option<String>| {
            self.object_ref.as_ref().and_then(|object| part(object).as_deref())
        };
        let resource = part(|object| &object.resource).unwrap_or_default();
        match part(|object| &object.subresource) {
            Some(subresource) => format!("{resource}/{subresource}"),
            None => resource.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;

    /// A line as the API server writes it, with what we look at.
    fn line(stage: &str, user: &str, verb: &str, resource: &str) -> String {
        format!(
            r#"{{"kind":"Event","stage":"{stage}","verb":"{verb}","user":{{"username":"{user}"}},"objectRef":{{"resource":"{resource}"}}}}"#
        )
    }

    #[test]
    fn each_request_of_the_user_counts_once() {
        let log = [
            line("ResponseComplete", "op", "patch", "deployments"),
            line("ResponseComplete", "op", "patch", "services"),
            line("ResponseStarted", "op", "watch", "services"),
            line("ResponseComplete", "op", "watch", "services"),
            line("ResponseComplete", "op", "update", "leases"),
            line("ResponseComplete", "op", "create", "events"),
            line("ResponseComplete", "op2", "create", "events"),
            r#"{"stage":"ResponseComplete","verb":"get","user":{"username":"op"}}"#.to_owned(),
            "op, but no JSON".to_owned(),
        ];
        let tally = Tally::of(&log.join("\n"), "op");
        let want = [("create", 1), ("get", 1), ("patch", 2), ("watch", 1)];
        assert_eq!(tally.by_verb(), want.into());
        assert_eq!((tally.total(), tally.writes()), (5, 3));
        let writes = "create events 1, patch deployments 1, patch services 1";
        assert_eq!(tally.describe_writes(), writes);
    }

    #[test]
    fn a_growing_log_is_read_line_by_line() {
        let path = std::env::temp_dir().join(format!("xtask-audit-{}", std::process::id()));
        let entry = line("ResponseComplete", "op", "patch", "services");
        let (begin, end) = entry.split_at(40);
        fs::write(&path, format!("{entry}\n{begin}")).unwrap();
        let mut ledger = Ledger::new(path.clone(), "op".to_owned());
        let first = ledger.read().unwrap().total();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, "{end}").unwrap();
        let second = ledger.read().unwrap().total();
        let third = ledger.read().unwrap().total();
        fs::remove_file(&path).unwrap();
        assert_eq!([first, second, third], [1, 1, 0]);
    }
}
