//! Server-side apply and the ownership of fields.
//!
//! Everything here is a function of its arguments; the time is given as text. The rules are those of
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/>.

mod check;
mod compare;
mod element;
mod last_applied;
mod managed;
mod merge;
mod prune;
pub mod scale;
mod set;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::LazyLock;

use serde_json::{Map, Value};

pub(crate) use self::{check::plain as go_text, walk::equal};
use self::{
    compare::Comparison,
    managed::{Entry, Managed, Operation},
};
pub use self::{
    element::{Element, Scalar},
    set::{Path, Set},
};
use crate::types::Typed;

/// One apply: what is there, what is wanted, and who wants it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub live: Option<&'a Value>,
    /// The `managedFields` of the live object, where they were taken out of it: that spares a copy of
    /// all the rest.
    pub owners: Option<&'a Value>,
    pub config: &'a Value,
    pub typed: Typed<'a>,
    pub manager: &'a str,
    pub subresource: Option<&'a str>,
    pub api_version: &'a str,
    pub force: bool,
    /// RFC 3339 in seconds.
    pub time: &'a str,
    pub reset: Reset,
}

/// Any other write, by whom.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    pub typed: Typed<'a>,
    pub manager: &'a str,
    pub subresource: Option<&'a str>,
    pub api_version: &'a str,
    /// RFC 3339 in seconds.
    pub time: &'a str,
    pub reset: Reset,
}

/// Fields that an endpoint does not write, and whose owners it does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Of kinds without a status subresource.
    Nothing,
    /// Of the main endpoint of the others.
    Status,
    /// Of `/status` of custom kinds.
    AllButStatus,
    /// Of `/status` of the others, which writes metadata too, but for these parts.
    Spec { metadata: &'static [&'static str] },
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// In the order in which they are told.
    #[error("{}", conflict_text(.0))]
    Conflicts(Vec<Conflict>),
    /// The object is not of its type; as in `.spec.foo: field not declared in schema`.
    #[error("{0}")]
    Typed(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// As in `conflict with "m3" using apps/v1`, the message of the cause.
    pub message: String,
    /// As in `.spec.replicas`.
    pub field: String,
}

/// Never owned, by anyone.
static UNOWNED: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});
const OWNERS: &str = "/metadata/managedFields";
/// Owns what was there before anyone was asked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The merged object with its `managedFields`, not yet defaulted.
///
/// Fails if the configuration is not of its type or, unless forced, if others own what it changes.
pub fn apply(request: Request<'_>) -> Result<Value, Error> {
    check::check(request.typed, request.config).map_err(Error::Typed)?;
    let owned_inside = request.live.is_some_and(|live| live.pointer(OWNERS).is_some());
    let mut copied = match request.live {
        Some(live) if owned_inside => live.clone(),
        _ => Value::Object(Map::new()),
    };
    let inside = take_managed(&mut copied);
    let live = request.live.filter(|_| !owned_inside).unwrap_or(&copied);
    // Written by this module, hence readable.
    let owners = inside.as_ref().or(request.owners);
    let mut managed = Managed::read(owners).unwrap_or_default();
    if managed.is_empty() && request.live.is_some() {
        let before = Update { manager: BEFORE_FIRST_APPLY, ..request.as_update() };
        before.track(&mut managed, &request.typed.zero(), live);
    }
    if request.manager != last_applied::MANAGER {
        return merged(&request, live, managed, request.force);
    }
    let mut merged = match merged(&request, live, managed.clone(), request.force) {
        Err(Error::Conflicts(conflicts)) => {
            let left = last_applied::not_its_own(&request, live, conflicts);
            if !left.is_empty() {
                return Err(Error::Conflicts(left));
            }
            merged(&request, live, managed, true)?
        }
        result => result?,
    };
    last_applied::refresh(&mut merged, request.config);
    Ok(merged)
}

fn merged(
    request: &Request<'_>,
    live: &Value,
    mut managed: Managed,
    force: bool,
) -> Result<Value, Error> {
    let merged = merge::merge(request.typed, live, request.config);
    let set = walk::set_of(request.typed, request.config);
    let mut own = request.entry(request.reset.filter(set));
    let last = managed.take(&own);
    let pruned = match &last {
        Some(last) => prune::prune(request.typed, merged, &last.set, &own.set, &managed),
        None => merged,
    };

    let change = request.reset.filter_all(Comparison::of(request.typed, live, &pruned));
    if !force {
        let conflicts = conflicts(&managed, &change);
        if !conflicts.is_empty() {
            return Err(Error::Conflicts(conflicts));
        }
    }
    managed.lose(&change);
    own.set.subtract(&UNOWNED);
    // A time tells of a change; an apply that changes nothing has none, or that of the last one.
    own.time = if walk::equal(live, &pruned) {
        last.and_then(|last| last.time)
    } else {
        Some(request.time.to_owned())
    };
    managed.entries.push(own);
    managed.drop_empty();
    let mut object = request.reset.restore(live, pruned);
    put_managed(&mut object, managed);
    Ok(object)
}

/// The object, which is defaulted already, with its `managedFields` after the write.
pub fn update(update: Update<'_>, old: Option<&Value>, mut new: Value) -> Value {
    let given = take_managed(&mut new);
    let mut old = old.cloned();
    let stored = old.as_mut().and_then(take_managed);
    let stored = || Managed::read(stored.as_ref()).unwrap_or_default();
    let mut managed = match Managed::read(given.as_ref()) {
        _ if update.subresource.is_some() => stored(),
        _ if is_reset(given.as_ref()) => Managed::default(),
        Ok(given) if !given.is_empty() => given,
        _ => stored(),
    };
    // Once the entries were reset nothing is recorded until the next apply.
    if !managed.is_empty() || old.is_none() {
        let old = old.unwrap_or_else(|| update.typed.zero());
        update.track(&mut managed, &old, &new);
    }
    put_managed(&mut new, managed);
    new
}

/// Whether a write changes nothing but the times of `managedFields`; it is then not stored.
pub fn same_but_times(old: &Value, new: &Value) -> bool {
    let metadata = match (old.get("metadata"), new.get("metadata")) {
        (Some(old), Some(new)) => {
            let owners = [old, new].map(|metadata| metadata.get("managedFields"));
            same_but(old, new, &["managedFields", "resourceVersion"]) && same_owners(owners)
        }
        (old, new) => old == new,
    };
    metadata && same_but(old, new, &["metadata"])
}

fn same_owners([old, new]: [Option<&Value>; 2]) -> bool {
    match (old.and_then(Value::as_array), new.and_then(Value::as_array)) {
        (Some(old), Some(new)) => {
            let mut pairs = old.iter().zip(new);
            old.len() == new.len() && pairs.all(|(old, new)| same_but(old, new, &["time"]))
        }
        _ => old == new,
    }
}

/// Whether two maps are equal apart from some of their fields; other values as a whole.
fn same_but(one: &Value, other: &Value, but: &[&str]) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return one == other;
    };
    let counted = |name: &&String| !but.contains(&name.as_str());
    one.keys().filter(counted).count() == other.keys().filter(counted).count()
        && one.iter().all(|(name, value)| !counted(&name) || other.get(name) == Some(value))
}

impl<'a> Request<'a> {
    fn as_update(&self) -> Update<'a> {
        Update {
            typed: self.typed,
            manager: self.manager,
            subresource: self.subresource,
            api_version: self.api_version,
            time: self.time,
            reset: self.reset,
        }
    }

    fn entry(&self, set: Set) -> Entry {
        Entry { operation: Operation::Apply, ..self.as_update().entry(set) }
    }
}

impl Update<'_> {
    fn entry(&self, set: Set) -> Entry {
        Entry {
            manager: if self.manager.is_empty() { "unknown" } else { self.manager }.to_owned(),
            operation: Operation::Update,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.map(str::to_owned),
            time: Some(self.time.to_owned()),
            set,
        }
    }

    /// This manager gets what changed, all others lose it.
    fn track(&self, managed: &mut Managed, old: &Value, new: &Value) {
        let change = self.reset.filter_all(Comparison::of(self.typed, old, new));
        managed.lose(&change);
        managed.drop_empty();
        let mut gained = change.modified;
        gained.add(&change.added);
        gained.subtract(&UNOWNED);
        if !gained.is_empty() {
            let mut entry = self.entry(gained);
            if let Some(previous) = managed.take(&entry) {
                entry.set.add(&previous.set);
            }
            managed.entries.push(entry);
        }
        managed.cap();
    }
}

impl Managed {
    fn lose(&mut self, change: &Comparison) {
        for entry in &mut self.entries {
            for changed in [&change.modified, &change.added, &change.removed] {
                entry.set.subtract(changed);
            }
        }
    }
}

impl Reset {
    fn filter(self, mut set: Set) -> Set {
        match self {
            Reset::Nothing => {}
            Reset::Status => set.subtract_trees(&Set::of_fields(&[&["status"]])),
            Reset::AllButStatus => set = set.only_field("status"),
            Reset::Spec { metadata } => {
                let mut kept = Set::of_fields(&[&["spec"]]);
                for name in metadata {
                    kept.insert(&["metadata", name].map(Element::field));
                }
                set.subtract_trees(&kept);
            }
        }
        set
    }

    fn filter_all(self, change: Comparison) -> Comparison {
        if self == Reset::Nothing { change } else { change.map(|set| self.filter(set)) }
    }

    /// The new object with the old values of what the endpoint does not write.
    pub(crate) fn restore(self, live: &Value, mut new: Value) -> Value {
        let Some(fields) = new.as_object_mut() else { return new };
        match self {
            Reset::Nothing => new,
            Reset::Status => {
                put(fields, "status", live.get("status").cloned());
                new
            }
            Reset::AllButStatus => {
                let status = fields.remove("status");
                let mut live = live.clone();
                if let Some(fields) = live.as_object_mut() {
                    put(fields, "status", status);
                }
                live
            }
            Reset::Spec { metadata } => {
                put(fields, "spec", live.get("spec").cloned());
                if let Some(Value::Object(fields)) = fields.get_mut("metadata") {
                    for name in metadata {
                        put(
                            fields,
                            name,
                            live.get("metadata").and_then(|all| all.get(name)).cloned(),
                        );
                    }
                }
                new
            }
        }
    }
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => fields.insert(name.to_owned(), value),
        None => fields.remove(name),
    };
}

fn conflicts(managed: &Managed, change: &Comparison) -> Vec<Conflict> {
    let changed = change.modified.union(&change.added);
    let mut entries: Vec<&Entry> = managed.entries.iter().collect();
    entries.sort_by_key(|entry| entry.identity());
    let mut conflicts = Vec::new();
    for entry in entries {
        let mut message = format!("conflict with {:?}", entry.manager);
        if let Some(subresource) = &entry.subresource {
            message += &format!(" with subresource {subresource:?}");
        }
        if entry.operation == Operation::Update {
            message += &format!(" using {}", entry.api_version);
        }
        for path in entry.set.intersection(&changed).paths() {
            conflicts.push(Conflict { message: message.clone(), field: path.to_string() });
        }
    }
    conflicts
}

fn conflict_text(conflicts: &[Conflict]) -> String {
    if let [Conflict { message, field }] = conflicts {
        return format!("Apply failed with 1 conflict: {message}: {field}");
    }
    let mut lines: Vec<String> = Vec::new();
    let mut current = "";
    for conflict in conflicts {
        if conflict.message != current {
            current = &conflict.message;
            lines.push(format!("{}:", current.replacen("conflict ", "conflicts ", 1)));
        }
        lines.push(format!("- {}", conflict.field));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

fn take_managed(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

fn put_managed(object: &mut Value, managed: Managed) {
    let Some(entries) = managed.write() else { return };
    if let Some(object) = object.as_object_mut() {
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".into(), entries);
        }
    }
}

/// An empty list, or one empty entry, asks to forget all owners.
fn is_reset(given: Option<&Value>) -> bool {
    match given.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.is_empty(),
        _ => false,
    }
}
