//! The union of a live object and a configuration.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    element::Element,
    walk::{Fields, List, Shape, list_in, map_in},
};
use crate::types::Typed;

/// Leaves are those of the configuration; structs, maps and keyed lists hold what either side has.
pub(super) fn merge(typed: Typed<'_>, live: &Value, config: &Value) -> Value {
    both(typed, Some(live), Some(config)).unwrap_or(Value::Null)
}

fn both(typed: Typed<'_>, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let (_, shape) = Shape::of_both(typed, live, config);
    match shape {
        Shape::List(list) if list.is_split(live, config) => {
            items(list, list_in(live), list_in(config))
        }
        Shape::Map(fields) if fields.is_split(live, config) => {
            Some(self::fields(fields, map_in(live), map_in(config)))
        }
        _ => config.or(live).cloned(),
    }
}

fn fields(
    fields: Fields<'_>,
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
) -> Value {
    let mut merged = Map::new();
    for (name, value) in live.into_iter().flatten() {
        let wanted = config.and_then(|config| config.get(name));
        let value = match fields.child(name) {
            Some(typed) => both(typed, Some(value), wanted),
            None => Some(wanted.unwrap_or(value).clone()),
        };
        merged.extend(value.map(|value| (name.clone(), value)));
    }
    for (name, value) in config.into_iter().flatten() {
        if live.is_none_or(|live| !live.contains_key(name)) {
            let value = match fields.child(name) {
                Some(typed) => both(typed, None, Some(value)),
                None => Some(value.clone()),
            };
            merged.extend(value.map(|value| (name.clone(), value)));
        }
    }
    Value::Object(merged)
}

/// One side of the merge of two lists.
struct Side<'a> {
    items: Vec<(Element, &'a Value)>,
    /// The item of each key, if it is the only one. Items that share a key are replaced instead of
    /// merged.
    single: BTreeMap<Element, Option<&'a Value>>,
    next: usize,
}

impl<'a> Side<'a> {
    fn of(list: List<'_>, items: &'a [Value]) -> Side<'a> {
        let items = items.iter().filter_map(|item| Some((list.element(item).ok()?, item)));
        let items: Vec<_> = items.collect();
        let mut single = BTreeMap::new();
        for (element, item) in &items {
            let known = single.entry(element.clone());
            known.and_modify(|single| *single = None).or_insert(Some(*item));
        }
        Side { items, single, next: 0 }
    }

    fn peek(&self) -> Option<&(Element, &'a Value)> {
        self.items.get(self.next)
    }

    fn has(&self, element: &Element) -> bool {
        self.single.contains_key(element)
    }

    fn single(&self, element: &Element) -> Option<&'a Value> {
        self.single.get(element).copied().flatten()
    }
}

/// Items of the configuration stand in its order; an item that only the live list has stays before
/// the item that both have and that followed it.
fn items(list: List<'_>, live: &[Value], config: &[Value]) -> Option<Value> {
    let (mut live, mut config) = (Side::of(list, live), Side::of(list, config));
    let shared: Vec<Element> = config.items.iter().map(|(element, _)| element.clone()).collect();
    let mut shared = shared.into_iter().filter(|element| live.has(element)).collect::<Vec<_>>();
    shared.reverse();
    let mut merged = Vec::new();
    let mut taken: BTreeSet<Element> = BTreeSet::new();
    while live.peek().is_some() || config.peek().is_some() {
        if let Some((element, value)) = live.peek() {
            if !config.has(element) {
                merged.extend(both(list.items, Some(value), None));
                live.next += 1;
                continue;
            }
            let is_next = config.peek().is_none_or(|(wanted, _)| wanted == element)
                || shared.last().is_none_or(|next| next == element);
            if !is_next {
                // The configuration moves it to a later place.
                live.next += 1;
                continue;
            }
            if taken.contains(element) {
                live.next += 1;
            }
        }
        let Some((element, value)) = config.peek() else { continue };
        if live.peek().is_some_and(|(other, _)| other == element) {
            live.next += 1;
        }
        merged.extend(both(list.items, live.single(element), Some(value)));
        taken.insert(element.clone());
        if shared.last() == Some(element) {
            shared.pop();
        }
        config.next += 1;
    }
    (!merged.is_empty()).then_some(Value::Array(merged))
}
