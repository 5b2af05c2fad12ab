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

/// How often others may be faster before there is a pause.
const TRIES: usize = 5;

impl Worker {
    /// Writes the status if it is news.
    pub(super) async fn report(&mut self) {
        if self.silence.is_some_and(|until| Instant::now() < until) {
            return;
        }
        self.silence = None;
        for _ in 0..TRIES {
            let now = Timestamp::now();
            let status = pod::status(&self.pod, &self.known, &self.node.shared.host, now);
            if self.written.as_ref() == Some(&status) {
                return;
            }
            match self.write(&status).await {
                Ok(true) => {
                    self.written = Some(status);
                    return;
                }
                // Others have written meanwhile: what they say has to stay.
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot write the status of a pod"
                    );
                    break;
                }
            }
        }
        self.silence = Some(Instant::now() + AGAIN);
    }

    /// Over the state that we know of. If there is a later one, that is read, and nothing written.
    async fn write(&mut self, status: &PodStatus) -> Result<bool, kube::Error> {
        let params = PatchParams { field_manager: Some("kubelet".into()), ..Default::default() };
        let patch: Patch<Value> = Patch::Json(patch(&self.pod, status));
        let refused = match self.api().patch_status(&self.name(), &params, &patch).await {
            Ok(pod) => {
                self.pod = pod.into();
                return Ok(true);
            }
            Err(kube::Error::Api(refused)) if matches!(refused.code, 404 | 409 | 422) => refused,
            Err(error) => return Err(error),
        };
        let found = self.api().get_opt(&self.name()).await?;
        let same = found.filter(|found| found.metadata.uid == self.pod.metadata.uid);
        match same {
            Some(found)
                if found.metadata.resource_version != self.pod.metadata.resource_version =>
            {
                self.pod = found.into();
                Ok(false)
            }
            // It is gone, or there is another one of its name, which the watch will tell; or the
            // status itself is refused, as it would be again.
            _ => {
                tracing::debug!(message = refused.message, "the status of a pod is not wanted");
                Ok(true)
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

/// The whole status, for this very pod in this very state: others have conditions in it too.
fn patch(pod: &Pod, status: &PodStatus) -> json_patch::Patch {
    let mut value = json!(status);
    // Kubernetes 1.36 has it, and always writes it.
    value["resources"] = json!({});
    let at = |path: &'static str| PointerBuf::parse(path).unwrap_or_default();
    let test = |path, value: &Option<String>| {
        PatchOperation::Test(TestOperation { path: at(path), value: json!(value) })
    };
    json_patch::Patch(vec![
        test("/metadata/uid", &pod.metadata.uid),
        test("/metadata/resourceVersion", &pod.metadata.resource_version),
        PatchOperation::Add(AddOperation { path: at("/status"), value }),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_over_the_state_it_was_made_from_only() {
        let pod = |uid: &str, version: &str| {
            json!({"metadata": {"uid": uid, "resourceVersion": version},
                "status": {"conditions": []}})
        };
        let known: Pod = serde_json::from_value(pod("u", "1")).unwrap();
        let status = PodStatus { phase: Some("Running".into()), ..PodStatus::default() };
        let patch = patch(&known, &status);
        for (mut found, want) in
            [(pod("u", "1"), true), (pod("u", "2"), false), (pod("v", "1"), false)]
        {
            assert_eq!(json_patch::patch(&mut found, &patch).is_ok(), want, "{found}");
        }
    }
}
