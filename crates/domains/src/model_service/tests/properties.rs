//! What holds for any service.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_engine::domain::Domain;
use windlass_engine::fetch::Fetched;

use crate::model_service::fetch::Answers;
use crate::model_service::fixture::{
    Pods, account, domain, empty_cluster, fresh, observe, plan_of, settled, with_pods,
};

fn a_name() -> impl Strategy<Value = String> {
    "[a-z0-9]([a-z0-9.-]{0,70}[a-z0-9])?"
}

fn a_role() -> impl Strategy<Value = Value> {
    let size = prop_oneof![Just(0), Just(1), 2..5_i32, Just(i32::MAX)];
    (size.clone(), prop::option::of((size.clone(), size.clone(), size)), any::<bool>()).prop_map(
        |(replicas, sizes, shm)| {
            let sizes = sizes.map(|(tensor, data, local)| {
                json!({ "tensor": tensor, "data": data, "dataLocal": local })
            });
            let mut role = json!({ "replicas": replicas });
            if let Some(sizes) = sizes {
                role["parallelism"] = sizes;
            }
            if shm {
                role["sharedMemory"] = json!({});
            }
            role
        },
    )
}

fn a_service() -> impl Strategy<Value = ModelService> {
    let port = prop_oneof![Just(8000), Just(8200), Just(9002), Just(9090), 1..65536_i32];
    let secrets = prop::collection::vec("[a-c]", 0..3);
    let env = prop::collection::vec(("[A-B]", "[0-9a-z]{0,5}"), 0..4);
    (
        a_name(),
        a_role(),
        prop::option::of(a_role()),
        prop::option::of(port.clone()),
        prop::option::of((port.clone(), 0..4_i32)),
        (port, secrets, env),
        prop_oneof![Just("nvidia"), Just("cpu"), Just("google")],
    )
        .prop_map(|(name, decode, prefill, proxy, pool, (port, secrets, env), accelerator)| {
            let secrets: Vec<Value> =
                secrets.into_iter().map(|name| json!({ "name": name })).collect();
            let env: Vec<Value> = env
                .into_iter()
                .map(|(name, value)| json!({ "name": name, "value": value }))
                .collect();
            let mut spec = json!({
                "model": { "name": "m", "image": "r/m:1", "imagePullSecrets": secrets },
                "engine": { "port": port, "env": env },
                "accelerator": { "type": accelerator },
                "decode": decode,
            });
            for (key, value) in [
                ("prefill", prefill),
                ("routingProxy", proxy.map(|port| json!({ "targetPort": port }))),
                (
                    "inferencePool",
                    pool.map(|(port, replicas)| {
                        json!({ "endpointPicker": { "port": port, "replicas": replicas } })
                    }),
                ),
            ] {
                if let Some(value) = value {
                    spec[key] = value;
                }
            }
            serde_json::from_value(json!({
                "apiVersion": "model.otterscale.io/v1alpha1",
                "kind": "ModelService",
                "metadata": { "name": name, "namespace": "ml", "generation": 1, "uid": "u" },
                "spec": spec,
            }))
            .unwrap()
        })
}

/// Which children a service makes in an empty cluster.
fn children(service: &ModelService) -> BTreeSet<(String, String)> {
    let plan = fresh(service);
    plan.apply.iter().map(|d| (d.kind.to_string(), d.key.to_string())).collect()
}

/// The objects of a plan whose keyed lists hold an entry twice, which apply refuses.
fn doubled(value: &Value) -> bool {
    match value {
        Value::Array(items) => {
            let names: Vec<_> = items.iter().filter_map(|item| item.get("name")).collect();
            let unique: BTreeSet<_> = names.iter().map(|name| name.to_string()).collect();
            let keyed = names.len() == items.len() && !items.is_empty();
            (keyed && unique.len() != names.len()) || items.iter().any(doubled)
        }
        Value::Object(map) => map.values().any(doubled),
        _ => false,
    }
}

proptest! {
    #[test]
    fn any_service_has_a_plan_and_a_status(service in a_service(), ready in 0..3_i32) {
        let observed = observe(&service, empty_cluster());
        let plan = domain().plan(&service, &observed);
        prop_assert_eq!(&plan, &fresh(&service), "the same again");
        prop_assert!(plan.rejected.is_empty());
        for desired in &plan.apply {
            prop_assert!(!doubled(&desired.body), "{} {}", desired.kind, desired.key);
        }
        domain().health(&service, &observed);
        // And in the cluster that came of it.
        let deployment = |suffix: &str| {
            let made = plan.apply.iter().find(|desired| {
                desired.kind.kind == "Deployment" && desired.key.name.ends_with(suffix)
            });
            made.map_or(Fetched::Missing, |desired| {
                let deployment = serde_json::from_value(desired.body.clone()).unwrap();
                Fetched::Found(with_pods(deployment, Pods::ready(ready, 2)))
            })
        };
        let cluster = Answers {
            decode: deployment("-decode"),
            prefill: deployment("-prefill"),
            epp: deployment("-epp"),
            epp_account: account(&plan).map_or(Fetched::Missing, Fetched::Found),
            ..empty_cluster()
        };
        let again = plan_of(&service, cluster.clone());
        prop_assert!(again.delete.is_empty() && again.rejected.is_empty());
        domain().health(&service, &observe(&service, cluster));
    }

    #[test]
    fn names_of_children_fit(service in a_service()) {
        for (kind, key) in children(&service) {
            let name = key.rsplit('/').next().unwrap();
            let limit = if kind == "Service" { 63 } else { 253 };
            prop_assert!(name.len() <= limit, "{kind} {name}");
        }
        for desired in fresh(&service).apply {
            let labels = desired.body["metadata"]["labels"].as_object().unwrap().clone();
            for (key, value) in labels {
                prop_assert!(value.as_str().unwrap().len() <= 63, "{key} {value}");
            }
        }
    }

    #[test]
    fn two_services_of_a_namespace_share_no_child_or_say_so(
        first in a_service(),
        second in a_service(),
    ) {
        let (a, b) = (&first.metadata.name, &second.metadata.name);
        prop_assume!(a != b);
        let shared: Vec<_> = children(&first).intersection(&children(&second)).cloned().collect();
        let names = |service| crate::model_service::names::Names::of(service, "test");
        let same_picker = names(&first).epp() == names(&second).epp();
        prop_assert!(shared.is_empty() || same_picker, "{shared:?}");
    }
}

#[test]
fn a_settled_cluster_is_left_as_it_is() {
    let service = crate::model_service::fixture::split_with(json!({}));
    let plan = plan_of(&crate::model_service::fixture::seen(service.clone()), settled(&service));
    assert_eq!(plan.apply, fresh(&service).apply);
}
