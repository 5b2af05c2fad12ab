use serde_json::{Value, json};

use super::*;
use crate::gateway::route::Route;

fn filters(filters: Value) -> Vec<Filter> {
    let spec = json!({ "rules": [{ "filters": filters }] });
    let spec = serde_json::from_value(spec).unwrap();
    Route::compile("ns", "r", "", &spec).unwrap().rules.remove(0).filters
}

fn rewrite(type_: &str, field: &str, value: &str) -> Vec<Filter> {
    filters(
        json!([{ "type": "URLRewrite", "urlRewrite": { "path": { "type": type_, field: value } } }]),
    )
}

#[test]
fn a_prefix_is_replaced_without_double_slashes() {
    for (prefix, new, asked, want) in [
        ("/foo", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz/", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz", "/foo", "/xyz"),
        ("/foo", "/xyz", "/foo/", "/xyz/"),
        ("/foo", "/", "/foo/bar", "/bar"),
        ("/foo", "/", "/foo", "/"),
        ("/foo", "", "/foo/bar", "/bar"),
        ("", "/v2", "/foo", "/v2/foo"),
    ] {
        let filters = rewrite("ReplacePrefixMatch", "replacePrefixMatch", new);
        assert_eq!(path(&filters, prefix, asked), want, "{prefix} {new} {asked}");
    }
    let full = rewrite("ReplaceFullPath", "replaceFullPath", "/all");
    assert_eq!(path(&full, "/foo", "/foo/bar"), "/all");
    assert_eq!(path(&[], "/foo", "/foo/bar"), "/foo/bar");
}

#[test]
fn headers_are_set_added_and_removed() {
    let modifier = json!({ "set": [{ "name": "a", "value": "1" }],
        "add": [{ "name": "b", "value": "2" }], "remove": ["C"] });
    let both = filters(json!([
        { "type": "RequestHeaderModifier", "requestHeaderModifier": modifier },
        { "type": "ResponseHeaderModifier", "responseHeaderModifier": { "remove": ["b"] } },
        { "type": "URLRewrite", "urlRewrite": { "hostname": "inner" } },
    ]));
    let mut headers = HeaderMap::new();
    for (name, value) in [("a", "0"), ("b", "0"), ("c", "0"), ("host", "outer")] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    request(&both, &mut headers);
    let values = |name: &str| {
        let all = headers.get_all(name).iter();
        all.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (values("a"), values("b")),
        (vec!["1".to_owned()], vec!["0".to_owned(), "2".into()])
    );
    assert_eq!((values("c"), values("host")), (vec![], vec!["inner".to_owned()]));
    response(&both, &mut headers);
    assert!(headers.get("b").is_none());
}

#[test]
fn redirects_name_a_port_only_where_they_must() {
    let entrance = Entrance { scheme: "http", host: "h.example:8080", port: 8080 };
    for (spec, want) in [
        (json!({}), "http://h.example:8080/p?q=1"),
        (json!({ "scheme": "https" }), "https://h.example/p?q=1"),
        (json!({ "scheme": "https", "port": 8443 }), "https://h.example:8443/p?q=1"),
        (json!({ "hostname": "other", "port": 80 }), "http://other/p?q=1"),
        (
            json!({ "path": { "type": "ReplacePrefixMatch", "replacePrefixMatch": "/new" } }),
            "http://h.example:8080/new?q=1",
        ),
    ] {
        let filters = filters(json!([{ "type": "RequestRedirect", "requestRedirect": spec }]));
        let found = redirect(&filters, "/p", entrance, ("/p", "q=1")).unwrap();
        assert_eq!((found.status.as_u16(), found.location.as_str()), (302, want));
    }
    assert_eq!(redirect(&[], "", entrance, ("/", "")), None);
}

#[test]
fn what_concerns_one_connection_goes_no_further() {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("connection", "close, X-Mine"),
        ("x-mine", "1"),
        ("keep-alive", "1"),
        ("te", "trailers"),
        ("transfer-encoding", "chunked"),
        ("host", "h"),
        ("x-forwarded-for", "10.0.0.1"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    drop_hop_by_hop(&mut headers);
    forward(&mut headers, "127.0.0.1", "http");
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["host", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"]);
    assert_eq!(headers["x-forwarded-for"], "10.0.0.1, 127.0.0.1");
}
