//! Requests that are made to take long. While one is worked on nobody else can write.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::{
    api::{Api, CONFIG_MAPS, config_map},
    custom::definition,
};

/// Work in proportion to the square of what is sent would take minutes.
const SOON: Duration = Duration::from_secs(20);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";

fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("x.io/{at}")).collect()
}

#[tokio::test]
async fn long_lists_keep_nobody_waiting() {
    let api = Api::new().await;
    let start = Instant::now();
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.is(201);
    let path = format!("{CONFIG_MAPS}/a");
    let mut object = config_map("a", json!({}));
    object["metadata"]["finalizers"] = names(200_000).into();
    api.apply(&path, "m", object.clone()).await.fails(400, "BadRequest");
    api.merge(&path, object.clone()).await.fails(400, "BadRequest");
    api.put(&path, object.clone()).await.fails(400, "BadRequest");
    let add = json!([{"op": "add", "path": "/metadata/finalizers", "value": names(200_000)}]);
    let media = "application/json-patch+json";
    api.send(Method::PATCH, &path, media, add.to_string()).await.fails(400, "BadRequest");
    object["metadata"]["finalizers"] = names(9_000).into();
    api.apply(&path, "m", object.clone()).await.is(200);
    object["metadata"]["finalizers"].as_array_mut().unwrap().reverse();
    let media = "application/strategic-merge-patch+json";
    api.send(Method::PATCH, &path, media, object.to_string()).await.is(200);
    api.post(CONFIG_MAPS, config_map("b", json!({}))).await.is(201);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[tokio::test]
async fn long_sets_of_custom_objects_keep_nobody_waiting() {
    let api = Api::new().await;
    let mut definition = definition();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({
        "type": "object",
        "properties": {"set": {
            "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set",
        }},
    });
    api.post(DEFINITIONS, definition).await.is(201);
    let start = Instant::now();
    let widget = |set: Vec<String>| {
        let metadata = json!({"name": "w"});
        json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, "spec": {"set": set}})
    };
    let path = format!("{WIDGETS}/w");
    api.apply(&path, "m", widget(names(20_000))).await.is(201);
    let mut names = names(21_000);
    names.reverse();
    api.apply(&path, "m", widget(names)).await.is(200);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[tokio::test]
async fn many_duplicates_keep_nobody_waiting() {
    let api = Api::new().await;
    let start = Instant::now();
    let fields: Vec<String> = (0..200_000).map(|at| format!("\"k{}\":1", at % 100_000)).collect();
    let body = format!("{{\"metadata\":{{\"name\":\"a\"}},\"x\":{{{}}}}}", fields.join(","));
    let answer = api.send(Method::POST, CONFIG_MAPS, "application/json", body).await.is(201);
    assert!(answer.warnings().len() <= 200, "{}", answer.warnings().len());
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[tokio::test]
async fn moves_that_nest_do_not_end_the_server() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.is(201);
    let levels = (0..120).fold(json!(1), |inner, _| json!({"a": inner}));
    let round = [
        json!({"op": "add", "path": "/y", "value": levels}),
        json!({"op": "move", "from": "/x", "path": format!("/y{}", "/a".repeat(120))}),
        json!({"op": "move", "from": "/y", "path": "/x"}),
    ];
    let rounds: Vec<Value> = round.iter().cycle().take(7_500).cloned().collect();
    let mut patch = vec![json!({"op": "add", "path": "/x", "value": {}})];
    patch.extend(rounds);
    let (path, media) = (format!("{CONFIG_MAPS}/a"), "application/json-patch+json");
    let body = Value::from(patch).to_string();
    api.send(Method::PATCH, &path, media, body).await.fails(422, "Invalid");
    api.get(&path).await.is(200);
}

#[tokio::test]
async fn many_rules_keep_nobody_waiting() {
    let api = Api::new().await;
    let start = Instant::now();
    let property = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]});
    for (count, code) in [(20_000, 422), (500, 201)] {
        let properties = (0..count).map(|at| (format!("p{at}"), property.clone()));
        let mut definition = definition();
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
            json!({"type": "object", "properties": Value::Object(properties.collect())});
        api.post(DEFINITIONS, definition).await.is(code);
    }
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}
