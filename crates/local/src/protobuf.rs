//! Request bodies in protobuf, read into JSON by the numbers in the table of built-in types.
//!
//! kubectl's typed commands send nothing else. Whatever the bytes are, reading them ends in a value or
//! an error.

mod wire;

#[cfg(test)]
mod tests;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Number, Value};

use crate::{
    builtin,
    types::{self, Field, Form, Scalar, Struct, Typed},
};
use wire::{Reader, Wire};

/// Before every body, so that nobody takes it for something else.
const MAGIC: &[u8] = b"k8s\0";
/// Deeper than any kind goes; schemas of definitions are the only ones that nest at will.
const DEPTH: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("provided data does not appear to be a protobuf message, expected prefix {MAGIC:?}")]
    Prefix,
    #[error("the protobuf message ends too early")]
    Truncated,
    #[error("the protobuf message is not well formed")]
    Malformed,
    #[error("field {0:?} is not of the type that the protobuf message gives it")]
    Type(String),
    #[error("the protobuf message nests too deeply")]
    Depth,
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    Kind { api_version: String, kind: String },
}

/// The object in the body, with its `apiVersion` and `kind`.
pub fn decode(body: &[u8]) -> Result<Value, Error> {
    let envelope = body.strip_prefix(MAGIC).ok_or(Error::Prefix)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut reader = Reader::new(envelope);
    while let Some((number, value)) = reader.field()? {
        match (number, value) {
            (1, Wire::Bytes(meta)) => (api_version, kind) = type_meta(meta)?,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let typed = lookup(&api_version, &kind)
        .ok_or_else(|| Error::Kind { api_version: api_version.clone(), kind: kind.clone() })?;
    let mut object = match typed.form() {
        Form::Struct(form) => message(raw, form, typed, None, 0)?,
        _ => Map::new(),
    };
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

fn type_meta(bytes: &[u8]) -> Result<(String, String), Error> {
    let (mut api_version, mut kind) = (String::new(), String::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.field()? {
        match (number, value) {
            (1, Wire::Bytes(bytes)) => api_version = text(bytes, "apiVersion")?,
            (2, Wire::Bytes(bytes)) => kind = text(bytes, "kind")?,
            _ => {}
        }
    }
    Ok((api_version, kind))
}

fn lookup(api_version: &str, kind: &str) -> Option<Typed<'static>> {
    let table = types::builtin();
    // Options are the same in every group and version.
    let shared = || (kind == "DeleteOptions").then(|| table.kind("v1", kind)).flatten();
    table.kind(api_version, kind).or_else(shared)
}

fn text(bytes: &[u8], name: &str) -> Result<String, Error> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::Type(name.to_owned()))
}

/// Reads the fields of a message. Those that Go embeds lie one message deeper, but not in JSON.
fn message(
    bytes: &[u8],
    form: &Struct,
    typed: Typed<'_>,
    within: Option<u32>,
    depth: usize,
) -> Result<Map<String, Value>, Error> {
    if depth > DEPTH {
        return Err(Error::Depth);
    }
    let mut out = Map::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        let mut fields = form.fields.iter().filter(|(name, _)| depth > 0 || !is_type_meta(name));
        let found = fields
            .clone()
            .find(|(_, field)| field.number == Some(number) && field.within == within);
        if let Some((name, field)) = found {
            add(&mut out, name, field, typed.at(field.form), wire, depth)?;
        } else if within.is_none() && fields.any(|(_, field)| field.within == Some(number)) {
            let Wire::Bytes(bytes) = wire else { return Err(Error::Malformed) };
            out.append(&mut message(bytes, form, typed, Some(number), depth)?);
        }
    }
    Ok(finished(out, form, typed))
}

/// The two fields of an object that stand in the envelope instead.
fn is_type_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind")
}

/// Zero values of fields that are no pointers in Go are always sent and mean nothing.
fn finished(fields: Map<String, Value>, form: &Struct, typed: Typed<'_>) -> Map<String, Value> {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    let fields = fields.filter_map(|(name, value)| {
        let field = form.fields.get(&name)?;
        Some((name, builtin::printed(Some(value), field, typed.at(field.form))?))
    });
    fields.collect()
}

fn add(
    out: &mut Map<String, Value>,
    name: &str,
    field: &Field,
    typed: Typed<'_>,
    wire: Wire<'_>,
    depth: usize,
) -> Result<(), Error> {
    let wrong = || Error::Type(name.to_owned());
    match typed.form() {
        Form::List { items, .. } => {
            let list = out.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            let list = list.as_array_mut().ok_or_else(wrong)?;
            let items = typed.at(*items);
            match (items.form(), wire) {
                (Form::Scalar(Scalar::Integer), Wire::Bytes(packed)) => {
                    let mut reader = Reader::new(packed);
                    while let Some(number) = reader.varint_or_end()? {
                        list.push((number as i64).into());
                    }
                }
                (_, wire) => list.push(value(name, items, wire, depth + 1)?),
            }
        }
        Form::Map { values, .. } => {
            let Wire::Bytes(entry) = wire else { return Err(wrong()) };
            let (key, value) = map_entry(name, entry, typed.at(*values), depth + 1)?;
            let map = out.entry(name).or_insert_with(|| Value::Object(Map::new()));
            map.as_object_mut().ok_or_else(wrong)?.insert(key, value);
        }
        _ => {
            let mut value = value(name, typed, wire, depth + 1)?;
            if field.narrow
                && let Some(number) = value.as_i64()
            {
                value = (number as i32).into();
            }
            out.insert(name.to_owned(), value);
        }
    }
    Ok(())
}

fn map_entry(
    name: &str,
    entry: &[u8],
    values: Typed<'_>,
    depth: usize,
) -> Result<(String, Value), Error> {
    let mut key = String::new();
    let mut found = None;
    let mut reader = Reader::new(entry);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => key = text(bytes, name)?,
            (2, wire) => found = Some(value(name, values, wire, depth)?),
            _ => {}
        }
    }
    Ok((key, found.unwrap_or_else(|| builtin::zero(values))))
}

fn value(name: &str, typed: Typed<'_>, wire: Wire<'_>, depth: usize) -> Result<Value, Error> {
    let wrong = || Error::Type(name.to_owned());
    let value = match (typed.form(), wire) {
        (Form::Struct(form), Wire::Bytes(bytes)) => {
            Value::Object(message(bytes, form, typed, None, depth)?)
        }
        // A list where one value is expected is a message of its own with the items as field 1.
        (Form::List { items, .. }, Wire::Bytes(bytes)) => {
            let mut list = Vec::new();
            let mut reader = Reader::new(bytes);
            while let Some((number, wire)) = reader.field()? {
                if number == 1 {
                    list.push(self::value(name, typed.at(*items), wire, depth + 1)?);
                }
            }
            Value::Array(list)
        }
        (Form::Any, Wire::Bytes(bytes)) => free_form(bytes)?,
        (Form::Scalar(scalar), wire) => self::scalar(name, *scalar, wire)?,
        _ => return Err(wrong()),
    };
    if depth > DEPTH { Err(Error::Depth) } else { Ok(value) }
}

/// JSON inside of a message; what is no JSON is as good as absent.
fn free_form(bytes: &[u8]) -> Result<Value, Error> {
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let (1, Wire::Bytes(raw)) = (number, wire) {
            return Ok(serde_json::from_slice(raw).unwrap_or_default());
        }
    }
    Ok(Value::Null)
}

fn scalar(name: &str, scalar: Scalar, wire: Wire<'_>) -> Result<Value, Error> {
    Ok(match (scalar, wire) {
        (Scalar::String, Wire::Bytes(bytes)) => text(bytes, name)?.into(),
        (Scalar::Integer, Wire::Varint(number)) => (number as i64).into(),
        (Scalar::Boolean, Wire::Varint(number)) => (number != 0).into(),
        (Scalar::Number, Wire::Fixed64(bits)) => {
            Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
        }
        (Scalar::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Scalar::Quantity, Wire::Bytes(bytes)) => quantity(bytes, name)?,
        (Scalar::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes, name)?,
        (Scalar::Time, Wire::Bytes(bytes)) => time(bytes, "%Y-%m-%dT%H:%M:%SZ", name)?,
        (Scalar::MicroTime, Wire::Bytes(bytes)) => time(bytes, "%Y-%m-%dT%H:%M:%S.%6fZ", name)?,
        _ => return Err(Error::Type(name.to_owned())),
    })
}

fn quantity(bytes: &[u8], name: &str) -> Result<Value, Error> {
    let mut amount = String::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let (1, Wire::Bytes(bytes)) = (number, wire) {
            amount = text(bytes, name)?;
        }
    }
    Ok(if amount.is_empty() { "0".into() } else { amount.into() })
}

fn int_or_string(bytes: &[u8], name: &str) -> Result<Value, Error> {
    let (mut is_text, mut int, mut string) = (false, 0, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Varint(kind)) => is_text = kind == 1,
            (2, Wire::Varint(number)) => int = number as i32,
            (3, Wire::Bytes(bytes)) => string = text(bytes, name)?,
            _ => {}
        }
    }
    Ok(if is_text { string.into() } else { int.into() })
}

/// The zero time is an empty message, and as good as absent.
fn time(bytes: &[u8], format: &str, name: &str) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Varint(number)) => seconds = number as i64,
            (2, Wire::Varint(number)) => nanos = number as i32,
            _ => {}
        }
    }
    let time = Timestamp::new(seconds, nanos).map_err(|_| Error::Type(name.to_owned()))?;
    Ok(time.strftime(format).to_string().into())
}
