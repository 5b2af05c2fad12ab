//! The endpoint picker.

use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_engine::plan::Plan;

use super::texts;
use crate::model_service::fixture::{
    base, body, empty_cluster, fresh, has, plan_as, service_with, settings, written,
};
use crate::model_service::{Dialect, MetricsRbac, Provider, Settings, Tracing};

const EPP: &str = "qwen3-32b-epp";
const SECRET: &str = "qwen3-32b-epp-sa-metrics-reader-secret";
const CLUSTER: &str = "ml-serving-qwen3-32b-epp";

fn with_picker(picker: Value) -> ModelService {
    service_with(json!({ "inferencePool": { "endpointPicker": picker } }))
}

fn container(plan: &Plan) -> &Value {
    &body(plan, "Deployment", EPP)["spec"]["template"]["spec"]["containers"][0]
}

#[test]
fn s01_the_picker_of_the_base() {
    let plan = fresh(&base());
    let deployment = body(&plan, "Deployment", EPP);
    assert_eq!(deployment["spec"]["replicas"], 1);
    assert_eq!(deployment["spec"]["strategy"], json!({ "type": "Recreate" }));
    let template = &deployment["spec"]["template"];
    assert_eq!(
        template["metadata"]["annotations"],
        json!({
            "checksum/config":
                "3aee930c4fc2cf8c749623ba30a077bd93d5cca0c6513c87a5fe3427b089f2f1",
        })
    );
    let pod = &template["spec"];
    assert_eq!(pod["serviceAccountName"], EPP);
    assert_eq!(pod["terminationGracePeriodSeconds"], 130);
    let picker = container(&plan);
    assert_eq!(picker["image"], "ghcr.io/llm-d/llm-d-inference-scheduler:v0.6.0");
    assert_eq!(picker["imagePullPolicy"], "IfNotPresent");
    assert_eq!(
        texts(&picker["args"]),
        [
            "--pool-name=qwen3-32b",
            "--pool-namespace=ml-serving",
            "--pool-group=inference.networking.k8s.io",
            "--config-file=/config/default-plugins.yaml",
            "--grpc-port=9002",
            "--zap-encoder=json",
            "--tracing=false",
        ]
    );
    assert_eq!(
        picker["env"],
        json!([
            {
                "name": "NAMESPACE",
                "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } },
            },
            { "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
        ])
    );
    let ports: Vec<_> =
        picker["ports"].as_array().unwrap().iter().map(|port| &port["containerPort"]).collect();
    assert_eq!(ports, [9002, 9003, 9090]);
    assert_eq!(
        pod["volumes"],
        json!([{
            "name": "epp-config",
            "configMap": { "name": "qwen3-32b-epp-config", "optional": true },
        }])
    );
    let service = &body(&plan, "Service", EPP)["spec"];
    assert_eq!(
        service["ports"],
        json!([
            { "name": "grpc-ext-proc", "port": 9002, "targetPort": 9002, "protocol": "TCP" },
            { "name": "http-metrics", "port": 9090, "targetPort": 9090, "protocol": "TCP" },
        ])
    );
}

#[test]
fn s08_several_pickers_elect_a_leader() {
    let plan = fresh(&with_picker(json!({ "replicas": 3 })));
    let picker = container(&plan);
    assert!(texts(&picker["args"]).contains(&"--ha-enable-leader-election"));
    assert_eq!(picker["readinessProbe"]["grpc"], json!({ "port": 9003, "service": "readiness" }));
    assert_eq!(picker["livenessProbe"]["grpc"], json!({ "port": 9003, "service": "liveness" }));
    let rules = &body(&plan, "Role", EPP)["rules"];
    assert_eq!(rules.as_array().unwrap().len(), 5);
    assert_eq!(
        body(&plan, "InferencePool", "qwen3-32b")["spec"]["endpointPickerRef"]["failureMode"],
        "FailOpen"
    );
    let secret = body(&plan, "Secret", SECRET);
    assert_eq!(secret["type"], "kubernetes.io/service-account-token");
    assert_eq!(
        secret["metadata"]["annotations"],
        json!({ "kubernetes.io/service-account.name": EPP })
    );
    assert!(secret.get("data").is_none());
    assert_eq!(
        body(&plan, "ClusterRole", CLUSTER)["rules"],
        json!([
            {
                "apiGroups": ["authentication.k8s.io"],
                "resources": ["tokenreviews"],
                "verbs": ["create"],
            },
            {
                "apiGroups": ["authorization.k8s.io"],
                "resources": ["subjectaccessreviews"],
                "verbs": ["create"],
            },
            { "nonResourceURLs": ["/metrics"], "verbs": ["get"] },
        ])
    );
    let binding = body(&plan, "ClusterRoleBinding", CLUSTER);
    let subject = json!({ "kind": "ServiceAccount", "name": EPP, "namespace": "ml-serving" });
    assert_eq!(binding["subjects"], json!([subject]));
}

#[test]
fn s08_a_single_picker_needs_less() {
    let plan = fresh(&with_picker(json!({})));
    let picker = container(&plan);
    assert!(!texts(&picker["args"]).contains(&"--ha-enable-leader-election"));
    let probe = |name: &str| picker[name]["grpc"]["service"].clone();
    assert_eq!(probe("readinessProbe"), "inference-extension");
    assert_eq!(probe("livenessProbe"), "inference-extension");
    assert_eq!(picker["readinessProbe"]["periodSeconds"], 2);
    assert_eq!(picker["livenessProbe"]["initialDelaySeconds"], 5);
    assert_eq!(body(&plan, "Role", EPP)["rules"].as_array().unwrap().len(), 3);
}

#[test]
fn s09_port_and_resources_of_the_picker() {
    let requests = json!({ "cpu": "2", "memory": "4Gi" });
    let plan = fresh(&with_picker(json!({ "port": 9999, "resources": { "requests": requests } })));
    let picker = container(&plan);
    assert!(texts(&picker["args"]).contains(&"--grpc-port=9999"));
    assert_eq!(picker["resources"], json!({ "requests": requests }));
    assert_eq!(body(&plan, "Service", EPP)["spec"]["ports"][0]["port"], 9999);
    let pool = body(&plan, "InferencePool", "qwen3-32b");
    assert_eq!(pool["spec"]["endpointPickerRef"]["port"], json!({ "number": 9999 }));
    assert_eq!(
        container(&fresh(&with_picker(json!({ "resources": {} }))))["resources"],
        json!({ "requests": { "cpu": "4", "memory": "8Gi" }, "limits": { "memory": "16Gi" } })
    );
}

#[test]
fn s11_without_authentication_there_is_neither_token_nor_cluster_rbac() {
    let settings = Settings { metrics_endpoint_auth: false, ..settings() };
    let service = service_with(json!({
        "inferencePool": { "endpointPicker": {} },
        "monitoring": { "podMonitor": { "enabled": true } },
    }));
    let plan = plan_as(&settings, &service, empty_cluster());
    assert!(texts(&container(&plan)["args"]).contains(&"--metrics-endpoint-auth=false"));
    for kind in ["Secret", "ClusterRole", "ClusterRoleBinding"] {
        assert!(!written(&plan).iter().any(|text| text.starts_with(&format!("{kind} "))));
    }
    let monitor = &body(&plan, "ServiceMonitor", EPP)["spec"]["endpoints"][0];
    assert_eq!(monitor, &json!({ "port": "http-metrics", "interval": "30s" }));
}

#[test]
fn s12_tracing_of_the_picker() {
    let settings = Settings {
        tracing: Tracing {
            enabled: true,
            otel_endpoint: "http://otel:4317".to_owned(),
            sampler_arg: "0.5".to_owned(),
            ..Tracing::default()
        },
        ..settings()
    };
    let plan = plan_as(&settings, &base(), empty_cluster());
    let picker = container(&plan);
    assert!(texts(&picker["args"]).contains(&"--tracing=true"));
    let env = picker["env"].as_array().unwrap();
    let names: Vec<_> = env.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "NAMESPACE",
            "POD_NAME",
            "OTEL_SERVICE_NAME",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_TRACES_EXPORTER",
            "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME",
            "OTEL_RESOURCE_ATTRIBUTES_POD_NAME",
            "OTEL_RESOURCE_ATTRIBUTES",
            "OTEL_TRACES_SAMPLER",
            "OTEL_TRACES_SAMPLER_ARG",
        ]
    );
    assert_eq!(env[2]["value"], "gateway-api-inference-extension");
    assert_eq!(
        env[7]["value"],
        "k8s.namespace.name=$(NAMESPACE),k8s.node.name=$(OTEL_RESOURCE_ATTRIBUTES_NODE_NAME),\
         k8s.pod.name=$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)"
    );
    assert_eq!(env[9]["value"], "0.5");
}

#[test]
fn m12_cluster_rbac_may_be_had_without_a_pool_block() {
    assert!(!has(&fresh(&base()), "ClusterRole", CLUSTER));
    let settings = Settings { metrics_rbac: MetricsRbac::Always, ..settings() };
    let plan = plan_as(&settings, &base(), empty_cluster());
    assert!(has(&plan, "ClusterRole", CLUSTER) && has(&plan, "ClusterRoleBinding", CLUSTER));
    assert!(!has(&plan, "Secret", SECRET));
}

#[test]
fn m13_no_monitor_points_at_a_token_that_is_not_there() {
    let settings = Settings { provider: Provider::Gke, ..settings() };
    let service = service_with(json!({
        "inferencePool": { "endpointPicker": {} },
        "monitoring": { "podMonitor": { "enabled": true } },
    }));
    let plan = plan_as(&settings, &service, empty_cluster());
    assert!(!has(&plan, "Secret", SECRET) && !has(&plan, "ServiceMonitor", EPP));
    assert!(has(&plan, "ClusterRole", CLUSTER));
}

#[test]
fn a_newer_picker_gets_the_newer_dialect() {
    let settings = Settings { epp_dialect: Dialect::LlmD, ..settings() };
    let plan = plan_as(&settings, &base(), empty_cluster());
    let data = &body(&plan, "ConfigMap", "qwen3-32b-epp-config")["data"];
    let text = data["default-plugins.yaml"].as_str().unwrap();
    assert!(text.starts_with("apiVersion: llm-d.ai/v1alpha1\n"));
}
