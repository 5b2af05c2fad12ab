//! Sets of field paths, as a tree, and their written form FieldsV1.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

use super::element::Element;

/// The paths beneath one place. A place may be a member itself and hold members beneath it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    member: bool,
    children: BTreeMap<Element, Set>,
}

/// A path, from the object inwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(pub Vec<Element>);

impl Set {
    /// The members of a set are added one by one; here the path itself.
    pub fn insert(&mut self, path: &[Element]) {
        match path.split_first() {
            Some((first, rest)) => {
                self.children.entry(first.clone()).or_default().insert(rest);
            }
            None => self.member = true,
        }
    }

    /// A set of paths of plain field names.
    pub fn of_fields(paths: &[&[&str]]) -> Set {
        let mut set = Set::default();
        for path in paths {
            let path: Vec<Element> = path.iter().map(|name| Element::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    pub fn is_empty(&self) -> bool {
        !self.member && self.children.values().all(Set::is_empty)
    }

    /// Whether this place itself is a member.
    pub(super) fn is_member(&self) -> bool {
        self.member
    }

    pub(super) fn child(&self, element: &Element) -> Option<&Set> {
        self.children.get(element)
    }

    pub(super) fn children(&self) -> impl Iterator<Item = (&Element, &Set)> {
        self.children.iter()
    }

    pub fn union(&self, other: &Set) -> Set {
        let mut set = self.clone();
        set.add(other);
        set
    }

    pub(super) fn add(&mut self, other: &Set) {
        self.member |= other.member;
        for (element, theirs) in &other.children {
            match self.children.get_mut(element) {
                Some(ours) => ours.add(theirs),
                None => {
                    self.children.insert(element.clone(), theirs.clone());
                }
            }
        }
    }

    /// Without the members of the other; what lies beneath a member of it stays.
    pub fn difference(&self, other: &Set) -> Set {
        self.combine(other, |ours, theirs| ours && !theirs, true)
    }

    pub fn intersection(&self, other: &Set) -> Set {
        self.combine(other, |ours, theirs| ours && theirs, false)
    }

    fn combine(&self, other: &Set, rule: fn(bool, bool) -> bool, keep_unmatched: bool) -> Set {
        let mut set = Set { member: rule(self.member, other.member), ..Set::default() };
        for (element, ours) in &self.children {
            let child = match other.children.get(element) {
                Some(theirs) => ours.combine(theirs, rule, keep_unmatched),
                None if keep_unmatched => ours.clone(),
                None => continue,
            };
            if !child.is_empty() {
                set.children.insert(element.clone(), child);
            }
        }
        set
    }

    /// Without the members of the other and everything beneath them.
    pub(super) fn without_trees(&self, other: &Set) -> Set {
        if other.member {
            return Set::default();
        }
        let mut set = Set { member: self.member, ..Set::default() };
        for (element, ours) in &self.children {
            let child = match other.children.get(element) {
                Some(theirs) => ours.without_trees(theirs),
                None => ours.clone(),
            };
            if !child.is_empty() {
                set.children.insert(element.clone(), child);
            }
        }
        set
    }

    /// Only what lies beneath the field of that name.
    pub(super) fn only_field(&self, name: &str) -> Set {
        let element = Element::field(name);
        let mut set = Set::default();
        if let Some(child) = self.children.get(&element) {
            set.children.insert(element, child.clone());
        }
        set
    }

    pub(super) fn map_children(&self, mut change: impl FnMut(&Element, &Set) -> Set) -> Set {
        let children = self.children.iter();
        let children = children.map(|(element, set)| (element.clone(), change(element, set)));
        Set { member: self.member, children: children.collect() }
    }

    pub(super) fn with_member(mut self, member: bool) -> Set {
        self.member |= member;
        self
    }

    pub fn contains(&self, path: &[Element]) -> bool {
        match path.split_first() {
            Some((first, rest)) => self.children.get(first).is_some_and(|set| set.contains(rest)),
            None => self.member,
        }
    }

    /// All members; those of one place before what lies deeper.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        if self.member {
            paths.push(Path(Vec::new()));
        }
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Path>) {
        for (element, _) in self.children.iter().filter(|(_, set)| set.member) {
            let mut path = prefix.clone();
            path.push(element.clone());
            paths.push(Path(path));
        }
        for (element, set) in &self.children {
            prefix.push(element.clone());
            set.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// FieldsV1. Elements of kinds not known here are dropped.
    pub fn read(fields: &Value) -> Result<Set, String> {
        let Some(fields) = fields.as_object() else {
            return Err(format!("expected a map of fields, got {fields}"));
        };
        let mut set = Set::default();
        for (key, inner) in fields {
            if key == "." {
                set.member = true;
                continue;
            }
            let child = Set::read(inner)?;
            let Some(element) = Element::read(key)? else { continue };
            // A leaf is a member without being told so.
            let is_leaf = inner.as_object().is_some_and(Map::is_empty);
            set.children.insert(element, child.with_member(is_leaf));
        }
        Ok(set)
    }

    /// FieldsV1.
    pub fn write(&self) -> Value {
        let mut fields = Map::new();
        for (element, set) in &self.children {
            let mut inner = set.write();
            if let (true, Value::Object(inner)) = (set.member, &mut inner)
                && !inner.is_empty()
            {
                inner.insert(".".into(), Value::Object(Map::new()));
            }
            fields.insert(element.write(), inner);
        }
        Value::Object(fields)
    }
}

/// As in `.spec.containers[name="c"].image`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| write!(f, "{element}"))
    }
}
