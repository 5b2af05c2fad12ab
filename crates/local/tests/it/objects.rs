use std::sync::Arc;

use futures::future::join_all;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_local::store::Store;

use crate::api::{Answer, Api, CONFIG_MAPS, config_map};

#[tokio::test]
async fn a_created_object_is_read_back() {
    let api = Api::new().await;
    let made = api.post(CONFIG_MAPS, config_map("a", json!({"k": "v"}))).await.is(201);
    assert!(!made.body["metadata"]["uid"].as_str().unwrap().is_empty());
    assert_eq!(made.body["metadata"]["namespace"], "default");
    let fields = &made.body["metadata"]["managedFields"];
    assert_eq!(fields.as_array().unwrap().len(), 1);
    assert_eq!(fields[0]["manager"], "test");
    assert_eq!(fields[0]["fieldsV1"], json!({"f:data": {".": {}, "f:k": {}}}));
    let read = api.get(&format!("{CONFIG_MAPS}/a")).await.is(200);
    assert_eq!(read.body, made.body);
    assert_eq!(read.headers["cache-control"], "no-cache, private");
    let again = api.post(CONFIG_MAPS, config_map("a", json!({}))).await.fails(409, "AlreadyExists");
    assert_eq!(again.message(), "configmaps \"a\" already exists");
    assert_eq!(again.body["details"], json!({"name": "a", "kind": "configmaps"}));
}

#[tokio::test]
async fn names_are_given_or_made() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, config_map("X_", json!({}))).await.fails(422, "Invalid");
    let nameless = api.post(CONFIG_MAPS, json!({})).await.fails(422, "Invalid");
    assert_eq!(nameless.body["details"]["causes"][0]["field"], "metadata.name");
    let versioned = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
    api.post(CONFIG_MAPS, versioned).await.fails(500, "");
    let made = api.post(CONFIG_MAPS, json!({"metadata": {"generateName": "gen-"}})).await.is(201);
    let name = made.body["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
    let long = json!({"metadata": {"generateName": "x".repeat(80)}});
    let made = api.post(CONFIG_MAPS, long).await.is(201);
    assert_eq!(made.body["metadata"]["name"].as_str().unwrap().len(), 63);
}

#[tokio::test]
async fn what_the_server_decides_is_not_taken_from_the_body() {
    let api = Api::new().await;
    let mut body = config_map("a", json!({}));
    body["metadata"]["uid"] = "mine".into();
    body["metadata"]["generation"] = 5.into();
    body["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z".into();
    let made = api.post(CONFIG_MAPS, body).await.is(201);
    assert_ne!(made.body["metadata"]["uid"], "mine");
    assert_eq!(made.body["metadata"]["generation"], 5);
    assert!(made.body["metadata"].get("deletionTimestamp").is_none());
}

#[tokio::test]
async fn a_missing_namespace_is_told() {
    let api = Api::new().await;
    let path = "/api/v1/namespaces/zz/configmaps";
    let refused = api.post(path, config_map("a", json!({}))).await.fails(404, "NotFound");
    assert_eq!(refused.message(), "namespaces \"zz\" not found");
    let list = api.get(path).await.is(200);
    assert_eq!(list.body["items"], json!([]));
}

#[tokio::test]
async fn odd_fields_are_refused_warned_of_or_ignored() {
    let api = Api::new().await;
    let body = r#"{"metadata":{"name":"a","foo":1},"data":{"b":"1","b":"2"},"spec":{}}"#;
    let send = |validation: &str| {
        let path = format!("{CONFIG_MAPS}?dryRun=All&fieldValidation={validation}");
        let api = &api;
        async move { api.send(Method::POST, &path, "application/json", body).await }
    };
    let strict = send("Strict").await.fails(400, "BadRequest");
    for part in
        ["unknown field \"metadata.foo\"", "unknown field \"spec\"", "duplicate field \"data.b\""]
    {
        assert!(strict.message().contains(part), "{}", strict.message());
    }
    assert_eq!(send("Warn").await.is(201).warnings().len(), 3);
    let silent = send("Ignore").await.is(201);
    assert_eq!((silent.warnings().len(), &silent.body["data"]["b"]), (0, &json!("2")));
    send("Foo").await.fails(422, "Invalid");
}

#[tokio::test]
async fn updates_check_versions_and_names() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}/a");
    let made = api.post(CONFIG_MAPS, config_map("a", json!({"k": "1"}))).await.is(201);
    let mut body = made.body.clone();
    body["data"]["k"] = "2".into();
    let changed = api.put(&path, body.clone()).await.is(200);
    assert!(changed.version() > made.version());
    let stale = api.put(&path, body).await.fails(409, "Conflict");
    assert!(
        stale.message().ends_with("please apply your changes to the latest version and try again")
    );
    api.put(&path, config_map("a", json!({"k": "3"}))).await.is(200);
    api.put(&path, config_map("b", json!({}))).await.fails(400, "BadRequest");
    api.put(&format!("{CONFIG_MAPS}/none"), config_map("none", json!({})))
        .await
        .fails(404, "NotFound");
    let mut other = config_map("a", json!({}));
    other["metadata"]["uid"] = "other".into();
    api.put(&path, other).await.fails(409, "Conflict");
    let mut odd = config_map("a", json!({}));
    odd["metadata"]["resourceVersion"] = "abc".into();
    api.put(&path, odd).await.fails(500, "");
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_none() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}/a");
    let made = api.post(CONFIG_MAPS, config_map("a", json!({"k": "1"}))).await.is(201);
    for manager in ["test", "other"] {
        let path = format!("{path}?fieldManager={manager}");
        let put = api.put(&path, config_map("a", json!({"k": "1"}))).await.is(200);
        assert_eq!(put.body, made.body);
    }
    let merged = api.merge(&path, json!({"data": {"k": "1"}})).await.is(200);
    assert_eq!(merged.body, made.body);
}

#[tokio::test]
async fn patches_of_each_kind() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}/a");
    api.post(CONFIG_MAPS, config_map("a", json!({"k": "1", "l": "1"}))).await.is(201);
    let merged = api.merge(&path, json!({"data": {"k": null, "m": "2"}})).await.is(200);
    assert_eq!(merged.body["data"], json!({"l": "1", "m": "2"}));
    let json_patch = |ops: Value| {
        let (api, path) = (&api, &path);
        async move {
            api.send(Method::PATCH, path, "application/json-patch+json", ops.to_string()).await
        }
    };
    let done = json_patch(json!([{"op": "add", "path": "/data/n", "value": "3"}])).await.is(200);
    assert_eq!(done.body["data"]["n"], "3");
    json_patch(json!([{"op": "test", "path": "/data/n", "value": "4"}]))
        .await
        .fails(422, "Invalid");
    json_patch(json!([{"op": "remove", "path": "/data/none"}])).await.fails(422, "Invalid");
    json_patch(json!({"op": "remove"})).await.fails(400, "BadRequest");
    api.merge(&path, json!({"metadata": {"resourceVersion": "1"}})).await.fails(409, "Conflict");
    api.merge(&path, json!({"metadata": {"name": "b"}})).await.fails(400, "BadRequest");
    api.merge(&path, json!({"metadata": {"uid": "b"}})).await.fails(422, "Invalid");
    let unknown = api.send(Method::PATCH, &path, "application/json", "{}").await;
    assert_eq!(unknown.fails(415, "UnsupportedMediaType").message(), "415: Unsupported Media Type");
}

#[tokio::test]
async fn parallel_patches_all_count() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}/a");
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.is(201);
    let patches = (0..8).map(|at| api.merge(&path, json!({"data": {format!("k{at}"): "v"}})));
    for answer in futures::future::join_all(patches).await {
        answer.is(200);
    }
    let read = api.get(&path).await;
    assert_eq!(read.body["data"].as_object().unwrap().len(), 8);
}

#[tokio::test]
async fn applies_at_once_lose_nothing_to_each_other() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}/a");
    let config = |key: &str, value: &str| config_map("a", json!({ key: value }));
    let own = (0..40).map(|number| {
        let (api, path, name) = (&api, &path, format!("m{number}"));
        async move { api.apply(path, &name, config(&name, "1")).await.status.as_u16() }
    });
    let codes = join_all(own).await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), 39, "{codes:?}");
    let shared = (0..40).map(|number| {
        let (api, path, name) = (&api, &path, format!("m{number}"));
        async move { api.apply(path, &name, config("shared", &name)).await.status.as_u16() }
    });
    let codes = join_all(shared).await;
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 409).count(), 39, "{codes:?}");
    let found = api.get(&path).await.is(200);
    // The one that got the shared field has given up its own.
    assert_eq!(found.body["data"].as_object().unwrap().len(), 40, "{}", found.text);
    assert_eq!(found.body["metadata"]["managedFields"].as_array().unwrap().len(), 40);
}

#[tokio::test]
async fn applies_own_their_fields() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}/a");
    let config = config_map("a", json!({"k": "1"}));
    let made = api.apply(&path, "m1", config.clone()).await.is(201);
    assert_eq!(made.body["metadata"]["managedFields"][0]["operation"], "Apply");
    let again = api.apply(&path, "m1", config.clone()).await.is(200);
    assert_eq!(again.version(), made.version());
    let other = config_map("a", json!({"k": "2"}));
    let conflict = api.apply(&path, "m2", other.clone()).await.fails(409, "Conflict");
    assert_eq!(conflict.message(), "Apply failed with 1 conflict: conflict with \"m1\": .data.k");
    let forced = api.apply(&format!("{path}?force=true"), "m2", other).await.is(200);
    assert_eq!(forced.body["data"]["k"], "2");
    let nobody = api.send(Method::PATCH, &path, "application/apply-patch+yaml", config.to_string());
    nobody.await.fails(422, "Invalid");
    let mut odd = config;
    odd["metadata"]["managedFields"] = json!([{}]);
    api.apply(&path, "m1", odd).await.fails(400, "BadRequest");
    let mut secret = config_map("a", json!({}));
    secret["kind"] = "Secret".into();
    let refused = api.apply(&path, "m1", secret).await.fails(400, "BadRequest");
    assert_eq!(refused.message(), "invalid object type: /v1, Kind=Secret");
}

#[tokio::test]
async fn dry_runs_leave_no_trace() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}/a");
    let tried =
        api.post(&format!("{CONFIG_MAPS}?dryRun=All"), config_map("a", json!({}))).await.is(201);
    assert!(tried.body["metadata"].get("resourceVersion").is_none());
    api.get(&path).await.fails(404, "NotFound");
    let made = api.post(CONFIG_MAPS, config_map("a", json!({"k": "1"}))).await.is(201);
    let tried = api.merge(&format!("{path}?dryRun=All"), json!({"data": {"k": "2"}})).await.is(200);
    assert_eq!((tried.version(), &tried.body["data"]["k"]), (made.version(), &json!("2")));
    let tried = api.delete(&format!("{path}?dryRun=All")).await.is(200);
    assert_eq!(tried.body["status"], "Success");
    assert_eq!(api.get(&path).await.is(200).body, made.body);
    api.delete(&format!("{path}?dryRun=Foo")).await.fails(422, "Invalid");
}

#[tokio::test]
async fn a_lease_may_be_put_into_being() {
    let api = Api::new().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    let made = api.put(path, lease.clone()).await.is(201);
    let unseen = api.put(path, lease.clone()).await.fails(422, "Invalid");
    assert_eq!(unseen.body["details"]["kind"], "leases");
    let mut seen = lease;
    seen["metadata"]["resourceVersion"] = made.version().to_string().into();
    api.put(path, seen).await.is(200);
}

#[tokio::test]
async fn generations_count_what_is_wanted() {
    let api = Api::new().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let made = api.post(path, deployment("d")).await.is(201);
    let generation = |body: &Value| body["metadata"]["generation"].as_i64().unwrap();
    assert_eq!(generation(&made.body), 1);
    let path = format!("{path}/d");
    let labelled = api.merge(&path, json!({"metadata": {"labels": {"x": "y"}}})).await.is(200);
    assert_eq!(generation(&labelled.body), 1);
    let both = json!({"status": {"replicas": 3}, "spec": {"replicas": 9}});
    let seen = api.merge(&format!("{path}/status"), both).await.is(200);
    assert_eq!((generation(&seen.body), &seen.body["status"]["replicas"]), (1, &json!(3)));
    assert_eq!(seen.body["spec"]["replicas"], 1);
    let scaled =
        api.merge(&format!("{path}/scale"), json!({"spec": {"replicas": 2}})).await.is(200);
    assert_eq!(scaled.body["kind"], "Scale");
    assert_eq!(scaled.body["status"], json!({"replicas": 3, "selector": "app=d"}));
    let read = api.get(&path).await.is(200);
    assert_eq!((generation(&read.body), &read.body["spec"]["replicas"]), (2, &json!(2)));
    let ignored = api.merge(&path, json!({"status": {"replicas": 7}})).await.is(200);
    assert_eq!(ignored.body["status"]["replicas"], 3);
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            },
        },
    })
}

#[tokio::test]
async fn events_have_two_views() {
    let api = Api::new().await;
    let event = json!({
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "text",
        "reason": "R",
        "action": "A",
        "type": "Normal",
        "reportingController": "c",
        "reportingInstance": "i",
    });
    api.post("/apis/events.k8s.io/v1/namespaces/default/events", event).await.is(201);
    let core = api.get("/api/v1/namespaces/default/events/e").await.is(200);
    assert_eq!(core.body["message"], "text");
    assert_eq!(core.body["involvedObject"]["name"], "p");
    assert_eq!(core.body["reportingComponent"], "c");
    let found = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp";
    assert_eq!(api.get(found).await.is(200).body["items"].as_array().unwrap().len(), 1);
    let new = api.get("/apis/events.k8s.io/v1/namespaces/default/events/e").await.is(200);
    assert_eq!(new.body["note"], "text");
    assert!(new.body.get("message").is_none());
}

#[tokio::test]
async fn services_get_addresses_and_keep_them() {
    let api = Api::new().await;
    let path = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let made = api.post(path, service.clone()).await.is(201);
    let address = made.body["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert!(address.starts_with("127.96."), "{address}");
    let put = api.put(&format!("{path}/s"), service).await.is(200);
    assert_eq!(put.body["spec"]["clusterIP"], *address);
    let mut other = json!({"metadata": {"name": "t"}, "spec": {"ports": [{"port": 80}]}});
    assert_ne!(api.post(path, other.clone()).await.is(201).body["spec"]["clusterIP"], *address);
    other["spec"]["clusterIP"] = "None".into();
    other["metadata"]["name"] = "u".into();
    assert_eq!(api.post(path, other).await.is(201).body["spec"]["clusterIP"], "None");
    let gone = api.delete(&format!("{path}/s")).await.is(200);
    assert!(gone.version() > put.version(), "{}", gone.text);
}

#[tokio::test]
async fn a_name_without_pods_may_have_both_families_until_it_gets_some() {
    let api = Api::new().await;
    let path = "/api/v1/namespaces/default/services";
    let spec = json!({"clusterIP": "None", "ports": [{"port": 80}]});
    let made = api.post(path, json!({"metadata": {"name": "s"}, "spec": spec})).await.is(201);
    assert_eq!(made.body["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(made.body["spec"]["ipFamilyPolicy"], "RequireDualStack");
    let path = format!("{path}/s");
    api.merge(&path, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
    let refused = api.merge(&path, json!({"spec": {"selector": {"a": "b"}}})).await;
    let refused = refused.fails(422, "Invalid");
    let fields: Vec<_> = refused.body["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["spec.ipFamilyPolicy", "spec.ipFamilies[1]"]);
    let single = json!({"spec": {"selector": {"a": "b"}, "ipFamilyPolicy": "SingleStack"}});
    let single = api.merge(&path, single).await.is(200);
    assert_eq!(single.body["spec"]["ipFamilies"], json!(["IPv4"]));
}

#[tokio::test]
async fn an_empty_list_of_owners_forgets_them() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, config_map("c", json!({"a": "1"}))).await.is(201);
    let path = format!("{CONFIG_MAPS}/c");
    let reset = api.merge(&path, json!({"metadata": {"managedFields": []}})).await.is(200);
    assert!(reset.body["metadata"].get("managedFields").is_none(), "{}", reset.text);
}

#[tokio::test]
async fn a_scale_has_owners_as_kubernetes_records_them() {
    let api = Api::new().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    api.post(&format!("{path}?fieldManager=m1"), deployment("d")).await.is(201);
    let path = format!("{path}/d");
    let scale = format!("{path}/scale?fieldManager=m2");
    api.merge(&scale, json!({"spec": {"replicas": 2}})).await.is(200);
    let read = api.get(&path).await.is(200);
    let entries = read.body["metadata"]["managedFields"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["manager"] == "m2").unwrap();
    assert_eq!(
        *entry,
        json!({
            "manager": "m2", "operation": "Update", "apiVersion": "apps/v1", "subresource": "scale",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
        })
    );
    let same = api.merge(&scale, json!({"spec": {"replicas": 2}})).await.is(200);
    assert_eq!(same.version(), read.version());
    let refused = api.merge(&scale, json!({"spec": {"replicas": -1}})).await.fails(422, "Invalid");
    assert_eq!(
        (&refused.body["details"]["group"], &refused.body["details"]["kind"]),
        (&json!("autoscaling"), &json!("Scale"))
    );
}

#[tokio::test]
async fn nothing_happens_in_the_future() {
    let now: Timestamp = "2026-03-04T05:06:07.999999999Z".parse().unwrap();
    let api = Api::on(Store::in_memory(Arc::new(move || now)).unwrap()).await;
    let want = "2026-03-04T05:06:07Z";
    let mut object = config_map("a", json!({"k": "v"}));
    object["metadata"]["finalizers"] = json!(["x.io/hold"]);
    let made = api.post(CONFIG_MAPS, object).await.is(201);
    assert_eq!(made.body["metadata"]["creationTimestamp"], want);
    assert_eq!(made.body["metadata"]["managedFields"][0]["time"], want);
    let going = api.delete(&format!("{CONFIG_MAPS}/a")).await.is(200);
    assert_eq!(going.body["metadata"]["deletionTimestamp"], want);
    let account = api.get("/api/v1/namespaces/default/serviceaccounts/default").await.is(200);
    assert_eq!(account.body["metadata"]["creationTimestamp"], want);
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await.is(201);
    let object = config_map("b", json!({}));
    let held = "/api/v1/namespaces/n/configmaps";
    api.post(held, object).await.is(201);
    api.merge(&format!("{held}/b"), json!({"metadata": {"finalizers": ["x.io/hold"]}}))
        .await
        .is(200);
    api.delete("/api/v1/namespaces/n").await.is(200);
    let conditions = |answer: &Answer| answer.body["status"]["conditions"].is_array();
    let namespace = api.until("/api/v1/namespaces/n", conditions).await;
    for condition in namespace.body["status"]["conditions"].as_array().unwrap() {
        assert_eq!(condition["lastTransitionTime"], want);
    }
}
