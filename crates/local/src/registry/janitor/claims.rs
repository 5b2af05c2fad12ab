//! Claims and volumes that are in use outlive their deletion.

use std::sync::Arc;

use serde_json::Value;

use super::super::{Registry, delete::set_finalizers, update::is_over};
use crate::{
    error::Error,
    store::{Key, Object, Transaction},
};

const CLAIMS: &str = "/persistentvolumeclaims";
const VOLUMES: &str = "/persistentvolumes";
const PODS: &str = "/pods";

impl Registry {
    /// Those that a change of this object may have freed.
    pub(super) async fn release_storage(self: &Arc<Self>, key: &Key) {
        let prefix = format!("{}/", key.namespace());
        let (resource, prefix) = match &*key.resource {
            PODS | CLAIMS => (CLAIMS, &*prefix),
            VOLUMES => (VOLUMES, ""),
            _ => return,
        };
        let waiting: Vec<_> = {
            let state = self.store.read();
            let held = state.list(resource, prefix).filter(|(_, found)| is_held(resource, found));
            held.map(|(name, _)| Key { resource: resource.into(), name: name.clone() }).collect()
        };
        for key in waiting {
            self.quietly(move |_, tx| release(tx, &key)).await;
        }
    }
}

fn protection(resource: &str) -> &'static str {
    match resource {
        CLAIMS => "kubernetes.io/pvc-protection",
        _ => "kubernetes.io/pv-protection",
    }
}

fn is_held(resource: &str, object: &Object) -> bool {
    object.is_deleting() && object.finalizers().contains(&protection(resource))
}

fn release(tx: &mut Transaction<'_>, key: &Key) -> Result<(), Error> {
    let Some(object) = tx.get(key).filter(|found| is_held(&key.resource, found)) else {
        return Ok(());
    };
    let used = match &*key.resource {
        CLAIMS => {
            let pods = tx.list(PODS, &format!("{}/", key.namespace()));
            pods.iter().any(|(_, pod)| uses(pod, key.name()))
        }
        _ => phase(&object) == "Bound",
    };
    if used {
        return Ok(());
    }
    let kept = object.finalizers().into_iter().filter(|name| *name != protection(&key.resource));
    let kept: Vec<_> = kept.map(str::to_owned).collect();
    let mut value = object.value().clone();
    set_finalizers(&mut value, &kept);
    if is_over(key, &object, &value) {
        tx.remove(key);
    } else {
        tx.put(key, value);
    }
    Ok(())
}

fn phase(object: &Object) -> &str {
    object.value().pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}

fn uses(pod: &Object, claim: &str) -> bool {
    let volumes = pod.value().pointer("/spec/volumes").and_then(Value::as_array);
    let named = |volume: &Value| {
        let name = volume.pointer("/persistentVolumeClaim/claimName");
        name.and_then(Value::as_str) == Some(claim)
    };
    !matches!(phase(pod), "Succeeded" | "Failed") && volumes.into_iter().flatten().any(named)
}
