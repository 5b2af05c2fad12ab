use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn route(name: &str, created: &str, spec: Value) -> Arc<Route> {
    let spec = serde_json::from_value(spec).unwrap();
    Arc::new(Route::compile("ns", name, created, &spec).unwrap())
}

fn rule(matches: Value) -> Value {
    json!({ "matches": [matches] })
}

fn path(type_: &str, value: &str) -> Value {
    json!({ "path": { "type": type_, "value": value } })
}

/// `route/rule` that a GET of this URL meets.
fn find(table: &Table, url: &str, headers: &[(&'static str, &'static str)]) -> String {
    let (host, rest) =
        url.split_once('/').map_or((url, String::new()), |(host, rest)| (host, format!("/{rest}")));
    let (path, query) = rest.split_once('?').unwrap_or((&rest, ""));
    let pairs = headers.iter().map(|(name, value)| {
        (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
    });
    let headers = pairs.collect();
    let asked = Asked { host, method: &Method::GET, path, query, headers: &headers };
    let met = table.find(&asked);
    met.map_or_else(|| "none".to_owned(), |met| format!("{}/{}", met.route.name, met.rule))
}

#[test]
fn a_prefix_is_of_whole_elements() {
    let prefix = |prefix: &str| {
        let pattern = Pattern::Prefix(prefix.trim_end_matches('/').to_owned());
        move |path: &str| pattern.matches(path)
    };
    for (path, want) in
        [("/a", true), ("/a/", true), ("/a/b", true), ("/ab", false), ("/", false), ("/A", false)]
    {
        assert_eq!(prefix("/a")(path), want, "{path}");
        assert_eq!(prefix("/a/")(path), want, "{path}");
    }
    assert!(prefix("/")("/anything"));
}

#[test]
fn the_most_particular_host_is_chosen() {
    let named = |name: &str, hosts: Value| {
        route(name, "2026", json!({ "hostnames": hosts, "rules": [{}] }))
    };
    let table = Table::new(vec![
        named("any", json!([])),
        named("star", json!(["*.example.com"])),
        named("longer", json!(["*.api.example.com"])),
        named("exact", json!(["chat.api.example.com"])),
    ]);
    for (host, want) in [
        ("chat.api.example.com", "exact/0"),
        ("CHAT.api.example.com:8080", "exact/0"),
        ("chat.api.example.com.", "exact/0"),
        ("other.api.example.com", "longer/0"),
        ("a.b.example.com", "star/0"),
        ("example.com", "any/0"),
        ("127.0.0.1:8080", "any/0"),
        ("[::1]:8080", "any/0"),
    ] {
        assert_eq!(find(&table, &format!("{host}/"), &[]), want, "{host}");
    }
}

#[test]
fn the_most_particular_match_is_chosen() {
    let header = json!({ "path": { "type": "PathPrefix", "value": "/v1" },
        "headers": [{ "name": "X-Model", "value": "a" }] });
    let two = json!({ "path": { "type": "PathPrefix", "value": "/v1" },
        "headers": [{ "name": "x-model", "value": "a" },
            { "name": "x-tier", "type": "RegularExpression", "value": "g.*" }] });
    let query = json!({ "path": { "type": "PathPrefix", "value": "/v1" },
        "queryParams": [{ "name": "m", "value": "a b" }] });
    let method = json!({ "path": { "type": "PathPrefix", "value": "/v1" }, "method": "GET" });
    let table = Table::new(vec![route(
        "r",
        "2026",
        json!({ "rules": [
            rule(path("RegularExpression", "/v1/.*")),
            rule(path("PathPrefix", "/")),
            rule(path("PathPrefix", "/v1/chat")),
            rule(path("Exact", "/v1/chat/completions")),
            rule(header),
            rule(two),
            rule(query),
            rule(json!({ "path": { "type": "PathPrefix", "value": "/post" }, "method": "POST" })),
        ] }),
    )]);
    for (url, headers, want) in [
        ("h/v1/chat/completions", &[][..], "r/3"),
        ("h/v1/chat/x", &[], "r/2"),
        ("h/v1/x", &[], "r/1"),
        ("h/v1/x", &[("x-model", "a")], "r/4"),
        ("h/v1/x", &[("x-model", "A")], "r/1"),
        ("h/v1/x", &[("x-model", "a"), ("x-tier", "gold")], "r/5"),
        ("h/v1/x", &[("x-model", "a"), ("x-tier", "a gold")], "r/4"),
        ("h/v1/x?m=a+b", &[], "r/6"),
        ("h/v1/x?m=a%20b&m=c", &[], "r/6"),
        ("h/v1/x?m=c&m=a%20b", &[], "r/1"),
        ("h/post", &[], "r/1"),
    ] {
        assert_eq!(find(&table, url, headers), want, "{url} {headers:?}");
    }
    let by_method = Table::new(vec![
        route(
            "headers",
            "2025",
            json!({ "rules": [rule(json!({ "path": { "value": "/v1" },
            "headers": [{ "name": "x-model", "value": "a" }] }))] }),
        ),
        route("method", "2026", json!({ "rules": [rule(method)] })),
    ]);
    assert_eq!(find(&by_method, "h/v1", &[("x-model", "a")]), "method/0");
    assert_eq!(find(&by_method, "h/v2", &[]), "none");
}

#[test]
fn of_equal_matches_the_oldest_is_chosen_then_the_first_by_name_then_the_first_rule() {
    let all = json!({ "rules": [{}, {}] });
    let newer = route("a", "2026-01-02T00:00:00Z", all.clone());
    let older = route("z", "2026-01-01T00:00:00Z", all.clone());
    let twin = route("y", "2026-01-01T00:00:00Z", all);
    assert_eq!(find(&Table::new(vec![newer.clone(), older.clone()]), "h/", &[]), "z/0");
    assert_eq!(find(&Table::new(vec![newer, older, twin]), "h/", &[]), "y/0");
}

#[test]
fn weights_are_shares() {
    let backend = |name: &str, weight| Backend {
        group: String::new(),
        kind: "Service".to_owned(),
        namespace: "ns".to_owned(),
        name: name.to_owned(),
        port: Some(80),
        weight,
    };
    let backends = [backend("never", 0), backend("a", 3), backend("b", 1)];
    let chosen: Vec<&str> =
        (0..8).map(|n| by_weight(&backends, n).unwrap().name.as_str()).collect();
    assert_eq!(chosen, ["a", "a", "a", "b", "a", "a", "a", "b"]);
    assert_eq!(by_weight(&backends[..1], 7), None);
    assert_eq!(by_weight(&[], 7), None);
}

proptest! {
    #[test]
    fn any_request_is_answered(
        host in ".{0,40}",
        path in ".{0,60}",
        query in ".{0,60}",
    ) {
        let table = Table::new(vec![route("r", "2026", json!({ "hostnames": ["*.a"], "rules": [
            rule(json!({ "path": { "type": "RegularExpression", "value": "/(a+)+b" },
                "queryParams": [{ "name": "x", "value": "1" }] })),
        ] }))]);
        let asked = Asked { host: &host, method: &Method::GET, path: &path, query: &query,
            headers: &HeaderMap::new() };
        let _ = table.find(&asked);
    }
}
