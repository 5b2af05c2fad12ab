//! One step of a path: a field, or an item of a list.

use std::{cmp::Ordering, fmt};

use serde_json::{Map, Value};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A field of a struct or a key of a map.
    Field(String),
    /// The item of a list whose keys have these values; sorted by name.
    Key(Vec<(String, Scalar)>),
    /// The item of a set.
    Value(Scalar),
    /// The item of an atomic list. Kubernetes reads these and makes none.
    Index(i64),
}

/// A value that can be told apart from others and put in order: numbers, then text, then the rest.
#[derive(Clone, Debug)]
pub struct Scalar(Value);

impl Element {
    pub fn field(name: &str) -> Element {
        Element::Field(name.to_owned())
    }

    pub fn key(mut keys: Vec<(String, Scalar)>) -> Element {
        keys.sort_by(|(a, _), (b, _)| a.cmp(b));
        Element::Key(keys)
    }

    /// As in `f:spec`. `None` for elements of a kind that a later version may know.
    pub fn read(text: &str) -> Result<Option<Element>, String> {
        let broken =
            |error: &dyn fmt::Display| format!("cannot read the path element {text:?}: {error}");
        let Some((kind, rest)) = text.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
            return Ok(None);
        };
        let json = || serde_json::from_str::<Value>(rest).map_err(|error| broken(&error));
        Ok(Some(match kind {
            "f" => Element::field(rest),
            "v" => Element::Value(Scalar::new(json()?)),
            "k" => {
                let Value::Object(keys) = json()? else { return Err(broken(&"not a map of keys")) };
                Element::key(
                    keys.into_iter().map(|(name, value)| (name, Scalar::new(value))).collect(),
                )
            }
            "i" => Element::Index(rest.parse().map_err(|error| broken(&error))?),
            _ => return Ok(None),
        }))
    }

    pub fn write(&self) -> String {
        match self {
            Element::Field(name) => format!("f:{name}"),
            Element::Key(keys) => {
                let keys: Map<String, Value> =
                    keys.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
                format!("k:{}", Value::Object(keys))
            }
            Element::Value(value) => format!("v:{}", value.0),
            Element::Index(index) => format!("i:{index}"),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Key(keys) => {
                f.write_str("[")?;
                for (index, (name, value)) in keys.iter().enumerate() {
                    write!(f, "{}{name}={}", if index == 0 { "" } else { "," }, value.0)?;
                }
                f.write_str("]")
            }
            Element::Value(value) => write!(f, "[={}]", value.0),
            Element::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl Scalar {
    /// Numbers without a fraction are integers, however they were written.
    pub fn new(value: Value) -> Scalar {
        let whole = value.as_f64().filter(|number| {
            !value.is_i64() && !value.is_u64() && number.fract() == 0.0 && number.abs() < 9e15
        });
        Scalar(whole.map_or(value, |number| Value::from(number as i64)))
    }

    fn rank(&self) -> u8 {
        match &self.0 {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Scalar) -> Ordering {
        let by_kind = || self.rank().cmp(&other.rank());
        match (&self.0, &other.0) {
            (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => {
                    let [a, b] = [a, b].map(|number| number.as_f64().unwrap_or_default());
                    a.total_cmp(&b)
                }
            },
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            // Never the item of a set; they only need some order.
            (Value::Array(_) | Value::Object(_), Value::Array(_) | Value::Object(_)) => {
                by_kind().then_with(|| self.0.to_string().cmp(&other.0.to_string()))
            }
            _ => by_kind(),
        }
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Scalar) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}
