//! What a local node makes of each field of the built-in kinds, as `data/fields.txt` tells it.

use std::{collections::HashMap, sync::OnceLock};

use serde_json::{Map, Value};

use super::{
    Resource,
    causes::Path,
    object::{at, items},
};
use crate::types::{self, Form, Typed};

static FIELDS: &str = include_str!("../../data/fields.txt");

/// The types whose other fields a rule may look at.
const SPECS: [&str; 2] = ["core.v1.PodSpec", "core.v1.ServiceSpec"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What the field asks for happens.
    Acted,
    /// Nothing has to happen.
    Idle,
    /// It is stored, and the writer is told that nothing happens.
    Warned,
    /// It is not stored: the object would not be what it says.
    Refused,
}

impl Effect {
    /// Whether the writer hears of it.
    pub fn is_told(self) -> bool {
        matches!(self, Effect::Warned | Effect::Refused)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub field: &'static str,
    pub effect: Effect,
    /// Only of these, or of an object that has one of these keys; none: of all.
    pub values: Vec<&'static str>,
    pub unless: Option<Unless>,
    /// Why nothing has to happen.
    pub reason: &'static str,
}

/// Where a rule does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unless {
    /// Where this field of the pod's or Service's spec has this value.
    Spec(&'static str, &'static str),
    /// Where the volume that is mounted is one of these.
    Volume(Vec<&'static str>),
}

/// The rules by the names of their types, as in `core.v1.PodSpec`.
#[derive(Debug, Default)]
pub struct Fields {
    types: HashMap<&'static str, Vec<Rule>>,
    /// In the order of the text.
    names: Vec<&'static str>,
}

/// The table, read when first asked for.
pub fn fields() -> &'static Fields {
    static TABLE: OnceLock<Fields> = OnceLock::new();
    TABLE.get_or_init(|| Fields::read(FIELDS))
}

/// Group, version and name of a type, without what stands before them in OpenAPI.
pub fn short(name: &str) -> &str {
    let start = name.rmatch_indices('.').nth(2).map_or(0, |(at, _)| at + 1);
    &name[start..]
}

/// A field of an object to which a rule applies.
pub(super) struct Found<'a> {
    pub(super) path: Path,
    pub(super) value: &'a Value,
}

/// The fields of the object of which the table says this.
pub(super) fn found<'a>(resource: &Resource, object: &'a Value, effect: Effect) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    let typed = match resource.custom {
        true => None,
        false => types::builtin().kind(&resource.api_version(), &resource.kind),
    };
    if let Some(typed) = typed {
        let mut search = Search { effect, found: &mut found };
        search.visit(typed, object, &Place::Top, object);
    }
    found
}

impl Fields {
    fn read(text: &'static str) -> Fields {
        let mut fields = Fields::default();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            match line.strip_prefix(' ') {
                None => fields.names.push(line),
                Some(line) => {
                    let of = fields.names.last().copied().unwrap_or_default();
                    fields.types.entry(of).or_default().extend(rules(line));
                }
            }
        }
        fields
    }

    /// In the order in which they are told.
    pub fn types(&self) -> impl Iterator<Item = (&'static str, &[Rule])> {
        self.names.iter().map(|name| (*name, self.of(name)))
    }

    pub fn of(&self, name: &str) -> &[Rule] {
        self.types.get(name).map_or(&[], Vec::as_slice)
    }
}

fn rules(line: &'static str) -> impl Iterator<Item = Rule> {
    let (line, reason) = line.split_once(": ").unwrap_or((line, ""));
    let (line, unless) = match line.split_once(" unless ") {
        Some((line, unless)) => (line, unless.split_once('=').map(Unless::read)),
        None => (line, None),
    };
    let (effect, names) = line.split_once(' ').unwrap_or((line, ""));
    let effect = match effect {
        "idle" => Effect::Idle,
        "warned" => Effect::Warned,
        "refused" => Effect::Refused,
        _ => Effect::Acted,
    };
    names.split(' ').map(move |name| {
        let (field, values) = name.split_once('=').unwrap_or((name, ""));
        let values = values.split(',').filter(|value| !value.is_empty()).collect();
        Rule { field, effect, values, unless: unless.clone(), reason }
    })
}

impl Unless {
    fn read((name, value): (&'static str, &'static str)) -> Self {
        match name {
            "volume" => Self::Volume(value.split(',').collect()),
            field => Self::Spec(field, value),
        }
    }

    /// `owner` is what has the field.
    fn holds(&self, owner: &Map<String, Value>, spec: &Value) -> bool {
        match self {
            Self::Spec(field, except) => at(spec, &[*field]).is_some_and(|value| is(value, except)),
            Self::Volume(sources) => items(spec, &["volumes"]).iter().any(|volume| {
                volume.get("name") == owner.get("name")
                    && sources.iter().any(|source| is(volume, source))
            }),
        }
    }
}

impl Rule {
    fn applies(&self, value: &Value, owner: &Map<String, Value>, spec: &Value) -> bool {
        !self.unless.as_ref().is_some_and(|unless| unless.holds(owner, spec))
            && match self.values.is_empty() {
                true => is_set(value, self.effect),
                false => self.values.iter().any(|wanted| is(value, wanted)),
            }
    }

    /// Where what is said of the field's value is.
    fn place(&self, value: &Value, form: &Form, path: Path) -> Path {
        let Value::Object(_) = value else { return path };
        match (self.values.iter().find(|wanted| is(value, wanted)), form) {
            (Some(key), Form::Map { .. }) => path.key(key),
            (Some(key), _) => path.child(key),
            (None, _) => path,
        }
    }
}

/// A list is what any of its items is, and an object what it has.
fn is(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Bool(truth) => wanted == if *truth { "true" } else { "false" },
        Value::Array(items) => items.iter().any(|item| is(item, wanted)),
        Value::Object(fields) => {
            fields.get(wanted).is_some_and(|value| is_set(value, Effect::Refused))
        }
        _ => false,
    }
}

/// Whether the field asks for something. What would be refused may not even be empty.
fn is_set(value: &Value, effect: Effect) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty() || effect == Effect::Refused,
    }
}

struct Search<'a, 'f> {
    effect: Effect,
    found: &'f mut Vec<Found<'a>>,
}

/// Where the search is. Few fields are told of, so that it becomes a path only for those.
#[derive(Clone, Copy)]
enum Place<'p> {
    Top,
    Child(&'p Place<'p>, &'p str),
    Key(&'p Place<'p>, &'p str),
    Index(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn path(&self) -> Path {
        match self {
            Place::Top => Path::new(""),
            Place::Child(of, name) => of.path().child(name),
            Place::Key(of, key) => of.path().key(key),
            Place::Index(of, index) => of.path().index(*index),
        }
    }
}

impl<'a> Search<'a, '_> {
    fn visit(&mut self, typed: Typed<'_>, value: &'a Value, place: &Place<'_>, spec: &'a Value) {
        match (typed.form(), value) {
            (Form::List { items, .. }, Value::Array(values)) => {
                for (index, value) in values.iter().enumerate() {
                    self.visit(typed.at(*items), value, &Place::Index(place, index), spec);
                }
            }
            (Form::Map { values: form, .. }, Value::Object(values)) => {
                for (key, value) in values {
                    self.visit(typed.at(*form), value, &Place::Key(place, key), spec);
                }
            }
            (Form::Struct(of), Value::Object(values)) => {
                let name = types::builtin().name(typed.id).map_or("", short);
                let rules = fields().of(name);
                let spec = if SPECS.contains(&name) { value } else { spec };
                for (key, value) in values {
                    let mut of_field = rules.iter().filter(|rule| rule.field == key).peekable();
                    if of_field.peek().is_none() {
                        continue;
                    }
                    let Some(field) = of.fields.get(key) else { continue };
                    let (place, form) = (Place::Child(place, key), typed.at(field.form));
                    let told = of_field
                        .clone()
                        .find(|rule| rule.effect.is_told() && rule.applies(value, values, spec));
                    match told {
                        Some(rule) if rule.effect == self.effect => {
                            let path = rule.place(value, form.form(), place.path());
                            self.found.push(Found { path, value });
                        }
                        // Only part of it may be told of.
                        _ if of_field.any(|rule| rule.effect == Effect::Acted) => {
                            self.visit(form, value, &place, spec);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
