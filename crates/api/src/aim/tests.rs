use kube_cel::Validator;
use serde_json::{Map, Value, json};

use super::*;

/// The schema of the first version.
pub(super) fn schema(crd: &CustomResourceDefinition) -> Value {
    let version = &crd.spec.versions[0];
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    serde_json::to_value(schema.unwrap()).unwrap()
}

/// The schema of a field, such as `/spec/env`.
pub(super) fn field(crd: &CustomResourceDefinition, pointer: &str) -> Value {
    let found = schema(crd).pointer(&pointer.replace('/', "/properties/")).cloned();
    found.unwrap_or_else(|| panic!("no {pointer}"))
}

/// What a field demands of its value: its schema without text and members.
pub(super) fn demands(crd: &CustomResourceDefinition, pointer: &str) -> Value {
    let mut field = field(crd, pointer);
    for noise in ["description", "properties", "items"] {
        field.as_object_mut().unwrap().remove(noise);
    }
    field
}

/// The rule that a value may not change, as a field carries it.
pub(super) fn immutable(message: &str) -> Value {
    json!([{ "rule": "self == oldSelf", "message": message }])
}

/// The texts of all rules that a write breaks; a creation has no old object.
pub(super) fn broken_rules(
    crd: &CustomResourceDefinition,
    object: &Value,
    old: Option<&Value>,
) -> Vec<String> {
    let Err(errors) = Validator::new().validate(&schema(crd), object, old) else { return vec![] };
    errors.into_iter().map(|error| error.message).collect()
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// The definition of a kind.
fn of(kind: &str) -> CustomResourceDefinition {
    crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap()
}

const KINDS: [(&str, &str, &str, &str, bool); 9] = [
    ("AIMService", "aimservices", "aimsvc", "Namespaced", true),
    ("AIMServiceTemplate", "aimservicetemplates", "aimst", "Namespaced", true),
    ("AIMClusterServiceTemplate", "aimclusterservicetemplates", "aimclst", "Cluster", true),
    ("AIMImage", "aimimages", "aimimg", "Namespaced", true),
    ("AIMClusterImage", "aimclusterimages", "aimclimg", "Cluster", true),
    ("AIMRuntimeConfig", "aimruntimeconfigs", "aimrcfg", "Namespaced", false),
    ("AIMClusterRuntimeConfig", "aimclusterruntimeconfigs", "aimcrcfg", "Cluster", false),
    ("AIMTemplateCache", "aimtemplatecaches", "aimtc", "Namespaced", true),
    ("ModelCache", "modelcaches", "mc", "Namespaced", true),
];

#[test]
fn the_kinds_have_their_names_scopes_and_subresources() {
    assert_eq!(crds().len(), KINDS.len());
    for (kind, plural, short, scope, status) in KINDS {
        let crd = of(kind);
        assert_eq!(crd.metadata.name, Some(format!("{plural}.{GROUP}")));
        assert_eq!((crd.spec.group.as_str(), crd.spec.scope.as_str()), (GROUP, scope), "{kind}");
        assert_eq!(
            serde_json::to_value(&crd.spec.names).unwrap(),
            json!({
                "kind": kind,
                "plural": plural,
                "singular": kind.to_lowercase(),
                "shortNames": [short],
                "categories": ["aim", "all"],
            })
        );
        let [version] = &crd.spec.versions[..] else { panic!("{kind} has versions") };
        assert_eq!(
            (version.name.as_str(), version.served, version.storage),
            ("v1alpha1", true, true)
        );
        let subresources = version.subresources.clone().unwrap_or_default();
        assert_eq!((subresources.status.is_some(), subresources.scale), (status, None), "{kind}");
    }
}

#[test]
fn each_column_shows_a_field_that_exists() {
    const STATUS: [&str; 3] = ["Status", "string", ".status.status"];
    const AGE: [&str; 3] = ["Age", "date", ".metadata.creationTimestamp"];
    const PROFILE: [[&str; 3]; 5] = [
        ["Engine", "string", ".status.profile.metadata.engine"],
        ["Metric", "string", ".status.profile.metadata.metric"],
        ["Precision", "string", ".status.profile.metadata.precision"],
        ["GPUs/replica", "integer", ".status.profile.metadata.gpu_count"],
        ["GPU", "string", ".status.profile.metadata.gpu"],
    ];
    let image = [["Model ID", "string", ".metadata.name"], ["Image", "string", ".spec.image"], AGE];
    let template = [&[STATUS, ["Model", "string", ".spec.aimImageName"]], &PROFILE[..]].concat();
    for (kind, want) in [
        (
            "AIMService",
            &[
                STATUS,
                ["Image", "string", ".spec.aimImageName"],
                ["Template", "string", ".status.resolvedTemplate.name"],
                ["Replicas", "integer", ".spec.replicas"],
                AGE,
            ][..],
        ),
        ("AIMServiceTemplate", &template),
        ("AIMClusterServiceTemplate", &[&[STATUS], &PROFILE[..]].concat()),
        ("AIMImage", &image),
        ("AIMClusterImage", &image),
        ("AIMRuntimeConfig", &[["ServiceAccount", "string", ".spec.serviceAccountName"], AGE]),
        (
            "AIMClusterRuntimeConfig",
            &[["DefaultStorageClass", "string", ".spec.defaultStorageClassName"], AGE],
        ),
        (
            "AIMTemplateCache",
            &[
                ["Template", "string", ".spec.templateRef"],
                STATUS,
                ["Kind", "string", ".status.resolvedTemplateKind"],
                AGE,
            ],
        ),
        (
            "ModelCache",
            &[
                ["Cache Size", "string", ".spec.size"],
                STATUS,
                ["PVC", "string", ".status.persistentVolumeClaim"],
                AGE,
            ],
        ),
    ] {
        let crd = of(kind);
        let columns = crd.spec.versions[0].additional_printer_columns.iter().flatten();
        let columns: Vec<_> = columns
            .map(|column| [&column.name[..], &column.type_[..], &column.json_path[..]])
            .collect();
        assert_eq!(columns, want, "{kind}");
        for [_, _, path] in columns.iter().filter(|[_, _, path]| !path.starts_with(".metadata")) {
            field(&crd, &path.replace('.', "/"));
        }
    }
}

#[test]
fn no_kind_asks_for_a_spec_or_restricts_names() {
    for crd in crds() {
        let root = schema(&crd);
        assert_eq!((&root["type"], root.get("required")), (&json!("object"), None));
        assert_eq!(root.get("x-kubernetes-validations"), None);
        let kind = &crd.spec.names.kind;
        let bare = json!({ "kind": kind, "metadata": { "name": "9.".repeat(100) + "a" } });
        assert_eq!(broken_rules(&crd, &bare, None), [""; 0], "{kind}");
    }
}

#[test]
fn each_spec_requires_what_it_has_always_required() {
    for (kind, want) in [
        ("AIMService", json!(["aimImageName"])),
        ("AIMServiceTemplate", json!(["aimImageName"])),
        ("AIMClusterServiceTemplate", json!(["aimImageName"])),
        ("AIMImage", json!(["defaultServiceTemplate", "image", "resources"])),
        ("AIMClusterImage", json!(["defaultServiceTemplate", "image", "resources"])),
        ("AIMRuntimeConfig", Value::Null),
        ("AIMClusterRuntimeConfig", Value::Null),
        ("AIMTemplateCache", json!(["templateRef"])),
        ("ModelCache", json!(["size", "sourceUri"])),
    ] {
        assert_eq!(field(&of(kind), "/spec")["required"], want, "{kind}");
        assert_eq!(field(&of(kind), "/status")["required"], Value::Null, "{kind}");
    }
}

#[test]
fn the_runtime_config_defaults_everywhere_but_on_a_service() {
    for kind in ["AIMServiceTemplate", "AIMClusterServiceTemplate", "AIMImage", "AIMTemplateCache"]
    {
        let want = json!({ "type": "string", "default": DEFAULT_RUNTIME_CONFIG });
        assert_eq!(demands(&of(kind), "/spec/runtimeConfigName"), want, "{kind}");
    }
    let service = demands(&of("AIMService"), "/spec/runtimeConfigName");
    assert_eq!(service, json!({ "type": "string" }));
}

#[test]
fn what_several_kinds_have_is_the_same_in_all() {
    let keyed = |key: &str| {
        json!({
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": [key],
        })
    };
    let list = json!({ "type": "array" });
    for crd in crds() {
        let kind = &crd.spec.names.kind;
        assert_eq!(demands(&crd, "/status/conditions"), keyed("type"), "{kind}");
        assert_eq!(
            field(&crd, "/status/conditions")["items"]["required"],
            json!(["lastTransitionTime", "message", "reason", "status", "type"])
        );
        assert_eq!(
            demands(&crd, "/status/observedGeneration"),
            json!({ "type": "integer", "format": "int64" })
        );
        let spec = field(&crd, "/spec");
        let has = |name: &str| properties(&spec).any(|(property, _)| property == name);
        if has("env") {
            assert_eq!(demands(&crd, "/spec/env"), keyed("name"), "{kind}");
            let env = field(&crd, "/spec/env");
            assert_eq!(env["items"]["required"], json!(["name"]));
        }
        if has("imagePullSecrets") {
            assert_eq!(demands(&crd, "/spec/imagePullSecrets"), list, "{kind}");
            let mut item = field(&crd, "/spec/imagePullSecrets")["items"].take();
            item["properties"]["name"].as_object_mut().unwrap().remove("description");
            item.as_object_mut().unwrap().remove("description");
            assert_eq!(
                item,
                json!({
                    "type": "object",
                    "properties": { "name": { "type": "string", "default": "" } },
                    "x-kubernetes-map-type": "atomic",
                })
            );
        }
        if has("resources") {
            assert_eq!(demands(&crd, "/spec/resources/claims"), keyed("name"), "{kind}");
            for amounts in ["requests", "limits"] {
                let amounts = field(&crd, &format!("/spec/resources/{amounts}"));
                assert_eq!(amounts["additionalProperties"]["x-kubernetes-int-or-string"], true);
                assert!(amounts["additionalProperties"]["pattern"].is_string());
            }
        }
        for (name, reference) in properties(&field(&crd, "/status")) {
            if name.starts_with("resolved") && name != "resolvedTemplateKind" {
                let members: Vec<_> = properties(reference).map(|(name, _)| name).collect();
                assert_eq!(members, ["kind", "name", "namespace", "scope", "uid"], "{kind} {name}");
                let scope = &reference["properties"]["scope"]["enum"];
                assert_eq!(scope, &json!(["Namespace", "Cluster", "Unknown"]));
            }
        }
    }
}

#[test]
fn a_gateway_is_named_as_the_gateway_api_names_it() {
    for kind in ["AIMService", "AIMRuntimeConfig", "AIMClusterRuntimeConfig"] {
        let crd = of(kind);
        let reference = demands(&crd, "/spec/routing/gatewayRef");
        assert_eq!(reference, json!({ "type": "object", "required": ["name"] }), "{kind}");
        for (name, want) in [
            ("group", json!({ "default": "gateway.networking.k8s.io", "maxLength": 253 })),
            ("kind", json!({ "default": "Gateway", "minLength": 1, "maxLength": 63 })),
            ("name", json!({ "minLength": 1, "maxLength": 253 })),
            ("namespace", json!({ "minLength": 1, "maxLength": 63 })),
            ("port", json!({ "format": "int32", "minimum": 1.0, "maximum": 65535.0 })),
            ("sectionName", json!({ "minLength": 1, "maxLength": 253 })),
        ] {
            let mut member = demands(&crd, &format!("/spec/routing/gatewayRef/{name}"));
            let member = member.as_object_mut().unwrap();
            member.remove("type");
            assert_eq!(member.remove("pattern").is_some(), !["name", "port"].contains(&name));
            assert_eq!(Value::from(member.clone()), want, "{kind} {name}");
        }
    }
}

#[test]
fn every_schema_is_structural() {
    for crd in crds() {
        check_structure(&schema(&crd), &crd.spec.names.kind);
    }
}

/// What the API server asks of each part of a schema, as far as ours could miss it.
fn check_structure(schema: &Value, path: &str) {
    let any = schema["x-kubernetes-preserve-unknown-fields"] == true
        || schema["x-kubernetes-int-or-string"] == true;
    assert_eq!(schema["type"].is_string(), !any, "{path} has a type, or any value");
    for word in ["$ref", "allOf", "anyOf", "oneOf", "not", "nullable", "title", "uniqueItems"] {
        assert!(schema.get(word).is_none(), "{path} has {word}");
    }
    let members = schema["properties"].as_object();
    assert!(members.is_none() || schema.get("additionalProperties").is_none(), "{path}");
    let known = |name: &Value| members.is_some_and(|all| all.contains_key(name.as_str().unwrap()));
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(known(required), "{path} requires {required}, which it does not have");
    }
    if let Some(allowed) = schema["enum"].as_array()
        && let Some(default) = schema.get("default")
    {
        assert!(allowed.contains(default), "{path} has the default {default}");
    }
    let item = &schema["items"];
    for key in schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten() {
        let required = item["required"].as_array().is_some_and(|names| names.contains(key));
        assert!(required, "{path} is keyed by {key}, which an item may lack");
    }
    for (name, member) in members.unwrap_or(&Map::new()) {
        check_structure(member, &format!("{path}.{name}"));
    }
    for below in [item, &schema["additionalProperties"]].into_iter().filter(|it| it.is_object()) {
        check_structure(below, &format!("{path}[]"));
    }
}
