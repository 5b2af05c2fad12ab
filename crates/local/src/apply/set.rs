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
            Some((first, rest)) => match self.children.get_mut(first) {
                Some(child) => child.insert(rest),
                None => {
                    let mut child = Set::default();
                    child.insert(rest);
                    self.children.insert(first.clone(), child);
                }
            },
            None => self.member = true,
        }
    }

    /// Only the place itself.
    pub(super) fn leaf() -> Set {
        Set { member: true, ..Set::default() }
    }

    /// Puts what lies beneath a place where nothing is yet. What is empty leaves no trace.
    pub(super) fn put(&mut self, element: Element, child: Set) {
        if !child.is_empty() {
            self.children.insert(element, child);
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

    /// Whether all members of the other are members.
    pub(super) fn contains_all(&self, other: &Set) -> bool {
        (self.member || !other.member)
            && other.children.iter().all(|(element, theirs)| match self.children.get(element) {
                Some(ours) => ours.contains_all(theirs),
                None => theirs.is_empty(),
            })
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
        let mut set = self.clone();
        set.subtract(other);
        set
    }

    /// As [`Self::difference`], in place.
    pub(super) fn subtract(&mut self, other: &Set) {
        self.member &= !other.member;
        self.thin(other, Set::subtract);
    }

    pub fn intersection(&self, other: &Set) -> Set {
        let mut set = Set { member: self.member && other.member, ..Set::default() };
        for (element, ours) in &self.children {
            if let Some(theirs) = other.children.get(element) {
                set.put(element.clone(), ours.intersection(theirs));
            }
        }
        set
    }

    /// Takes out the members of the other and everything beneath them.
    pub(super) fn subtract_trees(&mut self, other: &Set) {
        if other.member {
            *self = Set::default();
        }
        self.thin(other, Set::subtract_trees);
    }

    /// Goes down where the other does, and drops what is left empty.
    fn thin(&mut self, other: &Set, step: fn(&mut Set, &Set)) {
        for (element, theirs) in &other.children {
            if let Some(ours) = self.children.get_mut(element) {
                step(ours, theirs);
                if ours.is_empty() {
                    self.children.remove(element);
                }
            }
        }
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
            set.put(element, child.with_member(is_leaf));
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
