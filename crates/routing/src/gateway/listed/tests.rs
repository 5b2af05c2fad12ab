use serde_json::json;

use super::*;

fn put(kind: Kind, object: Value) -> Listed {
    let mut listed = Listed::default();
    listed.put(kind, object);
    listed
}

#[test]
fn pools_of_both_groups_are_read() {
    let meta = json!({ "namespace": "ns", "name": "p" });
    for (kind, spec) in [
        (
            Kind::Pool,
            json!({ "selector": { "matchLabels": { "app": "a" } },
                "targetPorts": [{ "number": 8000 }, { "number": 8001 }],
                "endpointPickerRef": { "name": "epp", "failureMode": "FailOpen" } }),
        ),
        (
            Kind::EarlyPool,
            json!({ "selector": { "app": "a" }, "targetPortNumber": 8000,
                "extensionRef": { "name": "epp", "failureMode": "FailOpen" } }),
        ),
    ] {
        let listed = put(kind, json!({ "metadata": meta, "spec": spec }));
        let (key, pool) = listed.pools.first_key_value().unwrap();
        assert_eq!((key.group.as_str(), key.name.as_str()), (kind.group(), "p"));
        assert_eq!(pool.selector, BTreeMap::from([("app".to_owned(), "a".to_owned())]));
        assert_eq!(pool.ports[0], 8000);
        assert!(pool.fails_open);
        assert_eq!(pool.picker.name, "epp");
    }
}

#[test]
fn grants_for_other_kinds_are_none() {
    let route = json!({ "group": GROUP, "kind": "HTTPRoute", "namespace": "apps" });
    let other = json!({ "group": GROUP, "kind": "GRPCRoute", "namespace": "apps" });
    let to = json!([{ "group": "", "kind": "Service" }, { "kind": "Service", "name": "a" }]);
    let spec = json!({ "from": [route, other], "to": to });
    let listed =
        put(Kind::Grant, json!({ "metadata": { "namespace": "ns", "name": "g" }, "spec": spec }));
    let grant = |name: Option<&str>| Grant {
        namespace: "ns".to_owned(),
        from: "apps".to_owned(),
        group: String::new(),
        kind: "Service".to_owned(),
        name: name.map(str::to_owned),
    };
    let known: Vec<&Grant> = listed.grants.values().flatten().collect();
    assert_eq!(known, [&grant(None), &grant(Some("a"))]);
}

#[test]
fn nonsense_is_kept_apart_and_never_harms() {
    for spec in [
        json!(null),
        json!(7),
        json!([]),
        json!({ "parentRefs": 3, "rules": "x", "listeners": {}, "from": [1], "to": [null] }),
        json!({ "parentRefs": [null, { "name": 4 }, { "name": "g", "port": -1 }],
            "targetPorts": [{ "number": 99999 }, 3], "selector": [] }),
    ] {
        for kind in Kind::ALL {
            let metadata = json!({ "namespace": "ns", "name": "x", "generation": 1 });
            let listed = put(kind, json!({ "metadata": metadata, "spec": spec }));
            assert!(listed.routes.values().all(|route| route.parents.is_empty()), "{spec}");
            put(kind, json!({ "metadata": spec }));
            put(kind, spec.clone());
        }
    }
    let spec = json!({ "parentRefs": [{ "name": "g" }], "rules": [{ "matches": 3 }] });
    let listed = put(Kind::Route, json!({ "metadata": { "name": "r" }, "spec": spec }));
    let route = listed.routes.values().next().unwrap();
    assert_eq!(route.parents.len(), 1);
    assert!(route.compiled.as_ref().unwrap_err().starts_with("it cannot be read: "));
}

#[test]
fn what_goes_is_forgotten_and_nothing_else() {
    let mut listed = Listed::default();
    let object = |name: &str| json!({ "metadata": { "name": name } });
    for kind in Kind::ALL {
        listed.put(kind, object("a"));
        listed.put(kind, object("b"));
    }
    let count = |listed: &Listed| {
        listed.namespaces.len()
            + listed.routes.len()
            + listed.gateways.len()
            + listed.classes.len()
            + listed.grants.len()
            + listed.pools.len()
            + listed.configs.len()
            + listed.objectives.len()
            + listed.rewrites.len()
    };
    let mut left = 20;
    for kind in Kind::ALL {
        listed.remove(kind, "", "a");
        left -= 1;
        assert_eq!(count(&listed), left, "{kind:?}");
        listed.retain(kind, |_, name| name == "b");
        assert_eq!(count(&listed), left, "{kind:?}");
        listed.retain(kind, |_, _| false);
        left -= 1;
        assert_eq!(count(&listed), left, "{kind:?}");
    }
}
