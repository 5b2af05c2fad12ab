use serde_json::json;

use crate::api::{Answer, Api, CONFIG_MAPS, config_map};

async fn with_eight() -> Api {
    let api = Api::new().await;
    // The namespace has one of its own.
    api.delete(&format!("{CONFIG_MAPS}/kube-root-ca.crt")).await.is(200);
    for at in 0..8 {
        let mut body = config_map(&format!("n{at}"), json!({}));
        body["metadata"]["labels"] = json!({"even": (at % 2 == 0).to_string()});
        api.post(CONFIG_MAPS, body).await.is(201);
    }
    api
}

fn names(answer: &Answer) -> Vec<&str> {
    let items = answer.body["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn pages_show_one_state() {
    let api = with_eight().await;
    let first = api.get(&format!("{CONFIG_MAPS}?limit=2")).await.is(200);
    assert_eq!(names(&first), ["n0", "n1"]);
    assert_eq!(first.body["kind"], "ConfigMapList");
    assert_eq!(first.body["metadata"]["remainingItemCount"], 6);
    assert!(first.body["items"][0].get("kind").is_none());
    api.post(CONFIG_MAPS, config_map("n11", json!({}))).await.is(201);
    let token = first.body["metadata"]["continue"].as_str().unwrap().to_owned();
    let second = api.get(&format!("{CONFIG_MAPS}?limit=10&continue={token}")).await.is(200);
    assert_eq!(names(&second), ["n2", "n3", "n4", "n5", "n6", "n7"]);
    assert_eq!(second.version(), first.version());
    assert!(second.body["metadata"].get("continue").is_none());
    let with = |options: &str| api.get_owned(format!("{CONFIG_MAPS}?continue={token}&{options}"));
    with("resourceVersion=1").await.fails(400, "BadRequest");
    with("resourceVersion=0").await.is(200);
    with("resourceVersionMatch=Exact").await.fails(422, "Invalid");
    api.get(&format!("{CONFIG_MAPS}?continue=x")).await.fails(400, "BadRequest");
}

#[tokio::test]
async fn versions_choose_the_state() {
    let api = with_eight().await;
    let then = api.get(CONFIG_MAPS).await.version();
    api.delete(&format!("{CONFIG_MAPS}/n0")).await.is(200);
    let exact = format!("{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=Exact");
    let exact = api.get(&exact).await.is(200);
    assert_eq!((names(&exact).len(), exact.version()), (8, then));
    let limited = api.get(&format!("{CONFIG_MAPS}?resourceVersion={then}&limit=3")).await.is(200);
    assert_eq!((names(&limited), limited.version()), (vec!["n0", "n1", "n2"], then));
    let newest = api.get(&format!("{CONFIG_MAPS}?resourceVersion={then}")).await.is(200);
    assert_eq!(names(&newest).len(), 7);
    let any = api.get(&format!("{CONFIG_MAPS}?resourceVersion=0&limit=2")).await.is(200);
    assert_eq!(names(&any).len(), 7);
    let ahead =
        api.get(&format!("{CONFIG_MAPS}?resourceVersion=99999")).await.fails(504, "Timeout");
    assert_eq!(ahead.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[tokio::test]
async fn selectors_choose_objects() {
    let api = with_eight().await;
    let even = api.get(&format!("{CONFIG_MAPS}?labelSelector=even%3Dtrue&limit=2")).await.is(200);
    assert_eq!(names(&even), ["n0", "n2"]);
    assert!(even.body["metadata"].get("remainingItemCount").is_none());
    let one = api.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dn3")).await.is(200);
    assert_eq!(names(&one), ["n3"]);
    let everywhere = api.get("/api/v1/configmaps?fieldSelector=metadata.name!%3Dkube-root-ca.crt");
    assert_eq!(names(&everywhere.await.is(200)).len(), 8);
    for bad in
        ["labelSelector=a%20b%20c", "fieldSelector=spec.x%3D1", "limit=abc", "resourceVersion=x"]
    {
        api.get(&format!("{CONFIG_MAPS}?{bad}")).await.fails(400, "BadRequest");
    }
    api.get(&format!("{CONFIG_MAPS}?limit=-1")).await.is(200);
}

#[tokio::test]
async fn lists_take_the_form_that_is_asked_for() {
    let api = with_eight().await;
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = api.get_as(CONFIG_MAPS, metadata).await.is(200);
    assert_eq!(list.body["kind"], "PartialObjectMetadataList");
    assert_eq!(list.body["items"][0]["kind"], "PartialObjectMetadata");
    assert!(list.body["items"][0].get("data").is_none());
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let list = api.get_as(CONFIG_MAPS, table).await.is(200);
    assert_eq!(list.body["kind"], "Table");
    assert_eq!(list.body["rows"].as_array().unwrap().len(), 8);
    assert_eq!(list.body["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(list.body["rows"][0]["cells"][0], "n0");
    api.get_as(CONFIG_MAPS, "text/html").await.fails(406, "NotAcceptable");
    let bare = api.get_as(&format!("{CONFIG_MAPS}?includeObject=None"), table).await.is(200);
    assert!(bare.body["rows"][0]["object"].is_null());
}

impl Api {
    async fn get_owned(&self, path: String) -> Answer {
        self.get(&path).await
    }
}
