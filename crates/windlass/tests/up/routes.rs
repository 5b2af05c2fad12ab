//! What routes can say, one by one, and what is said of them.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use http_body_util::Full;
use hyper::{Method, Request, body::Incoming};
use kube::Client;
use serde_json::{Value, json};

use crate::{
    backend::{anywhere, apply, named, route, said, serve, service, text},
    gateway::{answers, gvk, says, up},
    running::{Up, World},
    wait::until,
};

fn parents() -> Value {
    json!([{ "name": "any" }])
}

fn to(name: &str) -> Value {
    json!([{ "name": name, "port": 80 }])
}

/// One that matches so and goes to the Service of the name.
fn rule(name: &str, matches: Value) -> Value {
    json!({ "matches": [matches], "backendRefs": to(name) })
}

fn path(kind: &str, value: &str) -> Value {
    json!({ "path": { "type": kind, "value": value } })
}

async fn ask(up: &Up, method: &Method, url: &str, header: Option<(&str, &str)>) -> (u16, String) {
    let (host, path) = url.split_once('/').unwrap();
    let mut request = Request::builder().method(method).uri(format!("/{path}"));
    for (name, value) in [("host", host)].into_iter().chain(header) {
        request = request.header(name, value);
    }
    text(up.ask(request.body(Full::default()).unwrap()).await).await
}

#[tokio::test]
async fn each_way_to_match_a_request_leads_to_its_own_backend() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    let names = [
        "exact", "prefix", "longer", "never", "header", "likeness", "method", "query", "rest",
        "pattern", "wild", "deep", "any",
    ];
    for name in names {
        service(&client, name, &[named(name).await]).await;
    }
    let header = |kind: &str, value: &str| json!({ "headers": [{ "type": kind, "name": "X-Tier", "value": value }] });
    let rules = json!([
        rule("exact", path("Exact", "/p/x")),
        rule("prefix", path("PathPrefix", "/p")),
        rule("longer", path("PathPrefix", "/p/long")),
        rule("never", path("RegularExpression", "/v[0-9]+/.*")),
        rule("header", header("Exact", "gold")),
        rule("likeness", header("RegularExpression", "sil.*")),
        rule("method", json!({ "method": "DELETE" })),
        rule("query", json!({ "queryParams": [{ "name": "tenant", "value": "a b" }] })),
        { "backendRefs": to("rest") },
    ]);
    let spec = json!({ "parentRefs": parents(), "hostnames": ["h.example"], "rules": rules });
    serves(&client, "r", spec).await;
    let rules = json!([rule("pattern", path("RegularExpression", "/v[0-9]+/.*"))]);
    let spec = json!({ "parentRefs": parents(), "hostnames": ["v.example"], "rules": rules });
    serves(&client, "pattern", spec).await;
    for (name, hostnames) in
        [("wild", json!(["*.example"])), ("deep", json!(["*.deep.example"])), ("any", json!([]))]
    {
        let spec = json!({ "parentRefs": parents(), "hostnames": hostnames,
            "rules": [{ "backendRefs": to(name) }] });
        serves(&client, name, spec).await;
    }
    let (get, delete) = (&Method::GET, &Method::DELETE);
    for (method, url, header, want) in [
        (get, "h.example/p/x", None, "exact"),
        (get, "h.example/p/x/y", None, "prefix"),
        (get, "h.example/p", None, "prefix"),
        (get, "h.example/px", None, "rest"),
        (get, "h.example/p/long/er", None, "longer"),
        (get, "h.example/p/longer", None, "prefix"),
        (get, "v.example/v12/models", None, "pattern"),
        (get, "v.example/a/v12/models", None, "wild"),
        // Any prefix says more than a pattern does.
        (get, "h.example/v12/models", None, "rest"),
        (get, "h.example/", Some(("x-tier", "gold")), "header"),
        (get, "h.example/", Some(("x-tier", "golden")), "rest"),
        (get, "h.example/", Some(("X-TIER", "silver")), "likeness"),
        // A path says more than a header does.
        (get, "h.example/p", Some(("x-tier", "gold")), "prefix"),
        (delete, "h.example/", None, "method"),
        (get, "h.example/?tenant=a+b", None, "query"),
        (get, "h.example/?tenant=a", None, "rest"),
        (get, "H.Example:8080/p/x", None, "exact"),
        (get, "other.example/p/x", None, "wild"),
        (get, "x.deep.example/", None, "deep"),
        (get, "deep.example/", None, "wild"),
        (get, "example/", None, "any"),
    ] {
        let (code, said) = ask(&up, method, url, header).await;
        let name = said.split(' ').next();
        assert_eq!((code, name), (200, Some(want)), "{method} {url} {header:?}");
    }
}

/// Until it is in effect with all its backends.
async fn serves(client: &Client, name: &str, spec: Value) {
    apply(client, route(name, spec)).await;
    for condition in 0..2 {
        let what = format!("/status/parents/0/conditions/{condition}/status");
        says(client, &gvk("HTTPRoute"), name, &what, json!("True")).await;
    }
}

/// Says what has come of the request: address, and the headers that begin with `x-a`.
async fn mirror() -> SocketAddr {
    let answer = |request: Request<Incoming>| async move {
        let named = |name: &str| {
            let value = request.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let mut response = said(format!(
            "{} {} {}{} {}",
            named("host"),
            request.uri(),
            named("x-a"),
            named("x-drop"),
            named("x-forwarded-host"),
        ));
        response.headers_mut().insert("x-inner", "secret".parse().unwrap());
        response
    };
    serve(anywhere(), answer).await
}

#[tokio::test]
async fn requests_and_answers_are_changed_as_filters_say() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    service(&client, "m", &[mirror().await]).await;
    let changed = |from: &str, filters: Value| json!({ "matches": [path("PathPrefix", from)], "filters": filters, "backendRefs": to("m") });
    let rewrite = |change: Value| json!([{ "type": "URLRewrite", "urlRewrite": change }]);
    let prefix = |with: &str| {
        rewrite(json!({ "path": { "type": "ReplacePrefixMatch", "replacePrefixMatch": with } }))
    };
    let whole = json!({ "type": "ReplaceFullPath", "replaceFullPath": "/one" });
    let modify = json!([
        { "type": "RequestHeaderModifier", "requestHeaderModifier": {
            "set": [{ "name": "X-A", "value": "1" }], "remove": ["x-drop"] } },
        { "type": "ResponseHeaderModifier", "responseHeaderModifier": {
            "add": [{ "name": "x-outer", "value": "2" }], "remove": ["x-inner"] } },
    ]);
    let redirect = json!([{ "type": "RequestRedirect", "requestRedirect": {
        "scheme": "https", "hostname": "new.example", "statusCode": 301 } }]);
    let moved = json!({ "matches": [path("PathPrefix", "/moved")], "filters": redirect });
    let rules = json!([
        changed("/team/chat", prefix("/")),
        changed("/old", prefix("/new/api")),
        changed("/whole", rewrite(json!({ "path": whole }))),
        changed("/host", rewrite(json!({ "hostname": "inner.example" }))),
        changed("/headers", modify),
        moved,
    ]);
    let spec = json!({ "parentRefs": parents(), "hostnames": ["h"], "rules": rules });
    serves(&client, "r", spec).await;
    for (url, want) in [
        ("h/team/chat", "h /  h"),
        ("h/team/chat/v1/models?a=b", "h /v1/models?a=b  h"),
        ("h/old/x", "h /new/api/x  h"),
        ("h/whole/x?a=b", "h /one?a=b  h"),
        ("h/host/x", "inner.example /host/x  h"),
        ("h/headers", "h /headers 1 h"),
    ] {
        let asked = ask(&up, &Method::GET, url, Some(("x-drop", ""))).await;
        assert_eq!(asked, (200, want.to_owned()), "{url}");
    }
    let get = |path: &str| {
        let request = Request::get(path).header("host", "h").header("x-drop", "0");
        up.ask(request.body(Full::default()).unwrap())
    };
    let answer = get("/headers").await;
    assert_eq!(
        (answer.headers().get("x-inner"), &answer.headers()["x-outer"]),
        (None, &"2".parse().unwrap())
    );
    assert_eq!(text(answer).await, (200, "h /headers 1 h".to_owned()), "without x-drop");
    let answer = get("/moved/x?a=b").await;
    let location = answer.headers()["location"].to_str().unwrap();
    assert_eq!((answer.status().as_u16(), location), (301, "https://new.example/moved/x?a=b"));
}

#[tokio::test]
async fn a_filter_that_is_not_supported_is_told_and_harms_no_other_route() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    service(&client, "a", &[named("a").await]).await;
    let spec = |host: &str, filters: Value| {
        json!({ "parentRefs": parents(), "hostnames": [host],
            "rules": [{ "filters": filters, "backendRefs": to("a") }] })
    };
    serves(&client, "plain", spec("plain", json!([]))).await;
    let mirror =
        json!([{ "type": "RequestMirror", "requestMirror": { "backendRef": to("a")[0] } }]);
    apply(&client, route("odd", spec("odd", mirror))).await;
    let kind = gvk("HTTPRoute");
    let accepted = |what: &str| format!("/status/parents/0/conditions/0/{what}");
    says(&client, &kind, "odd", &accepted("type"), json!("Accepted")).await;
    says(&client, &kind, "odd", &accepted("status"), json!("False")).await;
    says(&client, &kind, "odd", &accepted("reason"), json!("UnsupportedValue")).await;
    says(&client, &kind, "odd", &accepted("observedGeneration"), json!(1)).await;
    let why = "rule 0: filters of type RequestMirror are not supported";
    says(&client, &kind, "odd", &accepted("message"), json!(why)).await;
    assert_eq!(up.get("odd", "/").await, (404, "no route matches".to_owned()));
    assert_eq!(up.get("plain", "/").await, (200, "a plain /".to_owned()));
    serves(&client, "odd", spec("odd", json!([]))).await;
    answers(&up, "odd", "/", (200, "a odd /")).await;
}

/// A definition whose objects cannot have the status that the gateway writes.
fn stubborn_pools() -> Value {
    let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let status = json!({ "type": "object", "properties": { "parents": { "type": "string" } } });
    let schema = json!({ "type": "object", "properties": { "spec": free, "status": status } });
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "inferencepools.inference.networking.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "unapproved" } },
        "spec": { "group": "inference.networking.k8s.io", "scope": "Namespaced",
            "names": { "kind": "InferencePool", "plural": "inferencepools" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} }, "schema": { "openAPIV3Schema": schema } }] } })
}

#[tokio::test]
async fn one_status_that_is_refused_delays_no_other() {
    let world = World::new();
    let up = up(&world);
    let client = up.client().await;
    apply(&client, stubborn_pools()).await;
    let pool = json!({ "apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
        "metadata": { "name": "p" }, "spec": { "selector": { "matchLabels": { "app": "m" } },
            "targetPorts": [{ "number": 8000 }] } });
    apply(&client, pool).await;
    let backend =
        json!([{ "group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "p" }]);
    let spec = json!({ "parentRefs": parents(), "rules": [{ "backendRefs": backend }] });
    apply(&client, route("pooled", spec)).await;
    let refusals = || up.log().matches("cannot write a status").count();
    until("refusal", || async { if refusals() > 0 { Ok(()) } else { Err(up.log()) } }).await;

    service(&client, "a", &[named("a").await]).await;
    let started = Instant::now();
    for at in 0..5 {
        let spec = json!({ "parentRefs": parents(), "hostnames": [format!("h{at}")],
            "rules": [{ "backendRefs": to("a") }] });
        serves(&client, &format!("r{at}"), spec).await;
    }
    // If each waited for the next try of what was refused, that would be five times ten seconds.
    let took = started.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    let tries = refusals();
    assert!(tries <= 1 + took.as_secs() as usize / 10 + 1, "{tries} in {took:?}");
}
