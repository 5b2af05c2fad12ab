//! A case as data: requests, what is kept of the answers, and what the answers must be.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use crate::server::Server;

/// One row of the conformance table. It has a namespace and an API group of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// File name without its ending; begins with the number of the row.
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) title: String,
    /// Names of files in `given/` whose steps come first.
    #[serde(default)]
    pub(crate) given: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

/// Exactly one of `do`, `events`, `parallel` and `restart`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    /// Method, path and query.
    #[serde(rename = "do")]
    pub(crate) request: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    /// A content type, or one of `merge`, `json`, `strategic` and `apply`.
    #[serde(rename = "type")]
    pub(crate) content_type: Option<String>,
    /// Sent as JSON.
    pub(crate) body: Option<Value>,
    /// Sent as it is.
    pub(crate) text: Option<String>,
    /// The answer is a watch, known by this name from here on.
    pub(crate) watch: Option<String>,
    /// The next events of the watch of this name.
    pub(crate) events: Option<String>,
    /// All at once.
    pub(crate) parallel: Vec<Step>,
    /// The server ends without a warning and starts again on the same data.
    pub(crate) restart: bool,
    /// Once per value, in order.
    pub(crate) each: BTreeMap<String, Vec<String>>,
    /// Asked again until the answer is as wanted: controllers need their time.
    pub(crate) eventually: bool,
    /// For so many seconds controllers are to wait before they act.
    pub(crate) after: u64,
    /// Parts of the answer, by JSON pointer, that later steps call by name.
    pub(crate) keep: BTreeMap<String, String>,
    pub(crate) want: Want,
    /// What the embedded server answers instead, where a local node does not do what is asked for.
    pub(crate) here: Option<Want>,
    /// Warnings that the embedded server gives beside those of the real one: of what is stored and has
    /// no effect on a local node. Each must come, and what is left is compared.
    pub(crate) told_here: Vec<String>,
    pub(crate) compare: Compare,
}

impl Step {
    pub(crate) fn want_on(&self, server: &Server) -> &Want {
        self.here.as_ref().filter(|_| server.is_embedded()).unwrap_or(&self.want)
    }
}

/// How far the answers of the two servers must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compare {
    /// In everything but uids, times, resourceVersions and the like.
    #[default]
    Whole,
    /// In what `want` names: the rest is not up to the server alone.
    Facts,
}

/// What must be seen. Strings may hold `…` for any text; `$any` and `$none` are for presence,
/// `$not x` and `$above x` compare with a kept value, `$has` is for some items of a list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Want {
    pub(crate) code: Option<u16>,
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
    /// Name, group and kind of a Status's details, all of them.
    pub(crate) details: Option<Value>,
    /// Reason, field and, where the text is to be compared, message of each cause.
    pub(crate) causes: Option<Vec<Vec<String>>>,
    /// The causes may come in any order.
    pub(crate) any_order: bool,
    /// All warnings, in order.
    pub(crate) warnings: Option<Vec<String>>,
    /// The answer has at least this.
    pub(crate) body: Option<Value>,
    /// At these JSON pointers the answer has this and no more.
    pub(crate) exact: BTreeMap<String, Value>,
    /// `manager Operation [subresource]` to its fields: all entries of managedFields.
    pub(crate) owners: Option<BTreeMap<String, Value>>,
    /// Names of a list's items, in order.
    pub(crate) names: Option<Vec<String>>,
    /// An answer that is not JSON.
    pub(crate) text: Option<String>,
    /// At least this of each event.
    pub(crate) events: Vec<Value>,
    /// Nothing follows those events, and the stream ends cleanly.
    pub(crate) end: bool,
}

/// All cases in the order of their names.
pub(crate) fn load_all() -> Vec<Case> {
    let mut paths: Vec<_> =
        fs::read_dir(folder().join("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths.iter().map(|path| load(path)).collect()
}

fn load(path: &Path) -> Case {
    let mut case: Case = parse(path);
    case.name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let mut steps = Vec::new();
    for given in &case.given {
        steps.extend(self::given(given));
    }
    case.steps.splice(0..0, steps);
    case
}

/// Steps that several cases begin with.
pub(crate) fn given(name: &str) -> Vec<Step> {
    parse(&folder().join("given").join(format!("{name}.yaml")))
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance")
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Case {
    /// Number of the row.
    pub(crate) fn number(&self) -> &str {
        self.name.split('-').next().unwrap_or_default()
    }

    pub(crate) fn restarts(&self) -> bool {
        self.steps.iter().any(|step| step.restart)
    }

    /// What a case may call by name from its start.
    pub(crate) fn names(&self) -> Names {
        let ns = format!("case-{}", self.number());
        let group = format!("{ns}.example.com");
        let mut names = Names::default();
        names.set("core", &format!("/api/v1/namespaces/{ns}"));
        names.set("apps", &format!("/apis/apps/v1/namespaces/{ns}"));
        names.set("batch", &format!("/apis/batch/v1/namespaces/{ns}"));
        names.set("discovery", &format!("/apis/discovery.k8s.io/v1/namespaces/{ns}"));
        names.set("widgets", &format!("/apis/{group}/v1/namespaces/{ns}/widgets"));
        names.set("ns", &ns);
        names.set("group", &group);
        names
    }
}

/// Values that `${name}` stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// A name that is not known stays as it is, and shows in the failure.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            match after.split_once('}') {
                Some((name, tail)) if self.0.contains_key(name) => {
                    filled.push_str(&self.0[name]);
                    rest = tail;
                }
                _ => {
                    filled.push_str("${");
                    rest = after;
                }
            }
        }
        filled + rest
    }

    pub(crate) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(map) => {
                map.iter().map(|(key, item)| (self.fill(key), self.fill_value(item))).collect()
            }
            other => other.clone(),
        }
    }
}
