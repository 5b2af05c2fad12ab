//! What the operator needs, applied at every start: a newer program brings its own definitions.

use anyhow::Context;
use futures::future::try_join_all;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::Value;
use windlass_local::auth::User;

use crate::install;

const MANAGER: &str = "windlass-up";

/// Returns whom the operator acts as, and its namespace.
pub(super) async fn apply(client: &Client) -> anyhow::Result<(User, String)> {
    let flags = install::Flags::default();
    let objects = install::prerequisites(&flags).context("cannot make the install")?;
    let mut objects = objects.into_iter();
    // The namespace, which the others need; of them none needs another.
    if let Some(namespace) = objects.next() {
        apply_one(client, namespace).await?;
    }
    let applied = try_join_all(objects.map(|object| apply_one(client, object))).await?;
    let account = applied
        .iter()
        .find(|object| object.types.as_ref().is_some_and(|types| types.kind == "ServiceAccount"));
    let uid = account.and_then(|account| account.metadata.uid.as_deref()).unwrap_or_default();
    Ok((User::account(&flags.namespace, install::ACCOUNT, uid), flags.namespace))
}

async fn apply_one(client: &Client, object: Value) -> anyhow::Result<DynamicObject> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object))
        .await
        .with_context(|| format!("cannot install {kind} {name}"))
}
