//! The form of objects: what apply, patches, strict decoding and pruning need to know of a type.
//!
//! Built-in kinds take theirs from a table made once per Kubernetes version, custom kinds from
//! their definition.

use std::collections::BTreeMap;

use serde_json::Value;

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
    /// Whether zero values of this field are printed (a pointer in Go, or one without `omitempty`).
    pub keeps_zero: bool,
    /// The number in protobuf, for built-in kinds.
    pub number: Option<u32>,
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
}
