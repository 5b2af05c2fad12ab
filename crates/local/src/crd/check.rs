//! Values against schemas: types, limits and formats, with the texts that kube-apiserver gives.

use std::collections::{HashMap, HashSet};

use serde_json::{Number, Value, json};

use super::{
    causes,
    path::Path,
    schema::{Additional, Bound, Kind, Schema},
};
use crate::{
    error::{Cause, CauseReason},
    types::ListKind,
};

/// What is wrong with the value. A part that is as it was before passes, whatever the schema says by now.
pub(super) fn check(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
) -> Vec<Cause> {
    let mut findings = Findings::default();
    visit(schema, value, old, path, &mut findings);
    findings.causes
}

/// Equal causes are told once; checks are counted because of two failed alternatives the one that went
/// further is told of.
#[derive(Default)]
struct Findings {
    causes: Vec<Cause>,
    told: HashSet<String>,
    checks: usize,
}

impl Findings {
    fn add(&mut self, cause: Cause) {
        if self.told.insert(cause.to_string()) {
            self.causes.push(cause);
        }
    }

    fn merge(&mut self, other: Findings) {
        self.checks += other.checks;
        other.causes.into_iter().for_each(|cause| self.add(cause));
    }

    fn test(&mut self, passed: bool, cause: impl FnOnce() -> Cause) {
        self.checks += 1;
        if !passed {
            self.add(cause());
        }
    }
}

fn visit(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    findings: &mut Findings,
) {
    if old.is_some_and(|old| same(old, value)) {
        findings.checks += 1;
        return;
    }
    check_type(schema, value, path, findings);
    if !value.is_null() {
        check_alternatives(schema, value, old, path, findings);
    }
    match value {
        Value::String(text) => check_text(schema, text, path, findings),
        Value::Number(number) => check_number(schema, number, path, findings),
        Value::Array(items) => check_list(schema, items, old, path, findings),
        _ => {}
    }
    check_enum(schema, value, path, findings);
    if let Value::Object(_) = value {
        check_object(schema, value, old, path, findings);
    }
}

/// Equality that, as JSON does, knows no difference between 1 and 1.0.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn check_type(schema: &Schema, value: &Value, path: &Path<'_>, findings: &mut Findings) {
    let format = schema.limits.format.as_ref().filter(|_| !schema.int_or_string);
    if schema.kind.is_none() && !schema.int_or_string && format.is_none() {
        return;
    }
    let wanted = match schema.int_or_string {
        true => "integer,string",
        false => schema.type_name(),
    };
    if value.is_null() {
        let passed = schema.nullable || wanted.is_empty();
        return findings.test(passed, || causes::type_invalid(path, wanted, "null"));
    }
    let (got, go_format) = type_of(value);
    let accepts = |name: &str| wanted.split(',').any(|wanted| wanted == name);
    let fits = accepts(got)
        || (got == "number" && accepts("integer") && is_whole(value))
        || (got == "integer" && accepts("number"));
    // Kubernetes names the format where the JSON type does not even resemble it.
    if let Some(format) = format {
        let numeric = accepts("number") || accepts("integer");
        match value {
            Value::String(_) | Value::Array(_) if !numeric => return,
            Value::String(_) | Value::Array(_) => {}
            _ => {
                let name = &format.name;
                return findings.test(fits, || causes::type_invalid(path, name, go_format));
            }
        }
    }
    findings.test(fits, || causes::type_invalid(path, wanted, got));
}

/// The name of the JSON type, and Go's name of a number's.
pub(super) fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Whether a number stands for an integer that a double holds exactly.
fn is_whole(value: &Value) -> bool {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    value.as_f64().is_some_and(|value| value.fract() == 0.0 && value.abs() <= EXACT)
}

fn check_text(schema: &Schema, text: &str, path: &Path<'_>, findings: &mut Findings) {
    let limits = &schema.limits;
    // Texts where numbers are wanted have been told of by now.
    if !matches!(schema.kind, None | Some(Kind::String)) {
        return;
    }
    let length = text.chars().count() as u64;
    let said = |findings: &mut Findings, detail: String| {
        findings.add(causes::invalid(path, &json!(text), &format!("{path} in body {detail}")));
    };
    if let Some(most) = limits.max_length.filter(|most| length > *most) {
        findings.add(causes::too_long(path, most));
    } else if let Some(least) = limits.min_length.filter(|least| length < *least) {
        said(findings, format!("should be at least {least} chars long"));
    } else if let Some((pattern, expression)) = &limits.pattern
        && !expression.as_ref().is_some_and(|expression| expression.is_match(text))
    {
        said(findings, format!("should match '{pattern}'"));
    } else {
        findings.checks += 1;
    }
    if let Some(format) = &limits.format
        && !schema.int_or_string
    {
        findings.test(format.fits(text), || causes::type_invalid(path, &format.name, text));
    }
}

fn check_number(schema: &Schema, number: &Number, path: &Path<'_>, findings: &mut Findings) {
    use super::formats::Meaning;
    let value = Value::Number(number.clone());
    let Some(float) = number.as_f64() else { return };
    let range = match (&schema.limits.format, schema.kind) {
        (Some(format), _) if format.meaning == Meaning::Int32 => {
            (number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()), " with format int32")
        }
        (_, Some(Kind::Integer)) => {
            let fits = number.is_i64() || is_whole(&value);
            let format = schema.limits.format.is_some();
            (fits, if format { " with format int64" } else { " (default format)" })
        }
        _ => (true, ""),
    };
    findings.test(range.0, || {
        let detail = format!("Checked value must be of type integer{} in {path}", range.1);
        causes::invalid(&Path::Root, &json!(""), &detail)
    });
    let said = |detail: String| causes::invalid(path, &value, &format!("{path} in body {detail}"));
    let limits = &schema.limits;
    if let Some(factor) = limits.multiple_of {
        check_multiple(number, factor, path, findings);
    }
    if let Some(Bound { value: least, exclusive }) = &limits.minimum {
        let (passed, words) = match exclusive {
            true => (float > *least, "should be greater than"),
            false => (float >= *least, "should be greater than or equal to"),
        };
        findings.test(passed, || said(format!("{words} {}", plain(*least))));
    }
    if let Some(Bound { value: most, exclusive }) = &limits.maximum {
        let (passed, words) = match exclusive {
            true => (float < *most, "should be less than"),
            false => (float <= *most, "should be less than or equal to"),
        };
        findings.test(passed, || said(format!("{words} {}", plain(*most))));
    }
}

/// An integer is compared with the integer part of the factor, as Go's conversion has it.
fn check_multiple(number: &Number, factor: f64, path: &Path<'_>, findings: &mut Findings) {
    let whole = number.as_i64();
    let factor = if whole.is_some() { factor.trunc() } else { factor };
    if factor <= 0.0 {
        let detail =
            format!("factor MultipleOf declared for {path} must be positive: {}", plain(factor));
        return findings.add(causes::invalid(path, &json!(factor as i64), &detail));
    }
    let passed = match whole {
        Some(whole) => whole % factor as i64 == 0,
        None => number.as_f64().is_some_and(|float| (float / factor).fract() == 0.0),
    };
    findings.test(passed, || {
        let detail = format!("{path} in body should be a multiple of {}", plain(factor));
        causes::invalid(path, &Value::Number(number.clone()), &detail)
    });
}

fn plain(number: f64) -> String {
    if number.abs() >= 1e21 || (number != 0.0 && number.abs() < 1e-4) {
        return format!("{number:e}");
    }
    format!("{number}")
}

fn check_list(
    schema: &Schema,
    items: &[Value],
    old: Option<&Value>,
    path: &Path<'_>,
    findings: &mut Findings,
) {
    if let Some(of_items) = &schema.items {
        let old_items = Correlated::new(schema, old);
        for (index, item) in items.iter().enumerate() {
            visit(of_items, item, old_items.of(item), &path.index(index), findings);
        }
    }
    let limits = &schema.limits;
    if let Some(least) = limits.min_items {
        findings.test(items.len() as u64 >= least, || {
            let detail = format!("{path} in body should have at least {least} items");
            causes::invalid(path, &json!(items.len()), &detail)
        });
    }
    if let Some(most) = limits.max_items {
        findings.test(items.len() as u64 <= most, || causes::too_many(path, items.len(), most));
    }
}

fn check_enum(schema: &Schema, value: &Value, path: &Path<'_>, findings: &mut Findings) {
    let allowed = &schema.limits.one_of_values;
    if allowed.is_empty() {
        return;
    }
    findings.test(allowed.iter().any(|allowed| same(allowed, value)), || {
        let names: Vec<String> = allowed
            .iter()
            .map(|allowed| allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned))
            .collect();
        causes::not_supported(path, value, &names)
    });
}

fn check_object(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    findings: &mut Findings,
) {
    let Value::Object(fields) = value else { return };
    let limits = &schema.limits;
    if let Some(least) = limits.min_properties {
        findings.test(fields.len() as u64 >= least, || {
            let detail = format!("{path} in body should have at least {least} properties");
            causes::invalid(path, &json!(fields.len()), &detail)
        });
    }
    if let Some(most) = limits.max_properties {
        findings.test(fields.len() as u64 <= most, || causes::too_many(path, fields.len(), most));
    }
    for (name, value) in fields {
        let old = old.and_then(|old| old.get(name));
        match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => visit(property, value, old, &path.field(name), findings),
            (None, Additional::Typed(other)) => {
                visit(other, value, old, &path.field(name), findings);
            }
            _ => {}
        }
    }
    for name in &limits.required {
        findings.test(fields.contains_key(name), || causes::required(&path.field(name), ""));
    }
}

fn check_alternatives(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    findings: &mut Findings,
) {
    let limits = &schema.limits;
    let said = |detail: String| causes::invalid(&Path::Root, &json!(""), &detail);
    let place = path.to_string();
    let run = |schema: &Schema| {
        let mut found = Findings::default();
        visit(schema, value, old, path, &mut found);
        found
    };
    if !limits.any_of.is_empty() {
        let results = limits.any_of.iter().map(run);
        if let Err(best) = closest(results) {
            findings.add(said(format!("{place:?} must validate at least one schema (anyOf)")));
            findings.merge(best);
        }
    }
    if !limits.one_of.is_empty() {
        let results: Vec<Findings> = limits.one_of.iter().map(run).collect();
        let valid = results.iter().filter(|found| found.causes.is_empty()).count();
        if valid != 1 {
            let tail = match valid {
                0 => "Found none valid".to_owned(),
                several => format!("Found {several} valid alternatives"),
            };
            let text = "must validate one and only one schema (oneOf)";
            findings.add(said(format!("{place:?} {text}. {tail}")));
        }
        if valid == 0
            && let Err(best) = closest(results.into_iter())
        {
            findings.merge(best);
        }
    }
    if !limits.all_of.is_empty() {
        let mut valid = 0;
        for schema in &limits.all_of {
            let found = run(schema);
            valid += usize::from(found.causes.is_empty());
            findings.merge(found);
        }
        if valid != limits.all_of.len() {
            let tail = if valid == 0 { ". None validated" } else { "" };
            findings.add(said(format!("{place:?} must validate all the schemas (allOf){tail}")));
        }
    }
    if let Some(not) = &limits.not {
        findings.test(!run(not).causes.is_empty(), || {
            said(format!("{place:?} must not validate the schema (not)"))
        });
    }
}

/// The alternative with the most checks, if none is fulfilled.
fn closest(results: impl Iterator<Item = Findings>) -> Result<(), Findings> {
    let mut best: Option<Findings> = None;
    for found in results {
        if found.causes.is_empty() {
            return Ok(());
        }
        if best.as_ref().is_none_or(|best| found.checks > best.checks) {
            best = Some(found);
        }
    }
    best.map_or(Ok(()), Err)
}

/// Which item of the old list an item continues: the one with the same keys in a list-map, none in any
/// other list.
pub(super) struct Correlated<'a> {
    keys: &'a [String],
    of_items: Option<&'a Schema>,
    /// By the text of the keys, so that long lists cost no more than short ones.
    old: HashMap<String, &'a Value>,
}

impl<'a> Correlated<'a> {
    pub(super) fn new(schema: &'a Schema, old: Option<&'a Value>) -> Self {
        let keys = match &schema.list {
            Some(ListKind::Map { keys }) => keys.as_slice(),
            _ => &[],
        };
        let mut all = Self { keys, of_items: schema.items.as_deref(), old: HashMap::new() };
        for item in old.and_then(Value::as_array).into_iter().flatten() {
            if let Some(identity) = all.identity(item) {
                // Of items that stand twice the first counts.
                all.old.entry(identity).or_insert(item);
            }
        }
        all
    }

    pub(super) fn of(&self, item: &Value) -> Option<&'a Value> {
        self.old.get(&self.identity(item)?).copied()
    }

    fn identity(&self, item: &Value) -> Option<String> {
        if self.keys.is_empty() || !item.is_object() {
            return None;
        }
        let default = |key: &String| self.of_items?.properties.get(key)?.default.as_ref();
        let value = |key: &String| item.get(key).or_else(|| default(key)).cloned();
        Some(
            Value::Array(self.keys.iter().map(|key| value(key).unwrap_or_default()).collect())
                .to_string(),
        )
    }
}

/// Items that stand twice in sets and list-maps.
pub(super) fn check_unique(
    schema: &Schema,
    value: &Value,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(property) = schema.properties.get(name) {
                    check_unique(property, value, &path.field(name), causes);
                } else if let Some(other) = schema.additional.schema() {
                    check_unique(other, value, &path.key(name), causes);
                }
            }
        }
        Value::Array(items) => {
            twice(schema, items, path, causes);
            if let Some(of_items) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check_unique(of_items, item, &path.index(index), causes);
                }
            }
        }
        _ => {}
    }
}

fn twice(schema: &Schema, items: &[Value], path: &Path<'_>, causes: &mut Vec<Cause>) {
    if matches!(schema.list, Some(ListKind::Map { .. }))
        && let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null())
    {
        let detail = "must be an object for an array of list-type map";
        return causes.push(causes::invalid(&path.index(index), &items[index], detail));
    }
    let identity = |item: &Value| match &schema.list {
        Some(ListKind::Set) => Some(item.clone()),
        Some(ListKind::Map { keys }) => {
            let key = |key: &String| Some((key.clone(), item.get(key)?.clone()));
            Some(Value::Object(keys.iter().filter_map(key).collect()))
        }
        _ => None,
    };
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        // Maps are ordered by name, so equal values have equal texts.
        if let Some(identity) = identity(item)
            && !seen.insert(identity.to_string())
        {
            causes.push(causes::duplicate(&path.index(index), &identity));
        }
    }
}

/// After these, rules are not looked at: they may not even make sense.
pub(super) fn is_blocking(cause: &Cause) -> bool {
    matches!(
        cause.reason,
        CauseReason::Required
            | CauseReason::NotSupported
            | CauseReason::TooLong
            | CauseReason::TooMany
            | CauseReason::TypeInvalid
    )
}
