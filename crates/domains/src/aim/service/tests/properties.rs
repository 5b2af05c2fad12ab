//! What holds for any service.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_api::aim::service::AimService;
use windlass_engine::plan::{Desired, Plan};

use crate::aim::service::fixture::{
    TEMPLATE, available, base, catalogue, cluster_image, cluster_template, config, made,
    overriding, routed, see, service_with, template, written,
};

fn a_text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z]{1,6}", "[ -~]{0,12}", "\\PC{0,8}"]
}

fn maybe(text: impl Strategy<Value = String>) -> impl Strategy<Value = Value> {
    prop::option::of(text).prop_map(|text| json!(text))
}

fn a_routing() -> impl Strategy<Value = Value> {
    let gateway = prop::option::of((a_text(), maybe(a_text()), prop::option::of(any::<i32>())));
    let template = prop_oneof![Just("/{.metadata.name}".to_owned()), a_text()];
    prop::option::of((any::<bool>(), gateway, maybe(template))).prop_map(|routing| {
        routing.map_or(Value::Null, |(enabled, gateway, template)| {
            let gateway = gateway.map(|(name, namespace, port)| {
                json!({ "name": name, "namespace": namespace, "port": port })
            });
            json!({ "enabled": enabled, "gatewayRef": gateway, "routeTemplate": template })
        })
    })
}

fn overrides() -> impl Strategy<Value = Value> {
    let gpus = prop::option::of((any::<i32>(), a_text()));
    prop::option::of((maybe(a_text()), maybe(a_text()), gpus)).prop_map(|given| {
        given.map_or(Value::Null, |(metric, precision, gpus)| {
            let gpus = gpus.map(|(count, model)| json!({ "count": count, "model": model }));
            json!({ "metric": metric, "precision": precision, "gpuSelector": gpus })
        })
    })
}

fn a_service() -> impl Strategy<Value = AimService> {
    let reference = prop_oneof![Just(TEMPLATE.to_owned()), a_text()];
    let env = prop::collection::vec(("[A-B]", a_text()), 0..4);
    let secrets = prop::collection::vec("[a-b]", 0..3);
    let amounts = prop::option::of(("cpu|memory|amd.com/gpu", a_text()));
    (
        (a_text(), maybe(reference), any::<bool>(), prop::option::of(any::<i32>())),
        (maybe(a_text()), a_routing(), overrides()),
        (env, secrets, amounts),
    )
        .prop_map(|(what, how, (env, secrets, amounts))| {
            let (image, reference, cache, replicas) = what;
            let (config, routing, overrides) = how;
            let env: Vec<Value> =
                env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
            let secrets: Vec<Value> = secrets.iter().map(|name| json!({ "name": name })).collect();
            let resources = amounts.map(|(key, value)| json!({ "limits": { key: value } }));
            service_with(json!({
                "aimImageName": image, "templateRef": reference, "cacheModel": cache,
                "replicas": replicas, "runtimeConfigName": config, "routing": routing,
                "overrides": overrides, "env": env, "imagePullSecrets": secrets,
                "resources": resources,
            }))
        })
}

fn surroundings() -> Vec<Value> {
    let routing = json!({ "routing": { "enabled": true, "gatewayRef": { "name": "edge" } } });
    [catalogue(), vec![config("default", routing)]].concat()
}

proptest! {
    #[test]
    fn any_service_has_a_plan_and_a_status(service in a_service()) {
        for objects in [vec![], surroundings()] {
            let seen = see(&service, objects.clone());
            prop_assert_eq!(&seen.plan, &see(&service, objects).plan, "the same again");
            prop_assert!(seen.plan.rejected.is_empty());
            prop_assert!((6..=7).contains(&seen.conditions.len()));
            let words = ["Pending", "Starting", "Running", "Failed", "Degraded"];
            prop_assert!(words.contains(&seen.state()));
        }
    }

    #[test]
    fn what_is_keyed_by_name_names_nothing_twice(service in a_service()) {
        for desired in see(&service, surroundings()).plan.apply {
            let predictor = &desired.body["spec"]["predictor"];
            let template = &desired.body["spec"];
            for list in [&predictor["model"]["env"], &predictor["imagePullSecrets"], &template["env"]]
            {
                let names: Vec<String> = list.as_array().into_iter().flatten()
                    .map(|item| item["name"].to_string()).collect();
                let mut unique = names.clone();
                unique.sort();
                unique.dedup();
                prop_assert_eq!(unique.len(), names.len());
            }
        }
    }

    #[test]
    fn labels_are_values_that_the_api_accepts(name in "[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?") {
        let template = available(cluster_template(&name, json!({})));
        let objects = vec![cluster_image(""), template];
        let plan = see(&service_with(json!({ "templateRef": name })), objects).plan;
        for value in plan.apply[0].body["metadata"]["labels"].as_object().unwrap().values() {
            prop_assert!((1..=63).contains(&value.as_str().unwrap().len()));
        }
    }

    #[test]
    fn what_was_just_made_changes_no_children(service in a_service()) {
        let first = see(&service, surroundings()).plan;
        let second = see(&service, [surroundings(), made(&first)].concat()).plan;
        let children = |plan: &Plan| {
            let is_child = |desired: &&Desired| desired.kind.kind != "AIMServiceTemplate";
            plan.apply.iter().filter(is_child).cloned().collect::<Vec<_>>()
        };
        prop_assert_eq!(children(&first), children(&second));
        prop_assert!(second.delete.is_empty());
        prop_assert!(!written(&second).iter().any(|line| line.starts_with("AIMServiceTemplate")));
    }
}

/// Otherwise each pass that writes would have to compare everything once more.
#[test]
fn what_was_just_made_changes_no_plan() {
    for service in [base(), routed()] {
        let first = see(&service, catalogue()).plan;
        let second = see(&service, [catalogue(), made(&first)].concat()).plan;
        assert_eq!(first, second);
    }
}

#[test]
fn a_derived_template_is_made_once() {
    let service = overriding(json!({ "precision": "fp8" }));
    let objects = || vec![cluster_image(""), template(TEMPLATE, json!({}))];
    let first = see(&service, objects()).plan;
    assert_eq!(written(&first).len(), 1);
    let second = see(&service, [objects(), made(&first)].concat()).plan;
    assert_eq!(written(&second), [""; 0]);
}
