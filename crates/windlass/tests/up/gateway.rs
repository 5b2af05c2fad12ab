use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::{Request, Response, body::Frame, client::conn};
use hyper_util::rt::TokioIo;
use kube::{Client, api::DeleteParams, core::GroupVersionKind};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::mpsc};

use crate::{
    backend::{anywhere, apply, dynamic, named, route, serve, service, service_in, text},
    running::{Up, World},
    wait::until,
};

const GROUP: &str = "gateway.networking.k8s.io";

/// With a gateway on a port of its own.
pub(crate) fn up(world: &World) -> Up {
    world.up(&["--ephemeral", "--gateway-port", "0"])
}

/// Until the gateway answers so.
pub(crate) async fn answers(up: &Up, host: &str, path: &str, want: (u16, &str)) {
    until("answer", || async {
        let got = up.get(host, path).await;
        if (got.0, got.1.as_str()) == want { Ok(()) } else { Err(format!("{got:?}")) }
    })
    .await;
}

/// Until the object says of itself what is expected.
pub(crate) async fn says(
    client: &Client,
    gvk: &GroupVersionKind,
    name: &str,
    what: &str,
    want: Value,
) {
    let api = dynamic(client, gvk, None);
    until("status", || async {
        let found = api.get(name).await.map_err(|error| error.to_string())?;
        let got = found.data.pointer(what).cloned().unwrap_or_default();
        if got == want { Ok(()) } else { Err(found.data.to_string()) }
    })
    .await;
}

pub(crate) fn gvk(kind: &str) -> GroupVersionKind {
    GroupVersionKind::gvk(GROUP, "v1", kind)
}

#[tokio::test]
async fn requests_go_where_routes_say() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    service(&client, "a", &[named("a").await]).await;
    service(&client, "b", &[named("b").await]).await;
    service(&client, "empty", &[]).await;
    let to = |name: &str| json!([{ "name": name, "port": 80 }]);
    let rules = json!([
        { "matches": [{ "headers": [{ "name": "x-model", "value": "b" }] }], "backendRefs": to("b") },
        { "matches": [{ "path": { "type": "PathPrefix", "value": "/team/chat" } }],
          "filters": [{ "type": "URLRewrite", "urlRewrite": { "path": {
              "type": "ReplacePrefixMatch", "replacePrefixMatch": "/" } } }],
          "backendRefs": to("b") },
        { "matches": [{ "path": { "type": "Exact", "value": "/missing" } }],
          "backendRefs": to("missing") },
        { "matches": [{ "path": { "type": "Exact", "value": "/empty" } }],
          "backendRefs": to("empty") },
        { "backendRefs": to("a") },
    ]);
    let parents = json!([{ "name": "any", "namespace": "infra" }]);
    let spec = json!({ "parentRefs": parents, "hostnames": ["h.example"], "rules": rules });
    apply(&client, route("r", spec)).await;

    answers(&up, "h.example", "/x?q=1", (200, "a h.example /x?q=1")).await;
    let host = "h.example:8080";
    assert_eq!(up.get(host, "/x").await, (200, format!("a {host} /x")), "the port is no name");
    assert_eq!(up.get("h.example", "/team/chat/v1").await, (200, "b h.example /v1".to_owned()));
    assert_eq!(up.get("h.example", "/missing").await, (500, "BackendNotFound".to_owned()));
    assert_eq!(up.get("h.example", "/empty").await, (503, "no endpoint is ready".to_owned()));
    assert_eq!(up.get("other", "/").await, (404, "no route matches".to_owned()));
    let request = Request::get("/x").header("host", "h.example").header("X-Model", "b");
    let answer = text(up.ask(request.body(Full::default()).unwrap()).await).await;
    assert_eq!(answer, (200, "b h.example /x".to_owned()));
    let answer = up.get_http2("http://h.example/x").await;
    assert_eq!(answer, (200, "a h.example /x".to_owned()), "over HTTP/2");

    let entry = |what: &str| format!("/status/parents/0/{what}");
    let route = gvk("HTTPRoute");
    says(&client, &route, "r", &entry("controllerName"), json!("windlass.dev/gateway")).await;
    says(&client, &route, "r", &entry("parentRef"), parents[0].clone()).await;
    says(&client, &route, "r", &entry("conditions/0/status"), json!("True")).await;
    says(&client, &route, "r", &entry("conditions/1/reason"), json!("BackendNotFound")).await;

    // What is missing is noticed when it comes, and what goes when it goes.
    service(&client, "missing", &[named("found").await]).await;
    answers(&up, "h.example", "/missing", (200, "found h.example /missing")).await;
    says(&client, &route, "r", &entry("conditions/1/status"), json!("True")).await;
    dynamic(&client, &route, None).delete("r", &DeleteParams::default()).await.unwrap();
    answers(&up, "h.example", "/x", (404, "no route matches")).await;
}

#[tokio::test]
async fn a_canary_gets_its_share() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    service(&client, "a", &[named("a").await]).await;
    service(&client, "b", &[named("b").await]).await;
    let backends = json!([{ "name": "a", "port": 80, "weight": 80 },
        { "name": "b", "port": 80, "weight": 20 }]);
    let spec = json!({ "parentRefs": [{ "name": "g" }], "rules": [{ "backendRefs": backends }] });
    apply(&client, route("r", spec)).await;
    until("route", || async {
        let got = up.get("h", "/").await;
        if got.0 == 200 { Ok(()) } else { Err(format!("{got:?}")) }
    })
    .await;
    let mut canary = 0;
    for _ in 0..1000 {
        canary += i32::from(up.get("h", "/").await.1.starts_with('b'));
    }
    // Four standard deviations.
    assert!((150..250).contains(&canary), "{canary} of 1000");
}

/// A stream that the test feeds.
async fn streaming() -> (SocketAddr, mpsc::UnboundedSender<&'static str>, Arc<tokio::sync::Notify>)
{
    struct Gone(Arc<tokio::sync::Notify>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (more, parts) = mpsc::unbounded_channel::<&'static str>();
    let parts = Arc::new(tokio::sync::Mutex::new(parts));
    let gone = Arc::new(tokio::sync::Notify::new());
    let ended = gone.clone();
    let answer = move |_| {
        let (parts, gone) = (parts.clone(), Gone(ended.clone()));
        async move {
            let frames = stream::unfold((parts, gone), |(parts, gone)| async move {
                let part = parts.lock().await.recv().await?;
                Some((Ok(Frame::data(Bytes::from_static(part.as_bytes()))), (parts, gone)))
            });
            let mut response = Response::new(BodyExt::boxed(StreamBody::new(frames)));
            let event_stream = "text/event-stream".parse().unwrap();
            response.headers_mut().insert("content-type", event_stream);
            response
        }
    };
    (serve(anywhere(), answer).await, more, gone)
}

#[tokio::test]
async fn tokens_arrive_one_by_one_and_who_has_gone_is_not_worked_for() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    let (backend, more, gone) = streaming().await;
    service(&client, "a", &[backend]).await;
    let spec = json!({ "parentRefs": [{ "name": "g" }],
        "rules": [{ "backendRefs": [{ "name": "a", "port": 80 }] }] });
    apply(&client, route("r", spec)).await;
    says(&client, &gvk("HTTPRoute"), "r", "/status/parents/0/conditions/1/status", json!("True"))
        .await;
    let request = Request::post("/v1/completions").header("host", "h").body(Full::default());
    let mut body = up.ask(request.unwrap()).await.into_body();
    for part in ["data: a\n\n", "data: b\n\n", "data: c\n\n"] {
        more.send(part).unwrap();
        // The next part does not exist yet, so this one cannot have waited for it.
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), part);
    }
    drop(body);
    gone.notified().await;
}

#[tokio::test]
async fn time_is_limited_as_routes_say() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    let silent = serve(anywhere(), |_| async {
        stream::pending::<Response<crate::backend::Body>>().next().await.unwrap()
    });
    let slow = serve(anywhere(), |_| async {
        let first = stream::iter([Ok(Frame::data(Bytes::from_static(b"a")))]);
        Response::new(BodyExt::boxed(StreamBody::new(first.chain(stream::pending()))))
    });
    service(&client, "silent", &[silent.await]).await;
    service(&client, "slow", &[slow.await]).await;
    let rule = |path: &str, timeouts: Value, backend: &str| {
        json!({ "matches": [{ "path": { "type": "PathPrefix", "value": path } }],
            "timeouts": timeouts, "backendRefs": [{ "name": backend, "port": 80 }] })
    };
    let rules = json!([
        rule("/whole", json!({ "request": "100ms" }), "silent"),
        rule("/try", json!({ "request": "0s", "backendRequest": "100ms" }), "silent"),
        rule("/slow", json!({ "request": "3s" }), "slow"),
    ]);
    let spec = json!({ "parentRefs": [{ "name": "g" }], "rules": rules });
    apply(&client, route("r", spec)).await;
    for path in ["/whole", "/try"] {
        answers(&up, "h", path, (504, "no answer in the time allowed")).await;
    }
    // What has begun is cut, so that nobody takes it for the whole.
    let request = Request::get("/slow").header("host", "h").body(Full::default());
    let response = up.ask(request.unwrap()).await;
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
    assert!(body.frame().await.unwrap().is_err(), "it is cut, not ended");
}

#[tokio::test]
async fn another_namespace_has_to_grant_it() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "models" } });
    apply(&client, namespace).await;
    service_in(&client, "models", "a", &[named("a").await]).await;
    let spec = json!({ "parentRefs": [{ "name": "g" }],
        "rules": [{ "backendRefs": [{ "name": "a", "namespace": "models", "port": 80 }] }] });
    apply(&client, route("r", spec)).await;
    answers(&up, "h", "/", (500, "RefNotPermitted")).await;
    let reason = "/status/parents/0/conditions/1/reason";
    says(&client, &gvk("HTTPRoute"), "r", reason, json!("RefNotPermitted")).await;
    let grant = json!({ "apiVersion": format!("{GROUP}/v1beta1"), "kind": "ReferenceGrant",
        "metadata": { "namespace": "models", "name": "g" },
        "spec": { "from": [{ "group": GROUP, "kind": "HTTPRoute", "namespace": "default" }],
            "to": [{ "group": "", "kind": "Service" }] } });
    apply(&client, grant).await;
    answers(&up, "h", "/", (200, "a h /")).await;
    says(&client, &gvk("HTTPRoute"), "r", reason, json!("ResolvedRefs")).await;
    let grants = dynamic(
        &client,
        &GroupVersionKind::gvk(GROUP, "v1beta1", "ReferenceGrant"),
        Some("models"),
    );
    grants.delete("g", &DeleteParams::default()).await.unwrap();
    answers(&up, "h", "/", (500, "RefNotPermitted")).await;
}

#[tokio::test]
async fn running_answers_finish_when_their_endpoint_leaves() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    let (backend, more, _gone) = streaming().await;
    service(&client, "a", &[backend]).await;
    let spec = json!({ "parentRefs": [{ "name": "g" }],
        "rules": [{ "backendRefs": [{ "name": "a", "port": 80 }] }] });
    apply(&client, route("r", spec)).await;
    says(&client, &gvk("HTTPRoute"), "r", "/status/parents/0/conditions/1/status", json!("True"))
        .await;
    let request = Request::get("/").header("host", "h").body(Full::default());
    let mut body = up.ask(request.unwrap()).await.into_body();
    more.send("first").unwrap();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
    let leaving = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": "a-0", "labels": { "kubernetes.io/service-name": "a" } },
        "addressType": "IPv4", "ports": [{ "port": backend.port() }],
        "endpoints": [{ "addresses": ["127.0.0.1"],
            "conditions": { "ready": false, "serving": true, "terminating": true } }] });
    apply(&client, leaving).await;
    answers(&up, "h", "/", (503, "no endpoint is ready")).await;
    more.send("second").unwrap();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "second");
    drop(more);
    assert!(body.frame().await.is_none(), "a clean end");
}

#[tokio::test]
async fn gateways_and_their_class_say_that_they_are_served() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    let (class, gateway) = (gvk("GatewayClass"), gvk("Gateway"));
    says(&client, &class, "windlass", "/spec/controllerName", json!("windlass.dev/gateway")).await;
    says(&client, &class, "windlass", "/status/conditions/0/status", json!("True")).await;
    let listener = json!({ "name": "web", "port": 80, "protocol": "HTTP", "hostname": "*.x" });
    let spec = json!({ "gatewayClassName": "windlass", "listeners": [listener] });
    let object = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Gateway",
        "metadata": { "name": "g" }, "spec": spec });
    apply(&client, object).await;
    says(&client, &gateway, "g", "/status/conditions/1/type", json!("Programmed")).await;
    says(&client, &gateway, "g", "/status/addresses/0/value", json!("127.0.0.1")).await;
    service(&client, "a", &[named("a").await]).await;
    let spec = json!({ "parentRefs": [{ "name": "g" }],
        "rules": [{ "backendRefs": [{ "name": "a", "port": 80 }] }] });
    apply(&client, route("r", spec.clone())).await;
    says(&client, &gateway, "g", "/status/listeners/0/attachedRoutes", json!(1)).await;
    answers(&up, "h.x", "/", (200, "a h.x /")).await;
    assert_eq!(up.get("h.y", "/").await.0, 404);
    let mut refused = spec;
    refused["parentRefs"][0]["sectionName"] = "none".into();
    apply(&client, route("r", refused)).await;
    let reason = "/status/parents/0/conditions/0/reason";
    says(&client, &gvk("HTTPRoute"), "r", reason, json!("NoMatchingParent")).await;
    says(&client, &gateway, "g", "/status/listeners/0/attachedRoutes", json!(0)).await;
    answers(&up, "h.x", "/", (404, "no route matches")).await;
    assert_eq!(up.log(), "");
}

#[tokio::test]
async fn only_own_gateways_count_if_the_user_says_so() {
    let world = World::new();
    let up = world.up(&["--ephemeral", "--gateway-port", "0", "--gateway-accept-any=false"]);
    let client = up.client().await;
    service(&client, "a", &[named("a").await]).await;
    let rules = json!([{ "backendRefs": [{ "name": "a", "port": 80 }] }]);
    let spec = |parent: &str| json!({ "parentRefs": [{ "name": parent }], "rules": rules });
    apply(&client, route("theirs", spec("theirs"))).await;
    let listener = json!({ "name": "web", "port": 80, "protocol": "HTTP" });
    let gateway = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Gateway",
        "metadata": { "name": "ours" },
        "spec": { "gatewayClassName": "windlass", "listeners": [listener] } });
    apply(&client, gateway).await;
    let gateways = gvk("Gateway");
    says(&client, &gateways, "ours", "/status/conditions/0/status", json!("True")).await;
    assert_eq!(up.get("h", "/").await.0, 404);
    apply(&client, route("ours", spec("ours"))).await;
    answers(&up, "h", "/", (200, "a h /")).await;
    let theirs = dynamic(&client, &gvk("HTTPRoute"), None).get("theirs").await.unwrap();
    assert_eq!(theirs.data.get("status"), None);
}

#[tokio::test]
async fn after_a_restart_the_first_request_meets_the_routes_of_before() {
    let world = World::new();
    let flags = ["--gateway-port", "0"];
    let up = world.up(&flags);
    let client = up.client().await;
    service(&client, "a", &[named("a").await]).await;
    let spec = json!({ "parentRefs": [{ "name": "g" }],
        "rules": [{ "backendRefs": [{ "name": "a", "port": 80 }] }] });
    apply(&client, route("r", spec)).await;
    answers(&up, "h", "/", (200, "a h /")).await;
    up.terminate();
    for _ in 0..3 {
        let up = world.up(&flags);
        assert_eq!(up.get("h", "/").await, (200, "a h /".to_owned()));
        up.terminate();
    }
}

#[tokio::test]
async fn over_tls_it_is_known_by_the_authority_of_the_cluster() {
    let world = World::new();
    let up = world.up(&["--ephemeral", "--gateway-port", "0", "--gateway-tls"]);
    let url = format!("https://{}", up.gateway());
    assert_eq!(up.said[1], format!("models answer at {url}"));
    let client = up.client().await;
    service(&client, "a", &[named("a").await]).await;
    let spec = json!({ "parentRefs": [{ "name": "g" }],
        "rules": [{ "backendRefs": [{ "name": "a", "port": 80 }] }] });
    apply(&client, route("r", spec)).await;
    let authority = up.kubeconfig().with_file_name("ca.crt");
    for is_http2 in [false, true] {
        until("answer", || async {
            match up.get_tls(Some(&authority), is_http2, "https://localhost/x").await {
                Ok((200, said)) if said == "a localhost /x" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
    let stranger = up.get_tls(None, false, "https://localhost/x").await.unwrap_err().to_string();
    assert!(stranger.contains("UnknownIssuer"), "{stranger}");
    // Without TLS there is nothing to be had.
    let stream = TcpStream::connect(up.gateway()).await.unwrap();
    let (mut plain, connection) = conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/x").header("host", "h").body(Full::<Bytes>::default()).unwrap();
    assert!(plain.send_request(request).await.is_err());

    let listener = json!({ "name": "web", "port": 443, "protocol": "HTTPS" });
    let spec = json!({ "gatewayClassName": "windlass", "listeners": [listener] });
    let object = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Gateway",
        "metadata": { "name": "g" }, "spec": spec });
    apply(&client, object).await;
    let said = json!(format!("requests are taken at {url}"));
    says(&client, &gvk("Gateway"), "g", "/status/conditions/1/message", said).await;
}

#[test]
fn a_port_that_another_has() {
    let world = World::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let said = world.run(&["up", "--ephemeral", "--gateway-port", &port]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    let want = format!("error: cannot listen on 127.0.0.1:{port} (--gateway-port): ");
    assert!(said.err.starts_with(&want), "{}", said.err);

    // Somebody else on this machine may have it too.
    let _usual = TcpListener::bind("127.0.0.1:8080");
    let up = world.up(&["--ephemeral"]);
    assert!(up.said[1].ends_with(", as port 8080 is in use"), "{:?}", up.said);
    assert_ne!(up.gateway().port(), 8080);
}
