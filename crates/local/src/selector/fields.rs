//! Selection by fields: `metadata.name=a,status.phase!=Running`.

use serde_json::Value;

use super::Error;

/// What fields of an object must hold, all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: Field,
    value: String,
    negated: bool,
}

/// By which fields objects of a kind may be selected, next to name and namespace.
#[derive(Clone, Debug)]
pub struct Selectable {
    fields: Vec<Field>,
    refusal: Refusal,
}

/// A label of the selector and where its value is found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    label: String,
    /// The first of these that holds something; paths of names and of indexes.
    paths: Vec<String>,
    /// What an absent value counts as.
    absent: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    OnlyNames,
    Unsupported,
    Job,
}

impl Selectable {
    /// For a built-in resource.
    pub fn builtin(group: &str, plural: &str) -> Self {
        let refusal = match (group, plural) {
            ("batch", "jobs") => Refusal::Job,
            ("", "pods" | "events" | "services" | "secrets" | "namespaces" | "nodes")
            | ("events.k8s.io", "events") => Refusal::Unsupported,
            _ => Refusal::OnlyNames,
        };
        Self { fields: builtin_fields(group, plural), refusal }
    }

    /// For a custom kind, by the `jsonPath`s of its `selectableFields`.
    pub fn custom<'a>(json_paths: impl IntoIterator<Item = &'a str>) -> Self {
        let fields = json_paths
            .into_iter()
            .map(|path| path.trim_start_matches('.'))
            .map(|path| Field::new(path, &[path], ""))
            .collect();
        Self { fields, refusal: Refusal::Unsupported }
    }

    fn find(&self, label: &str) -> Result<Field, Error> {
        if label == "metadata.name" || label == "metadata.namespace" {
            return Ok(Field::new(label, &[label], ""));
        }
        self.fields.iter().find(|field| field.label == label).cloned().ok_or_else(|| {
            Error(match self.refusal {
                Refusal::OnlyNames => format!(
                    "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                ),
                Refusal::Unsupported => format!("field label not supported: {label}"),
                Refusal::Job => format!("field label {label:?} not supported for Job"),
            })
        })
    }
}

fn builtin_fields(group: &str, plural: &str) -> Vec<Field> {
    let same = |labels: &[&str]| labels.iter().map(|l| Field::new(l, &[l], "")).collect::<Vec<_>>();
    match (group, plural) {
        ("", "pods") => {
            let mut all = same(&[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "status.phase",
                "status.nominatedNodeName",
            ]);
            all.push(Field::new("spec.hostNetwork", &["spec.hostNetwork"], "false"));
            all.push(Field::new("status.podIP", &["status.podIPs.0.ip", "status.podIP"], ""));
            all.push(Field::new("status.podIPs", &["status.podIPs.0.ip", "status.podIP"], ""));
            all
        }
        ("", "services") => same(&["spec.clusterIP", "spec.type"]),
        ("", "secrets") => same(&["type"]),
        ("", "namespaces") => same(&["status.phase"]),
        ("", "nodes") => {
            vec![Field::new("spec.unschedulable", &["spec.unschedulable"], "false")]
        }
        ("batch", "jobs") => vec![Field::new("status.successful", &["status.succeeded"], "0")],
        ("", "events") => event_fields("involvedObject", "reportingComponent"),
        ("events.k8s.io", "events") => event_fields("regarding", "reportingController"),
        _ => Vec::new(),
    }
}

/// One stored event has two forms; a selector of either fits both.
fn event_fields(object: &str, reporter: &str) -> Vec<Field> {
    const OF_OBJECT: [&str; 7] =
        ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];
    let mut all: Vec<Field> = OF_OBJECT
        .iter()
        .map(|name| {
            let paths = [format!("involvedObject.{name}"), format!("regarding.{name}")];
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            Field::new(&format!("{object}.{name}"), &paths, "")
        })
        .collect();
    let reporters = ["reportingComponent", "reportingController"];
    all.push(Field::new(reporter, &reporters, ""));
    all.push(Field::new("reason", &["reason"], ""));
    all.push(Field::new("type", &["type"], ""));
    if object == "involvedObject" {
        let sources = ["source.component", "deprecatedSource.component"];
        all.push(Field::new("source", &[sources, reporters].concat(), ""));
    }
    all
}

impl Field {
    fn new(label: &str, paths: &[&str], absent: &'static str) -> Self {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        Self { label: label.to_owned(), paths, absent }
    }

    fn value(&self, object: &Value) -> String {
        let values = self.paths.iter().filter_map(|path| find(object, path));
        let texts = values.map(|value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        });
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| self.absent.to_owned())
    }
}

fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

impl Fields {
    /// As in the query parameter `fieldSelector`.
    pub fn parse(text: &str, allowed: &Selectable) -> Result<Self, Error> {
        let mut terms = Vec::new();
        for part in split(text).into_iter().filter(|part| !part.is_empty()) {
            let (label, negated, value) = operator(part).ok_or_else(|| {
                Error(format!("invalid selector: '{text}'; can't understand '{part}'"))
            })?;
            let value = unescape(value)?;
            terms.push(Term { field: allowed.find(label)?, value, negated });
        }
        Ok(Self(terms))
    }

    /// The name that a selector demands, whatever the kind. `None` if it is no name of an object or
    /// if the selector cannot be read.
    pub fn exact_name(text: &str) -> Option<String> {
        let mut found = None;
        for part in split(text).into_iter().filter(|part| !part.is_empty()) {
            let (label, negated, value) = operator(part)?;
            let value = unescape(value).ok()?;
            if label == "metadata.name" && !negated && found.is_none() {
                found = Some(value);
            }
        }
        found.filter(|name| !matches!(&**name, "" | "." | "..") && !name.contains(['/', '%']))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| (term.field.value(object) == term.value) != term.negated)
    }

    /// The one name that can fit, so that a watch of one object need not look at the others.
    pub fn name(&self) -> Option<&str> {
        let named = |term: &&Term| term.field.label == "metadata.name" && !term.negated;
        self.0.iter().find(named).map(|term| term.value.as_str())
    }
}

/// At commas that no backslash stands before.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn operator(part: &str) -> Option<(&str, bool, &str)> {
    part.char_indices().find_map(|(index, _)| {
        let rest = &part[index..];
        [("!=", true), ("==", false), ("=", false)].into_iter().find_map(|(sign, negated)| {
            rest.strip_prefix(sign).map(|value| (&part[..index], negated, value))
        })
    })
}

fn unescape(value: &str) -> Result<String, Error> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                other => {
                    let sequence: String = other.into_iter().collect();
                    return Err(Error(format!(
                        "invalid field selector: invalid escape sequence: \\{sequence}"
                    )));
                }
            },
            ',' | '=' => {
                let code = u32::from(c);
                return Err(Error(format!(
                    "invalid field selector: unescaped character in value: {code}"
                )));
            }
            other => plain.push(other),
        }
    }
    Ok(plain)
}
