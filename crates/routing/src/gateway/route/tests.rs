use serde_json::json;

use super::*;

fn compile(rule: serde_json::Value) -> Result<Route, String> {
    let spec = serde_json::from_value(json!({ "rules": [rule] })).unwrap();
    Route::compile("ns", "r", "2026-01-01T00:00:00Z", &spec).map_err(|error| error.to_string())
}

#[test]
fn a_rule_without_anything_matches_everything() {
    let route = compile(json!({})).unwrap();
    let rule = &route.rules[0];
    assert!(matches!(&rule.matches[0].path, Pattern::Prefix(prefix) if prefix.is_empty()));
    assert_eq!((rule.request_timeout, rule.backend_timeout), (None, None));
}

#[test]
fn backends_have_their_defaults() {
    let route = compile(json!({ "backendRefs": [{ "name": "a", "port": 80 },
        { "name": "p", "group": "inference.networking.k8s.io", "kind": "InferencePool",
          "namespace": "other", "weight": 0 }] }));
    let backends = &route.unwrap().rules[0].backends;
    assert_eq!((backends[0].kind.as_str(), backends[0].namespace.as_str()), ("Service", "ns"));
    assert_eq!((backends[0].weight, backends[0].port), (1, Some(80)));
    assert_eq!((backends[1].weight, backends[1].namespace.as_str()), (0, "other"));
}

#[test]
fn what_is_not_supported_is_named() {
    for (rule, want) in [
        (
            json!({ "filters": [{ "type": "RequestMirror", "requestMirror": {} }] }),
            "rule 0: filters of type RequestMirror are not supported",
        ),
        (
            json!({ "filters": [{ "type": "URLRewrite" }] }),
            "rule 0: the filter URLRewrite has no settings",
        ),
        (
            json!({ "matches": [{ "path": { "type": "Glob", "value": "/" } }] }),
            "rule 0: paths of type Glob are not supported",
        ),
        (
            json!({ "matches": [{ "path": { "type": "RegularExpression", "value": "(" } }] }),
            "rule 0: \"(\" is no regular expression of a bearable size",
        ),
        (json!({ "timeouts": { "request": "5 s" } }), "rule 0: \"5 s\" is no duration"),
        (
            json!({ "backendRefs": [{ "name": "a", "filters": [{}] }] }),
            "rule 0: filters of a backend are not supported",
        ),
        (
            json!({ "matches": [{ "path": { "type": "Exact", "value": "/a" } }],
                "filters": [{ "type": "URLRewrite", "urlRewrite": { "path": {
                    "type": "ReplacePrefixMatch", "replacePrefixMatch": "/" } } }] }),
            "rule 0: ReplacePrefixMatch needs matches of type PathPrefix",
        ),
        (
            json!({ "filters": [{ "type": "RequestRedirect", "requestRedirect": {
                "statusCode": 200 } }] }),
            "rule 0: 200 is no status of a redirect",
        ),
        (
            json!({ "filters": [{ "type": "RequestHeaderModifier", "requestHeaderModifier": {
                "set": [{ "name": "a b", "value": "" }] } }] }),
            "rule 0: \"a b\" is no name of a header",
        ),
    ] {
        assert_eq!(compile(rule).unwrap_err(), want);
    }
}

#[test]
fn durations_are_read_as_the_gateway_api_writes_them() {
    for (text, want) in [
        ("10s", Some(Duration::from_secs(10))),
        ("1h30m", Some(Duration::from_secs(5400))),
        ("1m500ms", Some(Duration::from_millis(60_500))),
        ("0s", Some(Duration::ZERO)),
        ("", None),
        ("10", None),
        ("s", None),
        ("1.5s", None),
        ("-1s", None),
        ("1µs", None),
        ("99999999999h", None),
    ] {
        assert_eq!(duration(text), want, "{text}");
    }
    assert_eq!(timeout(Some("0s")), Ok(None), "for ever");
}
