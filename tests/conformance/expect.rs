//! Whether an answer is what a step wants.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    case::{Names, Want},
    run::Answer,
};

/// What is not as wanted, in words; empty if all is.
pub(crate) fn check(want: &Want, answer: &Answer, names: &Names) -> Vec<String> {
    let mut problems = Vec::new();
    let mut check = Check { names, problems: &mut problems };
    check.head(want, answer);
    check.status(want, &answer.body);
    check.object(want, &answer.body);
    check.events(want, answer);
    problems
}

struct Check<'a> {
    names: &'a Names,
    problems: &'a mut Vec<String>,
}

impl Check<'_> {
    fn head(&mut self, want: &Want, answer: &Answer) {
        if let Some(code) = want.code
            && code != answer.code
        {
            self.problem(format!("code {}, wanted {code}; {}", answer.code, brief(&answer.body)));
        }
        if let Some(warnings) = &want.warnings {
            let wanted = warnings.iter().map(|text| Value::String(text.clone())).collect();
            let seen = answer.warnings.iter().map(|text| Value::String(text.clone())).collect();
            self.compare("warnings", &Value::Array(wanted), Some(&Value::Array(seen)), true);
        }
        for warning in &answer.untold {
            self.problem(format!("no warning {warning}"));
        }
        if let Some(text) = &want.text {
            self.compare("text", &Value::String(text.clone()), Some(&answer.body), true);
        }
    }

    fn status(&mut self, want: &Want, body: &Value) {
        for (field, wanted) in [("reason", &want.reason), ("message", &want.message)] {
            if let Some(wanted) = wanted {
                self.compare(field, &Value::String(wanted.clone()), body.get(field), true);
            }
        }
        if let Some(details) = &want.details {
            let mut seen = body.get("details").cloned().unwrap_or(Value::Null);
            if let Some(seen) = seen.as_object_mut() {
                seen.retain(|key, _| ["name", "group", "kind"].contains(&key.as_str()));
            }
            self.compare("details", details, Some(&seen), true);
        }
        if let Some(causes) = &want.causes {
            let mut causes = causes.clone();
            let mut seen = causes_of(body);
            if want.any_order || are_conflicts(&seen) {
                causes.sort_by_key(|cause| [cause.get(1).cloned(), cause.first().cloned()]);
                sort(&mut seen);
            }
            self.causes(&causes, &seen);
        }
    }

    fn causes(&mut self, wanted: &[Vec<String>], seen: &[Value]) {
        if wanted.len() != seen.len() {
            let seen = brief(&Value::Array(seen.to_vec()));
            self.problem(format!("{} causes wanted, got {seen}", wanted.len()));
            return;
        }
        for (index, (wanted, seen)) in wanted.iter().zip(seen).enumerate() {
            for (part, wanted) in ["reason", "field", "message"].iter().zip(wanted) {
                let path = format!("causes[{index}].{part}");
                self.compare(&path, &Value::String(wanted.clone()), seen.get(part), true);
            }
        }
    }

    fn object(&mut self, want: &Want, body: &Value) {
        if let Some(wanted) = &want.body {
            self.compare("", wanted, Some(body), false);
        }
        for (pointer, wanted) in &want.exact {
            self.compare(pointer, wanted, body.pointer(pointer), true);
        }
        if let Some(owners) = &want.owners {
            let wanted = owners.iter().map(|(name, set)| (name.clone(), set.clone())).collect();
            let seen = Value::Object(owners_of(body));
            self.compare("owners", &Value::Object(wanted), Some(&seen), true);
        }
        if let Some(names) = &want.names {
            let wanted = names.iter().map(|name| Value::String(name.clone())).collect();
            let items = body.get("items").and_then(Value::as_array);
            let seen = items.map(|items| {
                items.iter().map(|item| item["metadata"]["name"].clone()).collect::<Vec<_>>()
            });
            let seen = seen.map_or(Value::Null, Value::Array);
            self.compare("names", &Value::Array(wanted), Some(&seen), true);
        }
    }

    fn events(&mut self, want: &Want, answer: &Answer) {
        for (index, wanted) in want.events.iter().enumerate() {
            self.compare(&format!("events[{index}]"), wanted, answer.events.get(index), false);
        }
        if want.end && !answer.ended {
            self.problem("the stream goes on".to_owned());
        }
        if answer.events.len() > want.events.len() {
            let more = Value::Array(answer.events[want.events.len()..].to_vec());
            self.problem(format!("more events than wanted: {}", brief(&more)));
        }
    }

    /// With `whole`, nothing may be there that is not wanted.
    fn compare(&mut self, path: &str, wanted: &Value, seen: Option<&Value>, whole: bool) {
        match (wanted, seen) {
            (Value::String(text), _) => self.compare_text(path, &self.names.fill(text), seen),
            (Value::Object(wanted), Some(Value::Array(seen))) if wanted.contains_key("$has") => {
                self.compare_members(path, &wanted["$has"], seen);
            }
            (Value::Object(wanted), Some(Value::Object(seen))) => {
                self.compare_maps(path, wanted, seen, whole);
            }
            (Value::Array(items), Some(Value::Array(seen))) if items.len() == seen.len() => {
                for (index, (wanted, seen)) in items.iter().zip(seen).enumerate() {
                    self.compare(&format!("{path}/{index}"), wanted, Some(seen), whole);
                }
            }
            (wanted, Some(seen)) if wanted == seen => {}
            (wanted, seen) => self.differs(path, wanted, seen),
        }
    }

    fn compare_maps(
        &mut self,
        path: &str,
        wanted: &Map<String, Value>,
        seen: &Map<String, Value>,
        whole: bool,
    ) {
        let wanted: BTreeMap<String, &Value> =
            wanted.iter().map(|(key, value)| (self.names.fill(key), value)).collect();
        for (key, value) in &wanted {
            self.compare(&format!("{path}/{key}"), value, seen.get(key), whole);
        }
        if whole {
            for (key, value) in seen.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
                self.problem(format!("{path}/{key}: nothing wanted, got {}", brief(value)));
            }
        }
    }

    /// Each wanted item is somewhere in the list.
    fn compare_members(&mut self, path: &str, wanted: &Value, seen: &[Value]) {
        for wanted in wanted.as_array().map_or(&[][..], Vec::as_slice) {
            let fits = |seen: &Value| {
                let mut problems = Vec::new();
                let mut check = Check { names: self.names, problems: &mut problems };
                check.compare("", wanted, Some(seen), false);
                problems.is_empty()
            };
            if !seen.iter().any(fits) {
                self.differs(path, wanted, Some(&Value::Array(seen.to_vec())));
            }
        }
    }

    fn compare_text(&mut self, path: &str, wanted: &str, seen: Option<&Value>) {
        let text = seen.and_then(Value::as_str);
        let holds = match wanted.split_once(' ') {
            _ if wanted == "$any" => seen.is_some(),
            _ if wanted == "$none" => seen.is_none(),
            Some(("$not", other)) => text.is_some_and(|text| text != other),
            Some(("$above", other)) => number(text) > number(Some(other)),
            _ => text.is_some_and(|text| fits(wanted, text)),
        };
        if !holds {
            self.differs(path, &Value::String(wanted.to_owned()), seen);
        }
    }

    fn differs(&mut self, path: &str, wanted: &Value, seen: Option<&Value>) {
        let seen = seen.map_or("nothing".to_owned(), brief);
        self.problem(format!("{path}: wanted {wanted}, got {seen}"));
    }

    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }
}

/// By field, reason and message.
pub(crate) fn sort(causes: &mut [Value]) {
    let parts = ["field", "reason", "message"];
    causes.sort_by_cached_key(|cause| parts.map(|part| cause[part].to_string()));
}

/// Kubernetes goes through the managers of a conflict in any order.
pub(crate) fn are_conflicts(causes: &[Value]) -> bool {
    causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict")
}

/// Kubernetes runs some checks twice; a cause that is told again is the same cause.
pub(crate) fn causes_of(body: &Value) -> Vec<Value> {
    let causes = body.pointer("/details/causes").and_then(Value::as_array);
    let mut once: Vec<Value> = Vec::new();
    for cause in causes.into_iter().flatten() {
        if !once.contains(cause) {
            once.push(cause.clone());
        }
    }
    once
}

fn number(text: Option<&str>) -> Option<u64> {
    text.and_then(|text| text.parse().ok())
}

/// Whether a text fits a pattern in which `…` stands for any text.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(start) => rest = &rest[start + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// `manager Operation [subresource]` to the fields.
fn owners_of(object: &Value) -> Map<String, Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entries = entries.map_or(&[][..], Vec::as_slice).iter();
    let owner = |entry: &Value| {
        let parts = ["manager", "operation", "subresource"];
        let parts = parts.iter().filter_map(|part| entry[part].as_str());
        (parts.collect::<Vec<_>>().join(" "), entry["fieldsV1"].clone())
    };
    entries.map(owner).collect()
}

/// Enough of a value to see what it is.
pub(crate) fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(3000) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
