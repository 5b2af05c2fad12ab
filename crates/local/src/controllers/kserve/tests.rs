use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use serde_json::{Value, json};

use super::{
    Problem,
    kinds::{ClusterServingRuntime, InferenceService, ServingRuntime},
    objects::{self, Replicas},
    pod::pod_spec,
    runtime::{Known, Runtime, choose},
    status::{Seen, difference, status},
};

fn service(predictor: Value) -> InferenceService {
    serde_json::from_value(json!({
        "metadata": {"name": "chat", "namespace": "n", "uid": "u", "generation": 3,
            "labels": {"team": "x"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
        "spec": {"predictor": predictor},
    }))
    .unwrap()
}

/// As AIM writes it.
fn aim() -> InferenceService {
    service(json!({
        "minReplicas": 1, "maxReplicas": 1, "serviceAccountName": "sa",
        "imagePullSecrets": [{"name": "own"}],
        "model": {
            "modelFormat": {"name": "aim", "version": "1"},
            "runtime": "tiny",
            "storageUri": "hf://acme/tiny",
            "env": [{"name": "A", "value": "1"}, {"name": "VLLM_ENABLE_METRICS", "value": "false"}],
            "resources": {"requests": {"cpu": "4", "amd.com/gpu": "2"},
                "limits": {"amd.com/gpu": "2"}},
        },
    }))
}

fn runtime_spec() -> Value {
    json!({
        "supportedModelFormats": [{"name": "aim", "version": "1"}],
        "imagePullSecrets": [{"name": "pull"}],
        "containers": [{
            "name": "kserve-container", "image": "aim:1",
            "args": ["--name={{.Name}}", "--in={{ .Namespace }}"],
            "env": [{"name": "AIM_MODEL_ID", "value": "acme/tiny"},
                {"name": "VLLM_ENABLE_METRICS", "value": "true"}],
            "resources": {"requests": {"amd.com/gpu": "1"}, "limits": {"amd.com/gpu": "1"}},
            "ports": [{"containerPort": 8000, "name": "http", "protocol": "TCP"}],
            "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
        }],
        "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
    })
}

fn near(name: &str, spec: Value) -> Arc<ServingRuntime> {
    Arc::new(serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
}

fn far(name: &str, spec: Value) -> Arc<ClusterServingRuntime> {
    Arc::new(serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
}

#[test]
fn an_aim_service_becomes_what_its_runtime_and_itself_say_together() {
    let (service, runtime) = (aim(), runtime_spec());
    let pod = pod_spec(&service, Some(&runtime)).unwrap();
    let deployment = objects::deployment(&service, Some(&runtime), pod.clone());
    let value = serde_json::to_value(&deployment).unwrap();
    assert_eq!(value["metadata"]["name"], "chat-predictor");
    assert_eq!(value["metadata"]["ownerReferences"][0]["kind"], "InferenceService");
    assert_eq!(
        value["metadata"]["annotations"],
        json!({"internal.serving.kserve.io/storage-initializer-sourceuri": "hf://acme/tiny"})
    );
    let labels = json!({"team": "x", "app": "isvc.chat-predictor", "component": "predictor",
        "serving.kserve.io/inferenceservice": "chat"});
    assert_eq!(value["metadata"]["labels"], labels);
    assert_eq!(value["spec"]["template"]["metadata"]["labels"], labels);
    let selector = json!({"matchLabels": {"app": "isvc.chat-predictor"}});
    assert_eq!(value["spec"]["selector"], selector);
    assert_eq!(value["spec"]["replicas"], 1);
    let spec = &value["spec"]["template"]["spec"];
    assert_eq!(spec["serviceAccountName"], "sa");
    assert_eq!(spec["volumes"][0]["emptyDir"], json!({"medium": "Memory"}));
    let secrets = spec["imagePullSecrets"].as_array().unwrap();
    assert!(["own", "pull"].iter().all(|name| secrets.contains(&json!({"name": name}))));
    let container = &spec["containers"][0];
    assert_eq!(container["name"], "kserve-container");
    assert_eq!(container["args"], json!(["--name=chat", "--in=n"]));
    for (name, value) in
        [("A", "1"), ("AIM_MODEL_ID", "acme/tiny"), ("VLLM_ENABLE_METRICS", "false")]
    {
        let env = container["env"].as_array().unwrap();
        assert!(env.contains(&json!({"name": name, "value": value})), "{name}: {env:?}");
    }
    assert_eq!(
        container["resources"],
        json!({"requests": {"cpu": "4", "amd.com/gpu": "2"}, "limits": {"amd.com/gpu": "2"}})
    );
    assert_eq!(container["readinessProbe"]["tcpSocket"], json!({"port": 8000}));

    let front = serde_json::to_value(objects::service(&service, Some(&runtime), &pod)).unwrap();
    assert_eq!(front["metadata"]["name"], "chat-predictor");
    assert_eq!(front["spec"]["selector"], json!({"app": "isvc.chat-predictor"}));
    assert_eq!(
        front["spec"]["ports"],
        json!([{"name": "http", "port": 80, "targetPort": 8000, "protocol": "TCP"}])
    );
}

#[test]
fn somebodys_own_containers_serve_without_a_runtime() {
    let service = service(json!({"containers": [{"name": "", "image": "mine",
        "ports": [{"containerPort": 9000, "name": "h2c"}, {"containerPort": 9001, "name": "m"}]}],
        "nodeSelector": {"a": "b"}, "timeout": 5}));
    assert_eq!(choose(&service, &Known { near: &[], far: &[] }), Ok(None));
    let pod = pod_spec(&service, None).unwrap();
    assert_eq!(pod.containers[0].name, "kserve-container");
    assert_eq!(pod.node_selector.as_ref().unwrap()["a"], "b");
    let front = serde_json::to_value(objects::service(&service, None, &pod)).unwrap();
    assert_eq!(
        front["spec"]["ports"],
        json!([
            {"name": "h2c", "port": 80, "targetPort": 9000, "protocol": "TCP",
                "appProtocol": "kubernetes.io/h2c"},
            {"name": "m", "port": 9001, "targetPort": 9001, "protocol": "TCP"},
        ])
    );
}

#[test]
fn a_model_on_a_claim_is_mounted() {
    for (uri, path) in [("pvc://models/a/b", json!("a/b")), ("pvc://models", Value::Null)] {
        let service = service(json!({"model": {"storageUri": uri}}));
        let pod = pod_spec(&service, Some(&runtime_spec())).unwrap();
        let pod = serde_json::to_value(&pod).unwrap();
        let claim = &pod["volumes"][1]["persistentVolumeClaim"]["claimName"];
        let mount = &pod["containers"][0]["volumeMounts"][1];
        assert_eq!((claim, &mount["mountPath"]), (&json!("models"), &json!("/mnt/models")));
        assert_eq!(mount["subPath"], path);
    }
}

#[test]
fn what_cannot_be_served_says_why() {
    let mut strange = runtime_spec();
    strange["containers"][0]["args"] = json!(["{{.Nobody}}"]);
    let mut open = runtime_spec();
    open["containers"][0]["args"] = json!(["{{.Name"]);
    let mut wrong = runtime_spec();
    wrong["containers"][0]["ports"] = json!("none");
    for (predictor, runtime) in [
        (json!({}), None),
        (json!({"model": {}}), Some(json!({"containers": [{"name": "other"}]}))),
        (json!({"model": {}}), Some(strange)),
        (json!({"model": {}}), Some(open)),
        (json!({"model": {}}), Some(wrong)),
        (json!({"containers": 7}), None),
        (json!(7), None),
        (json!({"model": {"env": 7}}), Some(runtime_spec())),
        (json!({"model": {"args": "x"}, "containers": {}}), Some(json!([]))),
    ] {
        let found = pod_spec(&service(predictor.clone()), runtime.as_ref());
        let problem = found.expect_err(&predictor.to_string());
        assert_eq!(problem.reason, "InvalidPredictorSpec", "{predictor}");
    }
}

#[test]
fn the_runtime_is_the_named_one_or_one_that_offers_itself() {
    let offers = |priority: Value| {
        json!({"supportedModelFormats": [
            {"name": "onnx", "version": "1", "autoSelect": true, "priority": priority}]})
    };
    let disabled = json!({"disabled": true, "supportedModelFormats": [
        {"name": "onnx", "autoSelect": true}]});
    let near = [
        near("aim", runtime_spec()),
        near("both", runtime_spec()),
        near("off", disabled),
        near("low", offers(json!(1))),
        near("none", offers(Value::Null)),
        near("high", offers(json!(2))),
    ];
    let far =
        [far("both", runtime_spec()), far("far", runtime_spec()), far("top", offers(json!(9)))];
    let known = Known { near: &near, far: &far };
    let model = |format: &str, version: Value, runtime: Value| {
        service(json!({"model": {"runtime": runtime,
            "modelFormat": {"name": format, "version": version}}}))
    };
    for (service, want) in [
        (model("aim", json!("1"), json!("aim")), Ok(("aim", false))),
        (model("aim", Value::Null, json!("both")), Ok(("both", false))),
        (model("aim", json!("1"), json!("far")), Ok(("far", true))),
        (model("aim", json!("2"), json!("aim")), Err("NoSupportingRuntime")),
        (model("aim", json!("1"), json!("gone")), Err("RuntimeNotRecognized")),
        (model("onnx", Value::Null, json!("off")), Err("RuntimeDisabled")),
        (model("onnx", Value::Null, Value::Null), Ok(("high", false))),
        (model("onnx", json!("7"), Value::Null), Err("NoSupportingRuntime")),
        (model("aim", json!("1"), Value::Null), Err("NoSupportingRuntime")),
    ] {
        let found = choose(&service, &known);
        let found = found.as_ref().map(|runtime| runtime.unwrap());
        let found = found.map(|Runtime { name, is_of_cluster, .. }| (name, is_of_cluster));
        assert_eq!(found.map_err(|problem| problem.reason), want, "{}", service.spec);
    }
}

#[test]
fn two_different_numbers_of_replicas_are_for_an_autoscaler() {
    for (predictor, want) in [
        (json!({}), Replicas::Fixed(1)),
        (json!({"minReplicas": 2}), Replicas::Fixed(2)),
        (json!({"minReplicas": 2, "maxReplicas": 2}), Replicas::Fixed(2)),
        (json!({"minReplicas": 0, "maxReplicas": 3}), Replicas::Between(1, 3)),
        (json!({"minReplicas": 0}), Replicas::Fixed(1)),
        (json!({"minReplicas": "x"}), Replicas::Fixed(1)),
    ] {
        assert_eq!(objects::replicas(&service(predictor.clone())), want, "{predictor}");
    }
    let mut alone = service(json!({"minReplicas": 2, "maxReplicas": 3}));
    let class = ("serving.kserve.io/autoscalerClass".to_owned(), "none".to_owned());
    alone.metadata.annotations = Some([class].into());
    assert_eq!(objects::replicas(&alone), Replicas::Fixed(2));
    let made = objects::autoscaler(&service(json!({"scaleTarget": 60})), None, 1, 3);
    let spec = serde_json::to_value(made.spec.unwrap()).unwrap();
    assert_eq!(spec["scaleTargetRef"]["name"], "chat-predictor");
    assert_eq!(spec["metrics"][0]["resource"]["target"]["averageUtilization"], 60);
}

fn condition<'a>(status: &'a Value, kind: &str) -> (&'a str, &'a str) {
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
    (found["status"].as_str().unwrap(), found["reason"].as_str().unwrap_or_default())
}

#[test]
fn conditions_follow_the_deployment() {
    let deployment = |conditions: &[(&str, &str, &str)]| -> Deployment {
        let one = |(kind, status, reason): &(&str, &str, &str)| json!({"type": kind, "status": status, "reason": reason, "message": "m"});
        let conditions: Vec<_> = conditions.iter().map(one).collect();
        serde_json::from_value(json!({"status": {"conditions": conditions}})).unwrap()
    };
    let up = ("Available", "True", "MinimumReplicasAvailable");
    let down = ("Available", "False", "MinimumReplicasUnavailable");
    for (conditions, want, transition) in [
        (&[][..], ("Unknown", ""), "InProgress"),
        (&[down], ("False", "MinimumReplicasUnavailable"), "InProgress"),
        (
            &[down, ("Progressing", "True", "ReplicaSetUpdated")],
            ("False", "MinimumReplicasUnavailable"),
            "InProgress",
        ),
        (&[up], ("True", "MinimumReplicasAvailable"), "UpToDate"),
        (
            &[up, ("Progressing", "True", "NewReplicaSetAvailable")],
            ("True", "NewReplicaSetAvailable"),
            "UpToDate",
        ),
        (
            &[up, ("Progressing", "True", "ReplicaSetUpdated")],
            ("Unknown", "ReplicaSetUpdated"),
            "InProgress",
        ),
        (
            &[up, ("Progressing", "False", "ProgressDeadlineExceeded")],
            ("False", "ProgressDeadlineExceeded"),
            "InProgress",
        ),
        (
            &[up, ("ReplicaFailure", "True", "FailedCreate")],
            ("False", "FailedCreate"),
            "InProgress",
        ),
    ] {
        let deployment = deployment(conditions);
        let seen = Seen {
            runtime: None,
            problem: None,
            deployment: Some(&deployment),
            pods: &[],
            now: Timestamp::UNIX_EPOCH,
        };
        let status = status(&aim(), &seen);
        assert_eq!(condition(&status, "PredictorReady"), want, "{conditions:?}");
        assert_eq!(condition(&status, "IngressReady").0, "True");
        let ready = condition(&status, "Ready");
        assert_eq!(ready.0, want.0, "{conditions:?}");
        assert_eq!(status["modelStatus"]["transitionStatus"], transition, "{conditions:?}");
        let url = "http://chat-predictor.n.svc.cluster.local";
        assert_eq!(status["address"]["url"], url);
        assert_eq!(status.get("url").is_some(), want.0 == "True", "{conditions:?}");
        assert_eq!(status["observedGeneration"], 3);
    }
}

#[test]
fn problems_and_failing_containers_are_the_last_failure() {
    let problem = Problem::new("RuntimeNotRecognized", "Waiting for runtime to become available");
    let now = Timestamp::UNIX_EPOCH;
    let seen = Seen { runtime: None, problem: Some(&problem), deployment: None, pods: &[], now };
    let told = status(&aim(), &seen);
    assert_eq!(condition(&told, "Ready"), ("False", "RuntimeNotRecognized"));
    assert_eq!(told["modelStatus"]["lastFailureInfo"]["reason"], "RuntimeNotRecognized");
    assert_eq!(told["modelStatus"]["transitionStatus"], "InvalidSpec");

    let pod: Pod = serde_json::from_value(json!({"status": {"containerStatuses": [{
        "name": "kserve-container", "image": "i", "imageID": "", "ready": false, "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 3, "message": "no weights"}},
    }]}}))
    .unwrap();
    let pods = [Arc::new(pod)];
    let deployment = Deployment::default();
    let deployment = Some(&deployment);
    let seen = Seen { runtime: None, problem: None, deployment, pods: &pods, now };
    let told = status(&aim(), &seen);
    assert_eq!(
        told["modelStatus"]["lastFailureInfo"],
        json!({"reason": "ModelLoadFailed", "message": "no weights", "exitCode": 3})
    );
    assert_eq!(told["modelStatus"]["transitionStatus"], "BlockedByFailedLoad");
}

#[test]
fn times_stay_while_nothing_changes_and_patches_hold_only_the_rest() {
    let seen = |now| Seen { runtime: None, problem: None, deployment: None, pods: &[], now };
    let mut service = aim();
    service.status = status(&service, &seen(Timestamp::UNIX_EPOCH));
    let later = status(&service, &seen(Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(9)));
    assert_eq!(difference(&service.status, &later), None);
    for (old, new, want) in [
        (
            json!({"a": 1, "b": {"c": 1, "d": 2}}),
            json!({"a": 1, "b": {"c": 3}}),
            json!({"b": {"c": 3, "d": null}}),
        ),
        (Value::Null, json!({"a": 1}), json!({"a": 1})),
        (json!({"a": [1]}), json!({"a": [2]}), json!({"a": [2]})),
    ] {
        let patch = difference(&old, &new).unwrap();
        assert_eq!(patch, want);
        let mut patched = old;
        json_patch::merge(&mut patched, &patch);
        assert_eq!(patched, new);
    }
}
