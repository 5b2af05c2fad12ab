//! Objects of any kind, through the API as any client has it.

use std::{path::Path, time::Duration};

use anyhow::{Context, bail};
use kube::{
    Api, Client, Config,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::steps::Step;

const NAMESPACE: &str = "default";
const PAUSE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(180);

pub(super) struct Objects {
    client: Client,
}

impl Objects {
    pub(super) async fn connect(kubeconfig: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot use the kubeconfig {}", kubeconfig.display());
        let file = Kubeconfig::read_from(kubeconfig).with_context(cannot)?;
        let options = KubeConfigOptions::default();
        let mut config =
            Config::from_custom_kubeconfig(file, &options).await.with_context(cannot)?;
        // It is on this machine, whatever proxy leads elsewhere.
        config.proxy_url = None;
        Ok(Self { client: Client::try_from(config).with_context(cannot)? })
    }

    pub(super) async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let name = word(&object["metadata"]["name"]);
        let params = PatchParams::apply("windlass-demo").force();
        let applied = self.api(object).patch(name, &params, &Patch::Apply(object)).await;
        applied.with_context(|| format!("cannot apply {} {name}", word(&object["kind"])))?;
        Ok(())
    }

    /// Waits until it says of itself that it is ready, and tells what it says until then.
    pub(super) async fn ready(&self, object: &Value, step: &Step) -> anyhow::Result<Value> {
        let (kind, name) = (word(&object["kind"]), word(&object["metadata"]["name"]));
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.api(object).get(name).await;
            let found = found.with_context(|| format!("cannot read {kind} {name}"))?;
            let found = serde_json::to_value(found)?;
            match Readiness::of(&found) {
                Readiness::Ready => return Ok(found),
                Readiness::Waits(text) if Instant::now() < deadline => step.note(&text),
                Readiness::Waits(text) => {
                    bail!("{kind} {name} is not ready after {} s: {text}", PATIENCE.as_secs())
                }
                Readiness::Failed(text) => bail!("{kind} {name} has failed: {text}"),
            }
            sleep(PAUSE).await;
        }
    }

    /// Waits until all Deployments have all their pods, and says how many those are: a service may be
    /// ready before what is beside it.
    pub(super) async fn available(&self, step: &Step) -> anyhow::Result<i64> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let deployments = self.list(&[("apps/v1", "Deployment")]).await?;
            let number = |value: &Value| value.as_i64().unwrap_or(0);
            let is_missing = |deployment: &&Value| {
                let status = &deployment["status"];
                number(&status["availableReplicas"]) < number(&deployment["spec"]["replicas"])
            };
            let Some(missing) = deployments.iter().find(is_missing) else {
                return Ok(deployments.iter().map(|one| number(&one["spec"]["replicas"])).sum());
            };
            let name = word(&missing["metadata"]["name"]);
            if Instant::now() > deadline {
                bail!("the pods of {name} are not ready after {} s", PATIENCE.as_secs());
            }
            step.note(&format!("waits for those of {name}"));
            sleep(PAUSE).await;
        }
    }

    /// All objects of these kinds; none of a kind that is not known here.
    pub(super) async fn list(&self, kinds: &[(&str, &str)]) -> anyhow::Result<Vec<Value>> {
        let mut all = Vec::new();
        for (version, kind) in kinds {
            let listed = self.kind(version, kind).list(&ListParams::default()).await;
            let listed = match listed {
                Err(kube::Error::Api(status)) if status.code == 404 => continue,
                listed => listed.with_context(|| format!("cannot list {kind}"))?,
            };
            for object in listed.items {
                let mut object = serde_json::to_value(object)?;
                // Lists say it once for all.
                object["kind"] = (*kind).into();
                all.push(object);
            }
        }
        Ok(all)
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        self.kind(word(&object["apiVersion"]), word(&object["kind"]))
    }

    fn kind(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), NAMESPACE, &resource)
    }
}

/// What an object says of itself.
#[derive(Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    Waits(String),
    /// It does not try again by itself.
    Failed(String),
}

impl Readiness {
    fn of(object: &Value) -> Self {
        let status = &object["status"];
        // These have no conditions: others only read them.
        if matches!(word(&object["kind"]), "AIMImage" | "AIMRuntimeConfig") {
            return Self::Ready;
        }
        let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
        let current = &object["metadata"]["generation"];
        let is_current = |seen: &Value| seen.is_null() || seen == current;
        let said = ready.map(|ready| {
            [word(&ready["reason"]), word(&ready["message"])].map(str::to_owned).join(": ")
        });
        let said = said.unwrap_or_else(|| "waits for the operator".to_owned());
        let is_ready = ready.is_some_and(|ready| {
            ready["status"] == "True" && is_current(&ready["observedGeneration"])
        }) && is_current(&status["observedGeneration"]);
        match word(&status["phase"]) {
            _ if is_ready || status["status"] == "Available" => Self::Ready,
            "Failed" => Self::Failed(said),
            _ => Self::Waits(said),
        }
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_ready_when_its_newest_generation_is() {
        let object = |seen: i64, status: &str, phase: &str| {
            json!({"kind": "ModelService", "metadata": {"generation": 2}, "status": {
                "phase": phase, "observedGeneration": seen,
                "conditions": [{"type": "Ready", "status": status, "reason": "R", "message": "m"}],
            }})
        };
        let said = || "R: m".to_owned();
        for (object, want) in [
            (object(2, "True", "Ready"), Readiness::Ready),
            (object(1, "True", "Ready"), Readiness::Waits(said())),
            (object(2, "False", "Pending"), Readiness::Waits(said())),
            (object(2, "False", "Failed"), Readiness::Failed(said())),
            (json!({"kind": "AIMImage"}), Readiness::Ready),
            (
                json!({"kind": "ModelService"}),
                Readiness::Waits("waits for the operator".to_owned()),
            ),
        ] {
            assert_eq!(Readiness::of(&object), want, "{object}");
        }
    }
}
