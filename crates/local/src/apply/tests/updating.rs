use serde_json::json;

use super::*;

#[test]
fn creation_owns_everything_including_defaults() {
    let object =
        json!({"metadata": {"name": "c", "uid": "u", "labels": {"x": "y"}}, "data": {"a": "1"}});
    let object = update(writer(config_map(), "m"), None, object);
    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{
            "manager": "m", "operation": "Update", "apiVersion": "v1",
            "time": "2026-01-01T00:00:02Z", "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:a": {}},
                "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
            },
        }])
    );
}

#[test]
fn creation_owns_the_structs_of_a_custom_kind_but_not_of_a_built_in_one() {
    let custom = update(writer(widget(), "m"), None, spec(json!({"inner": {"a": "1"}})));
    assert_eq!(
        owned(&custom, "m", "Update"),
        json!({"f:spec": {".": {}, "f:inner": {".": {}, "f:a": {}}}})
    );
    let body = spec(json!({
        "selector": {"matchLabels": {"a": "b"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}]},
        },
    }));
    let built_in = update(writer(deployment(), "m"), None, body);
    assert_eq!(
        owned(&built_in, "m", "Update"),
        json!({"f:spec": {
            "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
                    ".": {}, "f:image": {}, "f:name": {}, "f:resources": {},
                }}},
            },
        }})
    );
}

#[test]
fn an_update_takes_what_it_changes_and_loses_what_it_removes() {
    let object = applied(config_map(), &[("a", json!({"data": {"x": "1", "y": "1", "z": "1"}}))]);
    let mut new = object.clone();
    new["data"] = json!({"x": "1", "y": "2", "n": "1"});
    let object = update(writer(config_map(), "curl"), Some(&object), new);
    assert_eq!(owned(&object, "a", "Apply"), json!({"f:data": {"f:x": {}}}));
    assert_eq!(owned(&object, "curl", "Update"), json!({"f:data": {"f:n": {}, "f:y": {}}}));
    // The next change of the same manager adds to its entry.
    let mut new = object.clone();
    new["data"]["x"] = json!("2");
    let object = update(writer(config_map(), "curl"), Some(&object), new);
    assert_eq!(owned(&object, "a", "Apply"), Value::Null);
    assert_eq!(
        owned(&object, "curl", "Update"),
        json!({"f:data": {"f:n": {}, "f:x": {}, "f:y": {}}})
    );
}

#[test]
fn an_update_that_changes_nothing_touches_no_entry() {
    let object = update(writer(config_map(), "m"), None, json!({"data": {"a": "1"}}));
    for manager in ["m", "other"] {
        let later = Update { time: "2026-03-03T00:00:00Z", ..writer(config_map(), manager) };
        assert_eq!(update(later, Some(&object), object.clone()), object, "{manager}");
    }
}

#[test]
fn an_update_of_the_main_endpoint_does_not_own_the_status() {
    let object = json!({"spec": {"size": 1}, "status": {"phase": "x"}});
    let object = update(writer(widget(), "m"), None, object);
    assert_eq!(owned(&object, "m", "Update"), json!({"f:spec": {".": {}, "f:size": {}}}));
    let mut new = object.clone();
    new["status"]["phase"] = json!("y");
    let status =
        Update { subresource: Some("status"), reset: Reset::AllButStatus, ..writer(widget(), "m") };
    let object = update(status, Some(&object), new);
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {"f:phase": {}}}));
}

#[test]
fn owners_are_forgotten_on_request_and_come_back_with_an_apply() {
    let object = update(writer(config_map(), "m"), None, json!({"data": {"a": "1"}}));
    for reset in [json!([]), json!([{}])] {
        let mut new = object.clone();
        new["metadata"]["managedFields"] = reset;
        let object = update(writer(config_map(), "m"), Some(&object), new);
        assert_eq!(object["metadata"].get("managedFields"), None);
        let mut new = object.clone();
        new["data"]["b"] = json!("1");
        let object = update(writer(config_map(), "m"), Some(&object), new);
        assert_eq!(object["metadata"].get("managedFields"), None, "updates are not recorded");
        let object = again(config_map(), &object, "a", json!({"data": {"c": "1"}}));
        assert_eq!(
            owned(&object, "before-first-apply", "Update"),
            json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}})
        );
    }
}

#[test]
fn entries_in_the_body_replace_the_stored_ones_only_on_the_main_endpoint() {
    let object = update(writer(config_map(), "m"), None, json!({"data": {"a": "1"}}));
    let entry = json!({"manager": "given", "operation": "Update", "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}});
    let mut new = object.clone();
    new["metadata"]["managedFields"] = json!([entry]);
    let replaced = update(writer(config_map(), "m"), Some(&object), new.clone());
    assert_eq!(replaced["metadata"]["managedFields"], json!([entry]));
    let status = Update { subresource: Some("status"), ..writer(config_map(), "m") };
    assert_eq!(update(status, Some(&object), new.clone()), object);
    // What is not valid does not count, nor does nothing.
    for given in [json!([{"manager": "x"}]), json!(null)] {
        new["metadata"]["managedFields"] = given;
        assert_eq!(update(writer(config_map(), "m"), Some(&object), new.clone()), object);
    }
}

#[test]
fn more_than_ten_updates_become_ancient() {
    let names: Vec<String> = (0..12).map(|index| format!("m{index:02}")).collect();
    let mut object = update(writer(config_map(), "m00"), None, json!({"data": {"m00": "1"}}));
    for (index, name) in names.iter().enumerate().skip(1) {
        let mut new = object.clone();
        new["data"][name] = json!("1");
        let time = format!("2026-01-01T00:01:{index:02}Z");
        let writer = Update { time: &time, ..writer(config_map(), name) };
        object = update(writer, Some(&object), new);
    }
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(
        entries[0]["fieldsV1"],
        json!({"f:data": {".": {}, "f:m00": {}, "f:m01": {}, "f:m02": {}}})
    );
    assert_eq!(entries[0]["time"], "2026-01-01T00:01:02Z");
}

#[test]
fn entries_are_sorted_by_operation_time_and_name() {
    let object = update(writer(config_map(), "z"), None, json!({"data": {"a": "1"}}));
    let object = again(config_map(), &object, "b", json!({"data": {"b": "1"}}));
    let object = again(config_map(), &object, "a", json!({"data": {"b": "1"}}));
    let names: Vec<&str> = object["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect();
    // `a` changed nothing, so it has no time and stands first.
    assert_eq!(names, ["a", "b", "z"]);
}

#[test]
fn only_times_may_differ_in_a_write_that_is_not_stored() {
    let old = json!({"metadata": {"name": "a", "resourceVersion": "1",
        "managedFields": [{"manager": "m", "time": "1"}]}, "data": {"a": "1"}});
    let mut new = old.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("2");
    assert!(same_but_times(&old, &new));
    new["metadata"]["managedFields"][0]["manager"] = json!("n");
    assert!(!same_but_times(&old, &new));
    let mut new = old.clone();
    new["data"]["a"] = json!("2");
    assert!(!same_but_times(&old, &new));
}
