//! Watches the kinds that the gateway alone cares for, as long as they are defined.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
    core::{GroupVersionKind, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde_json::json;
use tokio::task::{AbortHandle, JoinSet};
use windlass_routing::gateway::{
    assemble::{CLASS, CONTROLLER},
    listed::{Kind, Listed},
};

use super::Known;

/// Until it is dropped.
pub(super) async fn run(client: &Client, known: &Arc<Known>) {
    let mut watches = Watches {
        client: client.clone(),
        known: known.clone(),
        tasks: JoinSet::new(),
        running: BTreeMap::new(),
    };
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_builtin()) {
        watches.begin(kind).await;
    }
    // Without their content: definitions are large, and only their names are of interest.
    let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let mut changes = watcher(definitions, watcher::Config::default()).default_backoff().boxed();
    let mut listed = BTreeSet::new();
    while let Some(change) = changes.next().await {
        match change {
            Ok(Event::Apply(definition) | Event::InitApply(definition)) => {
                if let Some(kind) = kind_of(&definition.name_any()) {
                    listed.insert(kind);
                    // It is there a little before its kind is served; then it changes once more.
                    watches.begin(kind).await;
                }
            }
            Ok(Event::Delete(definition)) => {
                if let Some(kind) = kind_of(&definition.name_any()) {
                    watches.end(kind);
                }
            }
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitDone) => {
                let defined = Kind::ALL.into_iter().filter(|kind| !kind.is_builtin());
                defined.filter(|kind| !listed.contains(kind)).for_each(|kind| watches.end(kind));
                known.know_definitions();
            }
            Err(error) => tracing::warn!(%error, "cannot watch definitions"),
        }
    }
}

fn kind_of(definition: &str) -> Option<Kind> {
    let (plural, group) = definition.split_once('.')?;
    let is_it = |kind: &Kind| kind.plural() == plural && kind.group() == group;
    Kind::ALL.into_iter().find(is_it)
}

pub(super) fn resource(kind: Kind, version: &str) -> ApiResource {
    let gvk = GroupVersionKind::gvk(kind.group(), version, kind.name());
    ApiResource::from_gvk_with_plural(&gvk, kind.plural())
}

/// The first version that is served.
pub(super) async fn served(client: &Client, kind: Kind) -> Option<&'static str> {
    for version in kind.versions() {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind, version));
        if api.list_metadata(&ListParams::default().limit(1)).await.is_ok() {
            return Some(version);
        }
    }
    None
}

struct Watches {
    client: Client,
    known: Arc<Known>,
    tasks: JoinSet<()>,
    /// The versions that are watched.
    running: BTreeMap<Kind, (&'static str, AbortHandle)>,
}

impl Watches {
    async fn begin(&mut self, kind: Kind) {
        let Some(version) = served(&self.client, kind).await else { return };
        match self.running.get(&kind) {
            Some((known, _)) if *known == version => return,
            Some((_, other)) => other.abort(),
            None => {}
        }
        self.known.versions().insert(kind, version);
        self.known.expect(kind);
        let watching = watch(self.client.clone(), self.known.clone(), kind, version);
        self.running.insert(kind, (version, self.tasks.spawn(watching)));
        while self.tasks.try_join_next().is_some() {}
    }

    fn end(&mut self, kind: Kind) {
        if let Some((_, task)) = self.running.remove(&kind) {
            task.abort();
            self.known.versions().remove(&kind);
            self.known.change(|listed| listed.retain(kind, |_, _| false));
            self.known.came(kind);
        }
    }
}

async fn watch(client: Client, known: Arc<Known>, kind: Kind, version: &'static str) {
    let resource = resource(kind, version);
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let label_selector = kind.selector().map(str::to_owned);
    let config = watcher::Config { label_selector, ..watcher::Config::default() };
    let mut events = watcher(api.clone(), config).default_backoff().boxed();
    let mut names = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object)) => known.change(|listed| put(listed, kind, &object)),
            Ok(Event::InitApply(object)) => {
                names.insert((object.namespace().unwrap_or_default(), object.name_any()));
                put(&mut known.listed(), kind, &object);
            }
            Ok(Event::Delete(object)) => {
                let namespace = object.namespace().unwrap_or_default();
                known.change(|listed| listed.remove(kind, &namespace, &object.name_any()));
            }
            Ok(Event::Init) => names.clear(),
            Ok(Event::InitDone) => {
                let is_there = |namespace: &str, name: &str| {
                    names.contains(&(namespace.to_owned(), name.to_owned()))
                };
                known.change(|listed| listed.retain(kind, is_there));
                known.came(kind);
                if kind == Kind::Class && !names.contains(&(String::new(), CLASS.to_owned())) {
                    create_class(&api, &resource).await;
                }
            }
            Err(error) => {
                tracing::warn!(kind = kind.name(), %error, "cannot watch");
                // The others are served meanwhile.
                known.came(kind);
            }
        }
    }
}

fn put(listed: &mut Listed, kind: Kind, object: &DynamicObject) {
    match serde_json::to_value(object) {
        Ok(object) => listed.put(kind, object),
        Err(error) => tracing::warn!(kind = kind.name(), %error, "cannot read an object"),
    }
}

/// Gateways need one that they can name.
async fn create_class(api: &Api<DynamicObject>, resource: &ApiResource) {
    let class = DynamicObject::new(CLASS, resource)
        .data(json!({ "spec": { "controllerName": CONTROLLER } }));
    if let Err(error) = api.create(&PostParams::default(), &class).await {
        tracing::warn!(%error, "cannot create the GatewayClass {CLASS}");
    }
}
