//! Whether a configuration is of its type.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::Value;

use super::{
    element::Element,
    walk::{Fields, List, Shape},
};
use crate::types::{Scalar, Typed};

/// All that is wrong, as Kubernetes tells it.
pub(super) fn check(typed: Typed<'_>, value: &Value) -> Result<(), String> {
    let mut problems = Vec::new();
    one(typed, value, &mut String::new(), &mut problems);
    match problems.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("errors:\n  {}", several.join("\n  "))),
    }
}

fn one(typed: Typed<'_>, value: &Value, path: &mut String, problems: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    let problem = match (Shape::of(typed, Some(value)), value) {
        (Shape::Scalar(scalar), _) => wrong_scalar(scalar, value),
        (Shape::List(list), Value::Array(items)) => {
            items_of(list, items, path, problems);
            None
        }
        (Shape::List(_), _) => Some(format!("expected list, got &{{{}}}", plain(value))),
        (Shape::Map(fields), Value::Object(_)) => {
            fields_of(fields, value, path, problems);
            None
        }
        (Shape::Map(_), _) => Some(format!("expected map, got &{{{}}}", plain(value))),
    };
    problems.extend(problem.map(|problem| at(path, &problem)));
}

fn at(path: &str, problem: &str) -> String {
    if path.is_empty() { problem.to_owned() } else { format!("{path}: {problem}") }
}

fn fields_of(fields: Fields<'_>, value: &Value, path: &mut String, problems: &mut Vec<String>) {
    let length = path.len();
    for (name, child) in value.as_object().into_iter().flatten() {
        path.push('.');
        path.push_str(name);
        let typed = fields.child(name);
        match typed {
            Some(typed) => one(typed, child, path, problems),
            None => problems.push(format!("{path}: field not declared in schema")),
        }
        path.truncate(length);
        if typed.is_none() {
            return;
        }
    }
}

fn items_of(list: List<'_>, items: &[Value], path: &mut String, problems: &mut Vec<String>) {
    let length = path.len();
    let mut seen: BTreeSet<Element> = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let element = if list.is_atomic() {
            Element::Index(index as i64)
        } else {
            match list.element(item) {
                Ok(element) => element,
                Err(problem) => {
                    problems.push(at(path, &format!("element {index}: {problem}")));
                    return;
                }
            }
        };
        if seen.contains(&element) {
            problems.push(at(path, &format!("duplicate entries for key {element}")));
        }
        // Writing to a string cannot fail.
        let _ = write!(path, "{element}");
        one(list.items, item, path, problems);
        path.truncate(length);
        seen.insert(element);
    }
}

fn wrong_scalar(scalar: Scalar, value: &Value) -> Option<String> {
    let is_scalar = value.is_number() || value.is_string() || value.is_boolean();
    match scalar {
        Scalar::Integer | Scalar::Number if !value.is_number() => {
            let kind = match value {
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                Value::Array(_) => "[]interface {}",
                _ => "map[string]interface {}",
            };
            Some(format!("expected numeric (int or float), got {kind}"))
        }
        Scalar::String | Scalar::Time | Scalar::MicroTime | Scalar::Bytes if !value.is_string() => {
            let value = literal(value);
            Some(format!("expected string, got &value.valueUnstructured{{Value:{value}}}"))
        }
        Scalar::Boolean if !value.is_boolean() => {
            Some(format!("expected boolean, got &{{{}}}", plain(value)))
        }
        Scalar::Quantity | Scalar::IntOrString | Scalar::Untyped if !is_scalar => {
            Some(format!("expected any scalar, got &{{{}}}", plain(value)))
        }
        _ => None,
    }
}

/// As Go prints a value with `%v`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// As Go prints a value with `%#v`.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let mut text = String::from("map[string]interface {}{");
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            for (index, (name, value)) in fields.iter().enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                // Writing to a string cannot fail.
                let _ = write!(text, "{comma}{name:?}:{}", literal(value));
            }
            text.push('}');
            text
        }
        scalar => scalar.to_string(),
    }
}
