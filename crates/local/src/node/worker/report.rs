//! What the API is told.

use jiff::Timestamp;
use json_patch::{AddOperation, PatchOperation, TestOperation, jsonptr::PointerBuf};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{AGAIN, Worker};
use crate::node::pod;

impl Worker {
    /// Writes the status if it is news.
    pub(super) async fn report(&mut self) {
        if self.silence.is_some_and(|until| Instant::now() < until) {
            return;
        }
        self.silence = None;
        let status = pod::status(&self.pod, &self.known, &self.node.shared.host, Timestamp::now());
        if self.written.as_ref() == Some(&status) {
            return;
        }
        let params = PatchParams { field_manager: Some("kubelet".into()), ..Default::default() };
        let patch: Patch<Value> = Patch::Json(patch(&self.pod, &status));
        match self.api().patch_status(&self.name(), &params, &patch).await {
            Ok(pod) => {
                self.pod = pod.into();
                self.written = Some(status);
            }
            // It is gone, or there is another one of its name; the watch will tell.
            Err(kube::Error::Api(refused)) if matches!(refused.code, 404 | 409 | 422) => {
                tracing::debug!(message = refused.message, "the status of a pod is not wanted");
                self.written = Some(status);
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot write the status of a pod"
                );
                self.silence = Some(Instant::now() + AGAIN);
            }
        }
    }

    /// Lets the object go. How it ended has been told before.
    pub(super) async fn remove(&mut self) {
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: self.pod.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.api().delete(&self.name(), &params).await {
            Ok(_) => self.is_removed = true,
            Err(kube::Error::Api(refused)) if matches!(refused.code, 404 | 409) => {
                self.is_removed = true;
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot remove a pod");
                self.silence = Some(Instant::now() + AGAIN);
            }
        }
    }

    fn api(&self) -> Api<Pod> {
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.node.client.clone(), namespace)
    }

    pub(super) fn name(&self) -> String {
        self.pod.metadata.name.clone().unwrap_or_default()
    }
}

/// The whole status, for this very pod.
fn patch(pod: &Pod, status: &PodStatus) -> json_patch::Patch {
    let mut value = json!(status);
    // Kubernetes 1.36 has it, and always writes it.
    value["resources"] = json!({});
    let at = |path: &'static str| PointerBuf::parse(path).unwrap_or_default();
    json_patch::Patch(vec![
        PatchOperation::Test(TestOperation {
            path: at("/metadata/uid"),
            value: json!(pod.metadata.uid),
        }),
        PatchOperation::Add(AddOperation { path: at("/status"), value }),
    ])
}
