//! The definitions that Windlass ships with or stands beside.

use std::{env, fs, path::PathBuf, sync::LazyLock};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::compile;
use crate::crd::{Definition, default_definition};

/// Our own, which are always there.
fn own() -> Vec<Value> {
    in_folder(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart/windlass/crds"))
}

/// Those of others, from the cache of `cargo xtask` where it has been filled.
fn others() -> Vec<Value> {
    let from = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = from("WINDLASS_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|cache| cache.join("windlass")))
        .or_else(|| from("HOME").map(|home| home.join(".cache/windlass")));
    cache.map(|cache| in_folder(cache.join("crds"))).unwrap_or_default()
}

fn in_folder(folder: PathBuf) -> Vec<Value> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.iter().flat_map(|text| definitions(text)).collect()
}

fn collect(folder: PathBuf, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.extend(fs::read_to_string(path).ok());
        }
    }
}

fn definitions(text: &str) -> Vec<Value> {
    text.split("\n---")
        .filter(|document| document.contains("kind: CustomResourceDefinition"))
        .map(|document| {
            serde_saphyr::from_str::<Value>(document.trim_start_matches("---"))
                .unwrap_or_else(|error| panic!("{error}\n{document}"))
        })
        .filter(|crd| crd["kind"] == "CustomResourceDefinition")
        .map(|mut crd| {
            default_definition(&mut crd);
            // Conversion by webhook is not served; the schemas are of use all the same.
            crd["spec"]["conversion"] = json!({"strategy": "None"});
            crd.as_object_mut().unwrap().remove("status");
            crd
        })
        .collect()
}

static COMPILED: LazyLock<Vec<Definition>> =
    LazyLock::new(|| own().iter().chain(&others()).map(compile).collect());

#[test]
fn every_known_definition_compiles() {
    let own = own().len();
    assert!(own >= 13, "only {own} definitions of our own were found");
    assert!(COMPILED.len() >= own);
}

/// Values that bear some likeness to the schema: mostly its fields, sometimes anything.
fn like(schema: &Value, depth: u32) -> BoxedStrategy<Value> {
    let anything = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9./:-]{0,12}".prop_map(Value::from),
        Just(json!({})),
        Just(json!([])),
        Just(json!({"x": [1, {"y": null}]})),
    ];
    if depth == 0 {
        return anything.boxed();
    }
    let fitting: BoxedStrategy<Value> = match schema["type"].as_str() {
        Some("object") => {
            let fields: Vec<(String, Value)> = match schema["properties"].as_object() {
                Some(fields) => fields.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
                None => vec![("k".to_owned(), schema["additionalProperties"].clone())],
            };
            let picked = prop::sample::subsequence(fields.clone(), 0..=fields.len().min(4));
            picked
                .prop_flat_map(move |fields| {
                    let values: Vec<_> = fields
                        .into_iter()
                        .map(|(name, schema)| {
                            like(&schema, depth - 1).prop_map(move |v| (name.clone(), v))
                        })
                        .collect();
                    values
                        .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()))
                })
                .boxed()
        }
        Some("array") => prop::collection::vec(like(&schema["items"], depth - 1), 0..3)
            .prop_map(Value::Array)
            .boxed(),
        _ => anything.clone().boxed(),
    };
    prop_oneof![9 => fitting, 1 => anything].boxed()
}

fn any_object() -> impl Strategy<Value = (usize, usize, Value, Value)> {
    (0..COMPILED.len()).prop_flat_map(|definition| {
        (0..COMPILED[definition].versions.len()).prop_flat_map(move |version| {
            let schema = COMPILED[definition].versions[version].raw_schema();
            (Just(definition), Just(version), like(&schema, 5), like(&schema, 5))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn pruning_and_defaulting_twice_is_once((d, v, object, _) in any_object()) {
        let version = &COMPILED[d].versions[v];
        let mut pruned = object;
        version.prune(&mut pruned);
        let mut again = pruned.clone();
        prop_assert_eq!(version.prune(&mut again), Vec::<String>::new());
        prop_assert_eq!(&again, &pruned);
        version.drop_nulls(&mut pruned);
        version.default(&mut pruned);
        again = pruned.clone();
        version.drop_nulls(&mut again);
        version.default(&mut again);
        prop_assert_eq!(again, pruned);
    }

    #[test]
    fn any_value_can_be_judged((d, v, new, old) in any_object()) {
        let version = &COMPILED[d].versions[v];
        version.validate(&new, None);
        version.validate(&new, Some(&old));
        // Nothing that stays as it was is complained of, but for rules about change and scale.
        let schema_only = version.validate(&new, Some(&new));
        prop_assert!(schema_only.iter().all(|c| c.message != "Required value" || c.field.contains('.')));
    }
}
