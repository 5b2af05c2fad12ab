use axum::body::Body;
use futures::StreamExt;
use http::{Method, Request};
use serde_json::json;

use crate::api::{Api, CONFIG_MAPS, config_map};

#[tokio::test]
async fn bodies_that_are_no_objects() {
    let api = Api::new().await;
    for body in ["", "{", "[]", "null", "1", "\"x\"", "{\"metadata\":", "\u{0}", "{}{}"] {
        api.send(Method::POST, CONFIG_MAPS, "application/json", body)
            .await
            .fails(400, "BadRequest");
    }
    for body in [
        r#"{"metadata":[]}"#,
        r#"{"metadata":{"name":1}}"#,
        r#"{"metadata":{"name":"a"},"data":1}"#,
    ] {
        api.send(Method::POST, CONFIG_MAPS, "application/json", body)
            .await
            .fails(400, "BadRequest");
    }
    let deep = format!("{{\"metadata\":{}{}}}", "{\"a\":".repeat(500), "}".repeat(500));
    api.send(Method::POST, CONFIG_MAPS, "application/json", deep.clone())
        .await
        .fails(400, "BadRequest");
    api.send(Method::POST, CONFIG_MAPS, "application/yaml", deep).await.fails(400, "BadRequest");
    let media = "application/vnd.kubernetes.protobuf";
    for body in [&b""[..], b"k8s\0", b"k8s\0\xff\xff\xff\xff\xff", b"nonsense"] {
        api.send(Method::POST, CONFIG_MAPS, media, body.to_vec()).await.fails(400, "BadRequest");
    }
    api.send(Method::POST, CONFIG_MAPS, "text/plain", "{}")
        .await
        .fails(415, "UnsupportedMediaType");
}

#[tokio::test]
async fn subresources_that_are_sent_nonsense() {
    let api = Api::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.post(pods, pod).await.is(201);
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    api.post(deployments, crate::objects::deployment("d")).await.is(201);
    for body in ["", "[]", "1", "null", "\"x\"", "{\"spec\":1}", "{\"metadata\":[1]}"] {
        for (method, path) in [
            (Method::POST, format!("{pods}/p/binding")),
            (Method::PUT, "/api/v1/namespaces/default/finalize".into()),
            (Method::PUT, format!("{deployments}/d/scale")),
            (Method::PUT, format!("{deployments}/d/status")),
            (Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews".into()),
        ] {
            let answer = api.send(method.clone(), &path, "application/json", body).await;
            assert!(answer.status.as_u16() < 500, "{method} {path} {body}: {}", answer.text);
        }
    }
    api.get("/api/v1/namespaces/default").await.is(200);
}

#[tokio::test]
async fn bodies_that_are_too_large() {
    let api = Api::new().await;
    let large = "x".repeat(10 << 20);
    let refused = api.send(Method::POST, CONFIG_MAPS, "application/json", large.clone()).await;
    let refused = refused.fails(413, "RequestEntityTooLarge");
    assert_eq!(refused.message(), "Request entity too large: limit is 3145728");
    let path = format!("{CONFIG_MAPS}/kube-root-ca.crt");
    api.send(Method::PATCH, &path, "application/merge-patch+json", large.clone()).await.is(413);
    api.send(Method::DELETE, &path, "application/json", large).await.is(413);
    api.get(&path).await.is(200);
}

#[tokio::test]
async fn patches_that_are_none() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, config_map("a", json!({"k": "v"}))).await.is(201);
    let path = format!("{CONFIG_MAPS}/a");
    for media in ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json"] {
        let media = format!("application/{media}");
        for body in ["", "{", "1", "null", "[1]", "[{}]", "\"x\""] {
            let refused = api.send(Method::PATCH, &path, &media, body).await;
            assert!(refused.status.is_client_error(), "{media} {body}: {}", refused.text);
            assert_eq!(refused.body["kind"], "Status", "{media} {body}: {}", refused.text);
        }
    }
    for body in ["", "{", "a: [", "- x", "&a [*a]", "1"] {
        let applied = format!("{path}?fieldManager=m");
        let refused = api.send(Method::PATCH, &applied, "application/apply-patch+yaml", body).await;
        refused.fails(400, "BadRequest");
    }
    assert_eq!(api.get(&path).await.is(200).body["data"], json!({"k": "v"}));
}

#[tokio::test]
async fn options_that_cannot_be_read_delete_nothing() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.is(201);
    let path = format!("{CONFIG_MAPS}/a");
    for body in [
        json!({"dryRun": "All"}),
        json!({"preconditions": {"uid": 7}}),
        json!({"preconditions": {"resourceVersion": 12}}),
        json!({"gracePeriodSeconds": u64::MAX}),
        json!({"kind": "ConfigMap", "apiVersion": "v1"}),
    ] {
        api.delete_with(&path, body.clone()).await.fails(400, "BadRequest");
        api.delete_with(CONFIG_MAPS, body).await.fails(400, "BadRequest");
    }
    api.delete(&format!("{CONFIG_MAPS}?labelSelector=app%3D%ff")).await.fails(400, "BadRequest");
    api.delete(&format!("{path}?dryRun=All%ff")).await.fails(422, "Invalid");
    api.get(&path).await.is(200);
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.post(pods, pod).await.is(201);
    for options in [json!({"dryRun": "All"}), json!({"preconditions": {"uid": 7}}), json!(1)] {
        let eviction = json!({"metadata": {"name": "p"}, "deleteOptions": options});
        api.post(&format!("{pods}/p/eviction"), eviction).await.fails(400, "BadRequest");
    }
    for target in [json!({"name": 7}), json!("n"), json!([])] {
        let binding = json!({"metadata": {"name": "p"}, "target": target});
        api.post(&format!("{pods}/p/binding"), binding).await.fails(400, "BadRequest");
    }
    let pod = api.get(&format!("{pods}/p")).await.is(200);
    assert_eq!(pod.body["spec"].get("nodeName"), None);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_never_end() {
    let api = Api::new().await;
    for (method, path, media) in [
        (Method::POST, CONFIG_MAPS.to_owned(), "application/json"),
        (Method::PATCH, format!("{CONFIG_MAPS}/kube-root-ca.crt"), "application/merge-patch+json"),
        (Method::DELETE, format!("{CONFIG_MAPS}/kube-root-ca.crt"), "application/json"),
    ] {
        let start = tokio::time::Instant::now();
        let half = futures::stream::once(async { Ok::<_, std::io::Error>("{\"metadata\"") });
        let endless = Body::from_stream(half.chain(futures::stream::pending()));
        let answer = api.send(method, &path, media, endless).await.fails(504, "Timeout");
        assert!(answer.message().starts_with("Timeout: request did not complete"));
        assert_eq!(start.elapsed().as_secs(), 60);
    }
    api.get(&format!("{CONFIG_MAPS}/kube-root-ca.crt")).await.is(200);
}

#[tokio::test]
async fn paths_that_lead_nowhere() {
    let api = Api::new().await;
    for path in [
        "/nothing",
        "/api/v2/pods",
        "/apis/none.io/v1/x",
        "/api/v1/namespaces/../secrets",
        "/api/v1/namespaces/%2e%2e/secrets",
        "/api/v1/namespaces/a%2fb/pods",
        "/api//v1",
        "/api/v1/%ff",
        "/etc/passwd",
    ] {
        let answer = api.get(path).await.is(404);
        assert_eq!(answer.text, "404 page not found\n", "{path}");
    }
    for path in [
        "/api/v1/nothing",
        "/apis/apps/v1/controllerrevisions",
        "/api/v1/configmaps/a",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/pods/p/nothing",
    ] {
        api.get(path).await.fails(404, "NotFound");
    }
    for (path, what) in [
        ("namespaces/default/pods/p/exec?command=ls", "exec of pods"),
        ("namespaces/default/pods/p/attach", "attach of pods"),
        ("namespaces/default/pods/p/portforward", "portforward of pods"),
        ("namespaces/default/services/s/proxy", "proxy of services"),
        ("nodes/n/proxy", "proxy of nodes"),
    ] {
        for method in [Method::GET, Method::POST] {
            let path = format!("/api/v1/{path}");
            let refused = api.send(method, &path, "", "").await.fails(400, "BadRequest");
            let want = format!("{what} is not supported by a local cluster");
            assert_eq!(refused.message(), want);
        }
    }
    let missing = api.get(&format!("{CONFIG_MAPS}/none")).await.fails(404, "NotFound");
    assert_eq!(missing.message(), "configmaps \"none\" not found");
}

#[tokio::test]
async fn kinds_of_which_none_can_be_made() {
    let api = Api::new().await;
    for (path, kind) in [
        ("/api/v1/namespaces/default/replicationcontrollers", "ReplicationController"),
        ("/apis/apps/v1/namespaces/default/daemonsets", "DaemonSet"),
        ("/apis/apps/v1/namespaces/default/statefulsets", "StatefulSet"),
        ("/apis/batch/v1/namespaces/default/cronjobs", "CronJob"),
        ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", "Ingress"),
    ] {
        let list = api.get(path).await.is(200);
        assert_eq!(list.body["kind"], format!("{kind}List"));
        assert_eq!(list.body["items"], json!([]));
        let body = json!({"metadata": {"name": "a"}});
        let one = format!("{path}/a");
        let want =
            format!("{kind} is not supported by a local cluster: nothing in it would act on one");
        for refused in [
            api.post(path, body.clone()).await,
            api.put(&one, body.clone()).await,
            api.merge(&one, body.clone()).await,
            api.apply(&one, "m", body.clone()).await,
        ] {
            assert_eq!(refused.fails(400, "BadRequest").message(), want);
        }
        api.get(&one).await.fails(404, "NotFound");
        api.delete(&one).await.fails(404, "NotFound");
    }
}

#[tokio::test]
async fn methods_that_are_not_offered() {
    let api = Api::new().await;
    for (method, path) in [
        (Method::HEAD, CONFIG_MAPS),
        (Method::OPTIONS, CONFIG_MAPS),
        (Method::PUT, CONFIG_MAPS),
        (Method::PATCH, CONFIG_MAPS),
        (Method::POST, "/api/v1/configmaps"),
        (Method::DELETE, "/api/v1/namespaces"),
        (Method::TRACE, CONFIG_MAPS),
    ] {
        let answer = api.send(method.clone(), path, "application/json", "{}").await;
        assert_eq!(answer.status.as_u16(), 405, "{method} {path}: {}", answer.text);
    }
}

#[tokio::test]
async fn nobody_is_let_in_without_a_name() {
    let api = Api::new().await;
    let request = Request::builder().uri(CONFIG_MAPS).body(Body::empty()).unwrap();
    let response = tower::ServiceExt::oneshot(api.server.router(), request).await.unwrap();
    assert_eq!(response.status().as_u16(), 401);
}
