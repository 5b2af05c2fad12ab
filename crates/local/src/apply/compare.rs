//! What differs between two objects of a type, as sets of paths.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    element::Element,
    set::Set,
    walk::{Fields, List, Shape, equal, list_in, map_in},
};
use crate::types::Typed;

/// No path is in more than one of the sets.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Comparison {
    pub(super) removed: Set,
    pub(super) modified: Set,
    pub(super) added: Set,
}

impl Comparison {
    pub(super) fn of(typed: Typed<'_>, old: &Value, new: &Value) -> Comparison {
        let mut walk = Walk { found: Comparison::default(), path: Vec::new() };
        walk.both(typed, Some(old), Some(new));
        walk.found
    }

    /// Each of the sets, changed the same way.
    pub(super) fn map(self, change: impl Fn(Set) -> Set) -> Comparison {
        Comparison {
            removed: change(self.removed),
            modified: change(self.modified),
            added: change(self.added),
        }
    }
}

struct Walk {
    found: Comparison,
    path: Vec<Element>,
}

#[derive(PartialEq)]
enum Depth {
    /// The value was compared as one.
    Leaf,
    Inner,
}

impl Walk {
    fn both(&mut self, typed: Typed<'_>, old: Option<&Value>, new: Option<&Value>) {
        let (before, shape) = Shape::of_both(typed, old, new);
        if let Some(before) = before {
            self.shaped(before, old, new);
        }
        if self.shaped(shape, old, new) == Depth::Inner {
            self.one_sided(old, new);
        }
    }

    fn one_sided(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, Some(_)) => self.found.added.insert(&self.path),
            (Some(_), None) => self.found.removed.insert(&self.path),
            _ => {}
        }
    }

    fn shaped(&mut self, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Depth {
        match shape {
            Shape::List(list) if list.is_split(old, new) => {
                self.items(list, list_in(old), list_in(new));
                Depth::Inner
            }
            Shape::Map(fields) if fields.is_split(old, new) => {
                self.fields(fields, old, new);
                Depth::Inner
            }
            _ => {
                self.leaf(old, new);
                Depth::Leaf
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(old), Some(new)) if !equal(old, new) => self.found.modified.insert(&self.path),
            _ => self.one_sided(old, new),
        }
    }

    fn fields(&mut self, fields: Fields<'_>, old: Option<&Value>, new: Option<&Value>) {
        let (old, new) = (map_in(old), map_in(new));
        let only_new = new.into_iter().flatten().map(|(name, _)| name);
        let only_new = only_new.filter(|name| old.is_none_or(|old| !old.contains_key(*name)));
        for name in old.into_iter().flatten().map(|(name, _)| name).chain(only_new) {
            let [old, new] = [old, new].map(|map| map.and_then(|map| map.get(name)));
            // Most of an object stays as it is, and of that there is nothing to tell.
            if old.zip(new).is_some_and(|(old, new)| equal(old, new)) {
                continue;
            }
            let Some(typed) = fields.child(name) else { continue };
            self.path.push(Element::field(name));
            self.both(typed, old, new);
            self.path.pop();
        }
    }

    fn items(&mut self, list: List<'_>, old: &[Value], new: &[Value]) {
        let (old, new) = (by_element(list, old), by_element(list, new));
        let only_new = new.iter().filter(|(element, _)| !old.contains_key(element));
        for (element, _) in old.iter().chain(only_new) {
            self.path.push(element.clone());
            let [old, new] = [&old, &new].map(|items| items.get(element).map(Vec::as_slice));
            self.item(list, old.unwrap_or_default(), new.unwrap_or_default());
            self.path.pop();
        }
    }

    /// Items that share a key are compared as one value.
    fn item(&mut self, list: List<'_>, old: &[&Value], new: &[&Value]) {
        match (old, new) {
            ([] | [_], [] | [_]) => {
                self.both(list.items, old.first().copied(), new.first().copied());
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len();
                if !same || !old.iter().zip(new).all(|(old, new)| equal(old, new)) {
                    self.found.modified.insert(&self.path);
                }
            }
            ([_, _, ..], _) => {
                if let Some(new) = new.first() {
                    self.both(list.items, None, Some(new));
                }
                self.found.removed.insert(&self.path);
            }
            (_, _) => {
                if let Some(old) = old.first() {
                    self.both(list.items, Some(old), None);
                }
                self.found.added.insert(&self.path);
            }
        }
    }
}

/// Items without a key are passed over: they were stored before the type demanded one.
fn by_element<'a>(list: List<'_>, items: &'a [Value]) -> BTreeMap<Element, Vec<&'a Value>> {
    let mut found: BTreeMap<Element, Vec<&'a Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = list.element(item) {
            found.entry(element).or_default().push(item);
        }
    }
    found
}
