//! The scale of a custom object: three paths into it.

use serde_json::{Map, Value, json};

use super::{causes, path::Path, schema::text};
use crate::error::Cause;

/// Where replicas and selector are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

impl ScalePaths {
    /// Of the built-in kinds that have a scale. Their selector is no text.
    pub fn builtin() -> Self {
        Self {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            label_selector: None,
        }
    }

    pub(super) fn read(scale: &Value) -> Self {
        let path = |name| text(scale, name).unwrap_or_default().to_owned();
        Self {
            spec_replicas: path("specReplicasPath"),
            status_replicas: path("statusReplicasPath"),
            label_selector: Some(path("labelSelectorPath")).filter(|path| !path.is_empty()),
        }
    }

    /// The object `autoscaling/v1 Scale`.
    pub fn of(&self, object: &Value) -> Value {
        let metadata: Map<String, Value> =
            ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]
                .into_iter()
                .filter_map(|name| {
                    Some((name.to_owned(), object.get("metadata")?.get(name)?.clone()))
                })
                .collect();
        let count = |path: &str| find(object, path).and_then(Value::as_i64).unwrap_or_default();
        let mut spec = Map::new();
        // As Go prints it: zero replicas wanted are not written.
        if count(&self.spec_replicas) != 0 {
            spec.insert("replicas".to_owned(), json!(count(&self.spec_replicas)));
        }
        let mut status = Map::new();
        status.insert("replicas".to_owned(), json!(count(&self.status_replicas)));
        let selector = self.label_selector.as_deref().and_then(|path| find(object, path)?.as_str());
        if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
            status.insert("selector".to_owned(), json!(selector));
        }
        json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        })
    }

    /// The wanted number, if the object has one.
    pub fn wanted(&self, object: &Value) -> Option<i64> {
        find(object, &self.spec_replicas)?.as_i64()
    }

    /// Writes the wanted number into the object.
    pub fn set(&self, object: &mut Value, replicas: i64) {
        let mut place = object;
        for name in names(&self.spec_replicas) {
            if !place.is_object() {
                *place = json!({});
            }
            let Some(fields) = place.as_object_mut() else { return };
            place = fields.entry(name).or_insert(Value::Null);
        }
        *place = json!(replicas);
    }

    /// The field that `/scale` writes, as names from the root.
    pub fn spec_path(&self) -> Vec<String> {
        names(&self.spec_replicas).map(str::to_owned).collect()
    }

    pub(super) fn check_spec(&self, object: &Value, causes: &mut Vec<Cause>) {
        check_count(object, &self.spec_replicas, causes);
    }

    pub(super) fn check_status(&self, object: &Value, causes: &mut Vec<Cause>) {
        check_count(object, &self.status_replicas, causes);
        let Some(path) = &self.label_selector else { return };
        let found = read(object, path, "string", |value| value.is_string().then_some(()));
        if let Err(detail) = found {
            causes.push(causes::invalid(&Path::Text(path), &json!(""), &detail));
        }
    }
}

fn check_count(object: &Value, path: &str, causes: &mut Vec<Cause>) {
    let at = Path::Text(path);
    let count = match read(object, path, "int64", Value::as_i64) {
        Err(detail) => return causes.push(causes::invalid(&at, &json!(0), &detail)),
        Ok(count) => count.unwrap_or_default(),
    };
    if count < 0 {
        let detail = "should be a non-negative integer";
        causes.push(causes::invalid(&at, &json!(count), detail));
    } else if count > i64::from(i32::MAX) {
        let detail = format!("should be less than or equal to {}", i32::MAX);
        causes.push(causes::invalid(&at, &json!(count), &detail));
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.trim_start_matches('.').split('.').filter(|name| !name.is_empty())
}

fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    names(path).try_fold(object, |value, name| value.get(name))
}

/// What may be absent but not of another type, which is refused in Go's words.
fn read<T>(
    object: &Value,
    path: &str,
    wanted: &str,
    as_wanted: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>, String> {
    let mut value = object;
    let mut passed = String::new();
    for name in names(path) {
        passed = format!("{passed}.{name}");
        if value.is_null() {
            return Ok(None);
        }
        if !value.is_object() {
            return Err(format!(
                "{passed} accessor error: {} is of the type {}, expected map[string]interface{{}}",
                shown(value),
                go_type(value)
            ));
        }
        match value.get(name) {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    as_wanted(value).map(Some).ok_or_else(|| {
        let (shown, kind) = (shown(value), go_type(value));
        format!("{passed} accessor error: {shown} is of the type {kind}, expected {wanted}")
    })
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
