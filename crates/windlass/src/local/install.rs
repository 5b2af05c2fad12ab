//! What the operator needs, applied at every start: a newer program brings its own definitions.

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::Value;
use windlass_local::auth::User;

use crate::install;

const MANAGER: &str = "windlass-up";
/// So many share a flush to the disk. Definitions are large while they are worked on.
const AT_ONCE: usize = 8;

/// Returns whom the operator acts as, and its namespace.
pub(super) async fn apply(client: &Client) -> anyhow::Result<(User, String)> {
    let flags = install::Flags::default();
    let objects = install::prerequisites(&flags).context("cannot make the install")?;
    let mut objects = objects.into_iter();
    // The namespace, which the others need; of them none needs another.
    if let Some(namespace) = objects.next() {
        apply_one(client, namespace).await?;
    }
    let applying = stream::iter(objects).map(|object| apply_one(client, object));
    let applied = applying.buffer_unordered(AT_ONCE).try_collect::<Vec<Applied>>().await?;
    let account = applied.into_iter().find(|object| object.kind == "ServiceAccount");
    let uid = account.map(|account| account.uid).unwrap_or_default();
    Ok((User::account(&flags.namespace, install::ACCOUNT, &uid), flags.namespace))
}

/// What is of interest about it afterwards.
struct Applied {
    kind: String,
    uid: String,
}

async fn apply_one(client: &Client, object: Value) -> anyhow::Result<Applied> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let applied = api
        .patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object))
        .await
        .with_context(|| format!("cannot install {kind} {name}"))?;
    Ok(Applied { kind: kind.to_owned(), uid: applied.metadata.uid.unwrap_or_default() })
}
