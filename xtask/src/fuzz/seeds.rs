//! Inputs to begin with, from the requests of the conformance cases.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

/// An input of a target.
#[derive(Debug, PartialEq)]
pub(super) struct Seed {
    pub(super) target: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// What the cases call by name.
const NAMES: [(&str, &str); 7] = [
    ("core", "/api/v1/namespaces/default"),
    ("apps", "/apis/apps/v1/namespaces/default"),
    ("batch", "/apis/batch/v1/namespaces/default"),
    ("discovery", "/apis/discovery.k8s.io/v1/namespaces/default"),
    ("widgets", "/apis/ex.io/v1/namespaces/default/widgets"),
    ("ns", "default"),
    ("group", "ex.io"),
];
/// Of objects that leave it to their path.
const KINDS: [(&str, &str, &str); 9] = [
    // In every path; the last of several counts.
    ("/namespaces", "v1", "Namespace"),
    ("/configmaps", "v1", "ConfigMap"),
    ("/secrets", "v1", "Secret"),
    ("/services", "v1", "Service"),
    ("/endpoints", "v1", "Endpoints"),
    ("/pods", "v1", "Pod"),
    ("/deployments", "apps/v1", "Deployment"),
    ("/jobs", "batch/v1", "Job"),
    ("/leases", "coordination.k8s.io/v1", "Lease"),
];

/// The seeds of all files in the folder.
pub(super) fn from_cases(folder: &Path) -> Result<Vec<Seed>> {
    let listed = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()));
    let mut paths = Vec::new();
    for entry in listed? {
        paths.push(entry.with_context(|| format!("cannot list {}", folder.display()))?.path());
    }
    paths.sort();
    let mut seeds = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let case: Value = serde_saphyr::from_str(&filled(&text))
            .with_context(|| format!("cannot parse {}", path.display()))?;
        of_case(&case, &mut seeds);
    }
    Ok(seeds)
}

fn filled(text: &str) -> String {
    NAMES
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

fn of_case(case: &Value, seeds: &mut Vec<Seed>) {
    let mut last = None;
    let steps = case["steps"].as_array().into_iter().flatten();
    let parallel = |step: &Value| step["parallel"].as_array().cloned().unwrap_or_default();
    for step in steps.flat_map(|step| [vec![step.clone()], parallel(step)].concat()) {
        let Some(request) = step["do"].as_str() else { continue };
        let media = media_type(step["type"].as_str().unwrap_or("application/json"));
        let text = match (&step["body"], step["text"].as_str()) {
            (_, Some(text)) => text.to_owned(),
            (Value::Null, None) => String::new(),
            (body, None) => body.to_string(),
        };
        let mut add = |target, text: String| seeds.push(Seed { target, bytes: text.into_bytes() });
        add("request", format!("{request}\n{media}\n{text}"));
        let body = named(&step["body"], request);
        if request.starts_with("POST") && body.is_object() {
            add("body", format!("j{body}"));
            if let Ok(yaml) = serde_saphyr::to_string(&body) {
                add("body", format!("y{yaml}"));
            }
            last = Some(body);
        } else if media == "application/apply-patch+yaml" && body.is_object() {
            let live = last.as_ref().unwrap_or(&body);
            add("apply", format!("{live}\n{body}"));
        } else if let (Some(last), false) = (&last, step["body"].is_null()) {
            add("patch", format!("{last}\n{}", step["body"]));
        }
    }
}

/// The object with the kind that its path asks for.
fn named(object: &Value, request: &str) -> Value {
    let mut object = object.clone();
    let known = KINDS.iter().rfind(|(part, ..)| request.contains(part));
    if let (Some((_, version, kind)), Some(map)) = (known, object.as_object_mut()) {
        map.entry("apiVersion").or_insert_with(|| Value::from(*version));
        map.entry("kind").or_insert_with(|| Value::from(*kind));
    }
    object
}

fn media_type(name: &str) -> &str {
    match name {
        "merge" => "application/merge-patch+json",
        "json" => "application/json-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::project_root;

    #[test]
    fn the_cases_give_seeds_to_every_target_of_the_api() {
        let seeds = from_cases(&project_root().join("tests/conformance/cases")).unwrap();
        for target in ["request", "body", "patch", "apply"] {
            let count = seeds.iter().filter(|seed| seed.target == target).count();
            assert!(count > 20, "{target}: {count}");
        }
    }

    #[test]
    fn an_object_without_a_kind_gets_that_of_its_path() {
        let text = "steps: [{do: POST ${core}/secrets, body: {data: {}}}]";
        let mut seeds = Vec::new();
        of_case(&serde_saphyr::from_str(&filled(text)).unwrap(), &mut seeds);
        let texts: Vec<_> = seeds.iter().map(|seed| String::from_utf8_lossy(&seed.bytes)).collect();
        assert!(
            texts[0].starts_with("POST /api/v1/namespaces/default/secrets\napplication/json\n{")
        );
        assert_eq!(texts[1], r#"j{"apiVersion":"v1","data":{},"kind":"Secret"}"#);
    }
}
