//! A schema as it is declared, read once.
//!
//! Reading never fails: what is wrong with a schema is said by `structure`, before it is read for use.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::{formats::Format, rules::Rule};
use crate::types::ListKind;

#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) kind: Option<Kind>,
    pub(super) int_or_string: bool,
    pub(super) nullable: bool,
    /// Fields that are not declared stay.
    pub(super) preserve: bool,
    /// An object with a kind and metadata of its own.
    pub(super) embedded: bool,
    /// In boxes, because the nodes of the map have room for several more than there are.
    pub(super) properties: BTreeMap<String, Box<Schema>>,
    pub(super) additional: Additional,
    pub(super) items: Option<Box<Schema>>,
    pub(super) default: Option<Value>,
    pub(super) list: Option<ListKind>,
    pub(super) atomic_map: bool,
    pub(super) limits: Limits,
    pub(super) rules: Vec<Rule>,
    /// Whether there are rules here or anywhere beneath, so that the walk may stop early.
    pub(super) has_rules: bool,
    /// Whether one of them is so deep that running it takes more stack than threads have.
    pub(super) has_deep_rules: bool,
    /// Whether some rule, here or beneath, cannot be read.
    pub(super) broken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// What `additionalProperties` says.
#[derive(Debug, Default)]
pub(super) enum Additional {
    #[default]
    Nothing,
    Anything,
    Typed(Box<Schema>),
}

/// What values must fulfil, next to their type.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) format: Option<Format>,
    pub(super) required: Vec<String>,
    pub(super) one_of_values: Vec<Value>,
    /// The text and, if it can be read, the expression.
    pub(super) pattern: Option<(String, Option<Regex>)>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) minimum: Option<Bound>,
    pub(super) maximum: Option<Bound>,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) all_of: Vec<Schema>,
    pub(super) any_of: Vec<Schema>,
    pub(super) one_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
}

#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) value: f64,
    pub(super) exclusive: bool,
}

impl Kind {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

impl Additional {
    pub(super) fn schema(&self) -> Option<&Schema> {
        match self {
            Self::Typed(schema) => Some(schema),
            Self::Nothing | Self::Anything => None,
        }
    }
}

impl Schema {
    pub(super) fn read(raw: &Value) -> Self {
        let flag = |name: &str| raw.get(name).and_then(Value::as_bool).unwrap_or_default();
        let properties: BTreeMap<_, _> = map(raw, "properties")
            .map(|(name, schema)| (name.clone(), Box::new(Self::read(schema))))
            .collect();
        let additional = match raw.get("additionalProperties") {
            Some(Value::Bool(true)) => Additional::Anything,
            Some(schema @ Value::Object(_)) => Additional::Typed(Box::new(Self::read(schema))),
            _ => Additional::Nothing,
        };
        let items = raw.get("items").filter(|i| i.is_object()).map(|i| Box::new(Self::read(i)));
        let declared: Vec<_> = list(raw, "x-kubernetes-validations").map(Rule::read).collect();
        let count = declared.len();
        let rules: Vec<Rule> = declared.into_iter().filter_map(Result::ok).collect();
        let declared = properties.values().map(Box::as_ref);
        let below: Vec<&Schema> =
            declared.chain(additional.schema()).chain(items.as_deref()).collect();
        let has_rules = !rules.is_empty() || below.iter().any(|schema| schema.has_rules);
        let has_deep_rules =
            rules.iter().any(|rule| rule.deep) || below.iter().any(|schema| schema.has_deep_rules);
        let broken = rules.len() < count || below.iter().any(|schema| schema.broken);
        let kind = raw.get("type").and_then(Value::as_str).and_then(Kind::parse);
        Self {
            kind,
            int_or_string: flag("x-kubernetes-int-or-string"),
            nullable: flag("nullable"),
            preserve: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            properties,
            additional,
            items,
            default: raw.get("default").filter(|default| !default.is_null()).cloned(),
            list: list_kind(raw),
            atomic_map: text(raw, "x-kubernetes-map-type") == Some("atomic"),
            limits: Limits::read(raw, kind),
            rules,
            has_rules,
            has_deep_rules,
            broken,
        }
    }

    /// The schema of a field, be it declared or one of the others.
    pub(super) fn field(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).map(Box::as_ref).or_else(|| self.additional.schema())
    }

    /// Its type in the words of messages.
    pub(super) fn type_name(&self) -> &'static str {
        self.kind.map_or("", Kind::as_str)
    }
}

impl Limits {
    fn read(raw: &Value, kind: Option<Kind>) -> Self {
        let number = |name: &str| raw.get(name).and_then(Value::as_f64);
        let count = |name: &str| raw.get(name).and_then(Value::as_u64);
        let bound = |name: &str, exclusive: &str| {
            let exclusive = raw.get(exclusive).and_then(Value::as_bool).unwrap_or_default();
            number(name).map(|value| Bound { value, exclusive })
        };
        let schemas = |name: &str| list(raw, name).map(Schema::read).collect();
        let pattern = text(raw, "pattern").filter(|pattern| !pattern.is_empty());
        Self {
            format: text(raw, "format").and_then(|format| Format::of(format, kind)),
            required: list(raw, "required").filter_map(Value::as_str).map(str::to_owned).collect(),
            one_of_values: list(raw, "enum").cloned().collect(),
            pattern: pattern.map(|pattern| (pattern.to_owned(), Regex::new(pattern).ok())),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            minimum: bound("minimum", "exclusiveMinimum"),
            maximum: bound("maximum", "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: schemas("allOf"),
            any_of: schemas("anyOf"),
            one_of: schemas("oneOf"),
            not: raw.get("not").filter(|n| n.is_object()).map(|n| Box::new(Schema::read(n))),
        }
    }
}

fn list_kind(raw: &Value) -> Option<ListKind> {
    match text(raw, "x-kubernetes-list-type")? {
        "set" => Some(ListKind::Set),
        "map" => {
            let keys = list(raw, "x-kubernetes-list-map-keys");
            let keys = keys.filter_map(Value::as_str).map(str::to_owned).collect();
            Some(ListKind::Map { keys })
        }
        _ => Some(ListKind::Atomic),
    }
}

pub(super) fn text<'a>(raw: &'a Value, name: &str) -> Option<&'a str> {
    raw.get(name).and_then(Value::as_str)
}

pub(super) fn list<'a>(raw: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    raw.get(name).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn map<'a>(
    raw: &'a Value,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    raw.get(name).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}
