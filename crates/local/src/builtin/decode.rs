//! Reading an object as Go does: what is declared is kept in its canonical form, the rest goes.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{
    Resource,
    object::{at, at_mut},
    quantity::Quantity,
    time,
    validate::selectors,
};
use crate::types::{self, Field, Form, Scalar, Struct, Typed, Zero};

/// An object as it would be printed, and the fields that it does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub object: Value,
    /// Paths like `spec.containers[0].foo`.
    pub unknown: Vec<String>,
}

/// Why a body cannot be read as what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// In the words of a reader of JSON.
    pub read: String,
    /// In those of who makes an object of a map, as strategic merges do.
    pub converted: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.read)
    }
}

/// Reads the body as an object of this resource. The error is the cause alone; that the kind
/// cannot be handled is for the caller to say.
pub fn decode(resource: &Resource, body: Value, typed: Typed<'_>) -> Result<Decoded, Unfit> {
    decode_kind(&resource.api_version(), &resource.kind, body, typed)
}

/// As [`decode`], for bodies that are not of the resource's own kind, such as `Scale`.
pub fn decode_kind(
    api_version: &str,
    kind: &str,
    body: Value,
    typed: Typed<'_>,
) -> Result<Decoded, Unfit> {
    let mut reader = Reader { kind, path: String::new(), unknown: Vec::new() };
    let mut object = reader.value(body, typed).map_err(|wrong| wrong.told(kind))?;
    forget_empty_labels(&mut object);
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".to_owned(), api_version.into());
        map.insert("kind".to_owned(), kind.into());
    }
    reader.unknown.sort();
    Ok(Decoded { object, unknown: reader.unknown })
}

/// They are told from none only where they are refused.
fn forget_empty_labels(object: &mut Value) {
    let labels = at(object, &["spec", "template", "metadata", "labels"]);
    let empty = labels.and_then(Value::as_object).is_some_and(Map::is_empty);
    let selector = at(object, &["spec", "selector"]);
    if empty && selector.is_some_and(|selector| selectors::matches(selector, labels)) {
        let metadata = at_mut(object, &["spec", "template", "metadata"]);
        metadata.and_then(Value::as_object_mut).map(|map| map.remove("labels"));
    }
}

/// Reads the metadata of an object of any kind in place and returns the fields that it does not have.
pub fn decode_metadata(object: &mut Value) -> Result<Vec<String>, Unfit> {
    let typed = types::builtin().object_meta();
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or("ObjectMeta").to_owned();
    let (Some(typed), Some(map)) = (typed, object.as_object_mut()) else { return Ok(Vec::new()) };
    let mut reader = Reader { kind: &kind, path: "metadata".to_owned(), unknown: Vec::new() };
    let metadata = match map.remove("metadata") {
        None | Some(Value::Null) => zero(typed),
        Some(metadata) => reader
            .value(metadata, typed)
            .map_err(|wrong| wrong.within(&kind, "metadata").told(&kind))?,
    };
    map.insert("metadata".to_owned(), metadata);
    Ok(reader.unknown)
}

struct Reader<'a> {
    kind: &'a str,
    path: String,
    unknown: Vec<String>,
}

impl Reader<'_> {
    fn value(&mut self, value: Value, typed: Typed<'_>) -> Result<Value, Wrong> {
        match typed.form() {
            Form::Any => Ok(value),
            Form::Scalar(scalar) => self.scalar(value, *scalar, go_name(*scalar)),
            Form::Struct(form) => match value {
                Value::Object(map) => self.object(map, form, typed),
                other => Err(Wrong::form(other, typed)),
            },
            Form::Map { values, .. } => match value {
                Value::Object(map) => {
                    let typed = typed.at(*values);
                    let mut out = Map::new();
                    for (key, value) in map {
                        let value = self.beneath(&key, |reader| reader.element(value, typed))?;
                        out.insert(key, value);
                    }
                    Ok(Value::Object(out))
                }
                other => Err(Wrong::form(other, typed)),
            },
            Form::List { items, .. } => match value {
                Value::Array(list) => {
                    let typed = typed.at(*items);
                    let items = list.into_iter().enumerate().map(|(index, value)| {
                        let length = self.path.len();
                        self.path.push_str(&format!("[{index}]"));
                        let value = self.element(value, typed);
                        self.path.truncate(length);
                        value
                    });
                    items.collect::<Result<_, _>>().map(Value::Array)
                }
                other => Err(Wrong::form(other, typed)),
            },
        }
    }

    /// Of a map or list, where Go has a zero value for null.
    fn element(&mut self, value: Value, typed: Typed<'_>) -> Result<Value, Wrong> {
        if value.is_null() { Ok(zero(typed)) } else { self.value(value, typed) }
    }

    fn object(
        &mut self,
        mut map: Map<String, Value>,
        form: &Struct,
        typed: Typed<'_>,
    ) -> Result<Value, Wrong> {
        let mut out = Map::new();
        let holder = typed;
        for (name, field) in &form.fields {
            let given = map.remove(name).filter(|value| !value.is_null());
            let typed = typed.at(field.form);
            let value = match given {
                Some(value) => {
                    let read = self.beneath(name, |reader| reader.field(value, field, typed));
                    Some(read.map_err(|wrong| wrong.within(self.name_of(holder), name))?)
                }
                None => None,
            };
            let told = value.is_some() && self.tells_empty(name);
            let value = if told { value } else { printed(value, field, typed) };
            if let Some(value) = value {
                out.insert(name.clone(), value);
            }
        }
        for (name, value) in map {
            match form.others {
                Some(others) => {
                    let typed = typed.at(others);
                    let value = self.beneath(&name, |reader| reader.value(value, typed))?;
                    out.insert(name, value);
                }
                None => self.unknown.push(self.join(&name)),
            }
        }
        Ok(Value::Object(out))
    }

    /// The name of a struct in Go, where it has one.
    fn name_of(&self, typed: Typed<'_>) -> &str {
        let name = types::builtin().name_of(typed).and_then(|name| name.rsplit('.').next());
        name.unwrap_or(self.kind)
    }

    /// Pods that nobody could select are refused, in words that tell empty labels from none.
    fn tells_empty(&self, name: &str) -> bool {
        let refused = matches!(self.kind, "Deployment" | "ReplicaSet");
        refused && self.path == "spec.template.metadata" && name == "labels"
    }

    fn field(&mut self, value: Value, field: &Field, typed: Typed<'_>) -> Result<Value, Wrong> {
        if !field.narrow {
            return self.value(value, typed);
        }
        let Form::Scalar(scalar) = typed.form() else { return self.value(value, typed) };
        let wide = value.is_number() && value.as_i64().is_none_or(|n| i32::try_from(n).is_err());
        if wide { Err(Wrong::scalar(value, "int32")) } else { self.scalar(value, *scalar, "int32") }
    }

    /// Go calls the type `wanted`.
    fn scalar(&self, value: Value, scalar: Scalar, wanted: &str) -> Result<Value, Wrong> {
        match (scalar, value) {
            (Scalar::String, value @ Value::String(_))
            | (Scalar::Boolean, value @ Value::Bool(_))
            | (Scalar::Number, value @ Value::Number(_))
            | (Scalar::IntOrString, value @ Value::String(_))
            | (Scalar::Untyped, value) => Ok(value),
            (Scalar::Integer | Scalar::IntOrString, Value::Number(number)) => {
                if number.is_i64() {
                    Ok(Value::Number(number))
                } else {
                    Err(Wrong::scalar(Value::Number(number), wanted))
                }
            }
            (Scalar::Quantity, Value::String(text)) => Ok(self.quantity(&text)?),
            (Scalar::Quantity, Value::Number(number)) => Ok(self.quantity(&number.to_string())?),
            (Scalar::Time, Value::String(text)) => Ok(time_or_null(&text, time::seconds)?),
            (Scalar::MicroTime, Value::String(text)) => Ok(time_or_null(&text, time::micros)?),
            (Scalar::Bytes, Value::String(text)) => Ok(bytes(&text)?),
            (_, other) => Err(Wrong::scalar(other, wanted)),
        }
    }

    fn quantity(&self, text: &str) -> Result<Value, String> {
        let quantity = Quantity::parse(text.trim()).map_err(|error| error.to_string())?;
        Ok(quantity.to_string().into())
    }

    fn beneath<T>(&mut self, name: &str, step: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let result = step(self);
        self.path.truncate(length);
        result
    }

    fn join(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

/// What does not fit.
enum Wrong {
    Text(String),
    Value(Box<Mismatch>),
}

/// A value of another type. Its place is added on the way out.
struct Mismatch {
    value: Value,
    /// Go's name for the type that is wanted.
    wanted: String,
    converted: String,
    /// The innermost struct, and the fields that lead to the value, the last first.
    holder: String,
    fields: Vec<String>,
}

impl From<String> for Wrong {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Wrong {
    fn new(value: Value, wanted: &str, converted: String) -> Self {
        let (wanted, holder, fields) = (wanted.to_owned(), String::new(), Vec::new());
        Self::Value(Box::new(Mismatch { value, wanted, converted, holder, fields }))
    }

    /// No struct, map or list where one is wanted.
    fn form(value: Value, typed: Typed<'_>) -> Self {
        let restored = match typed.form() {
            Form::Struct(_) => "struct from:",
            Form::Map { .. } => "map from",
            _ => "slice from",
        };
        let converted = format!("cannot restore {restored} {}", go_kind(&value));
        Self::new(value, &go_type(typed), converted)
    }

    fn scalar(value: Value, wanted: &str) -> Self {
        let converted = match value.is_number() && wanted != "bool" {
            true => format!("cannot convert {} to {wanted}", go_kind(&value)),
            false => format!("unrecognized type: {wanted}"),
        };
        Self::new(value, wanted, converted)
    }

    fn within(mut self, name: &str, field: &str) -> Self {
        if let Self::Value(mismatch) = &mut self {
            if mismatch.fields.is_empty() {
                mismatch.holder = name.to_owned();
            }
            mismatch.fields.push(field.to_owned());
        }
        self
    }

    fn told(self, kind: &str) -> Unfit {
        let Mismatch { value, wanted, converted, holder, mut fields } = match self {
            Self::Text(text) => return Unfit { read: text.clone(), converted: text },
            Self::Value(mismatch) => *mismatch,
        };
        let got = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            // Go names the number only when numbers as such would do.
            Value::Number(number) if wanted.starts_with("int") => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        fields.reverse();
        let place = match fields.as_slice() {
            [] => format!("Go value of type {kind}"),
            fields => format!("Go struct field {holder}.{} of type {wanted}", fields.join(".")),
        };
        Unfit { read: format!("json: cannot unmarshal {got} into {place}"), converted }
    }
}

/// What is printed of a field that was given so, or not at all.
pub(crate) fn printed(given: Option<Value>, field: &Field, typed: Typed<'_>) -> Option<Value> {
    match (field.zero, given) {
        (Zero::Kept, given) => given,
        (Zero::Omitted, given) => given.filter(|value| !is_zero(value)),
        (Zero::Printed, given) => Some(given.unwrap_or_else(|| zero(typed))),
        (Zero::PrintedNull, given) => Some(given.unwrap_or(Value::Null)),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// How Go prints the zero value of this type.
pub(crate) fn zero(typed: Typed<'_>) -> Value {
    match typed.form() {
        Form::Any => Value::Null,
        Form::Map { .. } => Value::Object(Map::new()),
        Form::List { .. } => Value::Array(Vec::new()),
        Form::Struct(form) => {
            let fields = form.fields.iter().filter_map(|(name, field)| {
                // A type that holds itself is behind a pointer, so this ends.
                Some((name.clone(), printed(None, field, typed.at(field.form))?))
            });
            Value::Object(fields.collect())
        }
        Form::Scalar(Scalar::String | Scalar::Bytes) => "".into(),
        Form::Scalar(Scalar::Boolean) => false.into(),
        Form::Scalar(Scalar::Integer | Scalar::Number | Scalar::IntOrString) => 0.into(),
        Form::Scalar(Scalar::Quantity) => "0".into(),
        Form::Scalar(Scalar::Time | Scalar::MicroTime | Scalar::Untyped) => Value::Null,
    }
}

fn time_or_null(
    text: &str,
    read: impl Fn(&str) -> Result<String, time::Error>,
) -> Result<Value, String> {
    read(text).map(Value::from).map_err(|error| error.to_string())
}

fn bytes(text: &str) -> Result<Value, String> {
    let dense: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    match STANDARD.decode(&dense) {
        Ok(bytes) => Ok(STANDARD.encode(bytes).into()),
        Err(base64::DecodeError::InvalidByte(at, _)) => {
            Err(format!("illegal base64 data at input byte {at}"))
        }
        Err(_) => Err(format!("illegal base64 data at input byte {}", dense.len() / 4 * 4)),
    }
}

fn go_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String | Scalar::Time | Scalar::MicroTime => "string",
        Scalar::Integer => "int64",
        Scalar::Number => "float64",
        Scalar::Boolean => "bool",
        Scalar::Quantity => "resource.Quantity",
        Scalar::IntOrString => "int32",
        Scalar::Bytes => "[]uint8",
        Scalar::Untyped => "interface {}",
    }
}

fn go_type(typed: Typed<'_>) -> String {
    match typed.form() {
        Form::Any => "interface {}".to_owned(),
        Form::Scalar(scalar) => go_name(*scalar).to_owned(),
        Form::Map { values, .. } => format!("map[string]{}", go_type(typed.at(*values))),
        Form::List { items, .. } => format!("[]{}", go_type(typed.at(*items))),
        Form::Struct(_) => {
            let name = types::builtin().name_of(typed).unwrap_or("struct");
            let package = name.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
            name[package..].to_owned()
        }
    }
}

/// How Go calls the kind of a value in a map of anything.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
