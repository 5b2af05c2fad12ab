use serde_json::json;

use super::*;
use crate::apply::{compare::Comparison, walk::set_of};

#[test]
fn the_set_of_an_object_has_its_leaves_and_items() {
    for (object, want) in [
        (json!({"spec": {"size": 1}}), json!({"f:spec": {"f:size": {}}})),
        // Atomic values are one member.
        (json!({"spec": {"words": ["a", "b"]}}), json!({"f:spec": {"f:words": {}}})),
        (json!({"spec": {"limits": {"a": "b"}}}), json!({"f:spec": {"f:limits": {}}})),
        // Keys of a map are members, also when they hold more.
        (
            json!({"metadata": {"labels": {"a": "b"}}}),
            json!({"f:metadata": {"f:labels": {"f:a": {}}}}),
        ),
        (
            json!({"spec": {"free": {"a": {"b": 1}}}}),
            json!({"f:spec": {"f:free": {"f:a": {".": {}, "f:b": {}}}}}),
        ),
        (json!({"spec": {"free": {"a": [1]}}}), json!({"f:spec": {"f:free": {"f:a": {}}}})),
        // Nothing is something.
        (json!({"spec": {"inner": {}}}), json!({"f:spec": {"f:inner": {}}})),
        (json!({"spec": {"inner": null}}), json!({"f:spec": {"f:inner": {}}})),
        // Except for lists.
        (json!({"spec": {"items": [], "tags": []}}), json!({})),
        (
            json!({"spec": {"items": [{"name": "c", "value": "v"}], "tags": ["x"]}}),
            json!({"f:spec": {
                "f:items": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:value": {}}},
                "f:tags": {"v:\"x\"": {}},
            }}),
        ),
    ] {
        assert_eq!(set_of(widget(), &object).write(), want, "{object}");
    }
}

#[test]
fn a_missing_key_takes_its_default() {
    let object = json!({"spec": {"ports": [{"port": 80}]}});
    let set = set_of(widget(), &object);
    assert_eq!(
        set.write(),
        json!({"f:spec": {"f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
        }}})
    );
    let names: Vec<String> = set.paths().iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [".spec.ports[port=80,protocol=\"TCP\"]", ".spec.ports[port=80,protocol=\"TCP\"].port"]
    );
}

#[test]
fn items_that_share_a_key_count_as_one_value() {
    let object = json!({"spec": {"items": [{"name": "a", "value": "1"}, {"name": "a"}]}});
    assert_eq!(
        set_of(widget(), &object).write(),
        json!({"f:spec": {"f:items": {"k:{\"name\":\"a\"}": {}}}})
    );
    let one = json!({"spec": {"items": [{"name": "a", "value": "1"}]}});
    let change = Comparison::of(widget(), &one, &object);
    let item = json!({"f:spec": {"f:items": {"k:{\"name\":\"a\"}": {}}}});
    assert_eq!(change.added.write(), item);
    let change = Comparison::of(widget(), &object, &object);
    assert_eq!(change, Comparison::default());
}

#[test]
fn a_comparison_tells_what_was_removed_modified_and_added() {
    let old = json!({"spec": {"size": 1, "inner": {"a": "1"}, "tags": ["x", "y"], "free": 1}});
    let new = json!({"spec": {"size": 2, "items": [{"name": "n"}], "tags": ["y", "z"], "free": {"a": 1}}});
    let change = Comparison::of(widget(), &old, &new);
    assert_eq!(
        change.removed.write(),
        json!({"f:spec": {"f:inner": {".": {}, "f:a": {}}, "f:tags": {"v:\"x\"": {}}}})
    );
    assert_eq!(change.modified.write(), json!({"f:spec": {"f:size": {}, "f:free": {}}}));
    assert_eq!(
        change.added.write(),
        json!({"f:spec": {
            "f:free": {"f:a": {}},
            "f:items": {".": {}, "k:{\"name\":\"n\"}": {".": {}, "f:name": {}}},
            "f:tags": {"v:\"z\"": {}},
        }})
    );
}

#[test]
fn empty_against_empty_is_a_leaf() {
    for (old, new, modified) in [
        (json!({"spec": {}}), json!({"spec": null}), true),
        (json!({"spec": {"items": []}}), json!({"spec": {"items": []}}), false),
        (json!({"spec": {"size": 1}}), json!({"spec": {"size": 1.0}}), false),
    ] {
        let change = Comparison::of(widget(), &old, &new);
        assert_eq!(!change.modified.is_empty(), modified, "{old} {new}");
        assert!(change.added.is_empty() && change.removed.is_empty(), "{old} {new}");
    }
}

#[test]
fn fields_that_are_not_valid_are_refused_and_unknown_ones_dropped() {
    for (fields, want) in [
        (json!({"f:a": {}, "z:b": {}, "nonsense": {}}), Some(json!({"f:a": {}}))),
        (json!({"f:a": {".": {}, "f:b": {}}}), Some(json!({"f:a": {".": {}, "f:b": {}}}))),
        (json!({"i:3": {}, "v:true": {}}), Some(json!({"i:3": {}, "v:true": {}}))),
        (json!({"k:{\"b\":1,\"a\":2}": {}}), Some(json!({"k:{\"a\":2,\"b\":1}": {}}))),
        (json!({"k:nonsense": {}}), None),
        (json!({"k:[]": {}}), None),
        (json!({"v:{": {}}), None),
        (json!({"i:x": {}}), None),
        (json!({"f:a": 1}), None),
        (json!([]), None),
    ] {
        assert_eq!(Set::read(&fields).ok().map(|set| set.write()), want, "{fields}");
    }
}
