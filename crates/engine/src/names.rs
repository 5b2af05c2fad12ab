//! Names that users, dashboards and other controllers see, and the rules for deriving new ones.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Prefix of labels and annotations that always travel from an object to its children.
pub const LABEL_DOMAIN: &str = "aim.eai.amd.com";

/// Either one, with exactly the value `true`, stops an object from being reconciled.
pub const PAUSE_ANNOTATIONS: [&str; 2] =
    ["aim.eai.amd.com/reconciliation-paused", "windlass.dev/paused"];

pub const DEFAULT_RUNTIME_CONFIG: &str = "default";

/// Environment variable whose values, JSON objects, are merged instead of replaced.
pub const ENGINE_ARGS_ENV: &str = "AIM_ENGINE_ARGS";

pub const SYSTEM_NAMESPACE_ENV: &str = "AIM_SYSTEM_NAMESPACE";
pub const DEFAULT_SYSTEM_NAMESPACE: &str = "aim-system";

/// How long an unreachable dependency leaves the last known state alone.
pub const INFRASTRUCTURE_GRACE: Duration = Duration::from_secs(10);

/// A component's condition type is its name plus this.
pub const COMPONENT_SUFFIX: &str = "Ready";

/// Longest DNS label, and longest label value.
pub const MAX_LABEL: usize = 63;

/// Digits of the hash that makes a shortened name unique.
const SHORT_HASH: usize = 8;

/// Field manager, event source and `managed-by` value of a controller.
pub fn full_controller_name(controller: &str) -> String {
    format!("aim-{controller}-controller")
}

/// Label on every child that names its owner.
pub fn owner_name_label(controller: &str) -> String {
    format!("{LABEL_DOMAIN}/{controller}.name")
}

pub fn is_paused(annotations: Option<&BTreeMap<String, String>>) -> bool {
    let is_set = |annotations: &BTreeMap<String, String>| {
        PAUSE_ANNOTATIONS.iter().any(|key| annotations.get(*key).is_some_and(|v| v == "true"))
    };
    annotations.is_some_and(is_set)
}

/// A DNS label. A text that is none already, or is over 63 bytes, ends in a hash of the whole, so
/// no two names meet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsLabel(String);

impl DnsLabel {
    pub fn new(text: &str) -> Self {
        let mut label = dns_part(text);
        if label != text {
            label.truncate(MAX_LABEL - SHORT_HASH - 1);
            trim_end(&mut label, "-");
            label = format!("{label}-{}", hash(text, SHORT_HASH));
        }
        Self(label)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DnsLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<DnsLabel> for String {
    fn from(label: DnsLabel) -> Self {
        label.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameOptions {
    /// Hex digits of the hash; none leaves it out.
    pub hash_len: usize,
    /// From 1 to 63.
    pub max_len: usize,
}

impl Default for NameOptions {
    fn default() -> Self {
        Self { hash_len: SHORT_HASH, max_len: MAX_LABEL }
    }
}

/// A name made of readable parts and a hash of whatever makes it unique.
///
/// The longest part gives way first. Fails without parts, with an impossible limit, and when even
/// one character of each part does not fit.
pub fn derived_name(
    parts: &[&str],
    hash_inputs: &[Value],
    options: NameOptions,
) -> Result<String, Error> {
    if parts.is_empty() {
        return Err(invalid_name("a derived name needs at least one part"));
    }
    if !(1..=MAX_LABEL).contains(&options.max_len) {
        let text = format!("a name may have 1 to {MAX_LABEL} characters, not {}", options.max_len);
        return Err(invalid_name(text));
    }
    let mut parts: Vec<String> = parts.iter().map(|part| dns_part(part)).collect();
    let suffix = hash_suffix(hash_inputs, options.hash_len);
    while joined_len(&parts) + suffix.len() > options.max_len {
        let longest = parts.iter().map(String::len).max().unwrap_or_default();
        let Some(part) = parts.iter_mut().find(|part| part.len() == longest && longest > 1) else {
            let text = format!("{} parts do not fit {} bytes", parts.len(), options.max_len);
            return Err(invalid_name(text));
        };
        part.pop();
        trim_end(part, "-");
    }
    Ok(parts.join("-") + &suffix)
}

/// A text as a label value in lower case; fails when nothing of it may stand in one.
pub fn label_value(text: &str) -> Result<String, Error> {
    let lower: String = text.chars().flat_map(char::to_lowercase).collect();
    cased_label_value(&lower)
        .ok_or_else(|| Error::invalid_spec("InvalidLabel", format!("{text:?} is no label value")))
}

/// The same with upper case kept; `None` when nothing is left.
pub fn cased_label_value(text: &str) -> Option<String> {
    let mut value = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
            value.push(c);
        } else if !value.ends_with(REPLACED) {
            value.push(REPLACED);
        }
    }
    // A run of foreign characters is one underscore, the user's own underscores all stay.
    let mut value = value.replace(REPLACED, "_").trim_matches(['_', '.', '-']).to_owned();
    value.truncate(MAX_LABEL);
    trim_end(&mut value, "_.-");
    (!value.is_empty()).then_some(value)
}

/// Marks a replaced run until the text is complete; no label holds it.
const REPLACED: char = '\0';

/// The first digits of the SHA-256 of a text, in hex.
pub fn hash(text: &str, digits: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.truncate(digits);
    hex
}

/// Lower case, foreign characters as dashes, no dash at either end, never empty.
pub(crate) fn dns_part(text: &str) -> String {
    let mut part: String = text
        .chars()
        .flat_map(char::to_lowercase)
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    part = part.trim_matches('-').to_owned();
    part.truncate(MAX_LABEL);
    trim_end(&mut part, "-");
    if part.is_empty() { "part".to_owned() } else { part }
}

fn joined_len(parts: &[String]) -> usize {
    parts.iter().map(String::len).sum::<usize>() + parts.len() - 1
}

fn hash_suffix(inputs: &[Value], digits: usize) -> String {
    if inputs.is_empty() || digits == 0 {
        return String::new();
    }
    let texts: Vec<String> = inputs.iter().map(|input| flatten(input).to_string()).collect();
    format!("-{}", hash(&texts.join("|"), digits))
}

/// Maps as arrays of key, value, key, value, in key order: what the hash has always been made of.
fn flatten(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut sorted: Vec<_> = map.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            let pairs = sorted.into_iter();
            pairs.flat_map(|(key, value)| [Value::from(key.as_str()), flatten(value)]).collect()
        }
        Value::Array(items) => items.iter().map(flatten).collect(),
        other => other.clone(),
    }
}

fn trim_end(text: &mut String, marks: &str) {
    text.truncate(text.trim_end_matches(|c| marks.contains(c)).len());
}

fn invalid_name(message: impl Into<String>) -> Error {
    Error::invalid_spec("InvalidName", message)
}
