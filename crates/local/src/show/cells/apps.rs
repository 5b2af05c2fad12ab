//! What runs pods, and what decides how many.

use serde_json::{Value, json};

use super::Object;
use crate::show::age;

pub(super) fn deployment(object: &Object<'_>) -> Vec<Value> {
    let ready = format!("{}/{}", object.int("status.readyReplicas"), object.int("spec.replicas"));
    let mut cells = vec![
        object.name(),
        json!(ready),
        json!(object.int("status.updatedReplicas")),
        json!(object.int("status.availableReplicas")),
        object.age(),
    ];
    cells.extend(template(object));
    cells
}

pub(super) fn replica_set(object: &Object<'_>) -> Vec<Value> {
    let mut cells = vec![
        object.name(),
        json!(object.int("spec.replicas")),
        json!(object.int("status.replicas")),
        json!(object.int("status.readyReplicas")),
        object.age(),
    ];
    cells.extend(template(object));
    cells
}

/// Containers, images and selector.
fn template(object: &Object<'_>) -> [Value; 3] {
    let containers = object.list("spec.template.spec.containers");
    let all = |name: &str| {
        let texts = containers.iter().map(|container| container[name].as_str().unwrap_or_default());
        json!(texts.collect::<Vec<_>>().join(","))
    };
    [all("name"), all("image"), json!(selector(object.find("spec.selector")))]
}

/// A LabelSelector in the words of the query parameter, sorted by key.
pub(super) fn selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return "<none>".to_owned() };
    let mut all: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        all.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = expression["values"].as_array().into_iter().flatten();
        let mut values: Vec<&str> = values.filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        all.push((key.to_owned(), text));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    match all.is_empty() {
        true => "<none>".to_owned(),
        false => all.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(","),
    }
}

pub(super) fn job(object: &Object<'_>) -> Vec<Value> {
    let succeeded = object.int("status.succeeded");
    let completions = match object.find("spec.completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None => match object.int("spec.parallelism") {
            several if several > 1 => format!("{succeeded}/1 of {several}"),
            _ => format!("{succeeded}/1"),
        },
    };
    let status = match () {
        () if object.is("Complete") => "Complete",
        () if object.is("Failed") => "Failed",
        () if object.is_deleting() => "Terminating",
        () if object.is("Suspended") => "Suspended",
        () if object.is("FailureTarget") => "FailureTarget",
        () if object.is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    let mut cells = vec![
        object.name(),
        json!(status),
        json!(completions),
        json!(duration(object)),
        object.age(),
    ];
    cells.extend(template(object));
    cells
}

fn duration(object: &Object<'_>) -> String {
    let time = |path: &str| object.text(path).parse::<jiff::Timestamp>().ok();
    let Some(start) = time("status.startTime") else { return String::new() };
    let end = time("status.completionTime").unwrap_or(object.now);
    age::short(end.as_second() - start.as_second())
}

pub(super) fn disruption_budget(object: &Object<'_>) -> Vec<Value> {
    let limit = |path: &str| match object.find(path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "N/A".to_owned(),
    };
    vec![
        object.name(),
        json!(limit("spec.minAvailable")),
        json!(limit("spec.maxUnavailable")),
        json!(object.int("status.disruptionsAllowed")),
        object.age(),
    ]
}

pub(super) fn autoscaler(object: &Object<'_>) -> Vec<Value> {
    let target = format!(
        "{}/{}",
        object.text("spec.scaleTargetRef.kind"),
        object.text("spec.scaleTargetRef.name")
    );
    let least = object.find("spec.minReplicas").and_then(Value::as_i64);
    vec![
        object.name(),
        json!(target),
        json!(metrics(object)),
        json!(least.map_or_else(|| "<unset>".to_owned(), |least| least.to_string())),
        json!(object.int("spec.maxReplicas")),
        json!(object.int("status.currentReplicas")),
        object.age(),
    ]
}

fn metrics(object: &Object<'_>) -> String {
    const SHOWN: usize = 2;
    let current = object.list("status.currentMetrics");
    let specs = object.list("spec.metrics");
    let mut all: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| metric(spec, current.get(index).unwrap_or(&Value::Null)))
        .collect();
    if all.is_empty() {
        return "<none>".to_owned();
    }
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    match more {
        0 => all.join(", "),
        more => format!("{} + {more} more...", all.join(", ")),
    }
}

/// Where it stands and where it should: `cpu: 20%/80%`.
fn metric(spec: &Value, status: &Value) -> String {
    let (part, named) = match spec["type"].as_str().unwrap_or_default() {
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "External" => ("external", false),
        _ => return "<unknown type>".to_owned(),
    };
    let (spec, status) = (&spec[part], &status[part]);
    let target = &spec["target"];
    let average = target["averageValue"].as_str();
    let now = |name: &str| status["current"][name].as_str().unwrap_or("<unknown>").to_owned();
    let percent = |value: &Value, other: &str| match value["averageUtilization"].as_i64() {
        Some(value) => format!("{value}%"),
        None => other.to_owned(),
    };
    let text = match (average, named) {
        (Some(average), _) => format!("{}/{average}", now("averageValue")),
        (None, true) => {
            format!("{}/{}", percent(&status["current"], "<unknown>"), percent(target, "<auto>"))
        }
        (None, false) => format!("{}/{}", now("value"), target["value"].as_str().unwrap_or("0")),
    };
    match (part, average) {
        ("object" | "external", Some(_)) => format!("{text} (avg)"),
        _ if named => format!("{}: {text}", spec["name"].as_str().unwrap_or_default()),
        _ => text,
    }
}
