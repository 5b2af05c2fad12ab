//! The way from client-side to server-side apply: what kubectl noted in its annotation is its own.

use serde_json::{Map, Value};

use super::{Conflict, Request, compare::Comparison, walk::set_of};

/// Only kubectl reads and writes the annotation.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// All annotations of an object together.
const MOST_BYTES: usize = 256 * 1024;

/// The conflicts about fields that kubectl did not apply before, or that were changed since.
pub(super) fn not_its_own(
    request: &Request<'_>,
    live: &Value,
    conflicts: Vec<Conflict>,
) -> Vec<Conflict> {
    let noted = annotation(live).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(noted) = noted.filter(|noted| {
        noted.get("apiVersion").and_then(Value::as_str) == Some(request.api_version)
    }) else {
        return conflicts;
    };
    let change = Comparison::of(request.typed, &noted, live);
    let own = set_of(request.typed, &noted)
        .difference(&change.modified)
        .difference(&change.added)
        .difference(&change.removed);
    let own: Vec<String> = own.paths().iter().map(ToString::to_string).collect();
    conflicts.into_iter().filter(|conflict| !own.contains(&conflict.field)).collect()
}

/// Writes the configuration into the annotation, if there is one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = annotations_mut(&mut config) {
        annotations.remove(ANNOTATION);
        if annotations.is_empty()
            && let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("annotations");
        }
    }
    let text = format!("{config}\n");
    if let Some(annotations) = annotations_mut(object) {
        if text.len() > MOST_BYTES {
            annotations.remove(ANNOTATION);
        } else {
            annotations.insert(ANNOTATION.into(), Value::String(text));
        }
    }
}

fn annotation(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

fn annotations_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}
