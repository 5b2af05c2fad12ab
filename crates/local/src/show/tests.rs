//! Against what kube-apiserver 1.36 answered for the same objects.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Include, age, discovery, openapi, path::JsonPath, table};
use crate::{
    builtin::{RESOURCES, Resource, resource},
    crd::{Definition, default_definition},
    store::Object,
};

fn widget() -> Definition {
    let text = include_str!("../crd/tests/widget.yaml");
    let mut crd: Value = serde_saphyr::from_str(text).unwrap();
    default_definition(&mut crd);
    Definition::read(&Arc::new(Object::new(crd, 1))).unwrap()
}

#[test]
fn tables_are_those_of_a_real_server() {
    let seen: Vec<Value> = serde_json::from_str(include_str!("tests/tables.json")).unwrap();
    let definition = widget();
    let widgets = definition.resources().remove(0);
    for seen in seen {
        let text = |name: &str| seen[name].as_str().unwrap();
        let now: Timestamp = text("now").parse().unwrap();
        let custom = (text("group") == "ex.io").then(|| definition.versions[0].columns.as_slice());
        let resource = match custom {
            Some(_) => &widgets,
            None => resource(text("group"), text("version"), text("plural")).unwrap(),
        };
        let rows: Vec<&Value> = seen["rows"].as_array().unwrap().iter().collect();
        let objects: Vec<&Value> = rows.iter().map(|row| &row["object"]).collect();
        let shown = table(resource, custom, &objects, Include::Object, now);
        let columns: Vec<Value> = shown["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| json!([c["name"], c["type"], c["format"], c["priority"]]))
            .collect();
        assert_eq!(json!(columns), seen["columns"], "{}", text("plural"));
        for (row, seen) in shown["rows"].as_array().unwrap().iter().zip(rows) {
            assert_eq!(row["cells"], seen["cells"], "{}", seen["object"]);
            let conditions = seen.get("conditions").map(|conditions| &conditions[0]["reason"]);
            assert_eq!(row.get("conditions").map(|c| &c[0]["reason"]), conditions);
        }
    }
}

#[test]
fn rows_carry_what_is_asked_for() {
    let object = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let resource = resource("", "v1", "configmaps").unwrap();
    let row = |include| {
        table(resource, None, &[&object], include, Timestamp::UNIX_EPOCH)["rows"][0].clone()
    };
    assert_eq!(row(Include::Metadata)["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row(Include::Object)["object"], object);
    assert_eq!(row(Include::None)["object"], Value::Null);
    assert_eq!(Include::parse("Everything"), None);
}

#[test]
fn ages_are_as_short_as_kubectl_wants_them() {
    for (seconds, want) in [
        (-5, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (3600, "60m"),
        (3 * 3600 + 61, "3h1m"),
        (9 * 3600, "9h"),
        (50 * 3600, "2d2h"),
        (9 * 86_400, "9d"),
        (800 * 86_400, "2y70d"),
        (10 * 365 * 86_400, "10y"),
    ] {
        assert_eq!(age::short(seconds), want);
    }
}

#[test]
fn json_paths_find_the_first() {
    let object = json!({
        "spec": {"a.b": 1, "l": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "m": {"k": "w"}},
        "status": {"conditions": [{"type": "A", "status": "no"}, {"type": "Ready", "status": "yes"}]},
    });
    for (path, want) in [
        (".spec.l[0].n", json!("x")),
        (".spec.l[-1].n", json!("y")),
        (".spec.l[*].v", json!(1)),
        (".spec.l[?(@.v>1)].n", json!("y")),
        (".status.conditions[?(@.type==\"Ready\")].status", json!("yes")),
        (".status.conditions[?(@.type=='Ready')].status", json!("yes")),
        (".spec['m'].k", json!("w")),
        (".spec.a\\.b", json!(1)),
        ("{.spec.m.k}", json!("w")),
    ] {
        let found = JsonPath::parse(path).and_then(|path| path.first(&object).cloned());
        assert_eq!(found, Some(want), "{path}");
    }
    for path in [".spec.l[9]", ".spec.zz", ".spec.l[?(@.n=='q')]"] {
        assert_eq!(JsonPath::parse(path).unwrap().first(&object), None, "{path}");
    }
    for path in [".spec.l[", "..", ".a[?(x)]", ".a[b]"] {
        assert_eq!(JsonPath::parse(path), None, "{path}");
    }
}

proptest::proptest! {
    #[test]
    fn no_path_is_too_odd(path in "[a-z.\\[\\]?(@)='\"*0-9\\\\<é]{0,20}") {
        let _ = JsonPath::parse(&path).map(|path| path.first(&json!({"a": [1]})).cloned());
    }
}

fn served(definition: &Definition) -> Vec<Resource> {
    RESOURCES.iter().cloned().chain(definition.resources()).collect()
}

#[test]
fn discovery_names_every_resource_once() {
    let definition = widget();
    let all = served(&definition);
    let all: Vec<&Resource> = all.iter().collect();
    let core = discovery::aggregated(&all, true);
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
    assert_eq!(core["items"][0]["metadata"], json!({}));
    let groups = discovery::aggregated(&all, false);
    let group = |name: &str| {
        let items = groups["items"].as_array().unwrap();
        items.iter().find(|item| item["metadata"]["name"] == name).cloned().unwrap()
    };
    assert_eq!(
        group("ex.io"),
        json!({"metadata": {"name": "ex.io"}, "versions": [{"version": "v1", "resources": [{
            "resource": "widgets", "responseKind": {"group": "ex.io", "version": "v1", "kind": "Widget"},
            "scope": "Namespaced", "singularResource": "widget",
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            "shortNames": ["wd"], "categories": ["all"],
            "subresources": [
                {"subresource": "status", "responseKind": {"group": "ex.io", "version": "v1", "kind": "Widget"}, "verbs": ["get", "patch", "update"]},
                {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}, "verbs": ["get", "patch", "update"]},
            ],
        }], "freshness": "Current"}]})
    );
    let deployments = &group("apps")["versions"][0]["resources"][0];
    assert_eq!(
        deployments["responseKind"],
        json!({"group": "", "version": "", "kind": "Deployment"})
    );
}

#[test]
fn older_clients_ask_version_by_version() {
    let definition = widget();
    let all = served(&definition);
    let all: Vec<&Resource> = all.iter().collect();
    let list = discovery::api_resource_list(&all, "", "v1").unwrap();
    let entry = |name: &str| {
        let entries = list["resources"].as_array().unwrap();
        entries.iter().find(|entry| entry["name"] == name).cloned().unwrap()
    };
    assert_eq!(
        entry("pods/eviction"),
        json!({"name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]})
    );
    assert_eq!(
        entry("pods/binding"),
        json!({"name": "pods/binding", "singularName": "", "namespaced": true, "kind": "Binding", "verbs": ["create"]})
    );
    assert_eq!(discovery::api_resource_list(&all, "ex.io", "v2"), None);
    assert_eq!(
        discovery::api_group(&all, "apps").unwrap(),
        json!({"kind": "APIGroup", "apiVersion": "v1", "name": "apps",
            "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
            "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}})
    );
    let groups = discovery::api_group_list(&all);
    assert!(groups["groups"].as_array().unwrap().iter().all(|group| group["name"] != ""));
}

#[test]
fn the_best_version_comes_first() {
    let mut first = widget().resources().remove(0);
    let mut all = Vec::new();
    for version in ["v1alpha1", "v1beta2", "foo", "v1", "v2beta1", "v11", "v2"] {
        first.version = version.into();
        all.push(first.clone());
    }
    let all: Vec<&Resource> = all.iter().collect();
    let group = discovery::api_group(&all, "ex.io").unwrap();
    let order: Vec<&Value> =
        group["versions"].as_array().unwrap().iter().map(|v| &v["version"]).collect();
    assert_eq!(json!(order), json!(["v11", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]));
}

#[test]
fn openapi_has_what_kubectl_reads() {
    let definition = widget();
    let widgets = definition.resources().remove(0);
    let schema = definition.versions[0].raw_schema();
    let document = openapi::document(&[(&widgets, Some(schema))]);
    let path = &document["paths"]["/apis/ex.io/v1/namespaces/{namespace}/widgets/{name}"];
    let kind = json!({"group": "ex.io", "version": "v1", "kind": "Widget"});
    assert_eq!(path["patch"]["x-kubernetes-group-version-kind"], kind);
    let types = path["patch"]["requestBody"]["content"].as_object().unwrap();
    assert!(!types.contains_key("application/strategic-merge-patch+json"));
    let own = &document["components"]["schemas"]["io.ex.v1.Widget"];
    assert_eq!(own["x-kubernetes-group-version-kind"], json!([kind]));
    assert_eq!(own["properties"]["spec"]["properties"]["flag"]["type"], "boolean");
}

#[test]
fn openapi_of_built_in_kinds_is_closed() {
    let mut versions: Vec<(&str, &str)> =
        RESOURCES.iter().map(|resource| (&*resource.group, &*resource.version)).collect();
    versions.dedup();
    for (group, version) in versions {
        let of: Vec<_> = RESOURCES
            .iter()
            .filter(|resource| resource.group == group && resource.version == version)
            .map(|resource| (resource, None))
            .collect();
        let document = openapi::document(&of);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let text = document.to_string();
        for part in text.split("#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{group}/{version} {name}");
        }
        for (resource, _) in of {
            let kind = json!([{"group": group, "version": version, "kind": resource.kind}]);
            let has = |schema: &&Value| schema["x-kubernetes-group-version-kind"] == kind;
            assert_eq!(schemas.values().filter(has).count(), 1, "{}", resource.kind);
        }
    }
}

#[test]
fn the_index_leads_to_documents_by_their_content() {
    let hash = openapi::hash(b"{}");
    assert_eq!(hash.len(), 64);
    let path = openapi::path("apps", "v1");
    assert_eq!(
        openapi::index([(path.as_str(), "AB"), ("api/v1", "CD")]),
        json!({"paths": {
            "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=AB"},
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=CD"},
        }})
    );
}
