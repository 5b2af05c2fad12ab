use super::*;

fn all() -> Vec<PolicyRule> {
    [rules(), cluster_rules(), own_rules()].concat()
}

#[test]
fn no_right_is_a_wildcard() {
    for rule in all() {
        let parts =
            [rule.api_groups, rule.resources, Some(rule.verbs)].into_iter().flatten().flatten();
        for part in parts {
            assert!(!part.contains('*'), "{part}");
        }
    }
}

#[test]
fn secrets_cannot_be_read() {
    for rule in all() {
        let resources = rule.resources.unwrap_or_default();
        if resources.iter().any(|resource| resource == "secrets") {
            // A patch is answered with the content, so it reads too.
            assert_eq!(rule.verbs, ["create", "delete"], "{resources:?}");
        }
    }
}

#[test]
fn every_written_kind_may_be_created_and_patched() {
    let may = |resource: &str, verb: &str| {
        rules().into_iter().any(|rule| {
            rule.resources.iter().flatten().any(|known| known == resource)
                && rule.verbs.iter().any(|known| known == verb)
        })
    };
    for resource in ["deployments", "services", "horizontalpodautoscalers", "httproutes"] {
        for verb in WRITE {
            assert!(may(resource, verb), "{verb} {resource}");
        }
    }
    assert!(may("zerfooinferenceservices/status", "patch"));
    assert!(!may("zerfooinferenceservices", "patch"));
    assert!(!may("pods", "create"));
}
