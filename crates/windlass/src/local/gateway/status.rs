//! Writes what the gateway says of routes, gateways, classes and pools.

use std::{collections::BTreeMap, future::pending, sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use windlass_routing::gateway::{listed::Kind, status::Change};

use super::{Known, follow::resource};

const MANAGER: &str = "windlass-gateway";
/// After a write that failed for other reasons than that the object has changed.
const AGAIN: Duration = Duration::from_secs(10);

/// As conditions carry it: in whole seconds.
pub(super) fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Objects whose status was refused, each in the version to which nothing more is written for a while.
type Refused = BTreeMap<(Kind, String, String), String>;

/// Writes the newest changes, one after the other, until nobody sends any. One that is refused keeps no
/// other waiting.
pub(super) async fn write(
    client: &Client,
    known: &Arc<Known>,
    mut newest: watch::Receiver<Vec<Change>>,
) {
    let mut refused = Refused::new();
    let mut again = None;
    loop {
        tokio::select! {
            changed = newest.changed() => if changed.is_err() { return },
            () = at(again) => {
                again = None;
                refused.clear();
                known.changed.notify_one();
                continue;
            }
        }
        let changes = newest.borrow_and_update().clone();
        for change in changes {
            let object = (change.kind, change.namespace.clone(), change.name.clone());
            if refused.get(&object) == Some(&change.version) {
                continue;
            }
            match write_one(client, known, &change).await {
                Ok(()) => {}
                // What has changed meanwhile comes by the watch, and is looked at again.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => {
                    let (kind, name) = (change.kind.name(), &change.name);
                    tracing::warn!(kind, name, %error, "cannot write a status");
                    refused.insert(object, change.version);
                    again = again.or_else(|| Some(Instant::now() + AGAIN));
                }
            }
        }
    }
}

/// Never, if there is no time.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
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
