//! Nothing that a client sends makes reading, filling in or checking fail in another way than with
//! words.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{cases, read, resource_of};
use crate::builtin::{
    Context, RESOURCES, decode_metadata, default, on_create, on_status_update, on_update,
    quantity::Quantity, resource, time, validate, warnings,
};

/// Names that lead into the code, so that wrong types meet it deep down.
const NAMES: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "template",
    "containers",
    "initContainers",
    "volumes",
    "ports",
    "selector",
    "matchLabels",
    "name",
    "image",
    "labels",
    "resources",
    "limits",
    "requests",
    "cpu",
    "env",
    "valueFrom",
    "data",
    "rules",
    "subjects",
    "roleRef",
    "clusterIPs",
    "clusterIP",
    "tolerations",
    "strategy",
    "rollingUpdate",
    "maxSurge",
    "metrics",
    "accessModes",
    "finalizers",
    "ownerReferences",
    "httpGet",
    "livenessProbe",
    "port",
    "projected",
    "sources",
];

fn any_value() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        4 => proptest::sample::select(NAMES).prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        proptest::sample::select(NAMES).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A real object with something else somewhere in it.
fn spoiled() -> impl Strategy<Value = (usize, Value)> {
    let all = cases(include_str!("accepted.jsonl"));
    let count = all.len();
    (0..count, any::<prop::sample::Index>(), any_value()).prop_map(move |(case, place, value)| {
        let mut object = all[case]["answer"].clone();
        let mut paths = Vec::new();
        pointers(&object, String::new(), &mut paths);
        if let Some(place) = object.pointer_mut(place.get(&paths[..]).as_str()) {
            *place = value;
        }
        (case, object)
    })
}

fn pointers(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let name = name.replace('~', "~0").replace('/', "~1");
                pointers(value, format!("{path}/{name}"), paths);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                pointers(value, format!("{path}/{index}"), paths);
            }
        }
        _ => {}
    }
    paths.push(path);
}

proptest! {
    #[test]
    fn any_value_is_handled(value in any_value(), old in any_value()) {
        for resource in RESOURCES.iter() {
            let _ = read(resource, value.clone());
            let mut object = value.clone();
            default(resource, &mut object);
            let once = object.clone();
            default(resource, &mut object);
            prop_assert_eq!(&once, &object);
            let account = Value::Null;
            let context = Context { account: Some(&account), ..Context::default() };
            let _ = on_create(resource, &mut object, &context);
            on_update(resource, &mut object, &old);
            on_status_update(resource, &mut object, &old, "2026-01-01T00:00:00Z");
            validate(resource, &object, None);
            validate(resource, &object, Some(&old));
            warnings(resource, &object, None);
            warnings(resource, &object, Some(&old));
        }
        let _ = decode_metadata(&mut value.clone());
    }

    #[test]
    fn spoiled_objects_are_handled((case, object) in spoiled()) {
        let all = cases(include_str!("accepted.jsonl"));
        let resource = resource_of(&all[case]);
        if let Ok(decoded) = read(resource, object.clone()) {
            let again = read(resource, decoded.object.clone()).expect("what was read reads again");
            prop_assert_eq!(&again.object, &decoded.object);
            prop_assert!(again.unknown.is_empty());
            let mut object = decoded.object;
            default(resource, &mut object);
            let once = object.clone();
            default(resource, &mut object);
            prop_assert_eq!(once, object);
        }
        validate(resource, &object, Some(&all[case]["answer"]));
    }

    #[test]
    fn canonical_quantities_stay(text in "[+-]?[0-9]{0,25}(\\.[0-9]{0,12})?([numkMGTPE]|[KMGTPE]i|e-?[0-9]{1,3})?") {
        if let Ok(quantity) = Quantity::parse(&text) {
            let printed = quantity.to_string();
            let again = Quantity::parse(&printed).expect("what was printed can be read");
            prop_assert_eq!(again.nano(), quantity.nano());
            prop_assert_eq!(again.to_string(), printed);
        }
    }

    #[test]
    fn any_text_is_handled(text in ".{0,40}") {
        let _ = Quantity::parse(&text);
        let _ = time::seconds(&text);
        let _ = time::micros(&text);
        let _ = resource(&text, "v1", "pods");
    }
}
