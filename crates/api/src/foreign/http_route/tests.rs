use serde_json::json;

use super::*;

#[test]
fn a_prefix_can_be_taken_off_and_a_backend_named_in_full() {
    let rule = Rule {
        matches: vec![Match {
            path: Some(PathMatch {
                type_: "PathPrefix".to_owned(),
                value: "/research/chat".to_owned(),
            }),
            ..Default::default()
        }],
        filters: vec![Filter {
            type_: "URLRewrite".to_owned(),
            url_rewrite: Some(UrlRewrite {
                path: Some(PathModifier {
                    type_: "ReplacePrefixMatch".to_owned(),
                    replace_prefix_match: Some("/".to_owned()),
                }),
            }),
        }],
        backend_refs: vec![BackendRef {
            kind: Some("Service".to_owned()),
            name: "chat-predictor".to_owned(),
            namespace: Some("research".to_owned()),
            port: Some(80),
            ..Default::default()
        }],
        ..Default::default()
    };
    let written = json!({
        "matches": [{ "path": { "type": "PathPrefix", "value": "/research/chat" } }],
        "filters": [{
            "type": "URLRewrite",
            "urlRewrite": {
                "path": { "type": "ReplacePrefixMatch", "replacePrefixMatch": "/" },
            },
        }],
        "backendRefs": [{
            "kind": "Service",
            "name": "chat-predictor",
            "namespace": "research",
            "port": 80,
        }],
    });
    assert_eq!(serde_json::to_value(&rule).unwrap(), written);
    assert_eq!(serde_json::from_value::<Rule>(written).unwrap(), rule);
}

#[test]
fn filters_of_others_are_readable() {
    let rule = json!({
        "filters": [
            { "type": "RequestMirror", "requestMirror": { "backendRef": { "name": "copy" } } },
            { "type": "URLRewrite", "urlRewrite": { "hostname": "a.example.org" } },
        ],
    });
    let read: Rule = serde_json::from_value(rule).unwrap();
    assert_eq!(read.filters[0].url_rewrite, None);
    assert_eq!(read.filters[1].url_rewrite, Some(UrlRewrite::default()));
}
