//! Bodies: JSON, YAML or protobuf, never more than a limit and never deeper than another.

use std::{collections::BTreeSet, fmt, marker::PhantomData, time::Duration};

use axum::body::{Body as Stream, Bytes, to_bytes};
use http::{HeaderMap, header};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use tokio::time::timeout;

use crate::{
    error::{Error, MediaType},
    protobuf,
    registry::{Body, Duplicates},
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

/// How long a body may take. Kubernetes gives a whole request that long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn read(body: Stream) -> Result<Bytes, Error> {
    let read = timeout(PATIENCE, to_bytes(body, LIMIT)).await.map_err(|_| Error::Slow)?;
    // The only other way to fail is a connection that breaks, whose answer nobody reads.
    read.map_err(|_| Error::TooLarge { limit: LIMIT })
}

/// The error is the parser's alone.
pub(super) fn parse(format: Format, bytes: &[u8]) -> Result<Body, String> {
    match format {
        Format::Json => json(bytes),
        Format::Yaml => yaml(bytes),
        Format::Protobuf => {
            let value = protobuf::decode(bytes).map_err(|error| error.to_string())?;
            Ok(Body { value, ..Body::default() })
        }
    }
}

/// How much larger than its text a document may become by aliases.
const GROWTH: usize = 10;

pub(super) fn yaml(bytes: &[u8]) -> Result<Body, String> {
    // Most of what is called YAML is JSON, which is read faster. Of duplicates the line is told.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
        && let Ok(body) = json(bytes)
        && body.duplicates == Duplicates::default()
    {
        return Ok(body);
    }
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
    };
    let mut reading = Reading { left: bytes.len().saturating_mul(GROWTH), ..Reading::default() };
    let read = |reader: serde_saphyr::Deserializer<'_, '_>| {
        Seed::<Spanned<String>>::new(&mut reading).deserialize(reader)
    };
    let value = serde_saphyr::with_deserializer_from_slice_with_options(bytes, options, read);
    let value = value.map_err(|error| error.to_string())?;
    Ok(Body { value, duplicates: Duplicates::Lines(reading.duplicates) })
}

pub(super) fn json(bytes: &[u8]) -> Result<Body, String> {
    let mut reading = Reading { left: usize::MAX, ..Reading::default() };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed::<String>::new(&mut reading);
    let value = seed.deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(Body { value, duplicates: Duplicates::Fields(reading.duplicates) })
}

/// More are not told.
const MOST_DUPLICATES: usize = 100;

#[derive(Default)]
struct Reading {
    path: String,
    /// In the order in which they were found, each once.
    duplicates: Vec<String>,
    known: BTreeSet<String>,
    /// Bytes that may still be read, those of aliases counted each time.
    left: usize,
}

impl Reading {
    fn duplicate(&mut self, told: String) {
        if self.duplicates.len() < MOST_DUPLICATES && self.known.insert(told.clone()) {
            self.duplicates.push(told);
        }
    }

    fn take<E: de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| E::custom("document contains excessive aliasing"))?;
        Ok(())
    }
}

/// The name of a field, and how its second appearance is told.
trait Name: DeserializeOwned {
    fn told(&self, path: &str) -> String;
    fn text(&self) -> &str;
}

impl Name for String {
    fn told(&self, path: &str) -> String {
        path.to_owned()
    }

    fn text(&self) -> &str {
        self
    }
}

impl Name for Spanned<String> {
    fn told(&self, _: &str) -> String {
        format!("line {}: key {:?} already set in map", self.referenced.line(), self.value)
    }

    fn text(&self) -> &str {
        &self.value
    }
}

/// Reads any value; the last of several fields of one name wins, and the others are noted.
struct Seed<'a, N> {
    reading: &'a mut Reading,
    names: PhantomData<N>,
}

impl<'a, N> Seed<'a, N> {
    fn new(reading: &'a mut Reading) -> Self {
        Self { reading, names: PhantomData }
    }
}

impl<'de, N: Name> DeserializeSeed<'de> for Seed<'_, N> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, N: Name> Visitor<'de> for Seed<'_, N> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
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

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        self.reading.take(value.len())?;
        Ok(value.into())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        self.reading.take(value.len())?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let reading = self.reading;
        let (length, mut list) = (reading.path.len(), Vec::new());
        loop {
            reading.path.push_str(&format!("[{}]", list.len()));
            let next = seq.next_element_seed(Seed::<N>::new(reading))?;
            reading.path.truncate(length);
            match next {
                Some(value) => list.push(value),
                None => return Ok(list.into()),
            }
            reading.take(1)?;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let reading = self.reading;
        let (length, mut map) = (reading.path.len(), Map::new());
        while let Some(name) = access.next_key::<N>()? {
            reading.take(name.text().len() + 1)?;
            if length > 0 {
                reading.path.push('.');
            }
            reading.path.push_str(name.text());
            if map.contains_key(name.text()) {
                reading.duplicate(name.told(&reading.path));
            }
            let value = access.next_value_seed(Seed::<N>::new(reading))?;
            reading.path.truncate(length);
            map.insert(name.text().to_owned(), value);
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
        let told = ["b[0].c", "a", "a.d"].map(str::to_owned).to_vec();
        assert_eq!(body.duplicates, Duplicates::Fields(told));
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
    fn duplicates_of_yaml_are_told_with_their_line() {
        for (text, lines) in [
            ("a: 1\nb: {c: 1, c: 2}\na: 3\n", &["line 2: key \"c\"", "line 3: key \"a\""][..]),
            ("{\"a\": 1,\n\"a\": 3, \"b\": {\"c\": 2}}", &["line 2: key \"a\""]),
            ("a: 3\nb: {c: 2}\n", &[]),
        ] {
            let body = yaml(text.as_bytes()).unwrap();
            assert_eq!(body.value, json!({"a": 3, "b": {"c": 2}}), "{text}");
            let told = lines.iter().map(|line| format!("{line} already set in map")).collect();
            assert_eq!(body.duplicates, Duplicates::Lines(told), "{text}");
        }
    }

    #[test]
    fn aliases_multiply_a_document_by_ten_at_most() {
        let text = |uses: usize| {
            let uses: String = (0..uses).map(|at| format!("k{at}: *a\n")).collect();
            format!("x: &a \"{}\"\n{uses}", "x".repeat(100_000))
        };
        assert!(yaml(text(8).as_bytes()).is_ok());
        let refused = yaml(text(20).as_bytes()).unwrap_err();
        assert!(refused.contains("excessive aliasing"), "{refused}");
        let mut nested = String::from("a0: &a0 [x,x,x,x,x,x,x,x]\n");
        for at in 1..8 {
            let inner = format!("*a{}", at - 1);
            nested += &format!("a{at}: &a{at} [{}]\n", [&*inner; 8].join(","));
        }
        assert!(yaml(nested.as_bytes()).is_err());
    }

    #[test]
    fn yaml_knows_the_old_booleans() {
        let body = yaml(b"a: yes\nb: 'yes'\nc: off\n").unwrap();
        assert_eq!(body.value, json!({"a": true, "b": "yes", "c": false}));
    }
}
