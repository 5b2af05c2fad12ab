use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::api::Api;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";

pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {
            "group": "ex.io",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "properties": {
                                "color": {
                                    "type": "string",
                                    "x-kubernetes-validations": [
                                        {"rule": "self == oldSelf", "message": "color is immutable"},
                                    ],
                                },
                                "replicas": {"type": "integer", "default": 1, "maximum": 10},
                                "labels": {
                                    "type": "object",
                                    "additionalProperties": {"type": "string"},
                                },
                            },
                        },
                        "status": {
                            "type": "object",
                            "properties": {"replicas": {"type": "integer"}},
                        },
                    },
                }},
            }],
        },
    })
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_definition_serves_its_kind_at_once() {
    let api = Api::new().await;
    api.get(WIDGETS).await.is(404);
    let made = api.post(DEFINITIONS, definition()).await.is(201);
    assert!(made.text.contains("InitialNamesAccepted"), "{}", made.text);
    let made = api.post(WIDGETS, widget("w", json!({"color": "red", "unknown": 1}))).await.is(201);
    assert_eq!(made.body["spec"], json!({"color": "red", "replicas": 1}));
    assert_eq!(made.body["metadata"]["generation"], 1);
    assert_eq!(made.warnings(), ["299 - \"unknown field \\\"spec.unknown\\\"\""]);
    let list = api.get(WIDGETS).await.is(200);
    assert_eq!(
        (&list.body["kind"], &list.body["items"][0]["kind"]),
        (&json!("WidgetList"), &json!("Widget"))
    );
    api.get("/apis/ex.io/v1/gadgets").await.is(404);
    api.post("/apis/ex.io/v1/widgets", widget("x", json!({}))).await.is(404);
}

#[tokio::test]
async fn custom_objects_are_checked() {
    let api = Api::new().await;
    api.post(DEFINITIONS, definition()).await.is(201);
    let large = api.post(WIDGETS, widget("w", json!({"replicas": 11}))).await.fails(422, "Invalid");
    assert_eq!(large.body["details"]["kind"], "Widget");
    assert_eq!(large.body["details"]["causes"][0]["field"], "spec.replicas");
    let kindless = json!({"apiVersion": "ex.io/v1", "metadata": {"name": "w"}});
    api.post(WIDGETS, kindless).await.fails(400, "BadRequest");
    let mut other = widget("w", json!({}));
    other["kind"] = "Gadget".into();
    api.post(WIDGETS, other).await.fails(422, "Invalid");
    api.post(WIDGETS, widget("w", json!({"color": "red"}))).await.is(201);
    let path = format!("{WIDGETS}/w");
    let blue = api.merge(&path, json!({"spec": {"color": "blue"}})).await.fails(422, "Invalid");
    assert!(blue.message().contains("color is immutable"), "{}", blue.message());
    let versionless =
        api.put(&path, widget("w", json!({"color": "red"}))).await.fails(422, "Invalid");
    assert!(versionless.message().contains("must be specified for an update"));
    let media = "application/strategic-merge-patch+json";
    api.send(http::Method::PATCH, &path, media, "{}").await.fails(415, "UnsupportedMediaType");
}

#[tokio::test]
async fn generation_status_and_scale_of_custom_objects() {
    let api = Api::new().await;
    api.post(DEFINITIONS, definition()).await.is(201);
    api.post(WIDGETS, widget("w", json!({}))).await.is(201);
    let path = format!("{WIDGETS}/w");
    let generation = |body: &Value| body["metadata"]["generation"].as_i64().unwrap();
    let spec =
        api.merge(&path, json!({"spec": {"replicas": 2}, "status": {"replicas": 9}})).await.is(200);
    assert_eq!((generation(&spec.body), spec.body.get("status")), (2, None));
    let label = api.merge(&path, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
    assert_eq!(generation(&label.body), 2);
    let status =
        api.merge(&format!("{path}/status"), json!({"status": {"replicas": 2}})).await.is(200);
    assert_eq!(generation(&status.body), 2);
    let scale = api.merge(&format!("{path}/scale"), json!({"spec": {"replicas": 4}})).await.is(200);
    assert_eq!(
        (&scale.body["spec"]["replicas"], &scale.body["status"]["replicas"]),
        (&json!(4), &json!(2))
    );
    assert_eq!(generation(&api.get(&path).await.body), 3);
    let missing = api.get(&format!("{path}/other")).await.fails(404, "NotFound");
    assert_eq!(missing.message(), "widgets.ex.io \"w\" not found");
}

#[tokio::test]
async fn an_apply_that_empties_a_map_leaves_null() {
    let api = Api::new().await;
    api.post(DEFINITIONS, definition()).await.is(201);
    let path = format!("{WIDGETS}/w");
    api.apply(&path, "m", widget("w", json!({"labels": {"x": "1"}}))).await.is(201);
    let refused = api.apply(&path, "m", widget("w", json!({"labels": {}}))).await;
    let refused = refused.fails(422, "Invalid");
    let cause = &refused.body["details"]["causes"][0];
    assert_eq!(
        (&cause["reason"], &cause["field"]),
        (&json!("FieldValueTypeInvalid"), &json!("spec.labels"))
    );
    // What is read is spared such nulls.
    let read = api.merge(&path, json!({"spec": {"labels": null}})).await.is(200);
    assert_eq!(read.body["spec"], json!({"replicas": 1}));
}

#[tokio::test]
async fn the_status_of_a_definition_is_owned_by_the_server() {
    let api = Api::new().await;
    let made = api.post(&format!("{DEFINITIONS}?fieldManager=m"), definition()).await.is(201);
    let entries = made.body["metadata"]["managedFields"].as_array().unwrap();
    let owned = |manager: &str| {
        let entry = entries.iter().find(|entry| entry["manager"] == manager);
        entry.map(|entry| entry["fieldsV1"].clone()).unwrap_or_default()
    };
    let own = owned("m");
    assert_eq!((own.get("f:status"), own["f:spec"].get(".")), (None, None), "{}", made.text);
    let status = owned("kube-apiserver");
    assert!(status["f:status"]["f:acceptedNames"]["f:plural"].is_object(), "{}", made.text);
    assert!(status["f:status"].get("f:storedVersions").is_none(), "{}", made.text);
    assert!(status.get("f:spec").is_none(), "{}", made.text);
}

#[tokio::test]
async fn a_definition_takes_its_objects_along() {
    let api = Api::new().await;
    api.post(DEFINITIONS, definition()).await.is(201);
    api.post(WIDGETS, widget("free", json!({}))).await.is(201);
    let mut held = widget("held", json!({}));
    held["metadata"]["finalizers"] = json!(["x.io/hold"]);
    api.post(WIDGETS, held).await.is(201);
    let path = format!("{DEFINITIONS}/widgets.ex.io");
    let going = api.delete(&path).await.is(200);
    assert!(going.text.contains("customresourcecleanup.apiextensions.k8s.io"));
    assert!(going.text.contains("Terminating"));
    api.until_gone(&format!("{WIDGETS}/free")).await;
    api.get(&path).await.is(200);
    api.merge(&format!("{WIDGETS}/held"), json!({"metadata": {"finalizers": null}})).await.is(200);
    api.until_gone(&path).await;
    let gone = api.get(WIDGETS).await.is(404);
    assert_eq!(gone.text, "404 page not found\n");
}

#[tokio::test]
async fn a_body_that_outlasts_its_definition_makes_nothing() {
    let api = Api::new().await;
    let widget =
        json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}});
    let path = format!("{DEFINITIONS}/widgets.ex.io");
    for again in [false, true] {
        api.post(DEFINITIONS, definition()).await.is(201);
        api.until(WIDGETS, |answer| answer.status == 200).await;
        let (started, first) = oneshot::channel();
        let (go_on, rest) = oneshot::channel();
        let text = widget.to_string();
        let body = Body::from_stream(futures::stream::once(async move {
            started.send(()).unwrap();
            rest.await.unwrap();
            Ok::<_, std::io::Error>(text)
        }));
        let sent = api.send(Method::POST, WIDGETS, "application/json", body);
        let meanwhile = async {
            first.await.unwrap();
            api.delete(&path).await.is(200);
            api.until_gone(&path).await;
            if again {
                api.post(DEFINITIONS, definition()).await.is(201);
            }
            go_on.send(()).unwrap();
        };
        let (answer, ()) = tokio::join!(sent, meanwhile);
        answer.is(404);
    }
    api.until(WIDGETS, |answer| answer.status == 200).await;
    assert_eq!(api.get(WIDGETS).await.body["items"], json!([]));
}

#[tokio::test]
async fn finalizers_in_the_spec_of_a_custom_object_hold_nothing_up() {
    let api = Api::new().await;
    let mut definition = definition();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    api.post(DEFINITIONS, definition).await.is(201);
    for policy in ["Background", "Foreground", "Orphan"] {
        let metadata = json!({"name": "w", "finalizers": ["x.io/f"]});
        let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, "spec": {"finalizers": ["x"]}});
        api.post(WIDGETS, widget).await.is(201);
        let path = format!("{WIDGETS}/w");
        api.delete_with(&path, json!({"propagationPolicy": policy})).await.is(200);
        let remove = json!([{"op": "test", "path": "/metadata/finalizers/0", "value": "x.io/f"}, {"op": "remove", "path": "/metadata/finalizers/0"}]);
        api.send(Method::PATCH, &path, "application/json-patch+json", remove.to_string())
            .await
            .is(200);
        api.until_gone(&path).await;
    }
}

#[tokio::test]
async fn objects_are_no_larger_than_etcd_takes() {
    let api = Api::new().await;
    let mut definition = definition();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    api.post(DEFINITIONS, definition).await.is(201);
    let widget = |size: usize| json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": "x".repeat(size)}});
    let refused = api.post(WIDGETS, widget(1_600_000)).await.fails(500, "");
    assert_eq!(refused.message(), "etcdserver: request is too large");
    let path = format!("{WIDGETS}/w");
    api.get(&path).await.is(404);
    api.post(WIDGETS, widget(800_000)).await.is(201);
    let more = json!({"spec": {"b": "x".repeat(800_000)}});
    api.merge(&path, more.clone()).await.fails(500, "");
    api.merge(&format!("{path}?dryRun=All"), more).await.is(200);
    assert_eq!(api.get(&path).await.is(200).body["spec"].get("b"), None);
}
