//! Schemas as forms, for apply and patches.

use std::collections::BTreeMap;

use super::{
    prune::object_meta,
    schema::{Additional, Kind, Schema},
};
use crate::types::{Field, Form, Id, ListKind, Scalar, Struct, Typed, Types};

/// The form of whole objects, with the fields that every object has.
pub(super) fn of_objects(schema: &Schema) -> (Types, Id) {
    let mut forms = Forms::default();
    let id = forms.object(schema, true);
    (forms.types, id)
}

#[derive(Default)]
struct Forms {
    types: Types,
    /// The copied form of metadata, if it was needed before.
    metadata: Option<Id>,
}

impl Forms {
    fn add(&mut self, schema: &Schema) -> Id {
        if schema.int_or_string {
            return self.types.add(Form::Scalar(Scalar::IntOrString));
        }
        let form = match schema.kind {
            Some(Kind::Object) => return self.object(schema, schema.embedded),
            Some(Kind::Array) => {
                let items = match &schema.items {
                    Some(items) => self.add(items),
                    None => self.types.add(Form::Any),
                };
                Form::List { items, kind: schema.list.clone().unwrap_or(ListKind::Atomic) }
            }
            Some(Kind::String) => Form::Scalar(Scalar::String),
            Some(Kind::Integer) => Form::Scalar(Scalar::Integer),
            Some(Kind::Number) => Form::Scalar(Scalar::Number),
            Some(Kind::Boolean) => Form::Scalar(Scalar::Boolean),
            None => Form::Any,
        };
        self.types.add(form)
    }

    fn object(&mut self, schema: &Schema, resource: bool) -> Id {
        if schema.properties.is_empty() && !resource {
            match &schema.additional {
                Additional::Typed(values) => {
                    let values = self.add(values);
                    return self.types.add(Form::Map { values, atomic: schema.atomic_map });
                }
                Additional::Anything => {
                    let values = self.types.add(Form::Any);
                    return self.types.add(Form::Map { values, atomic: schema.atomic_map });
                }
                Additional::Nothing if schema.preserve && !schema.atomic_map => {
                    return self.types.add(Form::Any);
                }
                Additional::Nothing => {}
            }
        }
        let mut fields = BTreeMap::new();
        for (name, property) in &schema.properties {
            let form = self.add(property);
            fields.insert(
                name.clone(),
                Field { default: property.default.clone(), ..Field::new(form) },
            );
        }
        if resource {
            for name in ["apiVersion", "kind"] {
                let form = self.types.add(Form::Scalar(Scalar::String));
                fields.insert(name.to_owned(), Field::new(form));
            }
            let form = self.metadata();
            fields.insert("metadata".to_owned(), Field::new(form));
        }
        let others = match &schema.additional {
            Additional::Typed(values) => Some(self.add(values)),
            Additional::Anything => Some(self.types.add(Form::Any)),
            Additional::Nothing if schema.preserve => Some(self.types.add(Form::Any)),
            Additional::Nothing => None,
        };
        self.types.add(Form::Struct(Struct { fields, atomic: schema.atomic_map, others }))
    }

    fn metadata(&mut self) -> Id {
        if let Some(id) = self.metadata {
            return id;
        }
        let id = match object_meta() {
            Some(typed) => self.copy(typed),
            None => self.types.add(Form::Any),
        };
        self.metadata = Some(id);
        id
    }

    /// Metadata holds no type that refers to itself, so this ends.
    fn copy(&mut self, typed: Typed<'_>) -> Id {
        let form = match typed.form() {
            Form::Struct(form) => {
                let mut copy = form.clone();
                for field in copy.fields.values_mut() {
                    field.form = self.copy(typed.at(field.form));
                }
                copy.others = form.others.map(|id| self.copy(typed.at(id)));
                Form::Struct(copy)
            }
            Form::Map { values, atomic } => {
                Form::Map { values: self.copy(typed.at(*values)), atomic: *atomic }
            }
            Form::List { items, kind } => {
                Form::List { items: self.copy(typed.at(*items)), kind: kind.clone() }
            }
            scalar => scalar.clone(),
        };
        self.types.add(form)
    }
}
