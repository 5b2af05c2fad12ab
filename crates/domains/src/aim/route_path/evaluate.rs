//! Walks the steps of an expression over a service. Texts of errors are those of kubectl.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use super::fields::{EMBEDDED, Field, SERVICE, Shape, named, promoted};
use super::jsonpath::{self, Filter, Step};

pub(super) const MAX_EXPRESSION: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("jsonpath expression is empty")]
    Empty,
    #[error("jsonpath expression exceeds {MAX_EXPRESSION} bytes")]
    TooLong,
    #[error("invalid jsonpath expression: {0}")]
    Syntax(String),
    #[error("jsonpath evaluation error: {0}")]
    Evaluation(String),
    #[error("jsonpath evaluation error: more than {} values to visit", Work::LIMIT)]
    TooMuchWork,
    #[error("jsonpath returned no results")]
    NoResults,
    #[error("jsonpath returned multiple results")]
    MultipleResults,
    #[error("jsonpath returned nil value")]
    Nil,
    #[error("jsonpath returned an object")]
    Object,
    #[error("jsonpath returned a list")]
    List,
}

/// What is left to be done for one template. Repeated descents and unions would multiply values.
pub(super) struct Work {
    left: usize,
}

impl Work {
    /// Far more than the values of any service, so that only what visits them again and again ends.
    pub(super) const LIMIT: usize = 100_000;

    #[cfg(test)]
    pub(super) fn done(&self) -> usize {
        Self::LIMIT - self.left
    }

    fn visit(&mut self, values: usize) -> Result<(), Error> {
        self.left = self.left.checked_sub(values).ok_or(Error::TooMuchWork)?;
        Ok(())
    }
}

impl Default for Work {
    fn default() -> Self {
        Self { left: Self::LIMIT }
    }
}

/// The one scalar that an expression leads to, as text.
pub(super) fn single(expression: &str, service: &Value, work: &mut Work) -> Result<String, Error> {
    if expression.is_empty() {
        return Err(Error::Empty);
    }
    if expression.len() > MAX_EXPRESSION {
        return Err(Error::TooLong);
    }
    let steps = jsonpath::parse(expression).map_err(Error::Syntax)?;
    let root = Found::Node(Node::new(Some(service), &SERVICE));
    match *walk(&steps, vec![root], work)? {
        [] => Err(Error::NoResults),
        [found] => match found.view() {
            View::Scalar(scalar) => Ok(scalar.to_string()),
            View::Nil => Err(Error::Nil),
            View::Fields(..) | View::Map(..) => Err(Error::Object),
            View::List(..) => Err(Error::List),
        },
        _ => Err(Error::MultipleResults),
    }
}

#[derive(Clone, Copy)]
enum Found<'a> {
    Node(Node<'a>),
    Literal(Scalar<'a>),
}

/// A place in the service, whether or not anything is there.
#[derive(Clone, Copy)]
struct Node<'a> {
    value: Option<&'a Value>,
    shape: &'static Shape,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scalar<'a> {
    Text(&'a str),
    Int(i64),
    Float(f64),
    Flag(bool),
}

enum View<'a> {
    Fields(&'static [Field], Option<&'a Map<String, Value>>),
    Map(Option<&'a Map<String, Value>>, &'static Shape),
    List(&'a [Value], &'static Shape),
    Scalar(Scalar<'a>),
    Nil,
}

fn walk<'a>(
    steps: &'a [Step],
    mut found: Vec<Found<'a>>,
    work: &mut Work,
) -> Result<Vec<Found<'a>>, Error> {
    for step in steps {
        found = take(step, found, work)?;
    }
    Ok(found)
}

fn take<'a>(
    step: &'a Step,
    input: Vec<Found<'a>>,
    work: &mut Work,
) -> Result<Vec<Found<'a>>, Error> {
    // A step costs something even where nothing is left to look at.
    work.visit(input.len() + 1)?;
    let mut output = Vec::new();
    match step {
        Step::Field(name) => {
            for found in &input {
                output.extend(found.child(name)?);
            }
            if output.is_empty() && !input.is_empty() {
                return Err(Error::Evaluation(format!("{name} is not found")));
            }
        }
        Step::Wildcard => {
            for found in &input {
                push_children(*found, &mut output, work)?;
            }
        }
        Step::Recursive => {
            // Below each thing comes what is in it, hence a stack; the last on it is next.
            let mut stack: Vec<Found<'a>> = input.into_iter().rev().collect();
            while let Some(found) = stack.pop() {
                let mut children = Vec::new();
                push_children(found, &mut children, work)?;
                if !children.is_empty() {
                    output.push(found);
                    stack.extend(children.into_iter().rev());
                }
            }
        }
        Step::Index(index) => {
            for found in &input {
                let Some((items, shape)) = found.items("")? else { continue };
                let at = position(*index, items.len());
                let item = usize::try_from(at).ok().and_then(|at| items.get(at));
                let item = item.ok_or_else(|| out_of_bounds(at, items.len()))?;
                output.push(Found::Node(Node::new(Some(item), shape)));
            }
        }
        Step::Slice { start, end, step } => {
            for found in &input {
                let Some((items, shape)) = found.items("")? else { continue };
                for item in slice(items, *start, *end, *step)? {
                    work.visit(1)?;
                    output.push(Found::Node(Node::new(Some(item), shape)));
                }
            }
        }
        Step::Union(steps) => {
            for step in steps {
                output.extend(take(step, input.clone(), work)?);
            }
        }
        Step::Filter(filter) => {
            for found in &input {
                let items = found.items(" and cannot be filtered")?;
                let (items, shape) = items.unwrap_or((&[], &Shape::Any));
                for item in items {
                    work.visit(1)?;
                    let item = Found::Node(Node::new(Some(item), shape));
                    if passes(filter, item, work)? {
                        output.push(item);
                    }
                }
            }
        }
        Step::Text(text) => output.push(Found::Literal(Scalar::Text(text))),
        Step::Int(int) => output = vec![Found::Literal(Scalar::Int(*int)); input.len()],
        Step::Float(float) => output = vec![Found::Literal(Scalar::Float(*float)); input.len()],
        Step::Flag(flag) => output = vec![Found::Literal(Scalar::Flag(*flag)); input.len()],
        Step::Identifier(name) => {
            return Err(Error::Evaluation(match name.as_str() {
                "end" => "not in range, nothing to end".to_owned(),
                name => format!("unrecognized identifier {name}"),
            }));
        }
    }
    Ok(output)
}

fn push_children<'a>(
    found: Found<'a>,
    output: &mut Vec<Found<'a>>,
    work: &mut Work,
) -> Result<(), Error> {
    work.visit(1)?;
    let mut push = |value: Option<&'a Value>, shape: &'static Shape| {
        work.visit(1)?;
        output.push(Found::Node(Node::new(value, shape)));
        Ok(())
    };
    match found.view() {
        View::Fields(fields, object) => fields
            .iter()
            .filter(|(_, shape)| !matches!(shape, Shape::Changing | Shape::Inline(_)))
            .try_for_each(|(name, shape)| push(object.and_then(|object| object.get(*name)), shape)),
        View::Map(map, shape) => {
            map.into_iter().flatten().try_for_each(|(_, value)| push(Some(value), shape))
        }
        View::List(items, shape) => items.iter().try_for_each(|item| push(Some(item), shape)),
        View::Scalar(_) | View::Nil => Ok(()),
    }
}

fn passes<'a>(filter: &'a Filter, item: Found<'a>, work: &mut Work) -> Result<bool, Error> {
    let left = walk(&filter.left, vec![item], work);
    let Some((operator, right)) = &filter.comparison else {
        return match left {
            Err(Error::TooMuchWork) => Err(Error::TooMuchWork),
            left => Ok(left.is_ok_and(|left| !left.is_empty())),
        };
    };
    let Some(left) = at_most_one(left?)? else { return Ok(false) };
    let Some(right) = at_most_one(walk(right, vec![item], work)?)? else { return Ok(false) };
    compare(operator, left, right).map_err(Error::Evaluation)
}

fn at_most_one(found: Vec<Found<'_>>) -> Result<Option<Found<'_>>, Error> {
    match *found {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(Error::Evaluation("can only compare one element at a time".to_owned())),
    }
}

fn compare(operator: &str, left: Found<'_>, right: Found<'_>) -> Result<bool, String> {
    let (View::Scalar(left), View::Scalar(right)) = (left.view(), right.view()) else {
        return Err("invalid type for comparison".to_owned());
    };
    let ordering = match (left, right) {
        (Scalar::Text(left), Scalar::Text(right)) => Some(left.cmp(right)),
        (Scalar::Int(left), Scalar::Int(right)) => Some(left.cmp(&right)),
        (Scalar::Float(left), Scalar::Float(right)) => left.partial_cmp(&right),
        (Scalar::Int(left), Scalar::Float(right)) => (left as f64).partial_cmp(&right),
        (Scalar::Float(left), Scalar::Int(right)) => left.partial_cmp(&(right as f64)),
        (Scalar::Flag(left), Scalar::Flag(right)) => match operator {
            "==" | "!=" => Some(left.cmp(&right)),
            _ => return Err("invalid type for comparison".to_owned()),
        },
        _ => return Err("incompatible types for comparison".to_owned()),
    };
    Ok(match operator {
        "==" => ordering.is_some_and(Ordering::is_eq),
        "!=" => ordering.is_none_or(Ordering::is_ne),
        "<" => ordering.is_some_and(Ordering::is_lt),
        "<=" => ordering.is_some_and(Ordering::is_le),
        ">" => ordering.is_some_and(Ordering::is_gt),
        ">=" => ordering.is_some_and(Ordering::is_ge),
        _ => return Err(format!("unrecognized filter operator {operator}")),
    })
}

/// Unlike in other languages, bounds beyond the list are errors.
fn slice(
    items: &[Value],
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
) -> Result<impl Iterator<Item = &Value>, Error> {
    let length = items.len();
    let start = start.map_or(0, |start| position(start, length));
    let end = end.map_or(length as i64, |end| position(end, length));
    if start == end {
        return Ok(items[..0].iter().step_by(1));
    }
    let within = |at: i64| usize::try_from(at).ok().filter(|at| *at <= length);
    let first = within(start).filter(|at| *at < length);
    let first = first.ok_or_else(|| out_of_bounds(start, length))?;
    let last = within(end).ok_or_else(|| out_of_bounds(end.saturating_sub(1), length))?;
    if first > last {
        let text = format!("starting index {start} is greater than ending index {end}");
        return Err(Error::Evaluation(text));
    }
    let step = usize::try_from(step.unwrap_or(1)).ok().filter(|step| *step > 0);
    let step = step.ok_or_else(|| Error::Evaluation("step must be > 0".to_owned()))?;
    Ok(items[first..last].iter().step_by(step))
}

/// Negative ones count from the end.
fn position(index: i64, length: usize) -> i64 {
    if index < 0 { index + length as i64 } else { index }
}

fn out_of_bounds(index: i64, length: usize) -> Error {
    Error::Evaluation(format!("array index out of bounds: index {index}, length {length}"))
}

impl<'a> Found<'a> {
    fn view(self) -> View<'a> {
        match self {
            Self::Node(node) => node.view(),
            Self::Literal(scalar) => View::Scalar(scalar),
        }
    }

    fn child(self, name: &str) -> Result<Option<Found<'a>>, Error> {
        let found = match (self, self.view()) {
            (Self::Node(node), View::Fields(fields, _)) => node.field(fields, name),
            (_, View::Map(map, shape)) => {
                map.and_then(|map| map.get(name)).map(|value| Node::new(Some(value), shape))
            }
            _ => None,
        };
        match found {
            Some(Node { shape: Shape::Changing, .. }) => {
                let text = format!("{name} changes by itself and cannot be part of a path");
                Err(Error::Evaluation(text))
            }
            found => Ok(found.map(Found::Node)),
        }
    }

    /// The items of a list, none without a value; fails for anything else.
    fn items(self, and: &str) -> Result<Option<(&'a [Value], &'static Shape)>, Error> {
        let what = match self.view() {
            View::List(items, shape) => return Ok(Some((items, shape))),
            View::Nil => return Ok(None),
            View::Fields(..) => "object",
            View::Map(..) => "map",
            View::Scalar(Scalar::Text(_)) => "string",
            View::Scalar(Scalar::Int(_) | Scalar::Float(_)) => "number",
            View::Scalar(Scalar::Flag(_)) => "bool",
        };
        Err(Error::Evaluation(format!("{what} is not array or slice{and}")))
    }
}

impl<'a> Node<'a> {
    fn new(value: Option<&'a Value>, shape: &'static Shape) -> Self {
        Self { value: value.filter(|value| !value.is_null()), shape }
    }

    /// A field of its own, or one of what is embedded in it.
    fn field(self, fields: &'static [Field], name: &str) -> Option<Self> {
        let within = |value: Option<&'a Value>, (field, shape): &'static Field| match shape {
            Shape::Inline(_) => Self { value, shape },
            _ => Self::new(value.and_then(|value| value.get(*field)), shape),
        };
        let embedded = || self.value.and_then(|value| value.get(EMBEDDED));
        let own = named(fields, name).map(|field| within(self.value, field));
        own.or_else(|| promoted(fields, name).map(|field| within(embedded(), field)))
    }

    fn view(self) -> View<'a> {
        match (self.shape, self.value) {
            (Shape::Optional(shape), Some(_)) => Self { shape, ..self }.view(),
            (Shape::Optional(_) | Shape::Any, None) | (Shape::Changing, _) => View::Nil,
            (Shape::Text, None) => View::Scalar(Scalar::Text("")),
            (Shape::Flag, None) => View::Scalar(Scalar::Flag(false)),
            (Shape::Number, None) => View::Scalar(Scalar::Int(0)),
            (Shape::Object(fields) | Shape::Inline(fields), None) => View::Fields(fields, None),
            (Shape::Map(shape), None) => View::Map(None, shape),
            (Shape::List(shape), None) => View::List(&[], shape),
            (Shape::Object(fields) | Shape::Inline(fields), Some(Value::Object(object))) => {
                View::Fields(fields, Some(object))
            }
            (Shape::Map(shape), Some(Value::Object(map))) => View::Map(Some(map), shape),
            (Shape::List(shape), Some(Value::Array(items))) => View::List(items, shape),
            (_, Some(value)) => View::of_json(value),
        }
    }
}

impl<'a> View<'a> {
    fn of_json(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Nil,
            Value::Bool(flag) => Self::Scalar(Scalar::Flag(*flag)),
            Value::String(text) => Self::Scalar(Scalar::Text(text)),
            Value::Number(number) => Self::Scalar(match number.as_i64() {
                Some(int) => Scalar::Int(int),
                None => Scalar::Float(number.as_f64().unwrap_or_default()),
            }),
            Value::Array(items) => Self::List(items, &Shape::Any),
            Value::Object(map) => Self::Map(Some(map), &Shape::Any),
        }
    }
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Int(int) => int.fmt(f),
            Self::Float(float) => float.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
        }
    }
}
