//! Writes what the gateway says of routes, gateways, classes and pools.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::json;
use tokio::{sync::watch, time::sleep};
use windlass_routing::gateway::status::Change;

use super::{Known, follow::resource};

const MANAGER: &str = "windlass-gateway";
/// After a write that failed for other reasons than that the object has changed.
const AGAIN: Duration = Duration::from_secs(10);

/// As conditions carry it: in whole seconds.
pub(super) fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Writes the newest changes, one after the other, until nobody sends any.
pub(super) async fn write(
    client: &Client,
    known: &Arc<Known>,
    mut newest: watch::Receiver<Vec<Change>>,
) {
    while newest.changed().await.is_ok() {
        let changes = newest.borrow_and_update().clone();
        let mut failed = false;
        for change in changes {
            match write_one(client, known, &change).await {
                Ok(()) => {}
                // What has changed meanwhile comes by the watch, and is looked at again.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => {
                    let (kind, name) = (change.kind.name(), &change.name);
                    tracing::warn!(kind, name, %error, "cannot write a status");
                    failed = true;
                }
            }
        }
        if failed {
            sleep(AGAIN).await;
            known.changed.notify_one();
        }
    }
}

async fn write_one(client: &Client, known: &Known, change: &Change) -> Result<(), kube::Error> {
    let Some(version) = known.version(change.kind) else { return Ok(()) };
    let resource = resource(change.kind, version);
    let api: Api<DynamicObject> = match change.namespace.as_str() {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let patch = json!({
        "metadata": { "resourceVersion": change.version },
        "status": change.status,
    });
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
    api.patch_status(&change.name, &params, &Patch::Merge(patch)).await.map(drop)
}
