//! Filling in what a schema declares as default.

use serde_json::Value;

use super::schema::{Additional, Schema};

/// Top down, only into objects that are there. A null where none may stand counts as absent.
pub(super) fn default(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let absent = match fields.get(name) {
                    None => true,
                    Some(value) => value.is_null() && !property.nullable,
                };
                if absent && let Some(default) = &property.default {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                let property = schema.properties.get(name);
                if let Additional::Typed(other) = &schema.additional
                    && property.is_none()
                    && value.is_null()
                    && !other.nullable
                    && let Some(default) = &other.default
                {
                    *value = default.clone();
                }
                if let Some(schema) = schema.field(name) {
                    self::default(schema, value);
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = &schema.items else { return };
            for item in items {
                if item.is_null()
                    && !of_items.nullable
                    && let Some(default) = &of_items.default
                {
                    *item = default.clone();
                }
                default(of_items, item);
            }
        }
        _ => {}
    }
}

/// Drops nulls of declared fields that may not be null. Those with a default are left to it.
pub(super) fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let Some(property) = schema.field(name) else { return true };
                !value.is_null() || property.nullable || property.default.is_some()
            });
            for (name, value) in fields.iter_mut() {
                if let Some(schema) = schema.field(name) {
                    drop_nulls(schema, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(of_items) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(of_items, item));
            }
        }
        _ => {}
    }
}
