//! What definitions may say.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{compile, lines, only, widget, with_spec};
use crate::{
    crd::{Taken, accept_names, is_established, terminating, validate_definition},
    error::Cause,
    types::{Form, ListKind},
};

fn problems(crd: &Value) -> Vec<String> {
    lines(&validate_definition(crd, None))
}

#[test]
fn names_are_filled_in() {
    let crd = widget();
    assert_eq!(crd["spec"]["names"]["singular"], "widget");
    assert_eq!(crd["spec"]["names"]["listKind"], "WidgetList");
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(problems(&crd), Vec::<String>::new());
}

#[test]
fn a_definition_is_refused_in_the_known_words() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 9] = [
        (
            |crd| crd["metadata"]["name"] = json!("x.ex.io"),
            "metadata.name: Invalid value: \"x.ex.io\": must be spec.names.plural+\".\"+spec.group",
        ),
        (
            |crd| crd["spec"]["versions"][0]["schema"] = json!({}),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        ),
        (
            |crd| crd["spec"]["scope"] = json!("Planet"),
            "spec.scope: Unsupported value: \"Planet\": supported values: \"Cluster\", \"Namespaced\"",
        ),
        (
            |crd| crd["spec"]["names"]["shortNames"] = json!(["Bad"]),
            "spec.names.shortNames[0]: Invalid value: \"Bad\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ),
        (
            |crd| crd["spec"]["conversion"] = json!({"strategy": "Webhook"}),
            "spec.conversion.strategy: Forbidden: conversion by webhook is not supported on a local node",
        ),
        (
            |crd| {
                crd["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"] =
                    json!(".status.x")
            },
            "spec.subresources.scale.specReplicasPath: Invalid value: \".status.x\": should be a json path under .spec",
        ),
        (
            |crd| {
                crd["spec"]["versions"][0]["selectableFields"] =
                    json!([{"jsonPath": ".spec.items"}])
            },
            "spec.selectableFields[0].jsonPath: Invalid value: \".spec.items\": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
        ),
        (
            |crd| {
                crd["spec"]["versions"][0]["additionalPrinterColumns"] =
                    json!([{"name": "A", "type": "text", "jsonPath": ".a"}])
            },
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of boolean,date,integer,number,string",
        ),
        (
            |crd| crd["status"]["storedVersions"] = json!(["v0"]),
            "status.storedVersions[0]: Invalid value: \"v0\": missing from spec.versions; v0 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v0 and removes v0 from status.storedVersions",
        ),
    ];
    for (change, want) in cases {
        let mut crd = widget();
        change(&mut crd);
        assert_eq!(problems(&crd), [want]);
    }
}

#[test]
fn exactly_one_version_is_stored() {
    let mut crd = widget();
    crd["spec"]["versions"][0]["storage"] = json!(false);
    let said = problems(&crd);
    assert!(said[0].starts_with("spec.versions: Invalid value: "), "{said:?}");
    assert!(said[0].ends_with(": must have exactly one version marked as storage version"));
}

#[test]
fn groups_of_kubernetes_need_an_approval() {
    let mut crd = widget();
    crd["spec"]["group"] = json!("ex.k8s.io");
    crd["metadata"]["name"] = json!("widgets.ex.k8s.io");
    let want = "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
    assert_eq!(problems(&crd), [want]);
    crd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, a test"});
    assert_eq!(problems(&crd), Vec::<String>::new());
}

#[test]
fn schemas_must_be_structural() {
    const AT: &str = "spec.validation.openAPIV3Schema.properties[spec]";
    for (schema, want) in [
        (
            json!({"type": "object", "properties": {"a": {}}}),
            "properties[a].type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
            "properties[a].items.type: Required value: must not be empty for specified array items",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            "properties[a].items: Required value: must be specified",
        ),
        (
            json!({"type": "object", "anyOf": [{"type": "object"}]}),
            "anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}}}),
            "properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
            "properties[a].default: Invalid value: \"string\":  in body must be of type integer: \"string\"",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "default": {"b": 1}}}}),
            "properties[a].default: Invalid value: {\"b\":1}: must not have unknown fields",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], "items": {"type": "object", "properties": {"n": {"type": "string"}}}}}}),
            "properties[a].items.properties[n].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}}),
            "properties[a].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[a]",
        ),
    ] {
        assert_eq!(problems(&with_spec(schema)), [format!("{AT}.{want}")]);
    }
}

#[test]
fn rules_that_cannot_be_read_are_refused() {
    let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a >="}]});
    let said = problems(&with_spec(schema));
    let at = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
    assert!(said[0].starts_with(&format!("{at}: Invalid value: ")), "{said:?}");
    assert!(said[0].contains("compilation failed: "), "{said:?}");
}

#[test]
fn schemas_that_differ_are_named_by_version() {
    let mut crd = with_spec(json!({"type": "object"}));
    let mut older = crd["spec"]["versions"][0].clone();
    older["name"] = json!("v1alpha1");
    older["storage"] = json!(false);
    older["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({});
    crd["spec"]["versions"].as_array_mut().unwrap().push(older);
    assert_eq!(
        problems(&crd),
        [
            "spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields"
        ]
    );
}

#[test]
fn what_names_the_objects_cannot_change() {
    let mut old = widget();
    old["status"] = accept_names(&old, &[], "2026-01-01T00:00:00Z");
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["names"]["kind"] = json!("Gadget");
    let said: Vec<String> =
        validate_definition(&new, Some(&old)).iter().map(Cause::to_string).collect();
    assert_eq!(
        said,
        [
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
            "spec.names.kind: Invalid value: \"Gadget\": field is immutable",
        ]
    );
}

#[test]
fn the_first_to_ask_for_a_name_gets_it() {
    let time = "2026-01-01T00:00:00Z";
    let mut first = widget();
    first["status"] = accept_names(&first, &[], time);
    assert!(is_established(&first));
    assert_eq!(
        first["status"],
        json!({
            "acceptedNames": {
                "categories": ["all"], "kind": "Widget", "listKind": "WidgetList", "plural": "widgets",
                "shortNames": ["wd"], "singular": "widget",
            },
            "conditions": [
                {"type": "NamesAccepted", "status": "True", "lastTransitionTime": time, "reason": "NoConflicts", "message": "no conflicts found"},
                {"type": "Established", "status": "True", "lastTransitionTime": time, "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
            ],
            "storedVersions": ["v1"],
        })
    );
    let mut second = widget();
    second["metadata"]["name"] = json!("gadgets.ex.io");
    second["spec"]["names"]["plural"] = json!("gadgets");
    second["spec"]["names"]["singular"] = json!("gadget");
    second["spec"]["names"]["shortNames"] = json!([]);
    let others = [Taken::deserialize(&first).unwrap()];
    second["status"] = accept_names(&second, &others, time);
    assert!(!is_established(&second));
    assert_eq!(
        second["status"]["conditions"],
        json!([
            {"type": "NamesAccepted", "status": "False", "lastTransitionTime": time, "reason": "ListKindConflict", "message": "\"WidgetList\" is already in use"},
            {"type": "Established", "status": "False", "lastTransitionTime": time, "reason": "NotAccepted", "message": "not all names are accepted"},
        ])
    );
    // When the first is gone, the second takes over; times tell when that was.
    second["status"] = accept_names(&second, &[], "2026-01-02T00:00:00Z");
    assert!(is_established(&second));
    assert_eq!(second["status"]["conditions"][1]["lastTransitionTime"], "2026-01-02T00:00:00Z");
    let ending = terminating(&first, true, time);
    assert_eq!(ending["conditions"][2]["reason"], "InstanceDeletionInProgress");
}

#[test]
fn schemas_become_forms() {
    let definition = compile(&widget());
    let typed = only(&definition).typed();
    let Form::Struct(root) = typed.form() else { panic!("{:?}", typed.form()) };
    assert!(root.fields.contains_key("metadata") && root.fields.contains_key("kind"));
    let Form::Struct(spec) = typed.types.get(root.fields["spec"].form) else { panic!() };
    let form = |name: &str| typed.types.get(spec.fields[name].form);
    let Form::List { kind: ListKind::Map { keys }, items } = form("items") else { panic!() };
    assert_eq!(keys, &["name"]);
    let Form::Struct(item) = typed.types.get(*items) else { panic!() };
    assert_eq!(item.fields["proto"].default, Some(json!("TCP")));
    assert!(matches!(form("tags"), Form::List { kind: ListKind::Set, .. }));
    assert!(matches!(form("plain"), Form::List { kind: ListKind::Atomic, .. }));
    assert!(matches!(form("labels"), Form::Map { atomic: false, .. }));
    assert_eq!(form("free"), &Form::Any);
}

#[test]
fn several_versions_are_several_resources() {
    let mut crd = widget();
    let mut older = crd["spec"]["versions"][0].clone();
    older["name"] = json!("v1alpha1");
    older["storage"] = json!(false);
    older["deprecated"] = json!(true);
    let mut hidden = older.clone();
    hidden["name"] = json!("v0");
    hidden["served"] = json!(false);
    crd["spec"]["versions"].as_array_mut().unwrap().extend([older, hidden]);
    let definition = compile(&crd);
    let versions: Vec<String> =
        definition.resources().iter().map(|r| r.version.to_string()).collect();
    assert_eq!(versions, ["v1", "v1alpha1"]);
    let old = definition.version("v1alpha1").unwrap();
    assert_eq!(old.deprecation.as_deref(), Some("ex.io/v1alpha1 Widget is deprecated"));
    assert_eq!(definition.storage().unwrap().name, "v1");
    assert_eq!(old.selectable_fields, [".spec.color"]);
}
