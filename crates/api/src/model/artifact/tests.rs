use kube_cel::Validator;
use serde_json::{Value, json};

use super::*;

fn base() -> Value {
    json!({
        "apiVersion": "model.otterscale.io/v1alpha1",
        "kind": "ModelArtifact",
        "metadata": { "name": "phi-4", "namespace": "ml-team" },
        "spec": {
            "source": { "huggingFace": {
                "model": "microsoft/phi-4",
                "revision": "main",
                "tokenSecretRef": { "name": "hf-token", "key": "token" },
            } },
            "target": {
                "registry": "ghcr.io",
                "repository": "myorg/models/phi-4",
                "tag": "v1.0",
                "credentialsSecretRef": { "name": "oci-creds" },
            },
            "format": "ModelPack",
            "storage": { "size": "100Gi" },
        },
    })
}

/// The base with the value at `pointer` replaced.
fn with(pointer: &str, value: Value) -> Value {
    let mut object = base();
    *object.pointer_mut(pointer).unwrap() = value;
    object
}

fn schema(crd: &CustomResourceDefinition) -> Value {
    let version = &crd.spec.versions[0];
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    serde_json::to_value(schema.unwrap()).unwrap()
}

/// The texts of all rules that a write breaks; a creation has no old object.
fn broken_rules(object: &Value, old: Option<&Value>) -> Vec<String> {
    let schema = schema::for_kube_cel(schema(&model_artifact_crd()));
    let Err(errors) = Validator::new().validate(&schema, object, old) else { return vec![] };
    errors.into_iter().map(|error| error.message).collect()
}

/// The value rules of a field: its schema without type and text.
fn value_rules(pointer: &str) -> Value {
    let schema = schema(&model_artifact_crd());
    let mut field = schema.pointer(&path(pointer)).unwrap().clone();
    for noise in ["description", "type", "properties", "x-kubernetes-validations"] {
        field.as_object_mut().unwrap().remove(noise);
    }
    field
}

/// `/spec/target` to `/properties/spec/properties/target`.
fn path(pointer: &str) -> String {
    pointer.replace('/', "/properties/")
}

#[test]
fn a13_a_source_without_member_is_refused_with_the_text_of_the_rule() {
    assert_eq!(broken_rules(&base(), None), [""; 0]);
    assert_eq!(
        broken_rules(&with("/spec/source", json!({})), None),
        ["exactly one source must be specified"]
    );
    let rules = schema(&model_artifact_crd());
    assert_eq!(
        rules.pointer(&(path("/spec/source") + "/x-kubernetes-validations")).unwrap(),
        &json!([{
            "rule": "[has(self.huggingFace)].filter(x, x).size() == 1",
            "message": "exactly one source must be specified",
        }])
    );
}

#[test]
fn a13_each_field_has_the_value_rules_of_the_contract_and_no_others() {
    let id = "^[a-zA-Z0-9][a-zA-Z0-9._/-]*$";
    let quantity = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
    for (field, want) in [
        ("/spec", json!({ "required": ["source", "storage", "target"] })),
        ("/spec/source", json!({})),
        ("/spec/source/huggingFace", json!({ "required": ["model"] })),
        (
            "/spec/source/huggingFace/model",
            json!({ "minLength": 1, "maxLength": 253, "pattern": id }),
        ),
        (
            "/spec/source/huggingFace/revision",
            json!({ "minLength": 1, "maxLength": 253, "pattern": "^[a-zA-Z0-9._/-]*$" }),
        ),
        ("/spec/source/huggingFace/tokenSecretRef", json!({ "required": ["name"] })),
        ("/spec/source/huggingFace/tokenSecretRef/name", json!({ "minLength": 1 })),
        ("/spec/source/huggingFace/tokenSecretRef/key", json!({})),
        ("/spec/target", json!({ "required": ["registry", "repository"] })),
        (
            "/spec/target/registry",
            json!({
                "minLength": 1,
                "maxLength": 253,
                "pattern": "^[a-zA-Z0-9][a-zA-Z0-9._:-]*$",
            }),
        ),
        ("/spec/target/repository", json!({ "minLength": 1, "maxLength": 253, "pattern": id })),
        (
            "/spec/target/tag",
            json!({ "minLength": 1, "maxLength": 128, "pattern": "^[a-zA-Z0-9][a-zA-Z0-9._-]*$" }),
        ),
        ("/spec/target/credentialsSecretRef", json!({ "required": ["name"] })),
        ("/spec/target/credentialsSecretRef/name", json!({ "minLength": 1 })),
        ("/spec/target/insecure", json!({})),
        ("/spec/format", json!({ "default": "ModelPack", "enum": ["ModelPack", "ModelKit"] })),
        ("/spec/storage", json!({ "required": ["size"] })),
        ("/spec/storage/size", json!({ "x-kubernetes-int-or-string": true, "pattern": quantity })),
        ("/spec/storage/storageClassName", json!({})),
        ("/status", json!({})),
        ("/status/observedGeneration", json!({ "format": "int64" })),
        ("/status/phase", json!({})),
        ("/status/jobRef", json!({ "required": ["name"] })),
        ("/status/startTime", json!({ "format": "date-time" })),
        ("/status/completionTime", json!({ "format": "date-time" })),
        ("/status/observedRetry", json!({})),
    ] {
        assert_eq!(value_rules(field), want, "{field}");
    }
    assert_eq!(schema(&model_artifact_crd())["required"], json!(["spec"]));
}

#[test]
fn a_new_name_fits_a_label_and_an_old_one_may_still_get_a_status() {
    let longest = with("/metadata/name", "a".repeat(63).into());
    assert_eq!(broken_rules(&longest, None), [""; 0]);
    let too_long = with("/metadata/name", "a".repeat(64).into());
    assert_eq!(
        broken_rules(&too_long, None),
        ["metadata.name must be at most 63 characters, because it is the value of a label on the \
          Job and its pods"]
    );
    let mut reported = too_long.clone();
    reported["status"] = json!({ "phase": "Pending" });
    assert_eq!(broken_rules(&reported, Some(&too_long)), [""; 0]);
}

#[test]
fn a_full_object_is_written_as_it_was_read() {
    for kind in ["ModelArtifact", "Artifact"] {
        let mut full = with("/kind", kind.into());
        full["spec"]["target"]["insecure"] = true.into();
        full["spec"]["storage"]["storageClassName"] = "fast-ssd".into();
        full["status"] = json!({
            "observedGeneration": 2,
            "phase": "Succeeded",
            "digest": "sha256:abc",
            "reference": "ghcr.io/myorg/models/phi-4:v1.0",
            "jobRef": { "name": "phi-4-x7k2p", "namespace": "ml-team" },
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:10:00Z",
            "observedRetry": "1",
            "conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "Succeeded",
                "message": "Model artifact pushed successfully",
                "lastTransitionTime": "2026-01-01T00:10:00Z",
            }],
        });
        let written = if kind == "Artifact" {
            serde_json::to_value(serde_json::from_value::<Artifact>(full.clone()).unwrap())
        } else {
            serde_json::to_value(serde_json::from_value::<ModelArtifact>(full.clone()).unwrap())
        };
        assert_eq!(written.unwrap(), full);
    }
}

#[test]
fn what_a_spec_leaves_out_is_absent_but_for_the_format() {
    let minimal = json!({
        "source": { "huggingFace": { "model": "org/model" } },
        "target": { "registry": "registry.local", "repository": "models/small" },
        "storage": { "size": "10Gi" },
    });
    let spec: ArtifactSpec = serde_json::from_value(minimal.clone()).unwrap();
    assert_eq!((&spec.target.tag, spec.target.insecure), (&None, false));
    let mut stored = minimal;
    // The API server fills in the same value, so a stored object reads the same.
    stored["format"] = value_rules("/spec/format")["default"].clone();
    assert_eq!(serde_json::to_value(&spec).unwrap(), stored);
}

#[test]
fn an_object_with_odd_values_is_still_readable() {
    fn read<K: ArtifactKind>() {
        let object: K = serde_json::from_value(json!({
            "metadata": { "name": "odd" },
            "spec": {
                "source": {},
                "target": { "registry": "ghcr.io/org", "repository": "", "tag": "" },
                "format": "Zip",
                "storage": { "size": 1024 },
            },
            "status": { "phase": "Paused", "jobRef": { "name": "odd-1" } },
        }))
        .unwrap();
        assert_eq!(object.spec().format, "Zip");
        assert_eq!(object.spec().storage.size, Quantity("1024".to_owned()));
        let status = object.status().unwrap();
        assert_eq!(status.phase.as_deref(), Some("Paused"));
        assert!(status.conditions.is_empty());
    }
    read::<ModelArtifact>();
    read::<Artifact>();
    assert_eq!(
        serde_json::from_value::<ArtifactStatus>(json!({})).unwrap(),
        ArtifactStatus::default()
    );
}

#[test]
fn the_definition_is_what_kubectl_shows() {
    let crd = model_artifact_crd();
    let version = &crd.spec.versions[0];
    let columns: Vec<_> = version
        .additional_printer_columns
        .iter()
        .flatten()
        .map(|column| {
            let priority = column.priority.unwrap_or_default();
            (column.name.as_str(), column.type_.as_str(), column.json_path.as_str(), priority)
        })
        .collect();
    assert_eq!(
        columns,
        [
            ("Phase", "string", ".status.phase", 0),
            ("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#, 0),
            ("Registry", "string", ".spec.target.registry", 0),
            ("Repository", "string", ".spec.target.repository", 0),
            ("Digest", "string", ".status.digest", 1),
            ("Age", "date", ".metadata.creationTimestamp", 0),
        ]
    );
    let subresources = version.subresources.as_ref().unwrap();
    assert!(subresources.status.is_some() && subresources.scale.is_none());
    assert_eq!((version.name.as_str(), version.served, version.storage), ("v1alpha1", true, true));
    assert_eq!(crd.spec.scope, "Namespaced");
}

#[test]
fn the_two_definitions_differ_in_their_names_alone() {
    let mut model_artifact = serde_json::to_value(model_artifact_crd()).unwrap();
    let mut artifact = serde_json::to_value(artifact_crd()).unwrap();
    for (crd, name, names) in [
        (
            &mut model_artifact,
            "modelartifacts.model.otterscale.io",
            ["ModelArtifact", "modelartifacts", "modelartifact"],
        ),
        (&mut artifact, "artifacts.model.otterscale.io", ["Artifact", "artifacts", "artifact"]),
    ] {
        assert_eq!(crd["metadata"].take(), json!({ "name": name }));
        let [kind, plural, singular] = names;
        assert_eq!(
            crd["spec"]["names"].take(),
            json!({
                "kind": kind,
                "plural": plural,
                "singular": singular,
                "categories": ["otterscale"],
            })
        );
    }
    assert_eq!(model_artifact, artifact);
    assert_eq!(Artifact::api_version(&()), ModelArtifact::api_version(&()));
}

#[test]
fn conditions_are_keyed_by_type_and_nothing_is_nullable() {
    let schema = schema(&model_artifact_crd());
    let conditions = &schema["properties"]["status"]["properties"]["conditions"];
    assert_eq!(conditions["x-kubernetes-list-type"], "map");
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
    assert!(!schema.to_string().contains("\"nullable\""));
}

#[test]
fn both_kinds_are_installed() {
    let names: Vec<_> = crate::crds().into_iter().filter_map(|crd| crd.metadata.name).collect();
    for name in ["modelartifacts.model.otterscale.io", "artifacts.model.otterscale.io"] {
        assert!(names.iter().any(|installed| installed == name), "{names:?}");
    }
}
