//! What apply sees in a value of a type: a leaf, a list or a map.

use serde_json::{Map, Value};

use super::{
    element::{Element, Scalar},
    set::Set,
};
use crate::types::{self, Field, Form, ListKind, Struct, Typed};

/// How a value of a type is taken apart.
#[derive(Clone, Copy)]
pub(super) enum Shape<'a> {
    Scalar(types::Scalar),
    List(List<'a>),
    Map(Fields<'a>),
}

#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    pub(super) items: Typed<'a>,
    kind: Option<&'a ListKind>,
}

/// A struct, a map, or both at once.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    typed: Typed<'a>,
    declared: Option<&'a Struct>,
    others: Option<types::Id>,
    pub(super) atomic: bool,
}

impl<'a> Shape<'a> {
    /// Where nothing is declared the value decides; null may be anything and is taken for a map.
    pub(super) fn of(typed: Typed<'a>, value: Option<&Value>) -> Shape<'a> {
        match typed.form() {
            Form::Scalar(scalar) => Shape::Scalar(*scalar),
            Form::List { items, kind } => {
                Shape::List(List { items: typed.at(*items), kind: Some(kind) })
            }
            Form::Struct(of) => Shape::Map(Fields {
                typed,
                declared: Some(of),
                others: of.others,
                atomic: of.atomic,
            }),
            Form::Map { values, atomic } => {
                Shape::Map(Fields { typed, declared: None, others: Some(*values), atomic: *atomic })
            }
            Form::Any => match value {
                Some(Value::Array(_)) => Shape::List(List { items: typed, kind: None }),
                None | Some(Value::Object(_) | Value::Null) => Shape::Map(Fields {
                    typed,
                    declared: None,
                    others: Some(typed.id),
                    atomic: false,
                }),
                Some(_) => Shape::Scalar(types::Scalar::Untyped),
            },
        }
    }

    /// The shapes of two values of a type. They differ only where nothing is declared.
    pub(super) fn of_both(
        typed: Typed<'a>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> (Option<Shape<'a>>, Shape<'a>) {
        match (old, new) {
            (_, None) => (None, Shape::of(typed, old)),
            (None, _) => (None, Shape::of(typed, new)),
            (Some(_), Some(_)) => {
                let (first, second) = (Shape::of(typed, old), Shape::of(typed, new));
                (Some(first).filter(|first| !first.is_like(&second)), second)
            }
        }
    }

    fn is_like(&self, other: &Shape<'_>) -> bool {
        matches!(
            (self, other),
            (Shape::Scalar(_), Shape::Scalar(_))
                | (Shape::List(_), Shape::List(_))
                | (Shape::Map(_), Shape::Map(_))
        )
    }
}

impl<'a> List<'a> {
    /// Items have no owners of their own.
    pub(super) fn is_atomic(&self) -> bool {
        matches!(self.kind, None | Some(ListKind::Atomic))
    }

    /// Whether two values are compared and merged item by item. Empty against empty is a leaf.
    pub(super) fn is_split(&self, old: Option<&Value>, new: Option<&Value>) -> bool {
        let has_items = !list_in(old).is_empty() || !list_in(new).is_empty();
        has_items && !self.is_atomic()
    }

    /// What tells an item from the others.
    pub(super) fn element(&self, item: &Value) -> Result<Element, String> {
        match self.kind {
            Some(ListKind::Map { keys }) => self.key(keys, item),
            Some(ListKind::Set) => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => {
                    Err("not supported: associative list with lists as elements".into())
                }
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null"
                        .into())
                }
                scalar => Ok(Element::Value(Scalar::new(scalar.clone()))),
            },
            None | Some(ListKind::Atomic) => Err("invalid indexing of non-associative list".into()),
        }
    }

    fn key(&self, keys: &[String], item: &Value) -> Result<Element, String> {
        let item = match item {
            Value::Object(item) => item,
            Value::Null => {
                return Err("associative list with keys may not have a null element".into());
            }
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        let found: Vec<(String, Scalar)> = keys
            .iter()
            .filter_map(|key| {
                let value = item.get(key).or_else(|| self.default_of(key))?;
                Some((key.clone(), Scalar::new(value.clone())))
            })
            .collect();
        if found.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and \
                 doesn't have default values for any key fields)",
                keys.join(" ")
            ));
        }
        Ok(Element::key(found))
    }

    fn default_of(&self, key: &str) -> Option<&'a Value> {
        let Form::Struct(of) = self.items.form() else { return None };
        of.fields.get(key)?.default.as_ref()
    }
}

impl<'a> Fields<'a> {
    pub(super) fn declared(&self, name: &str) -> Option<&'a Field> {
        self.declared?.fields.get(name)
    }

    /// Whether two values are compared and merged field by field. Empty against empty is a leaf.
    pub(super) fn is_split(&self, old: Option<&Value>, new: Option<&Value>) -> bool {
        !self.atomic && (map_in(old).is_some() || map_in(new).is_some())
    }

    /// The type of a field or value. `None` for a field that may not be there.
    pub(super) fn child(&self, name: &str) -> Option<Typed<'a>> {
        let id = self.declared(name).map(|field| field.form).or(self.others)?;
        Some(self.typed.at(id))
    }
}

/// The map in a value, if there is one that is not empty.
pub(super) fn map_in(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|map| !map.is_empty())
}

/// The list in a value, empty if there is none.
pub(super) fn list_in(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether two values are the same, however their numbers are written.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => Scalar::new(a.clone()) == Scalar::new(b.clone()),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// The paths that a value holds.
pub(super) fn set_of(typed: Typed<'_>, value: &Value) -> Set {
    match Shape::of(typed, Some(value)) {
        Shape::Scalar(_) => Set::leaf(),
        Shape::List(list) if list.is_atomic() => Set::leaf(),
        Shape::Map(fields) if fields.atomic => Set::leaf(),
        Shape::List(list) => set_of_items(list, list_in(Some(value))),
        Shape::Map(fields) => {
            let mut set = Set::default();
            for (name, value) in map_in(Some(value)).into_iter().flatten() {
                let inner = fields.child(name).map(|typed| set_of(typed, value));
                let is_nothing = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                let is_member = is_nothing || fields.declared(name).is_none();
                set.put(Element::field(name), inner.unwrap_or_default().with_member(is_member));
            }
            set
        }
    }
}

/// Items that share a key count as one value.
fn set_of_items(list: List<'_>, items: &[Value]) -> Set {
    let mut set = Set::default();
    for item in items {
        let Ok(element) = list.element(item) else { continue };
        let of_item = match set.child(&element) {
            Some(_) => Set::leaf(),
            None => set_of(list.items, item).with_member(true),
        };
        set.put(element, of_item);
    }
    set
}

/// The set with every declared field a member beneath which something is one.
pub(super) fn with_declared(typed: Typed<'_>, set: &Set) -> Set {
    let shape = Shape::of(typed, None);
    set.map_children(|element, child| match (element, shape) {
        (Element::Field(name), Shape::Map(fields)) => {
            let Some(inner) = fields.child(name) else { return child.clone() };
            let has_children = child.children().next().is_some();
            with_declared(inner, child).with_member(has_children && fields.declared(name).is_some())
        }
        (Element::Key(_), Shape::List(list)) => with_declared(list.items, child),
        _ => child.clone(),
    })
}
