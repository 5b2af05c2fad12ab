//! What the API server has recorded of somebody's requests.

use std::{fs, path::Path};

use serde_json::Value;

/// A request that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub verb: String,
    pub resource: String,
    pub name: String,
    pub code: i64,
}

/// The writes of a user so far, leases aside.
pub fn writes(log: &Path, user: &str) -> Vec<Write> {
    let text = fs::read_to_string(log).unwrap();
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["stage"] == "ResponseComplete" && event["user"]["username"] == user)
        .filter(|event| {
            ["create", "update", "patch", "delete"].map(Value::from).contains(&event["verb"])
        })
        .filter(|event| event["objectRef"]["resource"] != "leases")
        .map(|event| Write {
            verb: text_of(&event["verb"]),
            resource: match text_of(&event["objectRef"]["subresource"]) {
                sub if sub.is_empty() => text_of(&event["objectRef"]["resource"]),
                sub => format!("{}/{sub}", text_of(&event["objectRef"]["resource"])),
            },
            name: text_of(&event["objectRef"]["name"]),
            code: event["responseStatus"]["code"].as_i64().unwrap_or_default(),
        })
        .collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
