//! What there is to compare with: a program that knows every child beforehand and only writes.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::{
    objects::{AT_ONCE, Objects, name},
    work::Work,
};

/// The time from the first request to the last answer. The parents exist, with these uids.
pub(super) async fn write(objects: &Objects, work: &Work, uids: &[String]) -> Result<Duration> {
    let families = work.parents.iter().zip(uids).zip(&work.children);
    let mut children: Vec<Value> = families
        .flat_map(|((parent, uid), children)| {
            children.iter().map(|child| owned(objects, child, parent, uid))
        })
        .collect();
    children.sort_by_key(place);
    let status = status();
    let started = Instant::now();
    let children = children.iter().map(|child| objects.apply(child).boxed());
    let statuses = work.parents.iter().map(|parent| objects.patch_status(parent, &status).boxed());
    stream::iter(children.chain(statuses))
        .buffer_unordered(AT_ONCE)
        .try_for_each(|()| async { Ok(()) })
        .await?;
    Ok(started.elapsed())
}

/// Who may only give rights that it has is asked for the role when it binds it.
fn place(child: &Value) -> u8 {
    match child["kind"].as_str() {
        Some("Role" | "ClusterRole") => 0,
        Some("RoleBinding" | "ClusterRoleBinding") => 2,
        _ => 1,
    }
}

/// With the reference that an operator adds once it knows the parent's uid.
fn owned(objects: &Objects, child: &Value, parent: &Value, uid: &str) -> Value {
    let mut child = child.clone();
    if objects.is_namespaced(&child) {
        child["metadata"]["ownerReferences"] = json!([{
            "apiVersion": parent["apiVersion"],
            "kind": parent["kind"],
            "name": name(parent),
            "uid": uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }]);
    }
    child
}

/// Of a form that every kind of ours has.
fn status() -> Value {
    json!({"status": {
        "observedGeneration": 1,
        "conditions": [{
            "type": "Ready",
            "status": "False",
            "reason": "Written",
            "message": "Written by the benchmark, about as long as such messages are",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }})
}
