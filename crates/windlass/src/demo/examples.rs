//! What is shown: the files of the folder of examples that are for a laptop.

use std::path::Path;

use serde_json::Value;

use super::tree::word;
use crate::documents;

/// The registry of the files, which is where `windlass up` usually has its own.
const REGISTRY: &str = "localhost:5000";
const CHAT: &str = "/v1/chat/completions";

/// What can be in the trees.
pub(super) const KINDS: &[(&str, &str)] = &[
    ("model.otterscale.io/v1alpha1", "Artifact"),
    ("model.otterscale.io/v1alpha1", "ModelService"),
    ("aim.silogen.ai/v1alpha1", "AIMServiceTemplate"),
    ("aim.silogen.ai/v1alpha1", "AIMService"),
    ("serving.kserve.io/v1beta1", "InferenceService"),
    ("serving.zerfoo.com/v1alpha1", "ZerfooInferenceService"),
    ("batch/v1", "Job"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("inference.networking.k8s.io/v1", "InferencePool"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
];

/// A file and how its model is asked.
pub(super) struct Example {
    name: &'static str,
    text: &'static str,
    pub(super) path: &'static str,
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// As requests name it; whoever answers takes any request if they name none.
    pub(super) model: Option<&'static str>,
    pub(super) requests: u32,
}

const LAPTOP: Example = Example {
    name: "laptop.yaml",
    text: include_str!("../../../../examples/laptop.yaml"),
    path: CHAT,
    headers: &[("OtterScale-Model-Name", "smollm2")],
    model: Some("smollm2"),
    requests: 1,
};

const AIM: Example = Example {
    name: "laptop-aim.yaml",
    text: include_str!("../../../../examples/laptop-aim.yaml"),
    path: "/default/smollm2-aim/v1/chat/completions",
    headers: &[],
    model: None,
    requests: 1,
};

/// Asked often enough to see both of its models.
const CANARY: Example = Example {
    name: "laptop-canary.yaml",
    text: include_str!("../../../../examples/laptop-canary.yaml"),
    path: CHAT,
    headers: &[("Host", "smollm2.localhost")],
    model: None,
    requests: 4,
};

pub(super) fn wanted(all: bool) -> Vec<Example> {
    if all { vec![LAPTOP, AIM, CANARY] } else { vec![LAPTOP] }
}

impl Example {
    /// In their order, with the registry as it is this time.
    pub(super) fn objects(&self, registry: &str) -> anyhow::Result<Vec<Value>> {
        let text = self.text.replace(REGISTRY, registry);
        let documents = documents::parse(Path::new(self.name), &text)?;
        Ok(documents.into_iter().map(|document| document.value).collect())
    }
}

/// The name of the step that brings an object.
pub(super) fn step(object: &Value) -> &'static str {
    match word(&object["kind"]) {
        "Artifact" => "artifact",
        "AIMServiceTemplate" => "template",
        "AIMImage" => "image",
        "AIMRuntimeConfig" => "config",
        _ => "service",
    }
}

/// What is told of one that is ready.
pub(super) fn came(object: &Value) -> String {
    let (kind, name) = (word(&object["kind"]), word(&object["metadata"]["name"]));
    match word(&object["status"]["reference"]) {
        "" => format!("{kind} {name} is ready"),
        reference => format!("{kind} {name}: imported, packed and pushed as {reference}"),
    }
}

/// Not what the cluster brings by itself.
pub(super) fn is_shown(root: &Value) -> bool {
    !(root["kind"] == "Service" && root["metadata"]["name"] == "kubernetes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_name_the_registry_that_is_there() {
        for example in wanted(true) {
            let objects = example.objects("127.0.0.1:5017").unwrap();
            let text = serde_json::to_string(&objects).unwrap();
            assert!(!text.contains(REGISTRY), "{}", example.name);
            assert!(objects.iter().all(|object| object["metadata"]["name"].is_string()));
        }
        let image = &LAPTOP.objects("127.0.0.1:5017").unwrap()[1]["spec"]["model"]["image"];
        assert_eq!(*image, "127.0.0.1:5017/demo/smollm2:v1");
    }

    #[test]
    fn a_step_says_what_came_of_its_object() {
        let artifact: Value = serde_json::json!({"kind": "Artifact", "metadata": {"name": "a"},
            "status": {"reference": "r/a@sha256:0"}});
        assert_eq!(came(&artifact), "Artifact a: imported, packed and pushed as r/a@sha256:0");
        let service: Value = serde_json::json!({"kind": "ModelService", "metadata": {"name": "s"}});
        assert_eq!((step(&service), &*came(&service)), ("service", "ModelService s is ready"));
    }
}
