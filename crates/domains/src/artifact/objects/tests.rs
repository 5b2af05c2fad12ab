//! The children as they are written, and the script as a shell runs it.

mod script;

use serde_json::{Value, json};
use windlass_api::model::artifact::{Artifact, ArtifactKind, ModelArtifact};

use crate::artifact::Settings;
use crate::artifact::fixture::{artifact_with, base, look, nothing, settings, with};
use crate::artifact::names::Names;
use crate::artifact::run::Run;

use super::claim::claim;
use super::job::{Blueprint, Credentials, job, reference};

fn minimal() -> ModelArtifact {
    artifact_with(json!({
        "source": { "huggingFace": {
            "model": "org/model", "revision": null, "tokenSecretRef": null,
        }},
        "target": {
            "registry": "registry.local",
            "repository": "models/small",
            "tag": null,
            "credentialsSecretRef": null,
        },
        "format": "ModelKit",
        "storage": { "size": "10Gi" },
    }))
}

fn job_with<K: ArtifactKind>(settings: &Settings, artifact: &K, credentials: Credentials) -> Value {
    let run = Run { generation: 1, retry: None };
    let names = Names::of(artifact);
    let spec = artifact.spec();
    let made = job(Blueprint { names: &names, settings, spec, run: &run, credentials });
    serde_json::to_value(made).unwrap()
}

fn job_of<K: ArtifactKind>(artifact: &K) -> Value {
    job_with(&settings(), artifact, Credentials::DockerConfig)
}

fn claim_of<K: ArtifactKind>(artifact: &K) -> Value {
    let run = Run { generation: 1, retry: None };
    let made = claim(&Names::of(artifact), "test", &run, &artifact.spec().storage);
    serde_json::to_value(made).unwrap()
}

fn pod(job: &Value) -> &Value {
    &job["spec"]["template"]["spec"]
}

fn container(job: &Value) -> &Value {
    &pod(job)["containers"][0]
}

fn env(job: &Value) -> &Value {
    &container(job)["env"]
}

fn variable<'a>(job: &'a Value, name: &str) -> Option<&'a Value> {
    env(job).as_array().unwrap().iter().find(|variable| variable["name"] == name)
}

#[test]
fn a01_full_spec_gives_these_children() {
    let claim = claim_of(&base());
    assert_eq!(claim["metadata"]["name"], "phi-4-workspace");
    assert_eq!(claim["metadata"]["namespace"], "ml-team");
    assert_eq!(
        claim["spec"],
        json!({
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "100Gi" } },
        })
    );

    let job = job_of(&base());
    let name = job["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("phi-4-") && name.len() == "phi-4-".len() + 5, "{name}");
    assert_eq!(job["spec"]["backoffLimit"], 0);
    assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 3600);
    for field in ["completions", "parallelism", "activeDeadlineSeconds", "podFailurePolicy"] {
        assert!(job["spec"][field].is_null(), "{field}");
    }
    assert_eq!(
        env(&job),
        &json!([
            { "name": "OCI_TARGET", "value": "ghcr.io/myorg/models/phi-4:v1.0" },
            { "name": "FORMAT", "value": "ModelPack" },
            { "name": "DOCKER_CONFIG", "value": "/.docker" },
            { "name": "HF_REPO", "value": "microsoft/phi-4" },
            { "name": "HF_REVISION", "value": "main" },
            {
                "name": "HF_TOKEN",
                "valueFrom": { "secretKeyRef": { "name": "hf-token", "key": "token" } },
            },
        ])
    );
}

#[test]
fn a01_the_pod_is_unprivileged_and_needs_no_api() {
    let job = job_of(&base());
    let mut spec = pod(&job).clone();
    let containers = spec["containers"].take();
    assert_eq!(
        spec,
        json!({
            "automountServiceAccountToken": false,
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": true,
                "fsGroup": 1000,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": null,
            "volumes": [
                {
                    "name": "workspace",
                    "persistentVolumeClaim": { "claimName": "phi-4-workspace" },
                },
                { "name": "docker-config", "secret": {
                    "secretName": "oci-creds",
                    "items": [{ "key": ".dockerconfigjson", "path": "config.json" }],
                }},
            ],
        })
    );
    let mut only = containers[0].clone();
    assert_eq!(containers.as_array().unwrap().len(), 1);
    only["args"].take();
    only["env"].take();
    assert_eq!(
        only,
        json!({
            "name": "kit",
            "image": "ghcr.io/kitops-ml/kitops:v1.11.0",
            "command": ["/bin/sh", "-c"],
            "args": null,
            "env": null,
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "resources": { "requests": { "cpu": "100m", "memory": "256Mi" } },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": [
                { "name": "workspace", "mountPath": "/workspace" },
                { "name": "docker-config", "mountPath": "/.docker", "readOnly": true },
            ],
        })
    );
}

#[test]
fn a01_children_and_pods_carry_the_five_labels() {
    let labels = json!({
        "app.kubernetes.io/name": "phi-4",
        "app.kubernetes.io/component": "model-artifact",
        "app.kubernetes.io/part-of": "otterscale-system",
        "app.kubernetes.io/managed-by": "model-operator",
        "app.kubernetes.io/version": "test",
    });
    let job = job_of(&base());
    assert_eq!(claim_of(&base())["metadata"]["labels"], labels);
    assert_eq!(job["metadata"]["labels"], labels);
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
}

#[test]
fn without_a_version_there_is_no_version_label() {
    let unversioned = Settings { version: String::new(), ..settings() };
    let job = job_with(&unversioned, &base(), Credentials::DockerConfig);
    assert_eq!(job["metadata"]["labels"].as_object().unwrap().len(), 4);
    assert_eq!(job["metadata"]["labels"].get("app.kubernetes.io/version"), None);
}

#[test]
fn a02_minimal_spec_leaves_out_what_is_not_asked_for() {
    let job = job_of(&minimal());
    assert_eq!(
        env(&job),
        &json!([
            { "name": "OCI_TARGET", "value": "registry.local/models/small:latest" },
            { "name": "FORMAT", "value": "ModelKit" },
            { "name": "DOCKER_CONFIG", "value": "/.docker" },
            { "name": "HF_REPO", "value": "org/model" },
        ])
    );
    assert_eq!(pod(&job)["volumes"].as_array().unwrap().len(), 1);
    assert_eq!(container(&job)["volumeMounts"].as_array().unwrap().len(), 1);
}

#[test]
fn a03_a_port_stays_in_the_reference_and_no_tag_is_latest() {
    for (registry, repository, tag, want) in [
        (
            "registry.local:5001",
            "facebook/opt-125m",
            Some("dev"),
            "registry.local:5001/facebook/opt-125m:dev",
        ),
        ("ghcr.io", "a/b", None, "ghcr.io/a/b:latest"),
        // Stored before the schema asked for a length.
        ("ghcr.io", "a/b", Some(""), "ghcr.io/a/b:latest"),
    ] {
        let target = json!({ "registry": registry, "repository": repository, "tag": tag });
        let artifact = artifact_with(json!({ "target": target }));
        assert_eq!(reference(&artifact.spec.target), want);
        assert_eq!(variable(&job_of(&artifact), "OCI_TARGET").unwrap()["value"], want);
    }
}

#[test]
fn a04_insecure_targets_are_pushed_to_over_plain_http() {
    let insecure = job_of(&artifact_with(json!({ "target": { "insecure": true } })));
    assert_eq!(variable(&insecure, "PLAIN_HTTP").unwrap()["value"], "true");
    let names: Vec<&str> =
        env(&insecure).as_array().unwrap().iter().map(|v| v["name"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["OCI_TARGET", "FORMAT", "DOCKER_CONFIG", "PLAIN_HTTP"]);
    assert_eq!(variable(&job_of(&base()), "PLAIN_HTTP"), None);
}

#[test]
fn a05_a_storage_class_is_passed_on_even_if_it_is_empty() {
    for class in ["fast-ssd", ""] {
        let artifact = artifact_with(json!({ "storage": { "storageClassName": class } }));
        assert_eq!(claim_of(&artifact)["spec"]["storageClassName"], class);
    }
    assert!(claim_of(&base())["spec"].get("storageClassName").is_none());
}

#[test]
fn a06_a_token_without_a_key_is_under_token() {
    for (key, want) in [(None, "token"), (Some(""), "token"), (Some("hf"), "hf")] {
        let source =
            json!({ "huggingFace": { "tokenSecretRef": { "name": "hf-token", "key": key } } });
        let job = job_of(&artifact_with(json!({ "source": source })));
        let reference = &variable(&job, "HF_TOKEN").unwrap()["valueFrom"]["secretKeyRef"];
        assert_eq!(*reference, json!({ "name": "hf-token", "key": want }));
    }
}

#[test]
fn w06_the_log_speaks_where_a_failed_run_wrote_no_message() {
    let job = job_of(&base());
    assert_eq!(container(&job)["terminationMessagePolicy"], "FallbackToLogsOnError");
}

#[test]
fn w12_and_w13_a_job_is_named_by_its_run_and_held_until_it_is_read() {
    let job = job_of(&base());
    assert_eq!(job["metadata"].get("generateName"), None);
    assert_eq!(job["metadata"]["finalizers"], json!(["windlass.dev/result"]));
    assert_eq!(job["metadata"]["annotations"], json!({ "model.otterscale.io/generation": "1" }));
    assert_eq!(claim_of(&base())["metadata"]["annotations"], job["metadata"]["annotations"]);
}

#[test]
fn w10_an_administrator_may_bound_the_time_of_a_run() {
    let bounded = Settings { active_deadline_seconds: Some(7200), ..settings() };
    let job = job_with(&bounded, &base(), Credentials::DockerConfig);
    assert_eq!(job["spec"]["activeDeadlineSeconds"], 7200);
}

#[test]
fn w21_the_place_of_the_docker_config_is_named_even_if_nothing_is_there() {
    assert_eq!(variable(&job_of(&minimal()), "DOCKER_CONFIG").unwrap()["value"], "/.docker");
}

#[test]
fn a_secret_in_the_old_form_becomes_a_login() {
    let job = job_with(&settings(), &base(), Credentials::Login);
    let last = env(&job).as_array().unwrap()[6..].to_vec();
    let from = |key: &str| json!({ "secretKeyRef": { "name": "oci-creds", "key": key } });
    assert_eq!(
        last,
        [
            json!({ "name": "OCI_USER", "valueFrom": from("username") }),
            json!({ "name": "OCI_PASS", "valueFrom": from("password") }),
        ]
    );
    assert_eq!(pod(&job)["volumes"].as_array().unwrap().len(), 1);
    assert_eq!(container(&job)["volumeMounts"].as_array().unwrap().len(), 1);
}

#[test]
fn our_own_image_runs_one_command_and_any_other_a_script() {
    for (image, own) in [
        ("ghcr.io/windlass/windlass:0.1.0", true),
        ("windlass", true),
        (
            "mirror.local:5000/a/windlass@sha256:0000000000000000000000000000000000000000000000000000000000000000",
            true,
        ),
        ("ghcr.io/kitops-ml/kitops:v1.11.0", false),
        ("ghcr.io/windlass/kitops:1", false),
        ("ghcr.io/x/not-windlass:1", false),
        // The API server will say what is wrong with it.
        ("no image at all", false),
    ] {
        let settings = Settings { kit_image: image.to_owned(), ..settings() };
        let job = job_with(&settings, &base(), Credentials::DockerConfig);
        assert_eq!(container(&job)["image"], image);
        if own {
            let args = json!([
                "kit",
                "publish",
                "--workspace=/workspace",
                "--digest-file=/dev/termination-log",
            ]);
            assert_eq!(container(&job)["command"], json!(["windlass"]), "{image}");
            assert_eq!(container(&job)["args"], args, "{image}");
        } else {
            assert_eq!(container(&job)["command"], json!(["/bin/sh", "-c"]), "{image}");
            assert_eq!(container(&job)["args"].as_array().unwrap().len(), 1, "{image}");
        }
    }
}

#[test]
fn both_kinds_become_the_same_children() {
    let alias: Artifact = {
        let mut value = serde_json::to_value(base()).unwrap();
        value["kind"] = "Artifact".into();
        serde_json::from_value(value).unwrap()
    };
    assert_eq!(job_of(&alias), job_of(&base()));
    assert_eq!(claim_of(&alias), claim_of(&base()));
    assert_eq!(look(&alias, nothing()).plan, look(&base(), nothing()).plan);
}

#[test]
fn w15_long_names_become_valid_labels_and_others_stay_as_they_are() {
    for (length, is_itself) in [(5, true), (63, true), (64, false), (253, false)] {
        let name: String = "abcde".chars().cycle().take(length).collect();
        let artifact = with(&base(), json!({ "metadata": { "name": name } }));
        let job = job_of(&artifact);
        let label = job["metadata"]["labels"]["app.kubernetes.io/name"].as_str().unwrap();
        assert_eq!(label == name, is_itself, "{length}");
        assert!(label.len() <= 63, "{label}");
        let of_pod = &job["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"];
        assert_eq!(of_pod, label, "{length}");
        let job_name = job["metadata"]["name"].as_str().unwrap();
        assert!(job_name.len() <= 63, "{job_name}");
        let prefix: String = format!("{name}-").chars().take(58).collect();
        assert!(job_name.starts_with(&prefix), "{job_name}");
        assert_eq!(claim_of(&artifact)["metadata"]["name"], format!("{name}-workspace"));
    }
}
