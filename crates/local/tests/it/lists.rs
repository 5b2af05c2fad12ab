use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use windlass_local::store::{Key, Mode};

use crate::api::{Answer, Api};

/// Of which a namespace has none of its own.
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

async fn with_eight() -> Api {
    let api = Api::new().await;
    for at in 0..8 {
        let labels = json!({"even": (at % 2 == 0).to_string()});
        let metadata = json!({"name": format!("n{at}"), "labels": labels});
        api.post(SECRETS, json!({"metadata": metadata})).await.is(201);
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
    let first = api.get(&format!("{SECRETS}?limit=2")).await.is(200);
    assert_eq!(names(&first), ["n0", "n1"]);
    assert_eq!(first.body["kind"], "SecretList");
    assert_eq!(first.body["metadata"]["remainingItemCount"], 6);
    assert!(first.body["items"][0].get("kind").is_none());
    api.post(SECRETS, json!({"metadata": {"name": "n11"}})).await.is(201);
    let token = first.body["metadata"]["continue"].as_str().unwrap().to_owned();
    let second = api.get(&format!("{SECRETS}?limit=10&continue={token}")).await.is(200);
    assert_eq!(names(&second), ["n2", "n3", "n4", "n5", "n6", "n7"]);
    assert_eq!(second.version(), first.version());
    assert!(second.body["metadata"].get("continue").is_none());
    let with = |options: &str| api.get_owned(format!("{SECRETS}?continue={token}&{options}"));
    with("resourceVersion=1").await.fails(400, "BadRequest");
    with("resourceVersion=0").await.is(200);
    with("resourceVersionMatch=Exact").await.fails(422, "Invalid");
    api.get(&format!("{SECRETS}?continue=x")).await.fails(400, "BadRequest");
}

/// A page that begins with this key at this version.
fn page(version: i64, start: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": version, "start": start});
    format!("{SECRETS}?limit=2&continue={}", URL_SAFE_NO_PAD.encode(token.to_string()))
}

/// An earlier store may have come further than this one.
#[tokio::test]
async fn a_page_of_another_store_is_none_of_this_one() {
    let api = with_eight().await;
    let now = i64::try_from(api.get(SECRETS).await.version()).unwrap();
    assert_eq!(names(&api.get(&page(now, "n2\0")).await.is(200)), ["n3", "n4"]);
    let ahead = api.get(&page(now + 1000, "n2\0")).await.fails(504, "Timeout");
    let want = format!("Timeout: Too large resource version: {}, current: {now}", now + 1000);
    assert_eq!(ahead.message(), want);
    assert_eq!(ahead.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    // One that is only just ahead is waited for.
    let made = async {
        api.post(SECRETS, json!({"metadata": {"name": "n9"}})).await.is(201);
    };
    let next = page(now + 1, "n7\0");
    let (page_of_next, ()) = tokio::join!(api.get(&next), made);
    assert_eq!(names(&page_of_next.is(200)), ["n9"]);
    for (version, start) in [(0, "n2\0"), (now, "")] {
        let refused = api.get(&page(version, start)).await.fails(400, "BadRequest");
        assert!(refused.message().starts_with("invalid continue token: "), "{}", refused.text);
    }
}

#[tokio::test]
async fn a_page_that_is_too_old_comes_with_a_way_to_go_on() {
    let api = with_eight().await;
    let first = api.get(&format!("{SECRETS}?limit=2")).await.is(200);
    let token = first.body["metadata"]["continue"].as_str().unwrap().to_owned();
    api.delete(&format!("{SECRETS}/n3")).await.is(200);
    // More than the history has room for.
    for _ in 0..17 {
        let large = json!({"metadata": {"uid": "u"}, "data": {"k": "x".repeat(4 << 20)}});
        let key = Key::new(&"/configmaps".into(), "default", "large");
        let store = api.server.registry().store();
        let put = store.write(Mode::Store, move |tx| Ok::<_, ()>(tx.put(&key, large)));
        put.await.unwrap().unwrap();
    }
    let old = api.get(&format!("{SECRETS}?limit=2&continue={token}")).await.fails(410, "Expired");
    let want = "The provided continue parameter is too old to display a consistent list result. ";
    assert!(old.message().starts_with(want), "{}", old.text);
    let fresh = old.body["metadata"]["continue"].as_str().unwrap();
    let decoded = URL_SAFE_NO_PAD.decode(fresh).unwrap();
    let decoded: serde_json::Value = serde_json::from_slice(&decoded).unwrap();
    assert_eq!(decoded, json!({"v": "meta.k8s.io/v1", "rv": -1, "start": "n1\0"}));
    let newest = api.get(SECRETS).await.version();
    let rest = api.get(&format!("{SECRETS}?limit=2&continue={fresh}")).await.is(200);
    assert_eq!((names(&rest), rest.version()), (vec!["n2", "n4"], newest));
    assert_eq!(rest.body["metadata"]["remainingItemCount"], 3);
    // From here on it is one state again.
    let token = rest.body["metadata"]["continue"].as_str().unwrap();
    let last = api.get(&format!("{SECRETS}?continue={token}")).await.is(200);
    assert_eq!((names(&last), last.version()), (vec!["n5", "n6", "n7"], newest));
    let exact = format!("{SECRETS}?resourceVersion=2&resourceVersionMatch=Exact");
    let old = api.get(&exact).await.fails(410, "Expired");
    assert_eq!(old.message(), "The resourceVersion for the provided list is too old.");
    assert_eq!(old.body["metadata"], json!({}));
}

#[tokio::test]
async fn versions_choose_the_state() {
    let api = with_eight().await;
    let then = api.get(SECRETS).await.version();
    api.delete(&format!("{SECRETS}/n0")).await.is(200);
    let exact = format!("{SECRETS}?resourceVersion={then}&resourceVersionMatch=Exact");
    let exact = api.get(&exact).await.is(200);
    assert_eq!((names(&exact).len(), exact.version()), (8, then));
    let limited = api.get(&format!("{SECRETS}?resourceVersion={then}&limit=3")).await.is(200);
    assert_eq!((names(&limited), limited.version()), (vec!["n0", "n1", "n2"], then));
    let newest = api.get(&format!("{SECRETS}?resourceVersion={then}")).await.is(200);
    assert_eq!(names(&newest).len(), 7);
    let any = api.get(&format!("{SECRETS}?resourceVersion=0&limit=2")).await.is(200);
    assert_eq!(names(&any).len(), 7);
    let ahead = api.get(&format!("{SECRETS}?resourceVersion=99999")).await.fails(504, "Timeout");
    assert_eq!(ahead.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[tokio::test]
async fn selectors_choose_objects() {
    let api = with_eight().await;
    let even = api.get(&format!("{SECRETS}?labelSelector=even%3Dtrue&limit=2")).await.is(200);
    assert_eq!(names(&even), ["n0", "n2"]);
    assert!(even.body["metadata"].get("remainingItemCount").is_none());
    let one = api.get(&format!("{SECRETS}?fieldSelector=metadata.name%3Dn3")).await.is(200);
    assert_eq!(names(&one), ["n3"]);
    let everywhere = api.get("/api/v1/secrets?fieldSelector=metadata.name!%3Dn3");
    assert_eq!(names(&everywhere.await.is(200)).len(), 7);
    for bad in
        ["labelSelector=a%20b%20c", "fieldSelector=spec.x%3D1", "limit=abc", "resourceVersion=x"]
    {
        api.get(&format!("{SECRETS}?{bad}")).await.fails(400, "BadRequest");
    }
    api.get(&format!("{SECRETS}?limit=-1")).await.is(200);
}

#[tokio::test]
async fn lists_take_the_form_that_is_asked_for() {
    let api = with_eight().await;
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = api.get_as(SECRETS, metadata).await.is(200);
    assert_eq!(list.body["kind"], "PartialObjectMetadataList");
    assert_eq!(list.body["items"][0]["kind"], "PartialObjectMetadata");
    assert!(list.body["items"][0].get("type").is_none());
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let list = api.get_as(SECRETS, table).await.is(200);
    assert_eq!(list.body["kind"], "Table");
    assert_eq!(list.body["rows"].as_array().unwrap().len(), 8);
    assert_eq!(list.body["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(list.body["rows"][0]["cells"][0], "n0");
    api.get_as(SECRETS, "text/html").await.fails(406, "NotAcceptable");
    let bare = api.get_as(&format!("{SECRETS}?includeObject=None"), table).await.is(200);
    assert!(bare.body["rows"][0]["object"].is_null());
}

impl Api {
    async fn get_owned(&self, path: String) -> Answer {
        self.get(&path).await
    }
}
