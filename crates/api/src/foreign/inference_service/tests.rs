use serde_json::json;

use super::*;

#[test]
fn what_is_read_is_written_again() {
    let object = json!({
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": { "name": "chat", "namespace": "research" },
        "spec": { "predictor": {
            "minReplicas": 2,
            "maxReplicas": 2,
            "serviceAccountName": "runner",
            "imagePullSecrets": [{ "name": "s1" }],
            "model": {
                "modelFormat": { "name": "aim", "version": "1" },
                "runtime": "tiny-lm-latency",
                "storageUri": "hf://acme/tiny-lm-7b-fp8",
                "env": [{ "name": "A", "value": "1" }],
                "resources": { "limits": { "amd.com/gpu": "2" } },
            },
        } },
        "status": {
            "observedGeneration": 4,
            "url": "http://chat.research.example.com",
            "conditions": [
                { "type": "Ready", "status": "False" },
                {
                    "type": "PredictorReady",
                    "status": "Unknown",
                    "reason": "r",
                    "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                },
            ],
            "modelStatus": { "lastFailureInfo": {
                "reason": "ModelLoadFailed",
                "message": "out of memory",
                "exitCode": 137,
            } },
        },
    });
    let read: InferenceService = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
}

#[test]
fn services_and_states_of_other_shapes_are_readable() {
    for (spec, status) in [
        (json!({ "predictor": { "sklearn": { "storageUri": "gs://a" } } }), json!({})),
        (
            json!({ "predictor": { "containers": [{ "name": "c" }] }, "transformer": {} }),
            json!({ "modelStatus": { "states": {}, "transitionStatus": "InProgress" } }),
        ),
    ] {
        let object = json!({ "metadata": {}, "spec": spec, "status": status });
        let read: InferenceService = serde_json::from_value(object).unwrap();
        assert_eq!(read.spec.predictor.model, None);
        let failure = read.status.and_then(|status| status.model_status?.last_failure_info);
        assert_eq!(failure, None);
    }
    let empty: ModelStatus = serde_json::from_value(json!({ "lastFailureInfo": {} })).unwrap();
    assert_eq!(empty.last_failure_info, Some(FailureInfo::default()));
}
