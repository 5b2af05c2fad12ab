use serde_json::json;

use super::*;

#[test]
fn an_apply_that_creates_owns_its_leaves_and_nothing_more() {
    let config = json!({"apiVersion": "v1", "kind": "Widget",
        "metadata": {"name": "w", "labels": {"a": "b"}}, "spec": {"size": 1}});
    let object = applied(widget(), &[("m", config)]);
    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{
            "manager": "m", "operation": "Apply", "apiVersion": "v1",
            "time": "2026-01-01T00:00:01Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:size": {}}},
        }])
    );
}

#[test]
fn the_same_apply_again_changes_nothing() {
    let config = spec(json!({"size": 1, "items": [{"name": "a"}], "tags": ["x"]}));
    let first = applied(widget(), &[("m", config.clone())]);
    let later =
        Request { time: "2026-02-02T00:00:00Z", ..request(widget(), "m", Some(&first), &config) };
    assert_eq!(apply(later).unwrap(), first);
    // Another manager with the same values shares them; it changed nothing, so it has no time.
    let shared = again(widget(), &first, "other", config);
    assert_eq!(entry(&shared, "other", "Apply").get("time"), None);
    assert_eq!(owned(&shared, "other", "Apply"), owned(&shared, "m", "Apply"));
}

#[test]
fn a_shared_field_stays_until_the_last_owner_drops_it() {
    let both = spec(json!({"size": 1, "color": "red"}));
    let object = applied(widget(), &[("a", both.clone()), ("b", both)]);
    let object = again(widget(), &object, "a", spec(json!({"color": "red"})));
    assert_eq!(object["spec"], json!({"size": 1, "color": "red"}));
    let object = again(widget(), &object, "b", spec(json!({"color": "red"})));
    assert_eq!(object["spec"], json!({"color": "red"}));
}

#[test]
fn what_a_manager_drops_goes_item_by_item() {
    let a = json!({"metadata": {"labels": {"x": "1", "y": "1"}, "finalizers": ["f/a", "f/b"]},
        "spec": {"items": [{"name": "a", "value": "1"}, {"name": "b", "value": "1"}]}});
    let b = json!({"metadata": {"labels": {"z": "1"}, "finalizers": ["f/c"]},
        "spec": {"items": [{"name": "b", "inner": {"a": "1"}}, {"name": "c"}]}});
    let object = applied(widget(), &[("a", a), ("b", b)]);
    let object = again(
        widget(),
        &object,
        "a",
        json!({"metadata": {"labels": {"x": "1"}, "finalizers": ["f/a"]}}),
    );
    assert_eq!(object["metadata"]["labels"], json!({"x": "1", "z": "1"}));
    assert_eq!(object["metadata"]["finalizers"], json!(["f/a", "f/c"]));
    // The item that the other also has stays with what the other gave it.
    assert_eq!(object["spec"]["items"], json!([{"name": "b", "inner": {"a": "1"}}, {"name": "c"}]));
}

#[test]
fn a_struct_that_nobody_owns_any_more_goes_with_what_was_filled_in() {
    let mut object = applied(widget(), &[("a", spec(json!({"size": 1, "inner": {"a": "1"}})))]);
    object["spec"]["inner"]["b"] = json!("a default");
    let object = again(widget(), &object, "a", spec(json!({"size": 1})));
    assert_eq!(object["spec"], json!({"size": 1}));
}

#[test]
fn an_item_that_was_not_applied_is_not_removed() {
    let items = spec(json!({"items": [{"name": "x"}, {"name": "y"}]}));
    let mut object = applied(widget(), &[("a", items)]);
    object["spec"]["items"] = json!([{"name": "x"}, {"name": "unowned"}, {"name": "y"}]);
    let kept = again(widget(), &object, "a", spec(json!({"items": [{"name": "x"}]})));
    assert_eq!(kept["spec"]["items"], json!([{"name": "x"}, {"name": "unowned"}]));
    // It goes with the list, once nobody owns anything in there.
    let gone = again(widget(), &object, "a", spec(json!({"size": 1})));
    assert_eq!(gone["spec"], json!({"size": 1}));
}

#[test]
fn items_follow_the_order_of_the_configuration() {
    let items = |names: &[&str]| {
        let items: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        spec(json!({"items": items}))
    };
    for (live, config, want) in [
        (&["x", "y"][..], &["n", "y", "x"][..], &["n", "y", "x"][..]),
        (&["x", "y"], &["c"], &["x", "y", "c"]),
        (&["a", "x", "b", "y"], &["y", "n", "x"], &["a", "b", "y", "n", "x"]),
        (&["a", "b", "c"], &["b"], &["a", "b", "c"]),
        (&[], &["b", "a"], &["b", "a"]),
    ] {
        let merged = merge::merge(widget(), &items(live), &items(config));
        assert_eq!(merged, items(want), "{live:?} {config:?}");
    }
}

#[test]
fn atomic_values_are_replaced_as_a_whole_and_owned_as_one() {
    let object =
        applied(widget(), &[("a", spec(json!({"words": ["a", "b"], "limits": {"a": "1"}})))]);
    let text = refused(widget(), &object, "b", spec(json!({"words": ["c"], "limits": {"b": "1"}})));
    assert_eq!(
        text,
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.limits\n- .spec.words"
    );
    let object = again(widget(), &object, "a", spec(json!({"words": ["c"], "limits": {"b": "1"}})));
    assert_eq!(object["spec"], json!({"words": ["c"], "limits": {"b": "1"}}));
}

#[test]
fn conflicts_name_each_manager_and_path() {
    let object = applied(
        widget(),
        &[
            ("m2", spec(json!({"size": 1, "items": [{"name": "c", "value": "1"}]}))),
            ("m1", json!({"spec": {"tags": ["t"]}})),
        ],
    );
    let mut changed = object.clone();
    changed["spec"]["color"] = json!("red");
    let object = update(writer(widget(), "curl"), Some(&object), changed);
    let one = refused(widget(), &object, "x", spec(json!({"color": "blue"})));
    assert_eq!(one, "Apply failed with 1 conflict: conflict with \"curl\" using v1: .spec.color");
    let config = spec(json!({"size": 2, "color": "blue", "items": [{"name": "c", "value": "2"}]}));
    let error = apply(request(widget(), "x", Some(&object), &config)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 3 conflicts: conflicts with \"curl\" using v1:\n- .spec.color\n\
         conflicts with \"m2\":\n- .spec.size\n- .spec.items[name=\"c\"].value"
    );
    let Error::Conflicts(conflicts) = error else { panic!("{error}") };
    assert_eq!(
        conflicts[0],
        Conflict { message: "conflict with \"curl\" using v1".into(), field: ".spec.color".into() }
    );
}

#[test]
fn force_takes_the_fields_and_drops_empty_entries() {
    let object = applied(widget(), &[("a", spec(json!({"size": 1})))]);
    let config = spec(json!({"size": 2}));
    let forced = Request { force: true, ..request(widget(), "b", Some(&object), &config) };
    let object = apply(forced).unwrap();
    assert_eq!(object["spec"]["size"], 2);
    assert_eq!(owned(&object, "a", "Apply"), Value::Null);
    assert_eq!(owned(&object, "b", "Apply"), json!({"f:spec": {"f:size": {}}}));
}

#[test]
fn a_subresource_conflict_says_so() {
    let object = applied(widget(), &[("a", spec(json!({"size": 1})))]);
    let status = json!({"status": {"phase": "Ready"}, "spec": {"size": 7}, "metadata": {"labels": {"x": "y"}}});
    let on_status = |manager, live, config| Request {
        subresource: Some("status"),
        reset: Reset::AllButStatus,
        ..request(widget(), manager, Some(live), config)
    };
    let object = apply(on_status("s", &object, &status)).unwrap();
    // Only the status is written and owned.
    assert_eq!(object["spec"]["size"], 1);
    assert_eq!(object["status"]["phase"], "Ready");
    assert_eq!(owned(&object, "s", "Apply"), json!({"f:status": {"f:phase": {}}}));
    assert_eq!(entry(&object, "s", "Apply")["subresource"], "status");
    let other = json!({"status": {"phase": "Gone"}});
    let error = apply(on_status("t", &object, &other)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"s\" with subresource \"status\": .status.phase"
    );
    // And the main endpoint does not see it.
    let object =
        again(widget(), &object, "a", json!({"spec": {"size": 1}, "status": {"phase": "x"}}));
    assert_eq!(object["status"]["phase"], "Ready");
    assert_eq!(owned(&object, "a", "Apply"), json!({"f:spec": {"f:size": {}}}));
}

#[test]
fn the_same_managers_update_is_another_owner() {
    let created = update(writer(config_map(), "m"), None, json!({"data": {"a": "1", "b": "1"}}));
    let object = again(config_map(), &created, "m", json!({"data": {"a": "1", "b": "1"}}));
    let object = again(config_map(), &object, "m", json!({"data": {"a": "1"}}));
    assert_eq!(object["data"], json!({"a": "1", "b": "1"}));
    assert_eq!(owned(&object, "m", "Apply"), json!({"f:data": {"f:a": {}}}));
}

#[test]
fn what_was_there_before_the_first_apply_has_an_owner() {
    let live = json!({"metadata": {"name": "c", "uid": "u"}, "data": {"a": "1"}});
    let object = again(config_map(), &live, "m", json!({"data": {"b": "1"}}));
    assert_eq!(
        owned(&object, "before-first-apply", "Update"),
        json!({"f:data": {".": {}, "f:a": {}}})
    );
    let text = refused(config_map(), &live, "m", json!({"data": {"a": "2"}}));
    assert_eq!(
        text,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a"
    );
}

#[test]
fn a_configuration_of_the_wrong_type_is_refused() {
    for (typed, config, want) in [
        (widget(), spec(json!({"foo": 1})), ".spec.foo: field not declared in schema"),
        (
            widget(),
            spec(json!({"size": "x"})),
            ".spec.size: expected numeric (int or float), got string",
        ),
        (
            widget(),
            spec(json!({"items": [{"name": "C"}, {"name": "C"}]})),
            ".spec.items: duplicate entries for key [name=\"C\"]",
        ),
        (
            widget(),
            spec(json!({"items": [{}]})),
            ".spec.items: element 0: associative list with keys has an element that omits all key \
             fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            config_map(),
            json!({"data": {"a": 5, "c": {"x": 1}}, "immutable": "x"}),
            "errors:\n  .data.a: expected string, got &value.valueUnstructured{Value:5}\n  \
             .data.c: expected string, got \
             &value.valueUnstructured{Value:map[string]interface {}{\"x\":1}}\n  \
             .immutable: expected boolean, got &{x}",
        ),
        (deployment(), spec(json!({"template": [1]})), ".spec.template: expected map, got &{[1]}"),
        (
            deployment(),
            spec(json!({"template": {"spec": {"volumes": {"a": 1}}}})),
            ".spec.template.spec.volumes: expected list, got &{map[a:1]}",
        ),
    ] {
        let error = apply(request(typed, "m", None, &config)).unwrap_err();
        assert_eq!(error, Error::Typed(want.into()), "{config}");
    }
}

#[test]
fn ports_without_protocol_are_those_with_tcp() {
    let config = spec(json!({"template": {"spec": {"containers": [
        {"name": "c", "ports": [{"containerPort": 80}]},
    ]}}}));
    let mut object = applied(deployment(), &[("m", config.clone())]);
    assert_eq!(
        owned(&object, "m", "Apply")["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"]
            ["f:ports"],
        json!({"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}})
    );
    let ports = "/spec/template/spec/containers/0/ports";
    *object.pointer_mut(ports).unwrap() = json!([{"containerPort": 80, "protocol": "TCP"}]);
    let object = again(deployment(), &object, "m", config);
    assert_eq!(object.pointer(ports).unwrap().as_array().unwrap().len(), 1);
}

#[test]
fn comparison_is_textual() {
    let memory = |text: &str| {
        spec(json!({"template": {"spec": {"containers": [
            {"name": "c", "resources": {"limits": {"memory": text}}},
        ]}}}))
    };
    let mut object = applied(deployment(), &[("m", memory("1024Mi"))]);
    let stored = "/spec/template/spec/containers/0/resources/limits/memory";
    *object.pointer_mut(stored).unwrap() = json!("1Gi");
    again(deployment(), &object, "m", memory("1024Mi"));
    let text = refused(deployment(), &object, "other", memory("1024Mi"));
    assert!(text.ends_with(".resources.limits.memory"), "{text}");
}

#[test]
fn kubectl_takes_over_what_its_annotation_lists() {
    let noted = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b": "1"}});
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"annotations": {annotation: noted.to_string()}},
        "data": {"a": "1", "b": "changed"}});
    let object = update(writer(config_map(), "kubectl-client-side-apply"), None, object);
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "2"}});
    let merged = again(config_map(), &object, "kubectl", config.clone());
    assert_eq!(merged["data"]["a"], "2");
    assert_eq!(merged["metadata"]["annotations"][annotation], format!("{config}\n"));
    // Not what was changed since, and nobody else.
    let text = refused(config_map(), &object, "kubectl", json!({"data": {"b": "2"}}));
    assert!(text.ends_with(": .data.b"), "{text}");
    refused(config_map(), &object, "other", json!({"data": {"a": "2"}}));
}
