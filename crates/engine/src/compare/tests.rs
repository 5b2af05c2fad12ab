use serde_json::json;

use super::*;

const US: &str = "us";

fn live(fields: Value, body: Value) -> Value {
    let mut live = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "x", "managedFields": [
            { "manager": US, "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": fields },
            { "manager": "kubectl-edit", "operation": "Update", "apiVersion": "apps/v1",
              "fieldsV1": { "f:spec": { "f:replicas": {}, "f:template": { "f:spec": {
                "f:containers": { "k:{\"name\":\"c\"}": { "f:image": {} } } } } } } },
        ]},
    });
    for (key, value) in body.as_object().unwrap() {
        live[key] = value.clone();
    }
    live
}

fn desired(spec: Value) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "x" }, "spec": spec })
}

fn path(desired: &Value, live: &Value) -> Option<String> {
    difference(desired, live, US, "").map(|difference| difference.path.to_string())
}

fn containers_live() -> Value {
    live(
        json!({ "f:spec": { "f:template": { "f:spec": { "f:containers": {
            "k:{\"name\":\"c\"}": { ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                "f:resources": { "f:limits": { "f:cpu": {} } },
                "f:ports": { "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } } },
        } } } } }),
        json!({ "spec": { "template": { "spec": { "containers": [
            { "name": "injected", "image": "sidecar" },
            { "name": "c", "image": "i", "args": ["a", "b"], "terminationMessagePath": "/dev/log",
              "resources": { "limits": { "cpu": "1" } },
              "ports": [{ "containerPort": 80, "protocol": "TCP" }] },
        ] } } } }),
    )
}

fn containers(container: Value) -> Value {
    desired(json!({ "template": { "spec": { "containers": [container] } } }))
}

fn container() -> Value {
    json!({ "name": "c", "image": "i", "args": ["a", "b"], "resources": { "limits": { "cpu": "1000m" } },
            "ports": [{ "containerPort": 80 }] })
}

/// A map of ours, one key of which somebody added, and another that we no longer want.
fn selector_live() -> Value {
    let mut live = live(
        json!({ "f:spec": { "f:selector": { "f:app": {}, "f:role": {} } } }),
        json!({ "spec": { "selector": { "app": "a", "role": "r", "x": "y", "z": "" } } }),
    );
    let theirs = json!({ "manager": "somebody", "operation": "Update", "apiVersion": "apps/v1",
        "fieldsV1": { "f:spec": { "f:selector": { "f:x": {} } } } });
    live["metadata"]["managedFields"].as_array_mut().unwrap().push(theirs);
    live
}

#[test]
fn keys_of_others_in_a_map_of_ours_are_found_with_their_holders() {
    let wanted = desired(json!({ "selector": { "app": "a" } }));
    let found = surplus(&wanted, &selector_live(), "/spec/selector", US);
    let told: Vec<_> = found.iter().map(|d| (d.path.to_string(), d.holder.as_deref())).collect();
    assert_eq!(
        told,
        [("spec.selector.x".to_owned(), Some("somebody")), ("spec.selector.z".to_owned(), None)],
        "our own key goes with the apply"
    );
    let wanted = desired(json!({ "selector": { "app": "a", "x": "b", "z": "" } }));
    assert_eq!(surplus(&wanted, &selector_live(), "/spec/selector", US), []);
    assert_eq!(surplus(&wanted, &selector_live(), "/spec/none", US), []);
    // Before our first apply nothing is recorded as ours.
    let never = surplus(&desired(json!({})), &selector_live(), "/spec/selector", "nobody");
    assert_eq!(never.len(), 4);
}

#[test]
fn a_live_object_as_wanted_needs_no_write() {
    assert_eq!(path(&containers(container()), &containers_live()), None);
}

#[test]
fn each_kind_of_change_is_seen() {
    let changed = |key: &str, value: Value| {
        let mut container = container();
        container[key] = value;
        containers(container)
    };
    for (what, wanted) in [
        ("a scalar", changed("image", json!("j"))),
        ("an element of a whole list", changed("args", json!(["a"]))),
        ("a quantity", changed("resources", json!({ "limits": { "cpu": "2" } }))),
        ("a key of a merged list", changed("ports", json!([{ "containerPort": 81 }]))),
        ("a new field", changed("tty", json!(true))),
        (
            "a new list item",
            changed("ports", json!([{ "containerPort": 80 }, { "containerPort": 81 }])),
        ),
        ("a field no longer wanted", {
            let mut container = container();
            container.as_object_mut().unwrap().remove("args");
            containers(container)
        }),
        ("a list item no longer wanted", changed("ports", json!([]))),
    ] {
        assert!(path(&wanted, &containers_live()).is_some(), "{what}");
    }
}

#[test]
fn an_object_we_never_applied_needs_a_write() {
    let mut live = containers_live();
    live["metadata"]["managedFields"][0]["manager"] = json!("somebody");
    assert!(path(&containers(container()), &live).is_some());
    // The same name in a plain update does not make the fields ours either.
    live["metadata"]["managedFields"][0] =
        json!({ "manager": US, "operation": "Update", "fieldsV1": {} });
    assert!(path(&containers(container()), &live).is_some());
}

#[test]
fn a_field_taken_by_somebody_else_names_its_holder() {
    let live = live(
        json!({ "f:spec": { "f:paused": {} } }),
        json!({ "spec": { "paused": true, "replicas": 7 } }),
    );
    let found =
        difference(&desired(json!({ "paused": true, "replicas": 2 })), &live, US, "").unwrap();
    assert_eq!(
        (found.path.to_string().as_str(), found.holder.as_deref()),
        ("spec.replicas", Some("kubectl-edit"))
    );
}

#[test]
fn the_holder_of_a_list_item_is_found() {
    let mut live = containers_live();
    let ours = &mut live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:template"]["f:spec"]
        ["f:containers"]["k:{\"name\":\"c\"}"];
    ours.as_object_mut().unwrap().remove("f:image");
    let found = difference(&containers(container()), &live, US, "").unwrap();
    assert_eq!(found.holder.as_deref(), Some("kubectl-edit"));
}

#[test]
fn defaults_inside_a_whole_list_do_not_count() {
    let live = live(
        json!({ "f:spec": { "f:parentRefs": {} } }),
        json!({ "spec": { "parentRefs": [{ "name": "gw", "group": "gateway.networking.k8s.io", "kind": "Gateway" }] } }),
    );
    assert_eq!(path(&desired(json!({ "parentRefs": [{ "name": "gw" }] })), &live), None);
    assert!(path(&desired(json!({ "parentRefs": [{ "name": "gw2" }] })), &live).is_some());
}

#[test]
fn an_empty_map_that_the_server_dropped_is_no_change() {
    let live = live(json!({ "f:spec": { "f:paused": {} } }), json!({ "spec": { "paused": true } }));
    assert_eq!(path(&desired(json!({ "paused": true, "strategy": {} })), &live), None);
}

#[test]
fn sets_are_compared_by_their_elements() {
    let live = live(
        json!({ "f:metadata": { "f:finalizers": { ".": {}, "v:\"a\"": {} } } }),
        json!({ "metadata": { "finalizers": ["b", "a"], "managedFields": [
            { "manager": US, "operation": "Apply", "apiVersion": "apps/v1",
              "fieldsV1": { "f:metadata": { "f:finalizers": { ".": {}, "v:\"a\"": {} } } } }] } }),
    );
    let with = |finalizers: Value| json!({ "apiVersion": "apps/v1", "metadata": { "finalizers": finalizers } });
    assert_eq!(path(&with(json!(["a"])), &live), None);
    assert!(path(&with(json!(["c"])), &live).is_some());
    assert!(path(&with(json!(["a", "c"])), &live).is_some());
}

#[test]
fn status_is_compared_with_what_was_applied_to_the_subresource() {
    let live = json!({ "status": { "ready": true }, "metadata": { "managedFields": [
        { "manager": US, "operation": "Apply", "apiVersion": "v1", "subresource": "status",
          "fieldsV1": { "f:status": { "f:ready": {} } } }] } });
    let status = |ready: bool| json!({ "apiVersion": "v1", "status": { "ready": ready } });
    assert_eq!(difference(&status(true), &live, US, "status"), None);
    assert!(difference(&status(false), &live, US, "status").is_some());
    assert!(difference(&status(true), &live, US, "").is_some());
}

#[test]
fn a_key_that_is_gone_from_a_whole_map_is_seen() {
    let live = live(
        json!({ "f:spec": { "f:selector": {}, "f:tolerations": {} } }),
        json!({ "spec": { "selector": { "app": "a", "track": "primary" },
                          "tolerations": [{ "key": "k", "effect": "NoSchedule" }] } }),
    );
    let wanted = |selector: Value, toleration: Value| {
        desired(json!({ "selector": selector, "tolerations": [toleration] }))
    };
    let (selector, toleration) =
        (json!({ "app": "a", "track": "primary" }), json!({ "key": "k", "effect": "NoSchedule" }));
    assert_eq!(path(&wanted(selector.clone(), toleration.clone()), &live), None);
    let fewer = wanted(json!({ "app": "a" }), toleration);
    assert_eq!(path(&fewer, &live).as_deref(), Some("spec.selector"));
    let fewer = wanted(selector, json!({ "key": "k" }));
    assert_eq!(path(&fewer, &live).as_deref(), Some("spec.tolerations"));
}

#[test]
fn the_own_part_is_what_our_apply_has_set() {
    let fields = json!({ "f:status": {
        "f:phase": {},
        "f:all": {},
        "f:conditions": { "k:{\"type\":\"Ready\"}": { ".": {}, "f:type": {}, "f:status": {} } },
        "f:names": { "v:\"a\"": {} },
    } });
    let body = json!({ "status": {
        "phase": "x",
        "cost": 1,
        "all": { "a": 1 },
        "conditions": [
            { "type": "Audited", "status": "True" },
            { "type": "Ready", "status": "True", "note": "of somebody else" },
        ],
        "names": ["a", "b"],
    } });
    let want = json!({ "status": {
        "phase": "x",
        "all": { "a": 1 },
        "conditions": [{ "type": "Ready", "status": "True" }],
        "names": ["a"],
    } });
    assert_eq!(own_part(&live(fields, body), US, ""), want);
    assert_eq!(own_part(&live(json!({}), json!({})), "nobody", ""), Value::Null);
}

/// What a predecessor has reported, and holds until somebody takes it.
fn reported(fields: Value, status: Value) -> Value {
    json!({ "metadata": { "managedFields": [
            { "manager": "manager", "operation": "Update", "subresource": "status",
              "fieldsV1": { "f:status": fields } },
            { "manager": "other", "operation": "Update", "subresource": "status",
              "fieldsV1": { "f:status": { "f:theirs": {} } } },
            { "manager": "manager", "operation": "Update",
              "fieldsV1": { "f:status": { "f:elsewhere": {} } } },
        ]},
        "status": status })
}

#[test]
fn strays_are_found_at_any_depth() {
    let fields = json!({ "f:phase": {}, "f:gone": {}, "f:profile": { ".": {}, "f:env": {},
        "f:metadata": { "f:gpu": {}, "f:count": {} } }, "f:reference": { "f:namespace": {} },
        "f:conditions": { "k:{\"type\":\"Old\"}": { ".": {} } } });
    let status = json!({ "phase": "x", "profile": { "env": { "A": "1" },
            "metadata": { "gpu": "g", "count": 2 } },
        "reference": { "name": "n", "namespace": "s" }, "conditions": [{ "type": "Old" }],
        "theirs": 1, "elsewhere": 1 });
    let live = reported(fields, status);
    let wanted = json!({ "phase": "y", "profile": { "metadata": { "gpu": "h" } },
        "reference": { "name": "n" }, "conditions": [] });
    let patch = json!({ "profile": { "env": null, "metadata": { "count": null } },
        "reference": { "namespace": null } });
    assert_eq!(without_strays(&live, &["manager"], "status", &wanted), Some(patch));
    assert_eq!(without_strays(&live, &["nobody"], "status", &wanted), None);
    let whole = json!({ "phase": "y" });
    let patch = without_strays(&live, &["manager"], "status", &whole);
    assert_eq!(patch, Some(json!({ "profile": null, "reference": null, "conditions": null })));
    assert_eq!(without_strays(&live, &["manager"], "status", &live["status"]), None);
}
