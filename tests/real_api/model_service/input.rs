use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_tests::{Need, Operator, until};

use super::{children, condition, create, make_ready, manifest, see, wait};

/// The base with one field of its spec set, or taken away by null.
fn with(path: &str, value: Value) -> Value {
    let mut object = manifest("a", &json!({}));
    let (parent, field) = path.rsplit_once('/').unwrap();
    let parent = object["spec"].pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Value::Null => drop(parent.remove(field)),
        value => drop(parent.insert(field.to_owned(), value)),
    }
    object
}

fn picker(picker: &Value) -> Value {
    with("/inferencePool", json!({ "endpointPicker": picker }))
}

const PROXY: &str = "prefill needs routingProxy, which hands prompts over to the prefill pods";
const TARGET: &str =
    "routingProxy targetPort must differ from engine port, which the proxy itself uses";
const PICKER: &str = "inferencePool endpointPicker port must not be 9003 or 9090";
const NAME: &str = "metadata.name must have at most 59 characters, or 57 if it begins with a digit";

#[tokio::test(flavor = "multi_thread")]
async fn m16_the_api_server_refuses_bad_input_with_a_clear_text() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("refused").await;
    let apply = |object: &Value| {
        cluster.try_kubectl(&["-n", &space.name, "apply", "-f", "-"], &object.to_string())
    };
    for (object, want) in [
        (with("/prefill", json!({})), PROXY),
        (with("/routingProxy", json!({ "targetPort": 8000 })), TARGET),
        (picker(&json!({ "port": 9003 })), PICKER),
        (picker(&json!({ "port": 9090 })), PICKER),
        (picker(&json!({ "port": 70000 })), "spec.inferencePool.endpointPicker.port"),
        (picker(&json!({ "replicas": -1 })), "spec.inferencePool.endpointPicker.replicas"),
        (
            picker(&json!({ "failureMode": "Fail" })),
            "supported values: \"FailOpen\", \"FailClose\"",
        ),
        (with("/inferencePool", json!({})), "spec.inferencePool.endpointPicker: Required value"),
        (with("/model", Value::Null), "spec.model: Required value"),
        (with("/model/name", json!("")), "spec.model.name"),
        (with("/model/image", json!("")), "spec.model.image"),
        (with("/engine/port", json!(0)), "spec.engine.port"),
        (with("/accelerator/type", json!("tpu")), "supported values: \"nvidia\", \"amd\""),
        (with("/decode/replicas", json!(-1)), "spec.decode.replicas"),
        (with("/decode/parallelism/tensor", json!(0)), "spec.decode.parallelism.tensor"),
        (with("/httpRoute", json!({})), "spec.httpRoute.gatewayRef: Required value"),
        (manifest(&"a".repeat(60), &json!({})), NAME),
        (manifest(&format!("0{}", "a".repeat(57)), &json!({})), NAME),
    ] {
        let error = apply(&object).expect_err(want);
        assert!(error.contains(want), "{want}: {error}");
    }
    for object in [
        manifest(&"a".repeat(59), &json!({})),
        manifest(&format!("0{}", "a".repeat(56)), &json!({})),
        with("/routingProxy", json!({ "targetPort": 8001 })),
        picker(&json!({ "port": 9004 })),
        with("/decode", json!({})),
    ] {
        apply(&object).unwrap_or_else(|error| panic!("{object}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn m16_the_longest_name_there_may_be_converges() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("longest").await;
    let _operator = Operator::start(&cluster, &space).await;
    let name = "a".repeat(59);
    create(&space, &name, super::everything()).await;
    make_ready(&space, &name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m16_what_only_the_operator_can_judge_is_an_invalid_spec() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("judged").await;
    let _operator = Operator::start(&cluster, &space).await;
    let nixl = json!([{ "name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "8000" }]);
    let mut side_channel = with("/engine/env", nixl);
    side_channel["spec"]["routingProxy"] = json!({});
    let volume = json!([{ "name": "model", "emptyDir": {} }]);
    let mount = json!([{ "name": "x", "mountPath": "/models" }]);
    let long = format!("a--{}", "b".repeat(60));
    for (name, mut object, want) in [
        (
            "nixl",
            side_channel,
            "engine env VLLM_NIXL_SIDE_CHANNEL_PORT must differ from engine port",
        ),
        ("volume", with("/decode/volumes", volume), "decode volumes must not have the name model"),
        ("mount", with("/decode/volumeMounts", mount), "decode volumeMounts must not use /models"),
        (
            "memory",
            with("/decode/sharedMemory", json!({ "sizeLimit": "0" })),
            "decode sharedMemory sizeLimit must be a positive quantity",
        ),
        (&long, manifest("a", &json!({})), NAME),
    ] {
        object["metadata"]["name"] = json!(name);
        space.create::<ModelService>(&serde_json::from_value(object).unwrap()).await;
        let told = wait(&space, name, "Ready", "False", "InvalidSpec").await;
        let message = condition(&told, "Ready")["message"].as_str().unwrap();
        assert!(message.contains(want), "{name}: {message}");
        assert_eq!(told["status"]["phase"], "Failed", "{name}");
    }
    assert!(children(&space).await.is_empty());
}

/// Rules that were added later do not reach stored objects.
#[tokio::test(flavor = "multi_thread")]
async fn m16_what_was_stored_before_a_rule_is_refused_and_its_pods_run_on() {
    let Some(cluster) = crate::private(&[], &[Need::Kubectl]).await else {
        return;
    };
    let space = cluster.space("before").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    make_ready(&space, "a").await;
    let before = space.get::<Deployment>("a-decode").await.unwrap();

    let crd = "modelservices.model.otterscale.io";
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let without = json!([{ "op": "remove", "path": format!("{schema}/x-kubernetes-validations") }]);
    cluster.kubectl(&["patch", "crd", crd, "--type=json", "-p", &without.to_string()], "");
    let bad = json!({ "spec": { "prefill": {} } }).to_string();
    until("the rule to be gone", || async {
        let patch = ["-n", &space.name, "patch", "modelservice", "a", "--type=merge", "-p", &bad];
        cluster.try_kubectl(&patch, "")
    })
    .await;
    cluster.install_crds().await;
    let object = wait(&space, "a", "Ready", "False", "InvalidSpec").await;
    assert_eq!(condition(&object, "Ready")["message"], PROXY);
    assert_eq!(object["status"]["phase"], "Failed");
    let after = space.get::<Deployment>("a-decode").await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
    assert!(space.get::<Deployment>("a-prefill").await.is_none());

    space.edit::<ModelService>("a", json!({ "spec": { "prefill": null } })).await;
    wait(&space, "a", "Ready", "True", "AllReplicasReady").await;
}

/// Plain writes take such lists, server-side apply does not.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_named_twice_is_written_once() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("twice-named").await;
    let _operator = Operator::start(&cluster, &space).await;
    let secrets = json!([{ "name": "s" }, { "name": "s" }]);
    let env = json!([{ "name": "A", "value": "1" }, { "name": "A", "value": "2" }]);
    let more = json!({
        "model": { "name": "m", "image": "r.example.com/m:1", "imagePullSecrets": secrets },
        "engine": { "env": env },
    });
    create(&space, "a", more).await;
    wait(&space, "a", "Ready", "False", "PodsStarting").await;
    let pod =
        see(&space, "Deployment", "a-decode", |_| true).await["spec"]["template"]["spec"].take();
    assert_eq!(pod["imagePullSecrets"], json!([{ "name": "s" }]));
    let named = pod["containers"][0]["env"].as_array().unwrap().iter().filter(|e| e["name"] == "A");
    assert_eq!(named.count(), 1);
}
