//! The form of objects: what apply, patches, strict decoding and pruning need to know of a type.
//!
//! Built-in kinds take theirs from a table made once per Kubernetes version, custom kinds from
//! their definition.

mod builtin;
pub(crate) mod read;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

pub use builtin::{Builtin, builtin};

/// The types of one table or of one version of a custom kind. They may refer to each other in circles.
#[derive(Debug, Default)]
pub struct Types {
    nodes: Vec<Form>,
}

/// Which of the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(u32);

#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    Scalar(Scalar),
    Struct(Struct),
    Map {
        values: Id,
        atomic: bool,
    },
    List {
        items: Id,
        kind: ListKind,
    },
    /// Nothing is declared: maps are granular and lists atomic, as they come.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    String,
    Integer,
    Number,
    Boolean,
    Quantity,
    IntOrString,
    /// RFC 3339 in seconds.
    Time,
    /// With exactly six decimals.
    MicroTime,
    /// Base64.
    Bytes,
    /// Of any type that is not a map or a list.
    Untyped,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Struct {
    pub fields: BTreeMap<String, Field>,
    /// One owner for the whole of it.
    pub atomic: bool,
    /// Fields that are not declared are kept; their form is this.
    pub others: Option<Id>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub form: Id,
    /// What a list item's key takes when it is absent, and what a CRD fills in.
    pub default: Option<Value>,
    /// For the strategic merge of built-in kinds, where it differs from `form`.
    pub strategy: Strategy,
    /// What becomes of a zero value.
    pub zero: Zero,
    /// The number in protobuf, for built-in kinds.
    pub number: Option<u32>,
    /// In protobuf the field lies in an embedded message, and this is the number of that message.
    pub within: Option<u32>,
    pub required: bool,
    /// An integer of 32 bits.
    pub narrow: bool,
}

/// What becomes of a field's zero value, be it absent, `0`, `""`, `false`, `[]` or `{}`. Built-in kinds
/// pass through Go structs, whose declarations decide it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zero {
    /// Kept as it was given (a pointer, or any field of a custom kind).
    #[default]
    Kept,
    /// As good as absent (`omitempty`).
    Omitted,
    /// Printed even when it was not given, as the zero value of its form.
    Printed,
    /// Printed even when it was not given, as `null`; if given empty, then empty.
    PrintedNull,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strategy {
    /// The key by which lists merge in strategic patches.
    pub merge_key: Option<String>,
    pub merge: bool,
    pub retain_keys: bool,
    pub replace: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    Atomic,
    Set,
    Map { keys: Vec<String> },
}

/// A type and the table in which it stands.
#[derive(Clone, Copy, Debug)]
pub struct Typed<'a> {
    pub types: &'a Types,
    pub id: Id,
}

impl Field {
    /// A field of which nothing but the form is known.
    pub fn new(form: Id) -> Field {
        Field {
            form,
            default: None,
            strategy: Strategy::default(),
            zero: Zero::Kept,
            number: None,
            within: None,
            required: false,
            narrow: false,
        }
    }

    /// Whether a zero value that was given is printed.
    pub fn keeps_zero(&self) -> bool {
        self.zero != Zero::Omitted
    }
}

impl<'a> Typed<'a> {
    pub fn form(&self) -> &'a Form {
        self.types.get(self.id)
    }

    /// Another type of the same table.
    pub fn at(&self, id: Id) -> Typed<'a> {
        Typed { types: self.types, id }
    }

    /// The object as Go prints it before anything is set: what is printed even when it is empty. A
    /// custom kind has an empty map.
    pub fn zero(&self) -> Value {
        match self.form() {
            Form::Struct(of) => {
                let mut fields = Map::new();
                for (name, field) in &of.fields {
                    match field.zero {
                        Zero::Printed => fields.insert(name.clone(), self.at(field.form).zero()),
                        Zero::PrintedNull => fields.insert(name.clone(), Value::Null),
                        Zero::Kept | Zero::Omitted => None,
                    };
                }
                Value::Object(fields)
            }
            Form::Scalar(scalar) => match scalar {
                Scalar::String | Scalar::Bytes => Value::from(""),
                Scalar::Quantity => Value::from("0"),
                Scalar::Integer | Scalar::Number | Scalar::IntOrString => Value::from(0),
                Scalar::Boolean => Value::from(false),
                Scalar::Time | Scalar::MicroTime | Scalar::Untyped => Value::Null,
            },
            Form::Map { .. } | Form::List { .. } | Form::Any => Value::Null,
        }
    }
}

impl Types {
    pub fn add(&mut self, form: Form) -> Id {
        self.nodes.push(form);
        Id((self.nodes.len() - 1) as u32)
    }

    /// For a type that refers to itself: first a place, then what stands there.
    pub fn set(&mut self, id: Id, form: Form) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            *node = form;
        }
    }

    pub fn get(&self, id: Id) -> &Form {
        self.nodes.get(id.0 as usize).unwrap_or(&Form::Any)
    }

    /// Copies a type of another table with all that it refers to: custom kinds take their metadata
    /// from the built-in ones.
    pub fn import(&mut self, from: Typed<'_>) -> Id {
        self.import_once(from, &mut HashMap::new())
    }

    fn import_once(&mut self, from: Typed<'_>, done: &mut HashMap<Id, Id>) -> Id {
        if let Some(id) = done.get(&from.id) {
            return *id;
        }
        let id = self.add(Form::Any);
        done.insert(from.id, id);
        let mut form = from.form().clone();
        match &mut form {
            Form::Struct(of) => {
                let fields = of.fields.values_mut().map(|field| &mut field.form);
                for inner in fields.chain(of.others.as_mut()) {
                    *inner = self.import_once(from.at(*inner), done);
                }
            }
            Form::Map { values: inner, .. } | Form::List { items: inner, .. } => {
                *inner = self.import_once(from.at(*inner), done);
            }
            Form::Scalar(_) | Form::Any => {}
        }
        self.set(id, form);
        id
    }
}
