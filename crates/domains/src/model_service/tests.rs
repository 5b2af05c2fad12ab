//! The domain as a whole: what follows from a service and the cluster around it.

mod children;
mod properties;
mod readiness;

use serde_json::json;
use windlass_engine::domain::{Access, Domain, Need};
use windlass_engine::plan::{Ownership, Strategy};

use super::fixture::{
    bare_cluster, base, domain, fresh, plan_of, seen, service_with, settled, split_with, written,
};

#[test]
fn the_identity_is_that_of_the_operator_before_us() {
    let identity = domain().identity();
    assert_eq!(identity.controller, "model-operator");
    assert_eq!(identity.name_label, "llm-d.ai/model");
    assert_eq!(identity.finalizer, Some("model.otterscale.io/epp-cluster-rbac"));
}

#[test]
fn m10_every_kind_of_child_is_watched_except_secrets() {
    let service = service_with(json!({
        "routingProxy": {}, "prefill": {},
        "inferencePool": { "endpointPicker": { "replicas": 2 } },
        "monitoring": { "podMonitor": { "enabled": true } },
    }));
    let watches = domain().watches();
    for desired in &fresh(&service).apply {
        let watched =
            watches.iter().any(|watch| watch.kind == desired.kind && watch.access == Access::Write);
        assert_eq!(watched, desired.kind.kind != "Secret", "{}", desired.kind);
    }
    let optional: Vec<_> = watches
        .iter()
        .filter(|watch| watch.need == Need::Optional)
        .map(|watch| watch.kind.kind.to_string())
        .collect();
    assert_eq!(
        optional,
        ["InferencePool", "HTTPRoute", "DestinationRule", "PodMonitor", "ServiceMonitor"]
    );
}

#[test]
fn secrets_are_written_blindly_and_never_read() {
    let rights = domain().rights();
    let secrets = rights.iter().find(|right| right.resource == "secrets").unwrap();
    assert_eq!(secrets.verbs, ["create", "delete"]);
    let plan = fresh(&service_with(json!({ "inferencePool": { "endpointPicker": {} } })));
    let secret = plan.apply.iter().find(|desired| desired.kind.kind == "Secret").unwrap();
    assert_eq!((secret.ownership, secret.strategy), (Ownership::Owned, Strategy::CreateBlind));
}

#[test]
fn a_service_with_both_roles_stays_within_its_budget() {
    // One request each, one for the finalizer, two for the status, one event.
    assert_eq!(written(&fresh(&split_with(json!({})))).len(), 13);
}

#[test]
fn m11_without_the_optional_apis_the_rest_is_made() {
    assert_eq!(
        written(&plan_of(&base(), bare_cluster())),
        [
            "ServiceAccount qwen3-32b-epp",
            "Role qwen3-32b-epp",
            "RoleBinding qwen3-32b-epp",
            "ConfigMap qwen3-32b-epp-config",
            "Deployment qwen3-32b-decode",
            "Deployment qwen3-32b-epp",
            "Service qwen3-32b-epp",
        ]
    );
}

#[test]
fn a_settled_service_asks_for_the_same_again_and_for_no_removal() {
    for service in [base(), split_with(json!({}))] {
        let plan = plan_of(&seen(service.clone()), settled(&service));
        assert_eq!(plan.delete, []);
        assert_eq!(plan.requeue_after, None);
        let names = |plan: &windlass_engine::plan::Plan| written(plan);
        assert_eq!(names(&plan), names(&fresh(&service)));
        for (again, first) in plan.apply.iter().zip(&fresh(&service).apply) {
            assert_eq!(again, first, "{} {}", first.kind, first.key);
        }
    }
}
