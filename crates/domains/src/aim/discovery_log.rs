//! From the log of a discovery pod to what the image said it holds.
//!
//! The image prints one JSON array among whatever else it has to say, so the array must be found.
//! The log is untrusted: what is read, parsed and kept of it is bounded.

mod search;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use search::Effort;
use serde_json::{Map, Value, json};

/// How much of a log is looked through: its end, since the result is what the image prints last.
const LOG_LIMIT_BYTES: usize = 4 << 20;

/// A result over this size is not looked into.
const MAX_ELEMENT: usize = 1 << 20;

/// Nor can an object be stored that holds more than this of it.
const MAX_STORED: usize = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Discovered {
    pub(crate) sources: Vec<Source>,
    pub(crate) profile: Profile,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) uri: String,
    /// A Kubernetes quantity.
    pub(crate) size: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Profile {
    /// An object.
    pub(crate) engine_args: Option<Value>,
    pub(crate) env_vars: BTreeMap<String, String>,
    pub(crate) metadata: Metadata,
}

/// Empty texts and a count of zero are the same as none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metadata {
    pub(crate) engine: Option<String>,
    pub(crate) gpu: Option<String>,
    pub(crate) gpu_count: Option<i32>,
    pub(crate) metric: Option<String>,
    pub(crate) precision: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to parse discovery JSON: no valid JSON array found in logs")]
    NoArray,
    #[error("discovery output contains empty array")]
    EmptyArray,
    #[error("failed to parse discovery JSON: a result has more than {MAX_ELEMENT} bytes")]
    TooLong,
    #[error(
        "failed to parse discovery JSON: the result takes more than {MAX_STORED} bytes to store"
    )]
    TooMuch,
}

/// Of a log over [`LOG_LIMIT_BYTES`] only the end counts.
pub(crate) fn parse(log: &[u8]) -> Result<Discovered, Error> {
    let log = &log[log.len().saturating_sub(LOG_LIMIT_BYTES)..];
    let text = String::from_utf8_lossy(log);
    let mut effort = Effort::for_a_log_of(text.len());
    let found = whole(text.trim(), &mut effort).unwrap_or_else(|| {
        let found = search::last_result(&text, &mut effort);
        found.ok_or(if effort.too_long { Error::TooLong } else { Error::NoArray })
    })?;
    match found.stored_bytes() > MAX_STORED {
        true => Err(Error::TooMuch),
        false => Ok(found),
    }
}

impl Discovered {
    /// How much of an object it takes.
    fn stored_bytes(&self) -> usize {
        let source = |source: &Source| {
            let Source { name, uri, size } = source;
            json!({ "name": name, "sourceUri": uri, "size": size })
        };
        let Profile { engine_args, env_vars, metadata } = &self.profile;
        let Metadata { engine, gpu, gpu_count, metric, precision } = metadata;
        stored::bytes(&json!({
            "modelSources": self.sources.iter().map(source).collect::<Value>(),
            "profile": {
                "engine_args": engine_args,
                "env_vars": env_vars,
                "metadata": { "engine": engine, "gpu": gpu, "gpu_count": gpu_count,
                    "metric": metric, "precision": precision },
            },
        }))
    }
}

/// Where the log is nothing but an array.
fn whole(text: &str, effort: &mut Effort) -> Option<Result<Discovered, Error>> {
    if text == "null" {
        return Some(Err(Error::EmptyArray));
    }
    let text = Some(text).filter(|text| text.ends_with(']'))?.as_bytes();
    let (array, _) = search::array(text, effort).filter(|(_, length)| *length == text.len())?;
    Some(match array.elements {
        0 => Err(Error::EmptyArray),
        _ => array.result.ok_or(Error::NoArray),
    })
}

/// Some value is not of the type that its key asks for.
#[derive(Debug)]
struct Mismatch;

fn result(value: &Value) -> Result<Discovered, Mismatch> {
    let result = Fields::of(Some(value))?;
    result.text("filename")?;
    let profile = Fields::of(result.get("profile"))?;
    profile.text("model")?;
    profile.text("quantized_model")?;
    let metadata = Fields::of(profile.get("metadata"))?;
    Ok(Discovered {
        sources: result.list("models")?.iter().map(source).collect::<Result<_, _>>()?,
        profile: Profile {
            engine_args: profile.object("engine_args")?.map(|args| Value::Object(args.clone())),
            env_vars: env_vars(profile.object("env_vars")?)?,
            metadata: Metadata {
                engine: metadata.non_empty("engine")?,
                gpu: metadata.non_empty("gpu")?,
                gpu_count: metadata.count("gpu_count")?.filter(|count| *count != 0),
                metric: metadata.non_empty("metric")?,
                precision: metadata.non_empty("precision")?,
            },
        },
    })
}

fn source(value: &Value) -> Result<Source, Mismatch> {
    let source = Fields::of(Some(value))?;
    Ok(Source {
        name: source.text("name")?.unwrap_or_default().to_owned(),
        uri: source.text("source")?.unwrap_or_default().to_owned(),
        size: quantity(source.number("size_gb")?.unwrap_or_default()),
    })
}

fn env_vars(object: Option<&Map<String, Value>>) -> Result<BTreeMap<String, String>, Mismatch> {
    let variable = |(name, value): (&String, &Value)| match value {
        Value::Null => Ok((name.clone(), String::new())),
        Value::String(text) => Ok((name.clone(), text.clone())),
        _ => Err(Mismatch),
    };
    object.into_iter().flatten().map(variable).collect()
}

/// Whole bytes in the largest binary unit that needs no fraction.
fn quantity(gib: f64) -> String {
    let mut number = (gib * f64::from(1_u32 << 30)) as i64;
    let mut units = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].into_iter();
    let mut unit = "";
    while number != 0 && number % 1024 == 0 {
        let Some(larger) = units.next() else { break };
        number /= 1024;
        unit = larger;
    }
    format!("{number}{unit}")
}

/// The fields of an object, found whatever their case; `null` is the same as absent.
struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    fn of(value: Option<&'a Value>) -> Result<Self, Mismatch> {
        match value {
            None | Some(Value::Null) => Ok(Self(None)),
            Some(Value::Object(object)) => Ok(Self(Some(object))),
            Some(_) => Err(Mismatch),
        }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        let object = self.0?;
        let any_case = || object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        object.get(name).or_else(|| Some(any_case()?.1)).filter(|value| !value.is_null())
    }

    fn object(&self, name: &str) -> Result<Option<&'a Map<String, Value>>, Mismatch> {
        Ok(Self::of(self.get(name))?.0)
    }

    fn list(&self, name: &str) -> Result<&'a [Value], Mismatch> {
        match self.get(name) {
            None => Ok(&[]),
            Some(value) => Ok(value.as_array().ok_or(Mismatch)?),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, Mismatch> {
        self.get(name).map(|value| value.as_str().ok_or(Mismatch)).transpose()
    }

    fn non_empty(&self, name: &str) -> Result<Option<String>, Mismatch> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()).map(str::to_owned))
    }

    fn number(&self, name: &str) -> Result<Option<f64>, Mismatch> {
        self.get(name).map(|value| value.as_f64().ok_or(Mismatch)).transpose()
    }

    fn count(&self, name: &str) -> Result<Option<i32>, Mismatch> {
        let count = |value: &Value| i32::try_from(value.as_i64()?).ok();
        self.get(name).map(|value| count(value).ok_or(Mismatch)).transpose()
    }
}
