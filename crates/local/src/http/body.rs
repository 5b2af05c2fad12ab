//! Bodies: JSON, YAML or protobuf, never more than a limit and never deeper than another.

use std::{collections::BTreeSet, fmt};

use axum::body::{Body as Stream, Bytes, to_bytes};
use http::{HeaderMap, header};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::{
    error::{Error, MediaType},
    protobuf,
    registry::Body,
};

/// What Kubernetes takes.
pub(super) const LIMIT: usize = 3 * 1024 * 1024;

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Yaml,
    Protobuf,
}

/// The type of a body without its parameters; empty when nothing is said.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let given = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |given| given.as_bytes());
    let given = String::from_utf8_lossy(given);
    given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Nothing said means JSON.
pub(super) fn format(headers: &HeaderMap) -> Result<Format, Error> {
    match &*media_type(headers) {
        "" | "application/json" => Ok(Format::Json),
        "application/yaml" => Ok(Format::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Format::Protobuf),
        _ => Err(Error::MediaType(MediaType::Object)),
    }
}

pub(super) async fn read(body: Stream) -> Result<Bytes, Error> {
    // The only other way to fail is a connection that breaks, whose answer nobody reads.
    to_bytes(body, LIMIT).await.map_err(|_| Error::TooLarge { limit: LIMIT })
}

/// The error is the parser's alone.
pub(super) fn parse(format: Format, bytes: &[u8]) -> Result<Body, String> {
    match format {
        Format::Json => json(bytes),
        Format::Yaml => yaml(bytes),
        Format::Protobuf => {
            let value = protobuf::decode(bytes).map_err(|error| error.to_string())?;
            Ok(Body { value, duplicates: Vec::new() })
        }
    }
}

pub(super) fn yaml(bytes: &[u8]) -> Result<Body, String> {
    // Most of what is called YAML is JSON, which is read faster and with its duplicates.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
        && let Ok(body) = json(bytes)
    {
        return Ok(body);
    }
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
    };
    let value = serde_saphyr::from_slice_with_options(bytes, options);
    Ok(Body { value: value.map_err(|error| error.to_string())?, duplicates: Vec::new() })
}

pub(super) fn json(bytes: &[u8]) -> Result<Body, String> {
    let (mut path, mut duplicates) = (String::new(), Duplicates::default());
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed { path: &mut path, duplicates: &mut duplicates };
    let value = seed.deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(Body { value, duplicates: duplicates.found })
}

/// More are not told.
const MOST_DUPLICATES: usize = 100;

/// Paths in the order in which they were found, each once.
#[derive(Default)]
struct Duplicates {
    found: Vec<String>,
    known: BTreeSet<String>,
}

impl Duplicates {
    fn add(&mut self, path: &str) {
        if self.found.len() < MOST_DUPLICATES && self.known.insert(path.to_owned()) {
            self.found.push(path.to_owned());
        }
    }
}

/// Reads any value; the last of several fields of one name wins, and their path is noted.
struct Seed<'a> {
    path: &'a mut String,
    duplicates: &'a mut Duplicates,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let (length, mut list) = (self.path.len(), Vec::new());
        loop {
            self.path.push_str(&format!("[{}]", list.len()));
            let seed = Seed { path: &mut *self.path, duplicates: &mut *self.duplicates };
            let next = seq.next_element_seed(seed)?;
            self.path.truncate(length);
            match next {
                Some(value) => list.push(value),
                None => return Ok(list.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let (length, mut map) = (self.path.len(), Map::new());
        while let Some(name) = access.next_key::<String>()? {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&name);
            if map.contains_key(&name) {
                self.duplicates.add(self.path);
            }
            let seed = Seed { path: &mut *self.path, duplicates: &mut *self.duplicates };
            let value = access.next_value_seed(seed)?;
            self.path.truncate(length);
            map.insert(name, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicates_are_told_and_the_last_wins() {
        let body = super::json(br#"{"a":1,"b":[{"c":1,"c":2}],"a":{"d":1,"d":[],"d":3}}"#).unwrap();
        assert_eq!(body.value, json!({"a": {"d": 3}, "b": [{"c": 2}]}));
        assert_eq!(body.duplicates, ["b[0].c", "a", "a.d"]);
    }

    #[test]
    fn numbers_stay_what_they_are() {
        let text = br#"[1,-1,1.5,18446744073709551615,true,null,"x"]"#;
        let plain: Value = serde_json::from_slice(text).unwrap();
        assert_eq!(super::json(text).unwrap().value, plain);
    }

    #[test]
    fn what_is_too_deep_or_broken_is_refused() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in [&*deep, "", "{", "{\"a\":1}x", "\u{0}", "{\"a\"}", "[1,]"] {
            assert!(super::json(text.as_bytes()).is_err(), "{text}");
        }
        assert!(super::json(&[0xff, 0xfe]).is_err());
        assert!(yaml(deep.as_bytes()).is_err());
    }

    #[test]
    fn yaml_knows_the_old_booleans() {
        let body = yaml(b"a: yes\nb: 'yes'\nc: off\n").unwrap();
        assert_eq!(body.value, json!({"a": true, "b": "yes", "c": false}));
    }
}
