use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::types::builtin;

fn pod() -> Typed<'static> {
    builtin().kind("v1", "Pod").unwrap()
}

fn deployment() -> Typed<'static> {
    builtin().kind("apps/v1", "Deployment").unwrap()
}

fn merged(typed: Typed<'_>, target: Value, patch: Value) -> Value {
    strategic(&target, &patch, typed).unwrap()
}

/// A pod whose container has these variables.
fn env(items: Value) -> Value {
    json!({"spec": {"containers": [{"name": "c", "env": items}]}})
}

#[test]
fn a_merge_patch_sets_and_removes() {
    let mut target = json!({"data": {"a": "1", "b": "1"}, "list": [1, 2]});
    merge(&mut target, &json!({"data": {"a": null, "c": "1"}, "list": [3]}));
    assert_eq!(target, json!({"data": {"b": "1", "c": "1"}, "list": [3]}));
}

#[test]
fn json_patches_apply_or_are_refused() {
    let target = json!({"data": {"a": "1"}, "list": [1, 2]});
    let patched = json(
        &target,
        &json!([
            {"op": "test", "path": "/data/a", "value": "1"},
            {"op": "replace", "path": "/data/a", "value": "2"},
            {"op": "add", "path": "/list/-", "value": 3},
            {"op": "remove", "path": "/list/0"},
            {"op": "replace", "path": "/data/new~1", "value": "3"},
        ]),
    );
    assert_eq!(patched.unwrap(), json!({"data": {"a": "2", "new/": "3"}, "list": [2, 3]}));
    for operations in [
        json!([{"op": "test", "path": "/data/a", "value": "2"}]),
        json!([{"op": "remove", "path": "/nothing"}]),
        json!([{"op": "replace", "path": "/no/parent", "value": 1}]),
        json!([{"op": "replace", "path": "/list/2", "value": 1}]),
        json!([{"op": "add", "path": "/no/parent", "value": 1}]),
        json!([{"op": "dance", "path": "/data"}]),
        json!([{"op": "add"}]),
        json!([{"op": "copy", "from": "/nothing", "path": "/data"}]),
    ] {
        assert_eq!(json(&target, &operations), Err(Error::Rejected), "{operations}");
    }
    for operations in [json!({"op": "add"}), json!("x"), json!([1])] {
        assert!(matches!(json(&target, &operations), Err(Error::Decode(_))), "{operations}");
    }
}

#[test]
fn json_patches_have_limits() {
    let many = Value::from(vec![json!({"op": "add", "path": "/a", "value": 1}); 10_001]);
    assert_eq!(json(&json!({}), &many), Err(Error::TooLarge(10_001)));
    // Each copy doubles the object.
    let copies = Value::from(vec![json!({"op": "copy", "from": "", "path": "/a"}); 100]);
    assert_eq!(json(&json!({"b": "x".repeat(1000)}), &copies), Err(Error::Rejected));
    let deep = (1..200).map(|depth| json!({"op": "add", "path": "/a".repeat(depth), "value": {}}));
    assert_eq!(json(&json!({}), &deep.collect()), Err(Error::Rejected));
}

#[test]
fn moves_cannot_nest_without_end() {
    let levels = (0..100).fold(json!(1), |inner, _| json!({"a": inner}));
    let inmost = format!("/y{}", "/a".repeat(100));
    let round = [
        json!({"op": "add", "path": "/y", "value": levels}),
        json!({"op": "move", "from": "/x", "path": inmost}),
        json!({"op": "move", "from": "/y", "path": "/x"}),
    ];
    let rounds = Value::from(round.iter().cycle().take(9_999).cloned().collect::<Vec<_>>());
    assert_eq!(json(&json!({"x": {}}), &rounds), Err(Error::Rejected));
    assert!(json(&json!({"x": {}}), &Value::from(round.to_vec())).is_ok());
    let deepest = (0..126).fold(json!(1), |inner, _| json!({"a": inner}));
    let add = |path: &str| json!([{"op": "add", "path": path, "value": deepest}]);
    assert!(json(&json!({}), &add("/x")).is_ok());
    assert_eq!(json(&json!({"x": {"y": {}}}), &add("/x/y/z")), Err(Error::Rejected));
}

#[test]
fn a_patch_that_would_keep_others_waiting_is_refused() {
    let long = Value::from(vec![1; 300_000]);
    for operation in [
        json!({"op": "add", "path": "/list/0", "value": 1}),
        json!({"op": "remove", "path": "/list/0"}),
        json!({"op": "move", "from": "/list/1", "path": "/list/0"}),
        json!({"op": "move", "from": "/list", "path": "/list"}),
    ] {
        let many = Value::from(vec![operation.clone(); 10_000]);
        assert_eq!(json(&json!({"list": long}), &many), Err(Error::Rejected), "{operation}");
        let few = Value::from(vec![operation.clone(); 10]);
        assert!(json(&json!({"list": long}), &few).is_ok(), "{operation}");
    }
}

#[test]
fn null_deletes_scalars_replace_and_maps_merge() {
    let target = json!({"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": {"nodeName": "x"}});
    let patch = json!({"metadata": {"labels": {"a": null, "c": "1"}},
        "spec": {"nodeName": "y", "nodeSelector": {"k": "v", "n": null}}});
    assert_eq!(
        merged(pod(), target, patch),
        json!({"metadata": {"labels": {"b": "1", "c": "1"}},
            "spec": {"nodeName": "y", "nodeSelector": {"k": "v"}}})
    );
}

#[test]
fn lists_without_a_key_are_replaced() {
    let target = json!({"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}});
    let patch = json!({"spec": {"tolerations": [{"key": "c"}]}});
    assert_eq!(merged(pod(), target, patch.clone()), patch);
}

#[test]
fn keyed_lists_merge_and_the_patch_stands_first() {
    let target = env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]));
    for (patch, want) in [
        (
            json!([{"name": "C", "value": "1"}]),
            json!([{"name": "C", "value": "1"}, {"name": "A", "value": "1"}, {"name": "B", "value": "1"}]),
        ),
        (
            json!([{"name": "B", "value": "2"}]),
            json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]),
        ),
        (json!([{"name": "A", "$patch": "delete"}]), json!([{"name": "B", "value": "1"}])),
        (
            json!([{"$patch": "replace"}, {"name": "X", "value": "1"}]),
            json!([{"name": "X", "value": "1"}]),
        ),
    ] {
        assert_eq!(merged(pod(), target.clone(), env(patch.clone())), env(want), "{patch}");
    }
}

#[test]
fn lists_of_scalars_merge_where_declared() {
    let target = json!({"metadata": {"finalizers": ["a"]}});
    let patch = json!({"metadata": {"finalizers": ["b"]}});
    assert_eq!(
        merged(pod(), target.clone(), patch),
        json!({"metadata": {"finalizers": ["b", "a"]}})
    );
    let target = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b", "x"]}});
    assert_eq!(merged(pod(), target, patch), json!({"metadata": {"finalizers": ["a", "c"]}}));
}

#[test]
fn an_order_is_followed_and_untouched_items_keep_their_place() {
    let target = env(json!([{"name": "A"}, {"name": "S"}, {"name": "B"}]));
    let patch = json!({"spec": {"containers": [{
        "name": "c",
        "$setElementOrder/env": [{"name": "B"}, {"name": "N"}, {"name": "A"}],
        "env": [{"name": "N", "value": "1"}],
    }]}});
    let names: Vec<Value> = merged(pod(), target.clone(), patch)
        .pointer("/spec/containers/0/env")
        .and_then(Value::as_array)
        .unwrap()
        .iter()
        .map(|item| item["name"].clone())
        .collect();
    assert_eq!(names, ["S", "B", "N", "A"]);
    let patch = json!({"spec": {"containers": [{
        "name": "c",
        "$setElementOrder/env": [{"name": "A"}],
        "env": [{"name": "N", "value": "1"}],
    }]}});
    let error = strategic(&target, &patch, pod()).unwrap_err().to_string();
    assert!(error.starts_with("The order in patch list:\n[map[name:N value:1]]\n"), "{error}");
}

#[test]
fn retained_keys_drop_the_others() {
    let target =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    assert_eq!(
        merged(deployment(), target.clone(), patch),
        json!({"spec": {"strategy": {"type": "Recreate"}}})
    );
    let patch =
        json!({"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}});
    assert_eq!(
        strategic(&target, &patch, deployment()),
        Err(Error::Strategic("invalid patch format of retainKeys".into()))
    );
}

#[test]
fn maps_can_be_replaced_or_emptied() {
    let target = json!({"spec": {"nodeSelector": {"a": "1"}, "securityContext": {"runAsUser": 1}}});
    let patch = json!({"spec": {
        "nodeSelector": {"$patch": "replace", "b": "1"},
        "securityContext": {"$patch": "delete"},
    }});
    assert_eq!(
        merged(pod(), target, patch),
        json!({"spec": {"nodeSelector": {"b": "1"}, "securityContext": {}}})
    );
    let budget = builtin().kind("policy/v1", "PodDisruptionBudget").unwrap();
    let target = json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}});
    let patch = json!({"spec": {"selector": {"matchLabels": {"b": "1"}}}});
    assert_eq!(merged(budget, target, patch.clone()), patch);
}

#[test]
fn an_item_without_its_key_is_refused_in_kubernetes_words() {
    let target = json!({"spec": {"containers": [{"name": "c"}]}});
    let patch = json!({"spec": {"containers": [{"image": "nokey"}]}});
    assert_eq!(
        strategic(&target, &patch, pod()),
        Err(Error::Strategic(
            "map: map[image:nokey] does not contain declared merge key: name".into()
        ))
    );
    let patch = json!({"spec": {"containers": [{"name": "c", "$patch": "dance"}]}});
    assert_eq!(
        strategic(&target, &patch, pod()),
        Err(Error::Strategic("unknown patch type: dance in map: map[$patch:dance name:c]".into()))
    );
}

#[test]
fn a_directive_about_what_is_not_there_leaves_no_trace() {
    let patch = json!({"spec": {
        "nodeSelector": {"a": "1", "b": null},
        "securityContext": {"$patch": "delete"},
        "containers": [{"name": "gone", "$patch": "delete"}, {"name": "c"}],
    }});
    assert_eq!(
        merged(pod(), json!({"spec": {}}), patch),
        json!({"spec": {"nodeSelector": {"a": "1"}, "containers": [{"name": "c"}]}})
    );
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        prop::sample::select(vec!["a", "b", "delete", "replace", "merge", "/spec", "add", "copy"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 5, |inner| {
        let names = prop::sample::select(vec![
            "spec",
            "metadata",
            "containers",
            "env",
            "name",
            "value",
            "finalizers",
            "volumes",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$setElementOrder/env",
            "$deleteFromPrimitiveList/finalizers",
            "op",
            "path",
            "from",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_patch_makes_anything_panic(target in anything(), patch in anything()) {
        let _ = strategic(&target, &patch, pod());
        let _ = json(&target, &patch);
        let mut merged = target;
        merge(&mut merged, &patch);
        let mut again = merged.clone();
        merge(&mut again, &patch);
        prop_assert_eq!(again, merged);
    }

    #[test]
    fn a_strategic_patch_of_nothing_changes_nothing(target in anything()) {
        if target.is_object() {
            prop_assert_eq!(strategic(&target, &json!({}), pod()), Ok(target));
        }
    }
}
