//! Objects of any kind, sent to the API server as fast as it takes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::{ApiResource, Scope, pinned_kind},
};
use serde_json::Value;

/// Requests under way at a time, as many as our operator works on objects.
pub(super) const AT_ONCE: usize = 32;
const MANAGER: &str = "bench";

/// The API server's word on kinds, asked for before anything is measured.
pub(super) struct Objects {
    client: Client,
    kinds: BTreeMap<Type, (ApiResource, Scope)>,
}

/// `apiVersion` and `kind`.
pub(super) type Type = (String, String);

impl Objects {
    /// Learns the kinds of the given objects.
    pub(super) async fn learn<'a>(
        client: &Client,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Result<Self> {
        let types: BTreeSet<Type> = objects.into_iter().map(type_of).collect();
        let mut kinds = BTreeMap::new();
        for of in types {
            let answer = pinned_kind(client, &parse(&of)).await;
            let (resource, abilities) =
                answer.with_context(|| format!("cannot find the kind {} of {}", of.1, of.0))?;
            kinds.insert(of, (resource, abilities.scope));
        }
        let objects = Self { client: client.clone(), kinds };
        objects.wait_until_listed().await?;
        Ok(objects)
    }

    pub(super) fn sent_by(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// An API server sets up the storage of a kind of a new definition when it is first asked for it,
    /// and refuses to answer until then.
    async fn wait_until_listed(&self) -> Result<()> {
        const TRIES: u32 = 100;
        for (resource, _) in self.kinds.values() {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
            let mut tries = 0;
            while let Err(error) = api.list(&ListParams::default().limit(1)).await {
                tries += 1;
                if tries == TRIES {
                    return Err(error).with_context(|| format!("cannot list {}", resource.plural));
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Ok(())
    }

    /// Where objects of this one's kind are, in its namespace if the kind has any.
    pub(super) fn api(&self, object: &Value) -> Result<Api<DynamicObject>> {
        let of = type_of(object);
        let (resource, scope) =
            self.kinds.get(&of).with_context(|| format!("the kind {} was not learnt", of.1))?;
        Ok(match scope {
            Scope::Cluster => Api::all_with(self.client.clone(), resource),
            Scope::Namespaced => {
                let namespace = text(object, "/metadata/namespace");
                Api::namespaced_with(self.client.clone(), namespace, resource)
            }
        })
    }

    pub(super) fn is_namespaced(&self, object: &Value) -> bool {
        let known = self.kinds.get(&type_of(object));
        known.is_some_and(|(_, scope)| *scope == Scope::Namespaced)
    }

    pub(super) async fn apply(&self, object: &Value) -> Result<()> {
        let name = name(object);
        let params = PatchParams::apply(MANAGER).force();
        let answer = self.api(object)?.patch(name, &params, &Patch::Apply(object)).await;
        answer.with_context(|| format!("cannot apply {} {name}", text(object, "/kind")))?;
        Ok(())
    }

    pub(super) async fn patch_status(&self, object: &Value, status: &Value) -> Result<()> {
        let name = name(object);
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
        let answer = self.api(object)?.patch_status(name, &params, &Patch::Merge(status)).await;
        answer.with_context(|| format!("cannot write the status of {name}"))?;
        Ok(())
    }

    /// Creates all of them; their uids, in the same order.
    pub(super) async fn create_all(&self, objects: &[Value]) -> Result<Vec<String>> {
        let created = objects.iter().map(|object| self.create(object));
        stream::iter(created).buffered(AT_ONCE).try_collect().await
    }

    async fn create(&self, object: &Value) -> Result<String> {
        let what = || format!("cannot create {} {}", text(object, "/kind"), name(object));
        let typed: DynamicObject = serde_json::from_value(object.clone()).with_context(what)?;
        let answer = self.api(object)?.create(&PostParams::default(), &typed).await;
        Ok(answer.with_context(what)?.metadata.uid.unwrap_or_default())
    }
}

pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn type_of(object: &Value) -> Type {
    (text(object, "/apiVersion").to_owned(), text(object, "/kind").to_owned())
}

fn parse((api_version, kind): &Type) -> GroupVersionKind {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    GroupVersionKind::gvk(group, version, kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_core_group_has_no_name() {
        for (version, want) in [("v1", ("", "v1")), ("apps/v1", ("apps", "v1"))] {
            let parsed = parse(&type_of(&json!({"apiVersion": version, "kind": "X"})));
            assert_eq!((parsed.group.as_str(), parsed.version.as_str()), want);
        }
    }
}
