//! Built-in kinds, compared with what kube-apiserver 1.36.3 answered.
//!
//! Each line of the data is one request and its answer: `accepted` and `refused` are POSTs with
//! `dryRun=All`, `updated` PUTs of a changed object, `malformed` bodies that could not be read. What an
//! accepted body has that a local node refuses is named in `refused_here`.

mod fields;
mod properties;
mod units;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::{error::Cause, types};

fn cases(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).expect("test data is JSON")).collect()
}

fn resource_of(case: &Value) -> &'static Resource {
    let version = object::text(case, &["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    resource(group, version, object::text(case, &["plural"])).expect("the resource is served")
}

fn read(resource: &Resource, body: Value) -> Result<Decoded, String> {
    let typed = types::builtin().kind(&resource.api_version(), &resource.kind);
    decode(resource, body, typed.expect("the kind is in the table")).map_err(|unfit| unfit.read)
}

/// As the registry does with a POST. `answer` lends what chance decides on a server.
fn create(resource: &Resource, given: &Value, answer: &Value) -> Value {
    let mut given = given.clone();
    if resource.namespaced {
        given["metadata"]["namespace"] = "diff".into();
    }
    let mut object = read(resource, given).expect("the body can be read").object;
    let uid = object::text(answer, &["metadata", "uid"]);
    object["metadata"]["uid"] = if uid.is_empty() { "some-uid" } else { uid }.into();
    default(resource, &mut object);
    let account = match account_name(&object) {
        "puller" => json!({ "imagePullSecrets": [{ "name": "reg" }] }),
        "quiet" => json!({ "automountServiceAccountToken": false }),
        _ => json!({}),
    };
    let volumes = object::items(answer, &["spec", "volumes"]).iter();
    let mut volumes = volumes.map(|volume| object::text(volume, &["name"]));
    let volume = volumes.find_map(|name| name.strip_prefix("kube-api-access-"));
    let address = object::text(answer, &["spec", "clusterIP"]);
    let context = Context {
        account: Some(&account),
        address: Some(if address.is_empty() { "10.96.0.9" } else { address }),
        storage_class: Some("local"),
        suffix: volume.unwrap_or("abcde"),
        time: object::text(answer, &["status", "lastPhaseTransitionTime"]),
    };
    on_create(resource, &mut object, &context).expect("nothing is missing");
    object
}

fn causes_of(answer: &Value) -> BTreeSet<String> {
    let causes = object::items(answer, &["causes"]).iter().map(|cause| {
        let [reason, field, message] =
            ["reason", "field", "message"].map(|name| object::text(cause, &[name]));
        format!("{reason} {field}: {}", elided(message))
    });
    causes.collect()
}

fn printed_causes(causes: &[Cause]) -> BTreeSet<String> {
    let causes = causes.iter();
    causes.map(|c| format!("{} {}: {}", c.reason.as_str(), c.field, elided(&c.message))).collect()
}

/// Without what is printed of Go structs: whole values, and differences in the lines that follow.
fn elided(message: &str) -> String {
    let message = message.split('\n').next().unwrap_or_default();
    match (message.find(" {").or(message.find(" [{")), message.rfind(['}', ']'])) {
        (Some(start), Some(end)) if start < end && message.contains("value: ") => {
            format!("{} …{}", &message[..start], &message[end + 1..])
        }
        _ => message.to_owned(),
    }
}

fn compare(differences: &mut Vec<String>, case: &Value, got: &BTreeSet<String>) {
    let want = causes_of(case);
    if *got != want {
        let given = case.get("given").or(case.get("new"));
        let missing: Vec<_> = want.difference(got).collect();
        let extra: Vec<_> = got.difference(&want).collect();
        let kind = object::text(case, &["plural"]);
        differences.push(format!("{kind} {given:?}\n  missing {missing:#?}\n  extra {extra:#?}"));
    }
}

#[test]
fn accepted_objects_look_as_on_a_real_server() {
    let mut differences = Vec::new();
    for mut case in cases(include_str!("tests/accepted.jsonl")) {
        let resource = resource_of(&case);
        // A local node is ready when it is made.
        if let Some(map) = case["answer"].get_mut("spec").and_then(Value::as_object_mut) {
            map.remove("taints");
        }
        let got = create(resource, &case["given"], &case["answer"]);
        let causes = validate(resource, &got, None);
        if got != case["answer"] {
            let diff = json_patch::diff(&case["answer"], &got);
            differences.push(format!("{} {}\n  {diff}", resource.kind, case["given"]));
        }
        // What a local node does not do, it says.
        let refused = object::items(&case, &["refused_here"]).iter().filter_map(Value::as_str);
        let refused = refused.map(|field| {
            format!("FieldValueForbidden {field}: Forbidden: not supported on a local node")
        });
        if printed_causes(&causes) != refused.collect() {
            differences.push(format!("{} {}: {causes:#?}", resource.kind, case["given"]));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn refused_objects_are_refused_in_the_same_words() {
    let mut differences = Vec::new();
    for case in cases(include_str!("tests/refused.jsonl")) {
        let resource = resource_of(&case);
        let object = create(resource, &case["given"], &Value::Null);
        compare(&mut differences, &case, &printed_causes(&validate(resource, &object, None)));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn updates_are_judged_as_on_a_real_server() {
    let mut differences = Vec::new();
    for case in cases(include_str!("tests/updated.jsonl")) {
        let resource = resource_of(&case);
        let old = read(resource, case["old"].clone()).expect("the body can be read").object;
        let mut new = read(resource, case["new"].clone()).expect("the body can be read").object;
        default(resource, &mut new);
        on_update(resource, &mut new, &old);
        compare(&mut differences, &case, &printed_causes(&validate(resource, &new, Some(&old))));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn bodies_of_other_types_cannot_be_read() {
    for case in cases(include_str!("tests/malformed.jsonl")) {
        let resource = resource_of(&case);
        let error = read(resource, case["given"].clone());
        let error = error.expect_err(&case["given"].to_string());
        let want = object::text(&case, &["message"]);
        if let Some((_, want)) = want.split_once("json: ") {
            assert_eq!(error, format!("json: {want}"));
        }
    }
}

#[test]
fn what_a_server_stored_reads_as_it_is() {
    for case in cases(include_str!("tests/accepted.jsonl")) {
        let resource = resource_of(&case);
        let read = read(resource, case["answer"].clone()).expect("the body can be read");
        assert_eq!(read.unknown, Vec::<String>::new());
        assert_eq!(
            read.object,
            case["answer"],
            "{}",
            json_patch::diff(&case["answer"], &read.object)
        );
    }
}
