//! Answers without what two servers may differ in: uids, times, resourceVersions, tokens.
//!
//! Uids, the resourceVersions of objects, and names that a server makes up become numbers in the
//! order in which a case meets them, so that "unchanged" on one server and "changed" on the other
//! still shows. So do times where both servers take each step in the same second.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    case::{Compare, Step},
    expect::{are_conflicts, brief, causes_of, sort},
    run::{Answer, Record},
};

/// What is compared of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Normal {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
    pub(crate) events: Vec<Value>,
}

/// The answers of a case, ready to be compared with those of another server.
pub(crate) fn normalise(records: &[Record]) -> Vec<Normal> {
    let mut seen = Seen::default();
    // First all of them: messages tell of names before the objects are read.
    for Record { answer, .. } in records {
        answer.events.iter().chain([&answer.body]).for_each(|value| seen.learn(value));
    }
    let normal = |record: &Record| seen.normal(&record.step, &record.answer);
    records.iter().map(normal).collect()
}

/// Where two answers part, in words; the first is the real server's.
pub(crate) fn difference(one: &Normal, other: &Normal) -> String {
    let mut places = Vec::new();
    let heads = [one, other].map(|answer| serde_json::json!([answer.code, answer.warnings]));
    differ("head", &heads[0], &heads[1], &mut places);
    differ("", &one.body, &other.body, &mut places);
    let events = [one, other].map(|answer| Value::Array(answer.events.clone()));
    differ("events", &events[0], &events[1], &mut places);
    places.join("; ")
}

pub(crate) fn differ(path: &str, one: &Value, other: &Value, places: &mut Vec<String>) {
    match (one, other) {
        (one, other) if one == other => {}
        (Value::Object(one), Value::Object(other)) => {
            for key in one.keys().chain(other.keys().filter(|key| !one.contains_key(*key))) {
                let (one, other) = (one.get(key), other.get(key));
                let [one, other] = [one, other].map(|value| value.unwrap_or(&Value::Null));
                differ(&format!("{path}/{key}"), one, other, places);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differ(&format!("{path}/{index}"), one, other, places);
            }
        }
        (one, other) => places.push(format!("{path}: {} against {}", brief(one), brief(other))),
    }
}

#[derive(Default)]
pub(crate) struct Seen {
    /// None: the two servers take a step at times of their own.
    times: Option<HashMap<String, usize>>,
    uids: HashMap<String, usize>,
    versions: HashMap<String, usize>,
    /// What stands for the random ends of names and the hashes of templates.
    made: Vec<(String, String)>,
}

impl Seen {
    /// For servers that take each step in the same second.
    pub(crate) fn in_step() -> Self {
        Self { times: Some(HashMap::new()), ..Self::default() }
    }

    fn normal(&mut self, step: &Step, answer: &Answer) -> Normal {
        // Then each answer is compared with what is wanted of that server.
        let alike = step.here.is_none();
        let whole = alike && step.compare == Compare::Whole;
        let mut body = Value::Null;
        let mut warnings = Vec::new();
        let mut events = Vec::new();
        if whole {
            body = self.value(&answer.body);
            loosen(&mut body, step);
            events = answer.events.iter().map(|event| self.value(event)).collect();
            loosen_events(&mut events, step);
            warnings.clone_from(&answer.warnings);
        }
        Normal { code: if alike { answer.code } else { 0 }, warnings, body, events }
    }

    /// Takes note of the names that a server made up.
    fn learn(&mut self, value: &Value) {
        if let Some(hash) = value.get("pod-template-hash").and_then(Value::as_str) {
            self.make(hash, "hash");
        }
        let [base, name] = ["generateName", "name"].map(|key| value.get(key)?.as_str());
        if let Some(end) = base.zip(name).and_then(|(base, name)| name.strip_prefix(base)) {
            self.make(end, "end");
        }
        match value {
            Value::Object(map) => map.values().for_each(|value| self.learn(value)),
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }

    fn make(&mut self, text: &str, what: &str) {
        if !self.made.iter().any(|(known, _)| known == text) {
            let name = format!("<{what} {}>", self.made.len());
            self.made.push((text.to_owned(), name));
        }
    }

    pub(crate) fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(self.map(map)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::String(text) => Value::String(self.text(text)),
            other => other.clone(),
        }
    }

    fn map(&mut self, map: &Map<String, Value>) -> Map<String, Value> {
        let is_object = map.contains_key("uid");
        let mut normal = Map::new();
        for (key, value) in map {
            let value = match (key.as_str(), value) {
                ("annotations" | "f:annotations", Value::Object(all)) if is_trigger_alone(all) => {
                    continue;
                }
                // Lists of custom objects print it.
                ("continue", Value::String(token)) if token.is_empty() => continue,
                ("resourceVersion", Value::String(version)) => {
                    Value::String(self.version(version, is_object))
                }
                ("continue", Value::String(_)) => "<token>".into(),
                ("managedFields", Value::Array(entries)) => self.entries(entries),
                ("clusterIP" | "clusterIPs", value) if !is_headless(value) => "<address>".into(),
                (_, value) => self.value(value),
            };
            // Owner references are known by their uids.
            normal.insert(self.text(key), value);
        }
        normal
    }

    /// Kubernetes orders entries by operation, time and the rest. Where the times are each server's
    /// own, so is the order: it must be the one that they give, and beyond that it is not compared.
    fn entries(&mut self, entries: &[Value]) -> Value {
        let mut normal: Vec<Value> = entries.iter().map(|entry| self.value(entry)).collect();
        if self.times.is_some() {
            return Value::Array(normal);
        }
        if !entries.is_sorted_by_key(|entry| order(entry, true)) {
            normal.insert(0, "not in the order of operation, time, manager, version".into());
            return Value::Array(normal);
        }
        normal.sort_by_cached_key(|entry| order(entry, false));
        Value::Array(normal)
    }

    /// Those of lists and bookmarks depend on what else the server does.
    fn version(&mut self, version: &str, is_object: bool) -> String {
        if !is_object {
            return "<version>".to_owned();
        }
        let next = self.versions.len();
        let number = *self.versions.entry(version.to_owned()).or_insert(next);
        format!("<version {number}>")
    }

    fn text(&mut self, text: &str) -> String {
        if text.parse::<jiff::Timestamp>().is_ok() {
            let Some(times) = &mut self.times else { return "<time>".to_owned() };
            let next = times.len();
            return format!("<time {}>", times.entry(text.to_owned()).or_insert(next));
        }
        let mut normal = String::new();
        let mut rest = text;
        while let Some(start) = find_uid(rest) {
            let (before, after) = rest.split_at(start);
            let (uid, after) = after.split_at(UID.len());
            let next = self.uids.len();
            let number = *self.uids.entry(uid.to_owned()).or_insert(next);
            normal.push_str(before);
            normal.push_str(&format!("<uid {number}>"));
            rest = after;
        }
        let normal = normal + rest;
        self.made.iter().fold(normal, |text, (made, name)| text.replace(made, name))
    }
}

/// By what entries of managedFields are sorted. Times have one format, in which text sorts as time, and
/// those that are absent come first.
fn order(entry: &Value, with_time: bool) -> [String; 5] {
    let part = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let time = if with_time { part("time") } else { String::new() };
    [part("operation"), time, part("manager"), part("apiVersion"), part("subresource")]
}

/// A time by which Kubernetes measures its own delay; it is there or not by what came together.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const UID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

fn find_uid(text: &str) -> Option<usize> {
    let fits = |(pattern, byte): (u8, u8)| match pattern {
        b'x' => byte.is_ascii_hexdigit(),
        other => byte == other,
    };
    let is_uid = |window: &[u8]| UID.bytes().zip(window.iter().copied()).all(fits);
    text.as_bytes().windows(UID.len()).position(is_uid)
}

fn is_trigger_alone(annotations: &Map<String, Value>) -> bool {
    let is_trigger = |key: &String| key.strip_prefix("f:").unwrap_or(key) == TRIGGER;
    annotations.keys().any(is_trigger)
        && annotations.keys().all(|key| key == "." || is_trigger(key))
}

fn is_headless(value: &Value) -> bool {
    value == "None" || value[0] == "None"
}

/// A text that was matched with `…`, or whose wording was not asked for, is not compared again.
fn loosen(body: &mut Value, step: &Step) {
    let want = &step.want;
    if let Some(pattern) = want.message.as_ref().filter(|pattern| pattern.contains('…')) {
        replace(body.pointer_mut("/message"), pattern);
    }
    if let Some(pattern) = want.text.as_ref().filter(|pattern| pattern.contains('…')) {
        *body = Value::String(pattern.clone());
    }
    let mut once = causes_of(body);
    let any_order = want.any_order || are_conflicts(&once);
    if any_order {
        sort(&mut once);
    }
    let mut wanted = want.causes.clone().unwrap_or_default();
    if any_order {
        wanted.sort_by_key(|cause| [cause.get(1).cloned(), cause.first().cloned()]);
    }
    for (wanted, seen) in wanted.iter().zip(&mut once) {
        if wanted.get(2).is_none_or(|message| message.contains('…')) {
            replace(seen.pointer_mut("/message"), "…");
        }
    }
    if let Some(causes) = body.pointer_mut("/details/causes") {
        *causes = Value::Array(once);
    }
}

fn loosen_events(events: &mut [Value], step: &Step) {
    for (wanted, seen) in step.want.events.iter().zip(events) {
        let pattern = wanted["object"]["message"].as_str().filter(|text| text.contains('…'));
        if let Some(pattern) = pattern {
            replace(seen.pointer_mut("/object/message"), pattern);
        }
    }
}

fn replace(text: Option<&mut Value>, pattern: &str) {
    if let Some(text) = text {
        *text = Value::String(pattern.to_owned());
    }
}

#[test]
fn owners_in_another_order_than_their_times_give_are_seen() {
    let entry = |manager: &str, second: u8| {
        let time = format!("2026-01-01T00:00:0{second}Z");
        serde_json::json!({ "manager": manager, "operation": "Update", "time": time })
    };
    let normal = |mut seen: Seen, entries: [Value; 2]| {
        seen.value(&serde_json::json!({ "managedFields": entries }))
    };
    let (early, at_once) = ([entry("b", 1), entry("a", 2)], [entry("a", 1), entry("b", 1)]);
    let wrong = [entry("b", 1), entry("a", 1)];
    // Each server has taken the steps at times of its own.
    let [one, other] = [&early, &at_once].map(|all| normal(Seen::default(), all.clone()));
    assert_eq!(one, other);
    assert_ne!(normal(Seen::default(), wrong), other);
    // Both have taken them in the same seconds.
    let [one, other] = [&early, &at_once].map(|all| normal(Seen::in_step(), all.clone()));
    assert_ne!(one, other);
}
