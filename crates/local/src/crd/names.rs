//! Which names a definition gets, and what its status says about it.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::schema::{list, text};

/// What a definition is to the names of others.
#[derive(Debug, Deserialize)]
pub struct Taken {
    spec: Group,
    #[serde(default)]
    status: Accepted,
}

#[derive(Debug, Deserialize)]
struct Group {
    group: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accepted {
    #[serde(default)]
    accepted_names: Value,
}

/// The status of a definition among all others, the part of it that naming decides. `time` is when a
/// condition that changes has changed.
pub fn accept_names(crd: &Value, others: &[Taken], time: &str) -> Value {
    let spec = &crd["spec"];
    let used = Used::by(others, text(spec, "group").unwrap_or_default());
    let old = &crd["status"]["acceptedNames"];
    let wanted = &spec["names"];
    let mut accepted = old.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    for (name, reason, taken) in [
        ("plural", "PluralConflict", &used.resources),
        ("singular", "SingularConflict", &used.resources),
        ("shortNames", "ShortNamesConflict", &used.resources),
        ("kind", "KindConflict", &used.kinds),
        ("listKind", "ListKindConflict", &used.kinds),
    ] {
        let clashes: Vec<String> = names_in(wanted, name)
            .into_iter()
            .filter(|wanted| !names_in(old, name).contains(wanted) && taken.contains(*wanted))
            .map(|wanted| format!("{wanted:?} is already in use"))
            .collect();
        match clashes.as_slice() {
            [] => set(&mut accepted, name, wanted.get(name)),
            [one] => conflict = Some((reason, one.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    set(&mut accepted, "categories", wanted.get("categories"));
    for name in ["plural", "kind"] {
        accepted.entry(name).or_insert(json!(""));
    }
    let mut status = crd["status"].as_object().cloned().unwrap_or_default();
    status.insert("conditions".to_owned(), conditions(crd, conflict, time));
    status.insert("acceptedNames".to_owned(), Value::Object(accepted));
    status.insert("storedVersions".to_owned(), stored_versions(crd));
    Value::Object(status)
}

/// Whether the resource is served.
pub fn is_established(crd: &Value) -> bool {
    let mut conditions = list(&crd["status"], "conditions");
    conditions.any(|c| text(c, "type") == Some("Established") && text(c, "status") == Some("True"))
}

/// The status while instances are to be deleted, and while they are being deleted.
pub fn terminating(crd: &Value, begun: bool, time: &str) -> Value {
    let mut status = crd["status"].as_object().cloned().unwrap_or_default();
    let mut conditions: Vec<Value> = list(&crd["status"], "conditions").cloned().collect();
    let reason = match begun {
        false => (
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        ),
        true => ("InstanceDeletionInProgress", "CustomResource deletion is in progress"),
    };
    set_condition(&mut conditions, "Terminating", "True", reason, time);
    status.insert("conditions".to_owned(), Value::Array(conditions));
    Value::Object(status)
}

/// The names that definitions of a group hold.
struct Used<'a> {
    resources: BTreeSet<&'a str>,
    kinds: BTreeSet<&'a str>,
}

impl<'a> Used<'a> {
    fn by(others: &'a [Taken], group: &str) -> Self {
        let mut used = Self { resources: BTreeSet::new(), kinds: BTreeSet::new() };
        for other in others.iter().filter(|other| other.spec.group == group) {
            let names = &other.status.accepted_names;
            for name in ["plural", "singular", "shortNames"] {
                used.resources.extend(names_in(names, name));
            }
            for name in ["kind", "listKind"] {
                used.kinds.extend(names_in(names, name));
            }
        }
        used
    }
}

fn names_in<'a>(names: &'a Value, name: &str) -> Vec<&'a str> {
    match names.get(name) {
        Some(Value::String(one)) if !one.is_empty() => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn set(names: &mut serde_json::Map<String, Value>, name: &str, value: Option<&Value>) {
    match value {
        Some(value) => names.insert(name.to_owned(), value.clone()),
        None => names.remove(name),
    };
}

fn conditions(crd: &Value, conflict: Option<(&str, String)>, time: &str) -> Value {
    let mut conditions: Vec<Value> = list(&crd["status"], "conditions").cloned().collect();
    match &conflict {
        None => {
            let reason = ("NoConflicts", "no conflicts found");
            set_condition(&mut conditions, "NamesAccepted", "True", reason, time);
        }
        Some((reason, message)) => {
            set_condition(&mut conditions, "NamesAccepted", "False", (reason, message), time);
        }
    }
    // What is served stays served, whatever it wants to be called from now on.
    match (is_established(crd), &conflict) {
        (true, _) => {}
        (false, None) => {
            let reason = ("InitialNamesAccepted", "the initial names have been accepted");
            set_condition(&mut conditions, "Established", "True", reason, time);
        }
        (false, Some(_)) => {
            let reason = ("NotAccepted", "not all names are accepted");
            set_condition(&mut conditions, "Established", "False", reason, time);
        }
    }
    Value::Array(conditions)
}

fn set_condition(
    conditions: &mut Vec<Value>,
    kind: &str,
    status: &str,
    (reason, message): (&str, &str),
    time: &str,
) {
    let place = conditions.iter().position(|condition| text(condition, "type") == Some(kind));
    let old = place.and_then(|place| conditions.get(place));
    let same = old.filter(|old| text(old, "status") == Some(status));
    let since = same.and_then(|old| text(old, "lastTransitionTime")).unwrap_or(time);
    let condition = json!({
        "type": kind,
        "status": status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    });
    match place.and_then(|place| conditions.get_mut(place)) {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
}

/// Every version that objects may have been stored in.
fn stored_versions(crd: &Value) -> Value {
    let mut stored: Vec<Value> = list(&crd["status"], "storedVersions").cloned().collect();
    let storage = list(&crd["spec"], "versions").find(|version| version["storage"] == json!(true));
    if let Some(name) = storage.and_then(|version| version.get("name"))
        && !stored.contains(name)
    {
        stored.push(name.clone());
    }
    Value::Array(stored)
}
