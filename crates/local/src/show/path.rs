//! The part of JSON path that printer columns use: names, `[n]`, `[*]`, `['name']` and
//! `[?(@.a=="b")]`.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Name(String),
    Index(i64),
    All,
    /// Items whose value at the path stands in this relation to another.
    Where {
        path: Vec<String>,
        test: Option<(Relation, Value)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

impl JsonPath {
    /// None where the path is beyond this subset.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('{').trim_end_matches('}');
        let mut rest = text.trim_start_matches('$');
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let end = closing(inner)?;
                steps.push(bracket(inner.get(..end)?.trim())?);
                rest = inner.get(end + 1..)?;
                continue;
            }
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let (name, after) = take_name(name);
            match name.as_str() {
                "" if after.starts_with('[') => {}
                "" => return None,
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Name(name)),
            }
            rest = after;
        }
        Some(Self(steps))
    }

    /// The first thing found.
    pub(super) fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let mut found = vec![object];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.of(value)).collect();
        }
        found.into_iter().next()
    }
}

impl Step {
    fn of<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Name(name), value) => value.get(name).into_iter().collect(),
            (Self::Index(index), Value::Array(items)) => {
                let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let place = if *index < 0 { len + index } else { *index };
                usize::try_from(place).ok().and_then(|place| items.get(place)).into_iter().collect()
            }
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(fields)) => fields.values().collect(),
            (Self::Where { path, test }, Value::Array(items)) => {
                items.iter().filter(|item| fits(item, path, test.as_ref())).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A name up to the next step; a backslash keeps a dot in it.
fn take_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' => return (name, &text[index..]),
            c => name.push(c),
        }
    }
    (name, "")
}

/// Where the bracket ends, not counting those within quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(index),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    if inner == "*" || inner == ":" {
        return Some(Step::All);
    }
    if let Ok(index) = inner.parse() {
        return Some(Step::Index(index));
    }
    if let Some(name) = unquote(inner) {
        return Some(Step::Name(name.to_owned()));
    }
    let filter = inner.strip_prefix("?(")?.strip_suffix(')')?.trim();
    const RELATIONS: [(&str, Relation); 6] = [
        ("==", Relation::Equal),
        ("!=", Relation::NotEqual),
        ("<=", Relation::LessOrEqual),
        (">=", Relation::GreaterOrEqual),
        ("<", Relation::Less),
        (">", Relation::Greater),
    ];
    let (left, test) = match RELATIONS.iter().find(|(sign, _)| filter.contains(sign)) {
        Some((sign, relation)) => {
            let (left, right) = filter.split_once(sign)?;
            (left.trim(), Some((*relation, literal(right.trim())?)))
        }
        None => (filter, None),
    };
    let path = left.strip_prefix('@')?.trim_start_matches('.');
    let path = path.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Some(Step::Where { path, test })
}

fn unquote(text: &str) -> Option<&str> {
    let within = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    within('\'').or_else(|| within('"'))
}

fn literal(text: &str) -> Option<Value> {
    match unquote(text) {
        Some(text) => Some(Value::from(text)),
        None => serde_json::from_str(text).ok(),
    }
}

fn fits(item: &Value, path: &[String], test: Option<&(Relation, Value)>) -> bool {
    let found = path.iter().try_fold(item, |value, name| value.get(name));
    let (Some(found), Some((relation, wanted))) = (found, test) else {
        return found.is_some() && test.is_none();
    };
    let order = match (found, wanted) {
        (Value::String(a), Value::String(b)) => a.partial_cmp(b),
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()),
        (Value::Bool(a), Value::Bool(b)) => a.partial_cmp(b),
        _ => None,
    };
    let Some(order) = order else { return *relation == Relation::NotEqual };
    match relation {
        Relation::Equal => order.is_eq(),
        Relation::NotEqual => order.is_ne(),
        Relation::Less => order.is_lt(),
        Relation::LessOrEqual => order.is_le(),
        Relation::Greater => order.is_gt(),
        Relation::GreaterOrEqual => order.is_ge(),
    }
}
