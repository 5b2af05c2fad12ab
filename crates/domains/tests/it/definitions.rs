//! The real definitions of foreign kinds, as the tools have put them into the cache folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Map, Value};
use windlass_engine::kind::Kind;

/// Schemas by group, version and kind.
pub(crate) struct Definitions(HashMap<String, Value>);

impl Definitions {
    /// `None`, said aloud, where there are none; an error if they are required.
    pub(crate) fn at_hand() -> Option<Self> {
        let mut schemas = HashMap::new();
        if let Some(folder) = cache() {
            for file in files_below(&folder.join("crds")) {
                read(&file, &mut schemas);
            }
        }
        if schemas.is_empty() {
            let required = env::var("WINDLASS_REQUIRE").unwrap_or_default();
            assert!(!required.contains("real-api"), "no definitions of foreign kinds");
            eprintln!("skipped: no definitions of foreign kinds; `cargo xtask cluster` has them");
            return None;
        }
        Some(Self(schemas))
    }

    /// What the definition has against an object; status and metadata aside.
    pub(crate) fn objections(&self, kind: &Kind, object: &Value) -> Vec<String> {
        let Some(schema) = self.0.get(&name_of(&kind.group, &kind.version, &kind.kind)) else {
            return vec![format!("there is no definition of {kind} {}", kind.api_version())];
        };
        let mut found = Vec::new();
        check(&schema["properties"]["spec"], &object["spec"], "spec", &mut found);
        found
    }
}

fn name_of(group: &str, version: &str, kind: &str) -> String {
    format!("{group}/{version} {kind}")
}

fn cache() -> Option<PathBuf> {
    let from = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    from("WINDLASS_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|cache| cache.join("windlass")))
        .or_else(|| from("HOME").map(|home| home.join(".cache/windlass")))
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

fn read(file: &Path, schemas: &mut HashMap<String, Value>) {
    // Only these are written to, and the others are large.
    const OURS: [&str; 7] = [
        "gateway-api",
        "inference-extension",
        "istio",
        "prometheus-operator",
        "serving.kserve.io_clusterservingruntimes.yaml",
        "serving.kserve.io_inferenceservices.yaml",
        "serving.kserve.io_servingruntimes.yaml",
    ];
    let of_ours = file.components().any(|part| OURS.iter().any(|ours| part.as_os_str() == *ours));
    if !of_ours {
        return;
    }
    let text = fs::read_to_string(file).unwrap();
    for document in text.split("\n---\n").filter(|text| text.contains("CustomResourceDefinition")) {
        let definition: Value = serde_saphyr::from_str(document).unwrap();
        let (group, kind) = (&definition["spec"]["group"], &definition["spec"]["names"]["kind"]);
        for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
            let [group, version_name, kind] =
                [group, &version["name"], kind].map(|text| text.as_str().unwrap());
            let schema = version["schema"]["openAPIV3Schema"].clone();
            schemas.insert(name_of(group, version_name, kind), schema);
        }
    }
}

/// The part of a schema that a misspelt, misplaced or missing field offends.
fn check(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    let mut object = |text: &str| found.push(format!("{path} {text}"));
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        object(&format!("is {value}, which is none of the known values"));
    }
    let outside = |number: f64| {
        schema["minimum"].as_f64().is_some_and(|min| number < min)
            || schema["maximum"].as_f64().is_some_and(|max| number > max)
    };
    if value.as_f64().is_some_and(outside) {
        object(&format!("is {value}, which is out of range"));
    }
    let fits = match schema["type"].as_str() {
        _ if schema["x-kubernetes-int-or-string"] == true => value.is_string() || value.is_i64(),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    if !fits {
        object(&format!("is {value} where a {} is wanted", schema["type"]));
    }
    match value {
        Value::Object(fields) => check_fields(schema, fields, path, found),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check(&schema["items"], item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

fn check_fields(schema: &Value, fields: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
    for required in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(required.as_str().unwrap()) {
            found.push(format!("{path} lacks {required}"));
        }
    }
    for (name, value) in fields {
        let path = format!("{path}.{name}");
        match (schema["properties"].get(name), schema.get("additionalProperties")) {
            (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                check(schema, value, &path, found);
            }
            (None, Some(Value::Bool(true))) => {}
            _ if schema["x-kubernetes-preserve-unknown-fields"] == true => {}
            _ => found.push(format!("{path} is not known")),
        }
    }
}

#[test]
fn misspelt_misplaced_and_missing_fields_are_found() {
    let schema = serde_json::json!({
        "type": "object",
        "required": ["host"],
        "properties": {
            "host": { "type": "string" },
            "port": { "type": "integer", "maximum": 65535 },
            "mode": { "type": "string", "enum": ["SIMPLE"] },
        },
    });
    for (value, want) in [
        (serde_json::json!({ "host": "h", "port": 80, "mode": "SIMPLE" }), &[][..]),
        (serde_json::json!({ "hots": "h" }), &["spec lacks \"host\"", "spec.hots is not known"]),
        (serde_json::json!({ "host": 1 }), &["spec.host is 1 where a \"string\" is wanted"]),
        (
            serde_json::json!({ "host": "h", "port": 70000, "mode": "simple" }),
            &[
                "spec.mode is \"simple\", which is none of the known values",
                "spec.port is 70000, which is out of range",
            ],
        ),
    ] {
        let mut found = Vec::new();
        check(&schema, &value, "spec", &mut found);
        assert_eq!(found, want, "{value}");
    }
}
