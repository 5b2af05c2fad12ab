use kube::api::{Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_api::aim::image::AimImage;
use windlass_api::aim::template::AimServiceTemplate;
use windlass_tests::logs::LogNode;
use windlass_tests::{Operator, Space};

use super::{
    ANSWER, answer, create_image, create_template, image_spec, jobs, resource, see, wait_for,
    wait_template,
};

const IMAGE: &str = "registry.example.com/aim/tiny-lm:1.4.0";

/// As the predecessor writes: under its own name, and not by apply.
fn by_predecessor() -> Option<String> {
    Some("manager".to_owned())
}

pub(super) async fn report(space: &Space, name: &str, status: Value) {
    let params = PatchParams { field_manager: by_predecessor(), ..Default::default() };
    let patch = Patch::Merge(json!({ "status": status }));
    space.api::<AimServiceTemplate>().patch_status(name, &params, &patch).await.unwrap();
}

/// What it serves from the template.
pub(super) async fn serve(space: &Space, name: &str) -> DynamicObject {
    let template = space.get::<AimServiceTemplate>(name).await.unwrap();
    let runtime = json!({
        "apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime",
        "metadata": {
            "name": name,
            "labels": { "app.kubernetes.io/name": "aim-runtime",
                "app.kubernetes.io/component": "serving-runtime",
                "app.kubernetes.io/managed-by": "aim-controller",
                "aim.silogen.ai/model-id": "tiny-lm" },
            "ownerReferences": [{
                "apiVersion": "aim.silogen.ai/v1alpha1", "kind": "AIMServiceTemplate",
                "name": name, "uid": template.uid(), "controller": true,
                "blockOwnerDeletion": true }],
        },
        "spec": { "supportedModelFormats": [{ "name": "aim", "version": "1" }],
            "containers": [{ "name": "kserve-container", "image": IMAGE }] },
    });
    let kind = resource("ServingRuntime");
    let api: Api<DynamicObject> = Api::namespaced_with(space.client.clone(), &space.name, &kind);
    let params = PostParams { field_manager: by_predecessor(), ..Default::default() };
    api.create(&params, &serde_json::from_value(runtime).unwrap()).await.unwrap()
}

pub(super) fn reported() -> Value {
    json!({
        "status": "Available", "observedGeneration": 1,
        "modelSources": [{ "name": "m", "sourceUri": "hf://m", "size": "1Gi" }],
        "profile": { "metadata": { "gpu": "MI300X", "gpu_count": 2, "precision": "fp8" },
            "env_vars": { "OLD": "1" } },
        "resolvedImage": { "name": "tiny-lm", "namespace": "left-over", "scope": "Cluster" },
        "conditions": [{ "type": "Discovered", "status": "True", "reason": "Discovered",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
    })
}

/// The catalogue goes on to another image.
pub(super) async fn update_image(space: &Space) {
    let other = image_spec(&IMAGE.replace("1.4.0", "2.0.0"), "");
    space.edit::<AimImage>("tiny-lm", json!({ "spec": other })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w05_what_a_predecessor_was_told_counts_until_the_image_changes() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("before").await;
    let node = LogNode::start(&space).await;
    create_image(&space, "tiny-lm", "").await;
    create_template(&space, "tiny", json!({})).await;
    report(&space, "tiny", reported()).await;
    let runtime = serve(&space, "tiny").await;
    let _operator = Operator::start(&cluster, &space).await;

    let known = |now: &Value| now["status"]["discovery"]["inputs"].is_string();
    let ready = wait_for::<AimServiceTemplate>(&space, "tiny", "a record", known).await;
    assert_eq!(ready["status"]["status"], "Available");
    assert_eq!(ready["status"]["profile"]["metadata"]["gpu_count"], 2);
    assert!(jobs(&space, "tiny").await.is_empty(), "nobody is asked");
    let two =
        |now: &Value| now["spec"]["containers"][0]["resources"]["limits"]["amd.com/gpu"] == "2";
    let now = see(&space, "ServingRuntime", "tiny", two).await;
    assert_eq!(now["metadata"]["uid"].as_str(), runtime.metadata.uid.as_deref());

    update_image(&space).await;
    let less = ANSWER.replace("\"gpu_count\": 2, ", "").replace("\"precision\": \"fp4\", ", "");
    assert_ne!(less, ANSWER);
    answer(&space, &node, "tiny", less).await;
    // Nothing of the old answer is left, though the predecessor still holds its fields.
    let fresh = |now: &Value| {
        let profile = &now["status"]["profile"];
        profile["env_vars"] == json!({ "VLLM_USE_V1": "1" })
            && profile["metadata"]
                == json!({ "engine": "vllm", "gpu": "MI300X", "metric": "latency" })
    };
    wait_for::<AimServiceTemplate>(&space, "tiny", "the new answer alone", fresh).await;
    let last = wait_template(&space, "tiny", "Available").await;
    assert_eq!(last["status"]["resolvedImage"]["scope"], "Namespace");
}

/// What runs shows which image has answered, and that one is no longer in the catalogue.
#[tokio::test(flavor = "multi_thread")]
async fn w05_an_image_that_has_changed_before_the_start_is_asked() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("changed").await;
    let node = LogNode::start(&space).await;
    create_image(&space, "tiny-lm", "").await;
    create_template(&space, "tiny", json!({})).await;
    report(&space, "tiny", reported()).await;
    serve(&space, "tiny").await;
    update_image(&space).await;
    let _operator = Operator::start(&cluster, &space).await;

    answer(&space, &node, "tiny", ANSWER).await;
    let fresh = |now: &Value| {
        let status = &now["status"];
        status["profile"]["env_vars"] == json!({ "VLLM_USE_V1": "1" })
            && status["discovery"]["inputs"].is_string()
            && status["modelSources"][0]["sourceUri"] != "hf://m"
    };
    wait_for::<AimServiceTemplate>(&space, "tiny", "the new answer", fresh).await;
    let follows = |now: &Value| {
        let container = &now["spec"]["containers"][0];
        container["image"] == IMAGE.replace("1.4.0", "2.0.0") && container["env"][0]["value"] != "m"
    };
    see(&space, "ServingRuntime", "tiny", follows).await;
    let last = wait_template(&space, "tiny", "Available").await;
    assert!(fresh(&last), "the answer stays: {last}");
}
