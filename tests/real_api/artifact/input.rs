use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use windlass_api::model::artifact::{ArtifactStatus, ModelArtifact};
use windlass_tests::{Need, Operator, kubelet, until};

use super::{create, manifest, message, pods_of, spec, wait, wait_job, wait_phase};

/// The base with one field set, or taken away by null.
fn changed(path: &str, value: Value) -> Value {
    let mut spec = spec();
    let (parent, field) = path.rsplit_once('/').unwrap();
    let parent = spec.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Value::Null => drop(parent.remove(field)),
        value => drop(parent.insert(field.to_owned(), value)),
    }
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_the_api_server_refuses_bad_input_with_a_clear_text() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("refused").await;
    let apply = |object: &Value| {
        cluster.try_kubectl(&["-n", &space.name, "apply", "-f", "-"], &object.to_string())
    };
    for kind in ["ModelArtifact", "Artifact"] {
        for (spec, want) in [
            (changed("/source", json!({})), "exactly one source must be specified"),
            (changed("/target/registry", json!("ghcr.io/org")), "spec.target.registry"),
            (changed("/target/tag", json!("")), "spec.target.tag"),
            (
                changed("/format", json!("Zip")),
                "spec.format: Unsupported value: \"Zip\": supported values: \"ModelPack\", \"ModelKit\"",
            ),
            (changed("/storage/size", Value::Null), "spec.storage.size: Required value"),
            (changed("/storage/size", json!("lots")), "spec.storage.size"),
        ] {
            let error = apply(&manifest(kind, "a", &spec)).expect_err("refused");
            assert!(error.contains(want), "{kind} {spec}: {error}");
        }
        let error = apply(&manifest(kind, &"a".repeat(64), &spec())).expect_err("refused");
        assert!(error.contains("at most 63 characters"), "{error}");
        apply(&manifest(kind, &"a".repeat(63), &spec())).expect("63 characters are allowed");
        apply(&manifest(kind, "b", &changed("/format", Value::Null)))
            .expect("format has a default");
        let resource = format!("{}s", kind.to_lowercase());
        let format = ["-n", &space.name, "get", &resource, "b", "-o", "jsonpath={.spec.format}"];
        assert_eq!(cluster.kubectl(&format, ""), "ModelPack");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_63_characters_runs() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("long").await;
    let _operator = Operator::start(&cluster, &space).await;
    let name = "a".repeat(63);
    create::<ModelArtifact>(&space, &name).await;
    let job = wait_job::<ModelArtifact>(&space, &name).await;
    kubelet::end_pod(&space, &pods_of(&job), super::PUSHED).await;
    wait_phase::<ModelArtifact>(&space, &name, "Succeeded").await;
}

fn with_secrets() -> Value {
    let mut spec = spec();
    spec["source"]["huggingFace"]["tokenSecretRef"] = json!({ "name": "hf-token" });
    spec["target"]["credentialsSecretRef"] = json!({ "name": "oci-creds" });
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn w10_a_missing_secret_is_named_by_the_pod_that_waits_for_it() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("waits").await;
    let _operator = Operator::start(&cluster, &space).await;
    let object = manifest("ModelArtifact", "a", &with_secrets());
    space.create(&serde_json::from_value::<ModelArtifact>(object).unwrap()).await;
    let job = wait_job::<ModelArtifact>(&space, "a").await;
    let text = r#"secret "hf-token" not found"#;
    kubelet::hold_pods(&space, &pods_of(&job), 1, "CreateContainerConfigError", text).await;
    // The Job may count its pod only after the pod waits.
    let named = |status: &ArtifactStatus| {
        message(status).contains(text) && status.phase.as_deref() == Some("Running")
    };
    let status = wait::<ModelArtifact>(&space, "a", "the Secret's name", named).await;
    assert_eq!(super::ready(&status).unwrap().reason, "JobRunning");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_secrets_may_be_read_a_missing_one_is_named_at_once_and_the_old_form_is_known() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("reads").await;
    let may = ["-n", &space.name, "create", "role", "reader", "--verb=get", "--resource=secrets"];
    cluster.kubectl(&may, "");
    let account = format!("--serviceaccount={}:windlass", space.name);
    cluster.kubectl(
        &["-n", &space.name, "create", "rolebinding", "reader", "--role=reader", &account],
        "",
    );
    let old_form = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "oci-creds" },
        "stringData": { "username": "u", "password": "p" } });
    space.create(&serde_json::from_value::<Secret>(old_form).unwrap()).await;
    let _operator = Operator::start(&cluster, &space).await;
    let object = manifest("ModelArtifact", "a", &with_secrets());
    space.create(&serde_json::from_value::<ModelArtifact>(object).unwrap()).await;
    let named =
        |status: &ArtifactStatus| message(status).contains("Secret hf-token does not exist");
    wait::<ModelArtifact>(&space, "a", "the Secret's name", named).await;
    let job = serde_json::to_value(wait_job::<ModelArtifact>(&space, "a").await).unwrap();
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"].as_array().unwrap().len(), 1, "no Docker configuration to mount");
    let text = pod["containers"][0]["env"].to_string();
    for (variable, key) in [("OCI_USER", "username"), ("OCI_PASS", "password")] {
        let want = format!(
            r#"{{"name":"{variable}","valueFrom":{{"secretKeyRef":{{"key":"{key}","name":"oci-creds"}}}}}}"#
        );
        assert!(text.contains(&want), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn w15_a_name_from_before_the_rule_still_runs() {
    let Some(cluster) = crate::private(&[], &[Need::Kubectl]).await else {
        return;
    };
    let space = cluster.space("before").await;
    let crd = "modelartifacts.model.otterscale.io";
    let without = r#"[{"op": "remove",
        "path": "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"}]"#;
    cluster.kubectl(&["patch", "crd", crd, "--type=json", "-p", without], "");
    let name = "a".repeat(70);
    let object = manifest("ModelArtifact", &name, &spec()).to_string();
    until("the rule to be gone", || async {
        cluster.try_kubectl(&["-n", &space.name, "apply", "-f", "-"], &object)
    })
    .await;
    cluster.install_crds().await;
    let _operator = Operator::start(&cluster, &space).await;
    let job = wait_job::<ModelArtifact>(&space, &name).await;
    kubelet::end_pod(&space, &pods_of(&job), super::PUSHED).await;
    wait_phase::<ModelArtifact>(&space, &name, "Succeeded").await;
}
