//! The strategic merge: maps merge, lists merge by the key their type declares, and directives in
//! the patch say what to delete, replace or put in order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::{
    apply::{Scalar, equal, go_text},
    types::{Field, Form, Strategy, Typed},
};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER_PREFIX: &str = "$setElementOrder/";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";

type Fields = Map<String, Value>;

/// The errors are those that Kubernetes would give.
pub(super) fn map(
    mut original: Fields,
    patch: &Fields,
    typed: Typed<'_>,
) -> Result<Fields, String> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return directed(directive, patch);
    }
    retain_keys(&mut original, patch)?;
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for (key, order) in patch {
        if let Some(name) = key.strip_prefix(ORDER_PREFIX)
            && ordered(&mut original, patch, name, order, typed)?
        {
            done.insert(name);
        }
    }
    for (key, value) in patch {
        if !is_directive(key) && !done.contains(key.as_str()) {
            field(&mut original, key, value, typed)?;
        }
    }
    for (key, value) in patch {
        if let Some(name) = key.strip_prefix(DELETE_PREFIX) {
            delete_scalars(&mut original, name, value);
        }
    }
    Ok(original)
}

fn is_directive(key: &str) -> bool {
    key == RETAIN_KEYS || key.starts_with(ORDER_PREFIX) || key.starts_with(DELETE_PREFIX)
}

/// `$patch` in a map.
fn directed(directive: &Value, patch: &Fields) -> Result<Fields, String> {
    match directive.as_str() {
        Some("replace") => {
            let rest = patch.iter().filter(|(key, _)| *key != DIRECTIVE);
            Ok(rest.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        Some("delete") => Ok(Fields::new()),
        _ => Err(unknown_directive(directive, patch)),
    }
}

fn unknown_directive(directive: &Value, patch: &Fields) -> String {
    let map = go_text(&Value::Object(patch.clone()));
    format!("unknown patch type: {} in map: {map}", go_text(directive))
}

/// `$retainKeys` drops all keys it does not name; the patch must not set those.
fn retain_keys(original: &mut Fields, patch: &Fields) -> Result<(), String> {
    let Some(retained) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let broken = || "invalid patch format of retainKeys".to_owned();
    let retained = retained.as_array().ok_or_else(broken)?;
    let retained: BTreeSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let is_retained = |key: &String| retained.contains(key.as_str());
    let sets = |(key, value): &(&String, &Value)| !value.is_null() && !is_directive(key);
    if !patch.iter().filter(sets).all(|(key, _)| is_retained(key)) {
        return Err(broken());
    }
    original.retain(|key, _| is_retained(key));
    Ok(())
}

/// One key of the patch without a directive.
fn field(original: &mut Fields, key: &str, value: &Value, typed: Typed<'_>) -> Result<(), String> {
    if value.is_null() {
        original.remove(key);
        return Ok(());
    }
    let (strategy, inner) = child(typed, key);
    let merged = match (original.get_mut(key).map(Value::take), value) {
        (Some(Value::Object(old)), Value::Object(new)) => match strategy {
            Some(strategy) if strategy.replace => Some(value.clone()),
            _ => Some(Value::Object(map(old, new, inner)?)),
        },
        (Some(Value::Array(old)), Value::Array(new)) => match strategy {
            Some(strategy) if strategy.merge => {
                Some(Value::Array(list(old, new, strategy, inner)?))
            }
            _ => Some(value.clone()),
        },
        _ => plain(value),
    };
    match merged {
        Some(merged) => original.insert(key.to_owned(), merged),
        None => original.remove(key),
    };
    Ok(())
}

/// How a field merges, and the type of what it holds.
fn child<'a>(typed: Typed<'a>, name: &str) -> (Option<&'a Strategy>, Typed<'a>) {
    let field: Option<&'a Field> = match typed.form() {
        Form::Struct(of) => of.fields.get(name),
        _ => None,
    };
    let id = match (typed.form(), field) {
        (_, Some(field)) => field.form,
        (Form::Map { values, .. }, _) => *values,
        _ => typed.id,
    };
    let inner = match typed.types.get(id) {
        Form::List { items, .. } => typed.at(*items),
        _ => typed.at(id),
    };
    (field.map(|field| &field.strategy), inner)
}

/// A value that meets nothing to merge with: without nulls and without what `$patch` speaks of.
fn plain(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let fields =
                fields.iter().filter(|(key, value)| !value.is_null() && !is_directive(key));
            let fields = fields.filter_map(|(key, value)| Some((key.clone(), plain(value)?)));
            Some(Value::Object(fields.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(plain).collect())),
        scalar => Some(scalar.clone()),
    }
}

fn delete_scalars(original: &mut Fields, name: &str, gone: &Value) {
    if let (Some(Value::Array(items)), Value::Array(gone)) = (original.get_mut(name), gone) {
        let gone = places(gone, None);
        items.retain(|item| place(&gone, item, None).is_none());
    }
}

/// Merges a list: items of the patch stand before those it does not name, unless both were there.
fn list(
    mut original: Vec<Value>,
    patch: &[Value],
    strategy: &Strategy,
    items: Typed<'_>,
) -> Result<Vec<Value>, String> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if !original.iter().chain(patch).any(Value::is_object) {
        let before = original.clone();
        let mut known = places(&original, None);
        for item in patch {
            if place(&known, item, None).is_none() {
                known.insert(Scalar::new(item.clone()), original.len());
                original.push(item.clone());
            }
        }
        return in_order(original, patch, &before, None);
    }
    let Some(key) = strategy.merge_key.as_deref() else {
        return Err("cannot merge lists without merge key".into());
    };
    let patch = special_items(&mut original, patch, key)?;
    are_maps(&original)?;
    let before = original.clone();
    let mut known = places(&original, Some(key));
    for item in &patch {
        let fields = fields_of(item)?;
        key_of(fields, key)?;
        match place(&known, item, Some(key)) {
            Some(index) => {
                if let Value::Object(old) = original[index].take() {
                    original[index] = Value::Object(map(old, fields, items)?);
                }
            }
            // As it is, directives included, as Kubernetes does; decoding then finds them unknown.
            None => {
                known.extend(identity(item, Some(key)).map(|identity| (identity, original.len())));
                original.push(item.clone());
            }
        }
    }
    in_order(original, &patch, &before, Some(key))
}

/// Carries out `$patch` in items, and returns the items without.
fn special_items(
    original: &mut Vec<Value>,
    patch: &[Value],
    key: &str,
) -> Result<Vec<Value>, String> {
    let mut rest = Vec::new();
    let mut gone = Vec::new();
    let mut replaces = false;
    for item in patch {
        let fields = fields_of(item)?;
        match fields.get(DIRECTIVE).map(|directive| (directive, directive.as_str())) {
            None => rest.push(item.clone()),
            Some((_, Some("delete"))) => {
                key_of(fields, key)?;
                gone.push(item.clone());
            }
            Some((_, Some("replace"))) => replaces = true,
            Some((_, Some("merge"))) => {
                return Err("merging lists cannot yet be specified in the patch".into());
            }
            Some((directive, _)) => return Err(unknown_directive(directive, fields)),
        }
    }
    if replaces {
        *original = rest;
        return Ok(Vec::new());
    }
    if !gone.is_empty() {
        are_maps(original)?;
        let gone = places(&gone, Some(key));
        original.retain(|item| place(&gone, item, Some(key)).is_none());
    }
    Ok(rest)
}

fn fields_of(item: &Value) -> Result<&Fields, String> {
    item.as_object().ok_or_else(|| "list element types are not identical: [map]".to_owned())
}

fn key_of<'a>(fields: &'a Fields, key: &str) -> Result<&'a Value, String> {
    fields.get(key).ok_or_else(|| {
        let map = go_text(&Value::Object(fields.clone()));
        format!("map: {map} does not contain declared merge key: {key}")
    })
}

fn are_maps(items: &[Value]) -> Result<(), String> {
    match items.iter().position(|item| !item.is_object()) {
        Some(index) => Err(format!("value for key {index} is not a map")),
        None => Ok(()),
    }
}

/// What tells an item from the others: itself, or its key where the list has one.
fn identity(item: &Value, key: Option<&str>) -> Option<Scalar> {
    let value = key.map_or(Some(item), |key| item.get(key));
    value.map(|value| Scalar::new(value.clone()))
}

/// Where each item stands first. Lists may be long, and others wait for the patch.
fn places(items: &[Value], key: Option<&str>) -> BTreeMap<Scalar, usize> {
    let mut places = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(identity) = identity(item, key) {
            places.entry(identity).or_insert(index);
        }
    }
    places
}

fn place(places: &BTreeMap<Scalar, usize>, item: &Value, key: Option<&str>) -> Option<usize> {
    places.get(&identity(item, key)?).copied()
}

/// `$setElementOrder/<name>`: merges that list and puts it in the given order. Whether the list was
/// dealt with.
fn ordered(
    original: &mut Fields,
    patch: &Fields,
    name: &str,
    order: &Value,
    typed: Typed<'_>,
) -> Result<bool, String> {
    let expected = |value: &Value| {
        let kind = match value {
            Value::Object(_) => "map[string]interface {}",
            Value::String(_) => "string",
            Value::Number(_) => "int64",
            Value::Bool(_) => "bool",
            Value::Array(_) | Value::Null => "%!s(<nil>)",
        };
        format!("expected a []interface {{}}, but received a {kind}")
    };
    let order = order.as_array().ok_or_else(|| expected(order))?;
    let as_list = |value: Option<&Value>| match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(other) => Err(expected(other)),
    };
    let before = as_list(original.get(name))?;
    let wanted = as_list(patch.get(name))?;
    let (strategy, items) = child(typed, name);
    let key = strategy.and_then(|strategy| strategy.merge_key.as_deref());
    if let Some(wanted) = &wanted {
        agrees(wanted, order, key)?;
    }
    let is_empty = |list: &Option<Vec<Value>>| list.as_ref().is_none_or(Vec::is_empty);
    if (before.is_some() || wanted.is_some()) && is_empty(&before) && is_empty(&wanted) {
        return Err("no elements in any of the given slices".into());
    }
    let merged = match (before.clone(), &wanted) {
        (None, None) => return Ok(false),
        (Some(before), None) => before,
        (None, Some(wanted)) => wanted.iter().filter_map(plain).collect(),
        (Some(before), Some(wanted)) => match strategy {
            Some(strategy) if strategy.merge => list(before, wanted, strategy, items)?,
            _ => wanted.clone(),
        },
    };
    let merged = in_order(merged, order, &before.unwrap_or_default(), key)?;
    original.insert(name.to_owned(), Value::Array(merged));
    Ok(true)
}

/// Fails unless the patch names its items in the given order.
fn agrees(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), String> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    // Deletions have no place; other directives take one up once the order has come to its end.
    let is_deletion = |item: &&Value| item.get(DIRECTIVE).is_some_and(|value| value == "delete");
    let mut items = patch.iter().filter(|item| !is_deletion(item)).peekable();
    let mut places = order.iter();
    while let Some(item) = items.peek() {
        if item.get(DIRECTIVE).is_some() && places.len() > 0 {
            items.next();
            continue;
        }
        match places.next() {
            Some(place) if is_same(place, item, key) => {
                items.next();
            }
            Some(_) => {}
            None => {
                let [patch, order] =
                    [patch, order].map(|list| go_text(&Value::from(list.to_vec())));
                return Err(format!(
                    "The order in patch list:\n{patch}\n doesn't match $setElementOrder \
                     list:\n{order}\n"
                ));
            }
        }
    }
    Ok(())
}

fn is_same(a: &Value, b: &Value, key: Option<&str>) -> bool {
    match key {
        None => equal(a, b),
        Some(key) => match (a.get(key), b.get(key)) {
            (Some(a), Some(b)) => equal(a, b),
            _ => false,
        },
    }
}

/// Items named in `order` stand in that order. The others stay in their own, each before a named
/// item that it preceded, else behind.
fn in_order(
    items: Vec<Value>,
    order: &[Value],
    before: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, String> {
    if let Some(key) = key {
        for item in items.iter().chain(order) {
            key_of(fields_of(item)?, key)?;
        }
    }
    let (order, before) = (places(order, key), places(before, key));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| place(&order, item, key).is_some());
    named.sort_by_cached_key(|item| place(&order, item, key));
    others.sort_by_cached_key(|item| place(&before, item, key));
    let mut all = Vec::with_capacity(named.len() + others.len());
    let mut named = named.into_iter().peekable();
    for other in others {
        while let Some(next) = named.next_if(|next| {
            let (other, next) = (place(&before, &other, key), place(&before, next, key));
            !matches!((other, next), (Some(other), Some(next)) if other < next)
        }) {
            all.push(next);
        }
        all.push(other);
    }
    all.extend(named);
    Ok(all)
}
