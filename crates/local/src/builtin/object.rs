//! Short ways through parsed objects. Nothing here assumes a shape: what is not there, or is of
//! another type, reads as absent.

use serde_json::{Map, Value};

static NO_ITEMS: Vec<Value> = Vec::new();

/// The value at this path; null counts as absent.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| value.get(name)).filter(|value| !value.is_null())
}

pub(crate) fn has(value: &Value, name: &str) -> bool {
    at(value, &[name]).is_some()
}

/// The text at this path, empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn integer(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

pub(crate) fn truth(value: &Value, path: &[&str]) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or_default()
}

/// The items at this path, none if it is no list.
pub(crate) fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).unwrap_or(&NO_ITEMS)
}

/// Keys and values at this path, none if it is no map.
pub(crate) fn entries<'a>(
    value: &'a Value,
    path: &[&str],
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    at(value, path).and_then(Value::as_object).into_iter().flatten()
}

/// The map at this path, made if it is absent; none if something else stands in the way.
pub(crate) fn map_mut<'a>(
    value: &'a mut Value,
    path: &[&str],
) -> Option<&'a mut Map<String, Value>> {
    let mut map = value.as_object_mut()?;
    for name in path {
        let child = map.entry(*name).or_insert(Value::Null);
        if child.is_null() {
            *child = Value::Object(Map::new());
        }
        map = child.as_object_mut()?;
    }
    Some(map)
}

/// The value at this path for change, if it is there.
pub(crate) fn at_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, name| value.get_mut(name)).filter(|value| !value.is_null())
}

pub(crate) fn items_mut<'a>(
    value: &'a mut Value,
    path: &[&str],
) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    at_mut(value, path).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Sets the field if it is absent, null or an empty text; that is what most Go defaults look at.
pub(crate) fn fill(value: &mut Value, name: &str, default: impl Into<Value>) {
    let Some(map) = value.as_object_mut() else { return };
    let empty = match map.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if empty {
        map.insert(name.to_owned(), default.into());
    }
}

/// As [`fill`], for numbers of which zero means absent.
pub(crate) fn fill_zero(value: &mut Value, name: &str, default: impl Into<Value>) {
    if integer(value, &[name]) == Some(0)
        && let Some(map) = value.as_object_mut()
    {
        map.remove(name);
    }
    fill(value, name, default);
}
