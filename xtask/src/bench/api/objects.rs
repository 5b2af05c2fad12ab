//! What is written: a Deployment of a usual size, and a custom object with a schema of its own.

use std::fs;

use anyhow::{Context, Result};
use kube::core::{
    Request,
    params::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::workspace::project_root;

const DEPLOYMENT: &str = "deployment.yaml";
const CUSTOM: &str = "custom.yaml";
/// Of the custom object.
const DEFINITION: &str =
    "deploy/chart/windlass/crds/zerfooinferenceservices.serving.zerfoo.com.yaml";
const MANAGER: &str = "bench";

/// A request that is ready to be sent.
pub(super) type Ready = http::Request<Vec<u8>>;

/// One kind of object and where its objects are.
pub(super) struct Kind {
    object: Value,
    group: &'static str,
    plural: &'static str,
}

pub(super) fn kinds() -> Result<[Kind; 2]> {
    let read = |file: &str| yaml(&format!("xtask/src/bench/api/{file}"));
    Ok([
        Kind { object: read(DEPLOYMENT)?, group: "apps/v1", plural: "deployments" },
        Kind {
            object: read(CUSTOM)?,
            group: "serving.zerfoo.com/v1alpha1",
            plural: "zerfooinferenceservices",
        },
    ])
}

pub(super) fn definition() -> Result<Value> {
    yaml(DEFINITION)
}

fn yaml(path: &str) -> Result<Value> {
    let path = project_root().join(path);
    let cannot = || format!("cannot read {}", path.display());
    let text = fs::read_to_string(&path).with_context(cannot)?;
    serde_saphyr::from_str(&text).with_context(cannot)
}

impl Kind {
    pub(super) fn path(&self, namespace: &str) -> String {
        format!("/apis/{}/namespaces/{namespace}/{}", self.group, self.plural)
    }

    /// Applies the object of this number for the `change`th time: one number and one text differ.
    pub(super) fn apply(&self, namespace: &str, number: u32, change: u32) -> Result<Ready> {
        let mut object = self.object.clone();
        let name = format!("o{number}");
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["annotations"]["bench"] = json!(change.to_string());
        object["spec"]["replicas"] = json!(change + 1);
        apply(&self.path(namespace), &name, &object)
    }

    /// A small edit that a watcher finds by the text [`marker`].
    pub(super) fn mark(&self, namespace: &str, number: u32, mark: u32) -> Result<Ready> {
        let patch = json!({"metadata": {"annotations": {"bench": format!("sample-{mark}")}}});
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
        let name = format!("o{number}");
        Request::new(self.path(namespace))
            .patch(&name, &params, &Patch::Merge(&patch))
            .context("cannot make a request")
    }
}

pub(super) fn marker(mark: u32) -> String {
    format!("\"sample-{mark}\"")
}

pub(super) fn apply(path: &str, name: &str, object: &Value) -> Result<Ready> {
    let params = PatchParams::apply(MANAGER).force();
    let request = Request::new(path).patch(name, &params, &Patch::Apply(object));
    request.context("cannot make a request")
}
