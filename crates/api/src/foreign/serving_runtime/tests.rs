use kube::Resource;
use serde_json::json;

use super::*;

#[test]
fn both_kinds_are_written_alike() {
    let spec = json!({
        "supportedModelFormats": [{ "name": "aim", "version": "1" }],
        "imagePullSecrets": [{ "name": "s1" }],
        "containers": [{
            "name": "kserve-container",
            "image": "registry.example.com/aim/tiny-lm:1.4.0",
            "env": [{ "name": "VLLM_ENABLE_METRICS", "value": "true" }],
            "ports": [{ "containerPort": 8000, "name": "http", "protocol": "TCP" }],
            "resources": { "limits": { "amd.com/gpu": "2" } },
            "volumeMounts": [{ "name": "dshm", "mountPath": "/dev/shm" }],
        }],
        "volumes": [{ "name": "dshm", "emptyDir": { "medium": "Memory", "sizeLimit": "8Gi" } }],
    });
    let read: ServingRuntimeSpec = serde_json::from_value(spec.clone()).unwrap();
    let namespaced = ServingRuntime::new("a", read.clone());
    let cluster = ClusterServingRuntime::new("a", ClusterServingRuntimeSpec(read));
    assert_eq!(serde_json::to_value(&namespaced).unwrap()["spec"], spec);
    assert_eq!(serde_json::to_value(&cluster).unwrap()["spec"], spec);
    assert_eq!(ServingRuntime::api_version(&()), "serving.kserve.io/v1alpha1");
    assert_eq!(ServingRuntime::plural(&()), "servingruntimes");
    assert_eq!(ClusterServingRuntime::plural(&()), "clusterservingruntimes");
}
