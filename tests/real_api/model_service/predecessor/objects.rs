//! What the predecessor makes of the service `a`, letter for letter: no probes, version labels on the
//! pods, plain HTTP.

use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;

const VERSION: &str = "v1.0.1";
const EPP: &str = "a-epp";

/// The file of the picker for services with prefill pods.
const PD_CONFIG: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../crates/domains/src/model_service/epp_config/pd-config.yaml"
));
/// The hash of that file, as the specification has it.
const PD_HASH: &str = "da2206ceec8c17d0eef3714ea7387e412c7b565661113eef5c0d0fd2b083eb23";

/// A service, as far as its objects depend on it.
pub(super) struct Of<'a> {
    pub(super) service: &'a ModelService,
    pub(super) namespace: &'a str,
    pub(super) split: bool,
}

/// A serving Deployment's own: what it is called and how many pods it has.
#[derive(Clone, Copy)]
pub(super) struct Pods {
    pub(super) role: &'static str,
    pub(super) replicas: i32,
    /// Devices of a pod.
    pub(super) tensor: i32,
}

pub(super) const DECODE: Pods = Pods { role: "decode", replicas: 2, tensor: 4 };
pub(super) const PREFILL: Pods = Pods { role: "prefill", replicas: 1, tensor: 1 };

fn selector(name: &str, component: &str) -> Value {
    json!({
        "app.kubernetes.io/name": name, "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "otterscale-system",
        "app.kubernetes.io/managed-by": "model-operator",
    })
}

fn standard(name: &str, component: &str) -> Value {
    with(selector(name, component), &[("app.kubernetes.io/version", VERSION)])
}

fn with(mut labels: Value, more: &[(&str, &str)]) -> Value {
    for (key, value) in more {
        labels[key] = json!(value);
    }
    labels
}

fn role_selector(role: &str) -> Value {
    let serving =
        [("llm-d.ai/inferenceServing", "true"), ("llm-d.ai/model", "a"), ("llm-d.ai/role", role)];
    with(selector("a", &format!("model-{role}")), &serving)
}

fn env(pairs: &[(&str, &str)]) -> Vec<Value> {
    pairs.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

fn security() -> Value {
    json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
}

fn pod_security() -> Value {
    json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } })
}

fn unpack() -> Value {
    let script = "set -euo pipefail\nexport KITOPS_HOME=\"${KITOPS_HOME:-/tmp/model-oci}\"\n\
                  mkdir -p \"$KITOPS_HOME\"\n\
                  kit unpack \"$OCI_MODEL_IMAGE\" --plain-http -o -d \"$MODEL_MOUNT_PATH\"\n";
    json!({
        "name": "model-unpack", "image": "ghcr.io/kitops-ml/kitops:v1.11.0",
        "command": ["/bin/sh", "-c"], "args": [script],
        "env": env(&[
            ("OCI_MODEL_IMAGE", "registry.example.com/models/qwen3-32b:v1"),
            ("MODEL_MOUNT_PATH", "/models"), ("KITOPS_HOME", "/tmp/model-oci"),
        ]),
        "volumeMounts": [
            { "name": "model-tmp", "mountPath": "/tmp/model-oci" },
            { "name": "model", "mountPath": "/models" },
        ],
        "securityContext": security(),
    })
}

fn proxy() -> Value {
    json!({
        "name": "routing-proxy", "image": "ghcr.io/llm-d/llm-d-routing-sidecar:v0.6.0",
        "restartPolicy": "Always",
        "args": ["--port", "8000", "--vllm-port", "8200", "--connector", "nixlv2",
            "--secure-proxy=false"],
        "ports": [{ "name": "proxy", "containerPort": 8000, "protocol": "TCP" }],
        "securityContext": security(),
    })
}

fn server(pods: Pods, port: u16) -> Value {
    let mut args = vec!["/models".to_owned(), "--port".to_owned(), port.to_string()];
    args.extend(["--served-model-name", "qwen/Qwen3-32B"].map(str::to_owned));
    if pods.tensor > 1 {
        args.extend(["--tensor-parallel-size".to_owned(), pods.tensor.to_string()]);
    }
    args.push("--max-model-len=8192".to_owned());
    let tensor = pods.tensor.to_string();
    let devices = json!({ "nvidia.com/gpu": tensor });
    json!({
        "name": "vllm", "image": "vllm/vllm-openai:v0.8.0", "command": ["vllm", "serve"],
        "args": args,
        "env": env(&[("TP_SIZE", &tensor), ("DP_SIZE", "1"), ("DP_SIZE_LOCAL", "1")]),
        "ports": [{ "name": "http", "containerPort": port, "protocol": "TCP" }],
        "resources": { "limits": devices, "requests": devices },
        "volumeMounts": [{ "name": "model", "mountPath": "/models", "readOnly": true }],
        "securityContext": security(),
    })
}

impl Of<'_> {
    /// Everything that there is for a service with both roles, in the order in which it is made.
    pub(super) fn everything(&self) -> Vec<Value> {
        [vec![self.serving(DECODE), self.serving(PREFILL)], self.picker(), self.traffic()].concat()
    }

    fn owned(&self, api_version: &str, kind: &str, name: &str, labels: &Value) -> Value {
        let owner = json!({
            "apiVersion": "model.otterscale.io/v1alpha1", "kind": "ModelService", "name": "a",
            "uid": self.service.metadata.uid, "controller": true, "blockOwnerDeletion": true,
        });
        json!({ "apiVersion": api_version, "kind": kind,
            "metadata": { "name": name, "labels": labels, "ownerReferences": [owner] } })
    }

    pub(super) fn serving(&self, pods: Pods) -> Value {
        let role = pods.role;
        let proxied = self.split && role == "decode";
        let init = if proxied { vec![unpack(), proxy()] } else { vec![unpack()] };
        let port = if proxied { 8200 } else { 8000 };
        let labels = standard("a", &format!("model-{role}"));
        let mut object = self.owned("apps/v1", "Deployment", &format!("a-{role}"), &labels);
        let pod_labels = with(role_selector(role), &[("app.kubernetes.io/version", VERSION)]);
        object["spec"] = json!({
            "replicas": pods.replicas, "selector": { "matchLabels": role_selector(role) },
            "template": {
                "metadata": { "labels": pod_labels },
                "spec": {
                    "automountServiceAccountToken": false, "securityContext": pod_security(),
                    "initContainers": init, "containers": [server(pods, port)],
                    "volumes": [
                        { "name": "model", "emptyDir": {} }, { "name": "model-tmp", "emptyDir": {} }],
                },
            },
        });
        object
    }

    fn picker(&self) -> Vec<Value> {
        let labels = standard(EPP, "epp");
        let of = |api_version: &str, kind: &str, name: &str, fields: Value| {
            merged(self.owned(api_version, kind, name, &labels), &fields)
        };
        let rbac = "rbac.authorization.k8s.io/v1";
        let secret = "a-epp-sa-metrics-reader-secret";
        vec![
            of("v1", "ServiceAccount", EPP, json!({})),
            of(
                "v1",
                "ConfigMap",
                "a-epp-config",
                json!({ "data": { "pd-config.yaml": PD_CONFIG } }),
            ),
            of("apps/v1", "Deployment", EPP, json!({ "spec": self.picker_spec() })),
            of(
                "v1",
                "Service",
                EPP,
                json!({ "spec": {
                    "selector": selector(EPP, "epp"),
                    "ports": [
                        { "name": "grpc-ext-proc", "port": 9002, "targetPort": 9002, "protocol": "TCP" },
                        { "name": "http-metrics", "port": 9090, "targetPort": 9090, "protocol": "TCP" },
                    ],
                }}),
            ),
            merged(
                of(
                    "v1",
                    "Secret",
                    secret,
                    json!({ "type": "kubernetes.io/service-account-token" }),
                ),
                &json!({ "metadata": { "annotations": {
                    "kubernetes.io/service-account.name": EPP } } }),
            ),
            of(rbac, "Role", EPP, json!({ "rules": role_rules() })),
            of(rbac, "RoleBinding", EPP, self.binding("Role", EPP)),
            self.of_cluster("ClusterRole", &json!({ "rules": cluster_rules() })),
            self.of_cluster(
                "ClusterRoleBinding",
                &self.binding("ClusterRole", &self.cluster_name()),
            ),
        ]
    }

    fn cluster_name(&self) -> String {
        format!("{}-{EPP}", self.namespace)
    }

    /// No owner, and no label that names the service.
    fn of_cluster(&self, kind: &str, fields: &Value) -> Value {
        let metadata = json!({ "name": self.cluster_name(), "labels": standard(EPP, "epp") });
        let object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata });
        merged(object, fields)
    }

    fn binding(&self, kind: &str, name: &str) -> Value {
        json!({
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": EPP, "namespace": self.namespace }],
        })
    }

    fn picker_spec(&self) -> Value {
        let labels = with(selector(EPP, "epp"), &[("inferencepool", EPP)]);
        let pod_labels = with(labels.clone(), &[("app.kubernetes.io/version", VERSION)]);
        json!({
            "replicas": 3, "strategy": { "type": "Recreate" },
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": pod_labels, "annotations": { "checksum/config": PD_HASH } },
                "spec": {
                    "serviceAccountName": EPP, "terminationGracePeriodSeconds": 130,
                    "securityContext": pod_security(), "containers": [self.picker_container()],
                    "volumes": [{ "name": "epp-config",
                        "configMap": { "name": "a-epp-config", "optional": true } }],
                },
            },
        })
    }

    fn picker_container(&self) -> Value {
        let of_pod = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
        let port = |name: &str, number: u16| json!({ "name": name, "containerPort": number, "protocol": "TCP" });
        json!({
            "name": "epp", "image": "ghcr.io/llm-d/llm-d-inference-scheduler:v0.6.0",
            "imagePullPolicy": "IfNotPresent",
            "args": ["--pool-name=a", format!("--pool-namespace={}", self.namespace),
                "--pool-group=inference.networking.k8s.io", "--config-file=/config/pd-config.yaml",
                "--grpc-port=9002", "--zap-encoder=json", "--ha-enable-leader-election",
                "--tracing=false"],
            "env": [of_pod("NAMESPACE", "metadata.namespace"), of_pod("POD_NAME", "metadata.name")],
            "ports": [port("grpc-ext-proc", 9002), port("grpc-health", 9003),
                port("http-metrics", 9090)],
            "readinessProbe": { "grpc": { "port": 9003, "service": "readiness" },
                "periodSeconds": 2 },
            "livenessProbe": { "grpc": { "port": 9003, "service": "liveness" },
                "initialDelaySeconds": 5, "periodSeconds": 10 },
            "resources": { "requests": { "cpu": "4", "memory": "8Gi" },
                "limits": { "memory": "16Gi" } },
            "volumeMounts": [{ "name": "epp-config", "mountPath": "/config", "readOnly": true }],
            "securityContext": security(),
        })
    }

    fn traffic(&self) -> Vec<Value> {
        let of = |api_version: &str, kind: &str, name: &str, labels: Value, spec: Value| {
            merged(self.owned(api_version, kind, name, &labels), &json!({ "spec": spec }))
        };
        let gateway = json!({ "group": "gateway.networking.k8s.io", "kind": "Gateway",
            "name": "otterscale-llm-d-infra-inference-gateway", "namespace": "llm-d" });
        let monitoring = "monitoring.coreos.com/v1";
        let tls = json!({ "mode": "SIMPLE", "insecureSkipVerify": true });
        let monitor = |role: &str| {
            let labels = standard("a", &format!("model-{role}"));
            of(monitoring, "PodMonitor", &format!("a-{role}"), labels, pod_monitor(role))
        };
        vec![
            of(
                "inference.networking.k8s.io/v1",
                "InferencePool",
                "a",
                standard("a", "epp"),
                pool(),
            ),
            of(
                "gateway.networking.k8s.io/v1",
                "HTTPRoute",
                "a",
                standard("a", "epp"),
                json!({
                    "parentRefs": [gateway],
                    "rules": [{
                        "matches": [{
                            "path": { "type": "PathPrefix", "value": "/" },
                            "headers": [{ "type": "Exact", "name": "OtterScale-Model-Name", "value": "a" }],
                        }],
                        "backendRefs": [{ "group": "inference.networking.k8s.io",
                            "kind": "InferencePool", "name": "a" }],
                    }],
                }),
            ),
            of(
                "networking.istio.io/v1beta1",
                "DestinationRule",
                EPP,
                standard(EPP, "epp"),
                json!({
                    "host": format!("{EPP}.{}.svc.cluster.local", self.namespace),
                    "trafficPolicy": { "tls": tls },
                }),
            ),
            monitor("decode"),
            monitor("prefill"),
            of(
                monitoring,
                "ServiceMonitor",
                EPP,
                standard(EPP, "epp"),
                json!({
                    "selector": { "matchLabels": selector(EPP, "epp") },
                    "endpoints": [{ "port": "http-metrics", "interval": "30s", "authorization": {
                        "credentials": { "name": "a-epp-sa-metrics-reader-secret", "key": "token" } } }],
                }),
            ),
        ]
    }
}

fn pool() -> Value {
    json!({
        "targetPorts": [{ "number": 8000 }],
        "selector": { "matchLabels": {
            "app.kubernetes.io/name": "a", "app.kubernetes.io/part-of": "otterscale-system",
            "app.kubernetes.io/managed-by": "model-operator",
            "llm-d.ai/inferenceServing": "true", "llm-d.ai/model": "a",
        }},
        "endpointPickerRef": { "group": "", "kind": "Service", "name": EPP,
            "port": { "number": 9002 }, "failureMode": "FailOpen" },
    })
}

fn pod_monitor(role: &str) -> Value {
    json!({
        "selector": { "matchLabels": role_selector(role) },
        "podMetricsEndpoints": [{
            "port": "http", "path": "/metrics", "interval": "30s",
            "relabelings": [{ "action": "replace", "targetLabel": "model_service",
                "sourceLabels": ["__meta_kubernetes_pod_label_app_kubernetes_io_name"] }],
        }],
    })
}

fn role_rules() -> Value {
    let read = ["get", "watch", "list"];
    json!([
        { "apiGroups": [""], "resources": ["pods"], "verbs": read },
        { "apiGroups": ["inference.networking.x-k8s.io"],
            "resources": ["inferenceobjectives", "inferencemodelrewrites"], "verbs": read },
        { "apiGroups": ["inference.networking.k8s.io"], "resources": ["inferencepools"],
            "verbs": read },
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"] },
        { "apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"] },
    ])
}

fn cluster_rules() -> Value {
    json!([
        { "apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"],
            "verbs": ["create"] },
        { "apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"],
            "verbs": ["create"] },
        { "nonResourceURLs": ["/metrics"], "verbs": ["get"] },
    ])
}

/// Adds fields to an object, at any depth.
fn merged(mut object: Value, fields: &Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        if object[key].is_object() && value.is_object() {
            object[key] = merged(object[key].take(), value);
        } else {
            object[key] = value.clone();
        }
    }
    object
}
