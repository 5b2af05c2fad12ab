//! JSON values as CEL sees them through a schema.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use base64::Engine;
use kube_cel::cel::{
    Value as Cel, functions,
    objects::{Key, Map},
};
use serde_json::{Number, Value};

use super::{
    check::Correlated,
    formats::Meaning,
    schema::{Additional, Kind, Schema},
};
use crate::types::ListKind;

pub(super) fn convert(schema: &Schema, value: &Value, root: bool) -> Cel {
    match value {
        Value::Object(fields) => {
            let mut map = HashMap::with_capacity(fields.len());
            let is_map = !matches!(schema.additional, Additional::Nothing);
            for (name, value) in fields {
                let converted = if (root || schema.embedded) && name == "metadata" {
                    names_of(value)
                } else {
                    schema.field(name).map_or_else(|| untyped(value), |s| convert(s, value, false))
                };
                // The keys of a map are data, those of an object are names in expressions.
                let key = if is_map { Some(Cow::Borrowed(name.as_str())) } else { escape(name) };
                if let Some(key) = key {
                    map.insert(Key::String(Arc::new(key.into_owned())), converted);
                }
            }
            Cel::Map(Map { map: Arc::new(map) })
        }
        Value::Array(items) => {
            let item = |item| match &schema.items {
                Some(schema) => convert(schema, item, false),
                None => untyped(item),
            };
            Cel::List(Arc::new(items.iter().map(item).collect()))
        }
        Value::String(text) => convert_text(schema, text),
        Value::Number(number) => convert_number(schema, number),
        other => untyped(other),
    }
}

fn convert_text(schema: &Schema, text: &str) -> Cel {
    let shared = || Arc::new(text.to_owned());
    let format = schema.limits.format.as_ref().filter(|_| !schema.int_or_string);
    let special = match format.map(|format| format.meaning) {
        Some(Meaning::DateTime) => functions::timestamp(shared()).ok(),
        Some(Meaning::Date) => functions::timestamp(Arc::new(format!("{text}T00:00:00Z"))).ok(),
        Some(Meaning::Duration) => functions::duration(shared()).ok(),
        Some(Meaning::Byte) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .ok()
            .map(|bytes| Cel::Bytes(Arc::new(bytes))),
        _ => None,
    };
    special.unwrap_or_else(|| Cel::String(shared()))
}

fn convert_number(schema: &Schema, number: &Number) -> Cel {
    let float = number.as_f64().unwrap_or(f64::NAN);
    match schema.kind {
        Some(Kind::Number) => Cel::Float(float),
        Some(Kind::Integer) if float.fract() == 0.0 && !number.is_i64() => Cel::Int(float as i64),
        _ => untyped(&Value::Number(number.clone())),
    }
}

fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cel::Int(whole),
            None => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(untyped).collect())),
        Value::Object(fields) => {
            let entry = |(name, value): (&String, &Value)| {
                (Key::String(Arc::new(name.clone())), untyped(value))
            };
            Cel::Map(Map { map: Arc::new(fields.iter().map(entry).collect()) })
        }
    }
}

/// Rules see no more of the metadata than the names.
fn names_of(metadata: &Value) -> Cel {
    let entry = |name: &str| {
        let value = untyped(metadata.get(name)?);
        Some((Key::String(Arc::new(name.to_owned())), value))
    };
    let map = ["name", "generateName"].into_iter().filter_map(entry).collect();
    Cel::Map(Map { map: Arc::new(map) })
}

/// The name of a field in expressions; none if it cannot be written there.
fn escape(name: &str) -> Option<Cow<'_, str>> {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if name.chars().all(plain) && !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    if !name.chars().all(|c| plain(c) || "-./".contains(c)) {
        return None;
    }
    let escaped = name.replace("__", "__underscores__");
    let escaped = escaped.replace('.', "__dot__").replace('-', "__dash__");
    Some(Cow::Owned(escaped.replace('/', "__slash__")))
}

/// The old value with its sets and list-maps in the order of the new ones: they are equal in
/// whatever order their items stand.
pub(super) fn align<'a>(schema: &Schema, new: &Value, old: &'a Value) -> Cow<'a, Value> {
    match (new, old) {
        (Value::Object(new), Value::Object(fields)) => {
            let mut aligned = fields.clone();
            for (name, old) in aligned.iter_mut() {
                if let (Some(schema), Some(new)) = (schema.field(name), new.get(name))
                    && let Cow::Owned(value) = align(schema, new, old)
                {
                    *old = value;
                }
            }
            Cow::Owned(Value::Object(aligned))
        }
        (Value::Array(new), Value::Array(items)) => {
            let Some(order) = order(schema, new, old, items) else { return Cow::Borrowed(old) };
            let of_items = schema.items.as_deref();
            let aligned = order.into_iter().map(|(old, new)| match (of_items, new) {
                (Some(schema), Some(new)) => align(schema, new, old).into_owned(),
                _ => old.clone(),
            });
            Cow::Owned(Value::Array(aligned.collect()))
        }
        _ => Cow::Borrowed(old),
    }
}

type Pair<'a> = (&'a Value, Option<&'a Value>);

/// The old items, each with the new one that continues it, if any.
fn order<'a>(
    schema: &'a Schema,
    new: &'a [Value],
    old: &'a Value,
    items: &'a [Value],
) -> Option<Vec<Pair<'a>>> {
    let continued: Vec<(&Value, &Value)> = match &schema.list {
        Some(ListKind::Set) => {
            let by_text: HashMap<String, &Value> =
                items.iter().map(|item| (item.to_string(), item)).collect();
            let pair = |item: &'a Value| Some((*by_text.get(&item.to_string())?, item));
            new.iter().filter_map(pair).collect()
        }
        Some(ListKind::Map { .. }) => {
            let correlated = Correlated::new(schema, Some(old));
            new.iter().filter_map(|item| Some((correlated.of(item)?, item))).collect()
        }
        _ => return None,
    };
    let used: HashSet<*const Value> =
        continued.iter().map(|(old, _)| std::ptr::from_ref(*old)).collect();
    let mut pairs: Vec<Pair<'_>> =
        continued.into_iter().map(|(old, new)| (old, Some(new))).collect();
    let gone = items.iter().filter(|item| !used.contains(&std::ptr::from_ref(*item)));
    pairs.extend(gone.map(|item| (item, None)));
    Some(pairs)
}
