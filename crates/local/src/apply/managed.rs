//! The entries of `metadata.managedFields`.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::set::Set;

/// More entries of updates than this are merged, the oldest first.
const MOST_UPDATES: usize = 10;
const ANCIENT: &str = "ancient-changes";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// What one manager owns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: Option<String>,
    pub(super) time: Option<String>,
    pub(super) set: Set,
}

/// All entries of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Managed {
    pub(super) entries: Vec<Entry>,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

impl Entry {
    fn read(entry: &Value) -> Result<Entry, String> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let some = |key: &str| Some(text(key)).filter(|text| !text.is_empty()).map(str::to_owned);
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".into()),
        };
        if text("fieldsType") != "FieldsV1" {
            return Err(format!("invalid fieldsType {:?}", text("fieldsType")));
        }
        Ok(Entry {
            manager: text("manager").to_owned(),
            operation,
            api_version: some("apiVersion").ok_or("apiVersion must not be empty")?,
            subresource: some("subresource"),
            time: some("time"),
            set: match entry.get("fieldsV1") {
                None | Some(Value::Null) => Set::default(),
                Some(fields) => Set::read(fields)?,
            },
        })
    }

    fn write(&self) -> Value {
        let mut entry = Map::new();
        let mut put = |key: &str, value: Value| entry.insert(key.into(), value);
        put("apiVersion", json!(self.api_version));
        put("fieldsType", json!("FieldsV1"));
        put("fieldsV1", self.set.write());
        if !self.manager.is_empty() {
            put("manager", json!(self.manager));
        }
        put("operation", json!(self.operation.as_str()));
        if let Some(subresource) = &self.subresource {
            put("subresource", json!(subresource));
        }
        if let Some(time) = &self.time {
            put("time", json!(time));
        }
        Value::Object(entry)
    }

    /// Whether two entries are of one manager. One that applies is the same at every version.
    pub(super) fn is_of_same(&self, other: &Entry) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// What tells managers apart, as text; conflicts are told in its order.
    pub(super) fn identity(&self) -> String {
        let mut identity = format!(
            "{{\"manager\":{},\"operation\":\"{}\"",
            json!(self.manager),
            self.operation.as_str()
        );
        if self.operation == Operation::Update {
            identity += &format!(",\"apiVersion\":{}", json!(self.api_version));
        }
        if let Some(subresource) = &self.subresource {
            identity += &format!(",\"subresource\":{}", json!(subresource));
        }
        identity + "}"
    }

    /// Absent times first, and oldest first.
    fn by_age(&self, other: &Entry) -> Ordering {
        // Times have one format, in which text sorts as time.
        self.time.cmp(&other.time)
    }
}

impl Managed {
    /// Fails if an entry is not valid.
    pub(super) fn read(entries: Option<&Value>) -> Result<Managed, String> {
        let entries = entries.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut managed = Managed::default();
        for entry in entries {
            let entry = Entry::read(entry)?;
            // Of two entries of one manager the last one counts.
            managed.entries.retain(|other| !other.is_of_same(&entry));
            managed.entries.push(entry);
        }
        Ok(managed)
    }

    /// The entries in order; `None` if there are none.
    pub(super) fn write(mut self) -> Option<Value> {
        self.entries.sort_by(|a, b| {
            a.operation
                .cmp(&b.operation)
                .then_with(|| a.by_age(b))
                .then_with(|| a.manager.cmp(&b.manager))
                .then_with(|| a.api_version.cmp(&b.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        let entries: Vec<Value> = self.entries.iter().map(Entry::write).collect();
        (!entries.is_empty()).then_some(Value::Array(entries))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What anyone owns.
    pub(super) fn owned(&self) -> Set {
        let mut owned = Set::default();
        for entry in &self.entries {
            owned.add(&entry.set);
        }
        owned
    }

    /// Takes out the entry of the same manager.
    pub(super) fn take(&mut self, like: &Entry) -> Option<Entry> {
        let index = self.entries.iter().position(|entry| entry.is_of_same(like))?;
        Some(self.entries.remove(index))
    }

    pub(super) fn drop_empty(&mut self) {
        self.entries.retain(|entry| !entry.set.is_empty());
    }

    /// Merges the oldest entries of updates, by version, until few enough are left.
    pub(super) fn cap(&mut self) {
        let count = |managed: &Managed| {
            managed.entries.iter().filter(|entry| entry.operation == Operation::Update).count()
        };
        if count(self) <= MOST_UPDATES {
            return;
        }
        self.entries.sort_by(|a, b| {
            let applied = |entry: &Entry| entry.operation == Operation::Apply;
            applied(a)
                .cmp(&applied(b))
                .then_with(|| a.by_age(b))
                .then_with(|| a.identity().cmp(&b.identity()))
        });
        let mut first_of_version: Vec<(String, usize)> = Vec::new();
        let mut index = 0;
        while count(self) > MOST_UPDATES && index < self.entries.len() {
            let version = self.entries[index].api_version.clone();
            let first = first_of_version.iter().find(|(other, _)| *other == version);
            match first.map(|(_, first)| *first) {
                Some(first) => self.bury(index, first),
                None => {
                    first_of_version.push((version, index));
                    index += 1;
                }
            }
        }
    }

    /// Moves an entry into the one that holds ancient changes; if there is none the first becomes it.
    fn bury(&mut self, index: usize, first: usize) {
        let entry = self.entries.remove(index);
        let is_bucket = |other: &Entry| {
            other.manager == ANCIENT
                && other.operation == Operation::Update
                && other.api_version == entry.api_version
                && other.subresource.is_none()
        };
        let bucket = self.entries.iter().position(is_bucket).unwrap_or(first);
        let Some(bucket) = self.entries.get_mut(bucket) else { return };
        ANCIENT.clone_into(&mut bucket.manager);
        bucket.subresource = None;
        bucket.set.add(&entry.set);
        // The younger of the two, for it is what was merged last.
        bucket.time = entry.time;
    }
}
