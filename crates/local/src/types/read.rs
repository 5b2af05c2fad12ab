//! Reads the text of the type table.
//!
//! - `kind <apiVersion> <kind> <type>`
//! - `type <name> [atomic]`, followed by its fields, one a line:
//! - ` <name> <form> [omitted|printed|null] [required] [#[within.]number] [merge] [retainKeys]
//!   [replace] [by:<key>] [=<default as JSON>]`
//!
//! A form is a scalar, `any`, `@<type>`, `[]form` (atomic), `set[]form`, `keyed(<keys>)[]form`,
//! `{}form` or `atomic{}form`.

use std::collections::HashMap;

use super::{Field, Form, Id, ListKind, Scalar, Struct, Types, Zero};

#[derive(Default)]
pub(crate) struct Read<'a> {
    pub(crate) types: Types,
    /// `apiVersion`, `kind` and name of the type.
    pub(crate) kinds: Vec<(&'a str, &'a str, &'a str)>,
    pub(crate) named: HashMap<&'a str, Id>,
    /// Forms that have no name, by their text.
    forms: HashMap<&'a str, Id>,
}

pub(crate) fn read(text: &str) -> Read<'_> {
    let mut read = Read::default();
    let mut current: Option<(Id, Struct)> = None;
    for line in text.lines() {
        let mut words = line.split(' ');
        match words.next() {
            Some("") => {
                if let (Some((_, of)), Some(name)) = (&mut current, words.next()) {
                    let field = read.field(line, words);
                    of.fields.insert(name.to_owned(), field);
                }
            }
            Some("type") => {
                read.close(current.take());
                let id = read.of_name(words.next().unwrap_or_default());
                let atomic = words.next() == Some("atomic");
                current = Some((id, Struct { atomic, ..Struct::default() }));
            }
            Some("kind") => {
                if let (Some(version), Some(kind), Some(name)) =
                    (words.next(), words.next(), words.next())
                {
                    read.kinds.push((version, kind, name));
                }
            }
            _ => {}
        }
    }
    read.close(current.take());
    read
}

impl<'a> Read<'a> {
    fn close(&mut self, done: Option<(Id, Struct)>) {
        if let Some((id, of)) = done {
            self.types.set(id, Form::Struct(of));
        }
    }

    /// Types refer to each other before they are read.
    fn of_name(&mut self, name: &'a str) -> Id {
        *self.named.entry(name).or_insert_with(|| self.types.add(Form::Any))
    }

    fn field(&mut self, line: &'a str, mut words: impl Iterator<Item = &'a str>) -> Field {
        let form = words.next().unwrap_or("any");
        let mut field = Field { narrow: form == "int32", ..Field::new(self.form(form)) };
        for word in words {
            match word {
                "omitted" => field.zero = Zero::Omitted,
                "printed" => field.zero = Zero::Printed,
                "null" => field.zero = Zero::PrintedNull,
                "required" => field.required = true,
                "merge" => field.strategy.merge = true,
                "replace" => field.strategy.replace = true,
                "retainKeys" => field.strategy.retain_keys = true,
                _ if word.starts_with('=') => break,
                _ => {
                    if let Some(number) = word.strip_prefix('#') {
                        let (within, number) = number.split_once('.').unwrap_or(("", number));
                        (field.within, field.number) = (within.parse().ok(), number.parse().ok());
                    } else if let Some(key) = word.strip_prefix("by:") {
                        field.strategy.merge_key = Some(key.to_owned());
                    }
                }
            }
        }
        // The default stands last because it may hold spaces.
        field.default =
            line.split_once(" =").and_then(|(_, default)| serde_json::from_str(default).ok());
        field
    }

    fn form(&mut self, text: &'a str) -> Id {
        if let Some(name) = text.strip_prefix('@') {
            return self.of_name(name);
        }
        if let Some(id) = self.forms.get(text) {
            return *id;
        }
        let form = self.compound(text).unwrap_or_else(|| scalar(text));
        let id = self.types.add(form);
        self.forms.insert(text, id);
        id
    }

    fn compound(&mut self, text: &'a str) -> Option<Form> {
        if let Some(items) = text.strip_prefix("[]") {
            return Some(Form::List { items: self.form(items), kind: ListKind::Atomic });
        }
        if let Some(items) = text.strip_prefix("set[]") {
            return Some(Form::List { items: self.form(items), kind: ListKind::Set });
        }
        if let Some(rest) = text.strip_prefix("keyed(") {
            let (keys, items) = rest.split_once(")[]")?;
            let keys = keys.split(',').map(str::to_owned).collect();
            return Some(Form::List { items: self.form(items), kind: ListKind::Map { keys } });
        }
        if let Some(values) = text.strip_prefix("{}") {
            return Some(Form::Map { values: self.form(values), atomic: false });
        }
        let values = text.strip_prefix("atomic{}")?;
        Some(Form::Map { values: self.form(values), atomic: true })
    }
}

fn scalar(text: &str) -> Form {
    Form::Scalar(match text {
        "string" => Scalar::String,
        "int32" | "int64" => Scalar::Integer,
        "number" => Scalar::Number,
        "boolean" => Scalar::Boolean,
        "quantity" => Scalar::Quantity,
        "int-or-string" => Scalar::IntOrString,
        "time" => Scalar::Time,
        "micro-time" => Scalar::MicroTime,
        "bytes" => Scalar::Bytes,
        _ => return Form::Any,
    })
}
