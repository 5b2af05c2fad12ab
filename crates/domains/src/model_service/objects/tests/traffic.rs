//! What leads requests to the pods, and what watches them.

use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_engine::plan::Strategy;

use crate::model_service::fixture::{
    base, body, empty_cluster, fresh, has, named, plan_as, service_with, settings,
};
use crate::model_service::{Provider, Settings};

const EPP: &str = "qwen3-32b-epp";

fn route(service: &ModelService) -> Value {
    body(&fresh(service), "HTTPRoute", "qwen3-32b")["spec"].clone()
}

#[test]
fn nobody_else_has_a_say_in_what_the_pool_selects() {
    let plan = fresh(&base());
    let pool = plan.apply.iter().find(|desired| desired.kind.kind == "InferencePool").unwrap();
    let Strategy::ApplyWhole(at) = pool.strategy else { panic!("{:?}", pool.strategy) };
    assert!(pool.body.pointer(at).is_some_and(|labels| labels["llm-d.ai/model"] == "qwen3-32b"));
}

#[test]
fn s01_the_pool_of_the_base_fails_closed() {
    let plan = fresh(&base());
    let pool = &body(&plan, "InferencePool", "qwen3-32b")["spec"];
    assert_eq!(
        pool["endpointPickerRef"],
        json!({
            "group": "", "kind": "Service", "name": EPP, "port": { "number": 9002 },
            "failureMode": "FailClose",
        })
    );
    assert_eq!(
        pool["selector"]["matchLabels"],
        json!({
            "app.kubernetes.io/name": "qwen3-32b",
            "app.kubernetes.io/part-of": "otterscale-system",
            "app.kubernetes.io/managed-by": "model-operator",
            "llm-d.ai/inferenceServing": "true",
            "llm-d.ai/model": "qwen3-32b",
        })
    );
}

#[test]
fn s01_the_base_is_reached_through_the_default_gateway() {
    let route = route(&base());
    assert_eq!(
        route["parentRefs"],
        json!([{
            "group": "gateway.networking.k8s.io",
            "kind": "Gateway",
            "name": "otterscale-llm-d-infra-inference-gateway",
            "namespace": "llm-d",
        }])
    );
    assert!(route.get("hostnames").is_none());
    assert_eq!(
        route["rules"],
        json!([{
            "matches": [{
                "path": { "type": "PathPrefix", "value": "/" },
                "headers": [
                    { "type": "Exact", "name": "OtterScale-Model-Name", "value": "qwen3-32b" },
                ],
            }],
            "backendRefs": [{
                "group": "inference.networking.k8s.io",
                "kind": "InferencePool",
                "name": "qwen3-32b",
            }],
        }])
    );
}

#[test]
fn s02_pool_route_and_header_keep_the_dots() {
    let plan = fresh(&named("qwen3-0.6b", "ml"));
    assert!(has(&plan, "InferencePool", "qwen3-0.6b"));
    let route = body(&plan, "HTTPRoute", "qwen3-0.6b");
    assert_eq!(route["spec"]["rules"][0]["matches"][0]["headers"][0]["value"], "qwen3-0.6b");
    assert!(has(&plan, "Service", "qwen3-0-6b-epp"));
}

#[test]
fn s10_the_gateway_of_the_spec() {
    let with = |gateway: Value| {
        route(&service_with(json!({
            "httpRoute": { "gatewayRef": gateway, "hostnames": ["models.example.com"] },
        })))
    };
    let own = with(json!({ "name": "inference-gateway" }));
    assert_eq!(own["parentRefs"], json!([{ "name": "inference-gateway" }]));
    assert_eq!(own["hostnames"], json!(["models.example.com"]));
    assert_eq!(own["rules"].as_array().unwrap().len(), 1);
    let same = with(json!({ "name": "inference-gateway", "namespace": "ml-serving" }));
    assert_eq!(same["parentRefs"], json!([{ "name": "inference-gateway" }]));
    let other = with(json!({ "name": "inference-gateway", "namespace": "infra" }));
    let parent = json!({ "name": "inference-gateway", "namespace": "infra" });
    assert_eq!(other["parentRefs"], json!([parent]));
}

#[test]
fn m23_the_default_gateway_may_be_elsewhere() {
    let settings = Settings { default_gateway_namespace: "edge".to_owned(), ..settings() };
    let plan = plan_as(&settings, &base(), empty_cluster());
    let route = body(&plan, "HTTPRoute", "qwen3-32b");
    assert_eq!(route["spec"]["parentRefs"][0]["namespace"], "edge");
}

#[test]
fn m23_only_known_providers_have_a_name() {
    assert_eq!("gke".parse(), Ok(Provider::Gke));
    let error = "istoi".parse::<Provider>().unwrap_err();
    assert_eq!(error.to_string(), "the provider must be istio, gke or none, got \"istoi\"");
}

#[test]
fn s11_serving_pods_are_scraped_unless_told_otherwise() {
    let with = |monitoring: Value| fresh(&service_with(json!({ "monitoring": monitoring })));
    for (monitoring, wanted) in [
        (json!(null), true),
        (json!({}), true),
        (json!({ "podMonitor": {} }), false),
        (json!({ "podMonitor": { "enabled": false } }), false),
        (json!({ "podMonitor": { "enabled": true } }), true),
    ] {
        let plan = with(monitoring.clone());
        assert_eq!(has(&plan, "PodMonitor", "qwen3-32b-decode"), wanted, "{monitoring}");
        assert!(!has(&plan, "ServiceMonitor", EPP), "{monitoring}");
    }
    let plan = with(json!(null));
    let monitor = &body(&plan, "PodMonitor", "qwen3-32b-decode")["spec"];
    assert_eq!(
        monitor["podMetricsEndpoints"],
        json!([{
            "port": "http", "path": "/metrics", "interval": "30s",
            "relabelings": [{
                "action": "replace",
                "sourceLabels": ["__meta_kubernetes_pod_label_app_kubernetes_io_name"],
                "targetLabel": "model_service",
            }],
        }])
    );
    assert_eq!(monitor["selector"]["matchLabels"]["llm-d.ai/role"], "decode");
}

#[test]
fn s11_a_monitored_pool_has_its_picker_scraped_with_a_token() {
    let plan = fresh(&service_with(json!({
        "inferencePool": { "endpointPicker": {} },
        "monitoring": {
            "podMonitor": { "enabled": true, "path": "/m", "interval": "5s", "portName": "" },
        },
    })));
    assert_eq!(
        body(&plan, "ServiceMonitor", EPP)["spec"]["endpoints"],
        json!([{
            "port": "http-metrics", "interval": "30s",
            "authorization": { "credentials": {
                "name": "qwen3-32b-epp-sa-metrics-reader-secret", "key": "token",
            } },
        }])
    );
    let endpoint = &body(&plan, "PodMonitor", "qwen3-32b-decode")["spec"]["podMetricsEndpoints"][0];
    assert_eq!(
        (&endpoint["port"], &endpoint["path"], &endpoint["interval"]),
        (&json!("http"), &json!("/m"), &json!("5s"))
    );
}

#[test]
fn s14_the_mesh_speaks_tls_to_the_picker_and_only_there() {
    let plan = fresh(&base());
    assert_eq!(
        body(&plan, "DestinationRule", EPP)["spec"],
        json!({
            "host": "qwen3-32b-epp.ml-serving.svc.cluster.local",
            "trafficPolicy": { "portLevelSettings": [{
                "port": { "number": 9002 },
                "tls": { "mode": "SIMPLE", "insecureSkipVerify": true },
            }] },
        })
    );
    let settings = Settings { provider: Provider::None, ..settings() };
    assert!(!has(&plan_as(&settings, &base(), empty_cluster()), "DestinationRule", EPP));
}
