//! Removes what a manager no longer applies and nobody else owns.

use serde_json::{Map, Value};

use super::{
    element::Element,
    managed::Managed,
    set::Set,
    walk::{Shape, list_in, map_in, set_of, with_declared},
};
use crate::types::Typed;

/// `last` is what the manager applied before, `own` what it applies now.
pub(super) fn prune(
    typed: Typed<'_>,
    merged: Value,
    last: &Set,
    own: &Set,
    others: &Managed,
) -> Value {
    // Who gives nothing up removes nothing.
    if own.contains_all(last) {
        return merged;
    }
    without(typed, &merged, last, &others.owned().union(own))
}

/// Without what only `last` had; `owned` is what anyone owns now.
pub(super) fn without(typed: Typed<'_>, merged: &Value, last: &Set, owned: &Set) -> Value {
    let last = with_declared(typed, last);
    let present = |value: &Value| with_declared(typed, &set_of(typed, value));
    let all = present(merged);
    // What stays when all of the last set goes, and what the owners bring back.
    let rest = present(&remove(typed, merged, &last));
    let kept = rest.union(&with_declared(typed, owned));
    let rest = present(&remove(typed, merged, &all.difference(&kept)));
    // Removing a map or an item takes along what nobody ever owned; only the last set may go.
    remove(typed, merged, &all.difference(&rest).intersection(&last))
}

/// The value without the members of the set. What loses all it holds becomes null.
fn remove(typed: Typed<'_>, value: &Value, set: &Set) -> Value {
    match Shape::of(typed, Some(value)) {
        Shape::Scalar(_) => value.clone(),
        Shape::List(list) if !list.is_atomic() => {
            let kept: Vec<Value> = list_in(Some(value))
                .iter()
                .filter_map(|item| match list.element(item) {
                    Ok(element) => beneath(list.items, item, set.child(&element)),
                    Err(_) => Some(item.clone()),
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        Shape::Map(fields) if !fields.atomic => {
            let mut kept = Map::new();
            for (name, child) in map_in(Some(value)).into_iter().flatten() {
                let typed = fields.child(name).unwrap_or(typed);
                let child = beneath(typed, child, set.child(&Element::field(name)));
                kept.extend(child.map(|child| (name.clone(), child)));
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        Shape::List(_) | Shape::Map(_) => Value::Null,
    }
}

fn beneath(typed: Typed<'_>, value: &Value, set: Option<&Set>) -> Option<Value> {
    match set {
        Some(set) if set.is_member() => None,
        Some(set) if !set.is_empty() => Some(remove(typed, value, set)),
        _ => Some(value.clone()),
    }
}
