//! What the gateway knows of the objects of the API, in the form in which they were listed or watched.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    backends::{Grant, Key, POOLS, PoolKey},
    parent::{GROUP, GatewaySpec, ParentRef},
    route::{self, Backend, Route},
    spec::RouteSpec,
};
use crate::picker::{Objectives, Rewrite, RewriteRule};

/// The kinds that are watched for the gateway alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Namespace,
    Route,
    Gateway,
    Class,
    Grant,
    Pool,
    /// Of the group before it had its final name.
    EarlyPool,
    /// A ConfigMap by which an endpoint picker chooses.
    Config,
    /// How important a request to a pool is.
    Objective,
    /// Under which other name a model is asked for.
    Rewrite,
}

impl Kind {
    pub const ALL: [Self; 10] = [
        Self::Namespace,
        Self::Route,
        Self::Gateway,
        Self::Class,
        Self::Grant,
        Self::Pool,
        Self::EarlyPool,
        Self::Config,
        Self::Objective,
        Self::Rewrite,
    ];

    /// Whether it is part of Kubernetes, and so always there.
    pub fn is_builtin(self) -> bool {
        matches!(self, Self::Namespace | Self::Config)
    }

    /// The labels of those that matter, if not all do.
    pub fn selector(self) -> Option<&'static str> {
        (self == Self::Config).then_some("app.kubernetes.io/component=epp")
    }

    pub fn group(self) -> &'static str {
        match self {
            Self::Namespace | Self::Config => "",
            Self::Route | Self::Gateway | Self::Class | Self::Grant => GROUP,
            Self::Pool => POOLS[0],
            Self::EarlyPool | Self::Objective | Self::Rewrite => POOLS[1],
        }
    }

    /// The first that is served is watched.
    pub fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Namespace | Self::Config | Self::Pool => &["v1"],
            Self::Route | Self::Gateway | Self::Class => &["v1", "v1beta1"],
            Self::Grant => &["v1beta1", "v1"],
            Self::EarlyPool | Self::Objective | Self::Rewrite => &["v1alpha2"],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::Route => "HTTPRoute",
            Self::Gateway => "Gateway",
            Self::Class => "GatewayClass",
            Self::Grant => "ReferenceGrant",
            Self::Pool | Self::EarlyPool => "InferencePool",
            Self::Config => "ConfigMap",
            Self::Objective => "InferenceObjective",
            Self::Rewrite => "InferenceModelRewrite",
        }
    }

    pub fn plural(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::Route => "httproutes",
            Self::Gateway => "gateways",
            Self::Class => "gatewayclasses",
            Self::Grant => "referencegrants",
            Self::Pool | Self::EarlyPool => "inferencepools",
            Self::Config => "configmaps",
            Self::Objective => "inferenceobjectives",
            Self::Rewrite => "inferencemodelrewrites",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    pub namespace: String,
    pub name: String,
    pub creation_timestamp: String,
    pub generation: i64,
    pub resource_version: String,
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub struct RouteObject {
    pub meta: Meta,
    pub parents: Vec<Parent>,
    pub hostnames: Vec<String>,
    pub backends: Vec<Backend>,
    /// Or what is not supported.
    pub compiled: Result<Arc<Route>, String>,
    pub status: Value,
}

#[derive(Clone, Debug)]
pub struct Parent {
    pub reference: ParentRef,
    /// As it was written, for the status.
    pub written: Value,
}

#[derive(Clone, Debug)]
pub struct GatewayObject {
    pub meta: Meta,
    pub spec: GatewaySpec,
    pub status: Value,
}

#[derive(Clone, Debug)]
pub struct ClassObject {
    pub meta: Meta,
    pub controller: String,
    pub status: Value,
}

#[derive(Clone, Debug)]
pub struct PoolObject {
    pub meta: Meta,
    pub selector: BTreeMap<String, String>,
    pub ports: Vec<u16>,
    pub fails_open: bool,
    pub picker: PickerRef,
    pub status: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PickerRef {
    pub group: String,
    pub kind: Option<String>,
    pub name: String,
    pub failure_mode: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectiveObject {
    pub pool: PoolKey,
    pub priority: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewriteObject {
    pub pool: PoolKey,
    pub rewrite: Rewrite,
}

/// Everything that is known of these kinds at a moment.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Their labels.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pub routes: BTreeMap<Key, RouteObject>,
    pub gateways: BTreeMap<Key, GatewayObject>,
    pub classes: BTreeMap<String, ClassObject>,
    pub grants: BTreeMap<Key, Vec<Grant>>,
    pub pools: BTreeMap<PoolKey, PoolObject>,
    /// The texts of the first file of each.
    pub configs: BTreeMap<Key, Arc<str>>,
    pub objectives: BTreeMap<Key, ObjectiveObject>,
    pub rewrites: BTreeMap<Key, RewriteObject>,
}

impl Listed {
    /// Takes an object in, instead of the one of its name.
    pub fn put(&mut self, kind: Kind, mut object: Value) {
        let meta: Meta = read(object.get("metadata"));
        let spec = object.get_mut("spec").map(Value::take).unwrap_or_default();
        let status = object.get_mut("status").map(Value::take).unwrap_or_default();
        let key = (meta.namespace.clone(), meta.name.clone());
        match kind {
            Kind::Namespace => drop(self.namespaces.insert(meta.name, meta.labels)),
            Kind::Route => drop(self.routes.insert(key, RouteObject::new(meta, spec, status))),
            Kind::Gateway => {
                let spec = read(Some(&spec));
                self.gateways.insert(key, GatewayObject { meta, spec, status });
            }
            Kind::Class => {
                let controller = text(&spec, "/controllerName").to_owned();
                let class = ClassObject { controller, status, meta };
                self.classes.insert(key.1, class);
            }
            Kind::Grant => drop(self.grants.insert(key, grants(&meta.namespace, &spec))),
            Kind::Pool | Kind::EarlyPool => {
                let key = pool_key(kind, &meta.namespace, &meta.name);
                self.pools.insert(key, PoolObject::new(meta, &spec, status));
            }
            Kind::Config => {
                let files = object.get("data").and_then(Value::as_object);
                let text = files.and_then(|files| files.values().next()).and_then(Value::as_str);
                self.configs.insert(key, text.unwrap_or_default().into());
            }
            Kind::Objective => {
                let priority = spec.get("priority").and_then(Value::as_i64).unwrap_or(0);
                let priority = i32::try_from(priority).unwrap_or_default();
                let pool = pool_of(&meta.namespace, &spec);
                self.objectives.insert(key, ObjectiveObject { pool, priority });
            }
            Kind::Rewrite => drop(self.rewrites.insert(key, RewriteObject::new(meta, &spec))),
        }
    }

    /// The priorities of a pool, by name.
    pub fn objectives_of(&self, pool: &PoolKey) -> Objectives {
        let own = self.objectives.iter().filter(|(_, objective)| objective.pool == *pool);
        own.map(|((_, name), objective)| (name.clone(), objective.priority)).collect()
    }

    pub fn rewrites_of(&self, pool: &PoolKey) -> Vec<Rewrite> {
        let own = self.rewrites.values().filter(|object| object.pool == *pool);
        own.map(|object| object.rewrite.clone()).collect()
    }

    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        match kind {
            Kind::Namespace => drop(self.namespaces.remove(name)),
            Kind::Route => drop(self.routes.remove(&key)),
            Kind::Gateway => drop(self.gateways.remove(&key)),
            Kind::Class => drop(self.classes.remove(name)),
            Kind::Grant => drop(self.grants.remove(&key)),
            Kind::Pool | Kind::EarlyPool => {
                self.pools.remove(&pool_key(kind, namespace, name));
            }
            Kind::Config => drop(self.configs.remove(&key)),
            Kind::Objective => drop(self.objectives.remove(&key)),
            Kind::Rewrite => drop(self.rewrites.remove(&key)),
        }
    }

    /// Forgets those of the kind that are none of these.
    pub fn retain(&mut self, kind: Kind, is_there: impl Fn(&str, &str) -> bool) {
        let listed = |key: &Key| is_there(&key.0, &key.1);
        match kind {
            Kind::Namespace => self.namespaces.retain(|name, _| is_there("", name)),
            Kind::Route => self.routes.retain(|key, _| listed(key)),
            Kind::Gateway => self.gateways.retain(|key, _| listed(key)),
            Kind::Class => self.classes.retain(|name, _| is_there("", name)),
            Kind::Grant => self.grants.retain(|key, _| listed(key)),
            Kind::Config => self.configs.retain(|key, _| listed(key)),
            Kind::Objective => self.objectives.retain(|key, _| listed(key)),
            Kind::Rewrite => self.rewrites.retain(|key, _| listed(key)),
            Kind::Pool | Kind::EarlyPool => self
                .pools
                .retain(|key, _| key.group != kind.group() || is_there(&key.namespace, &key.name)),
        }
    }
}

fn pool_key(kind: Kind, namespace: &str, name: &str) -> PoolKey {
    PoolKey {
        group: kind.group().to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// Of its own namespace, and of the final group unless another is named.
fn pool_of(namespace: &str, spec: &Value) -> PoolKey {
    let group = match text(spec, "/poolRef/group") {
        "" => POOLS[0],
        group => group,
    };
    PoolKey {
        group: group.to_owned(),
        namespace: namespace.to_owned(),
        name: text(spec, "/poolRef/name").to_owned(),
    }
}

impl RewriteObject {
    fn new(meta: Meta, spec: &Value) -> Self {
        let model = |matched: &Value| text(matched, "/model/value").to_owned();
        let target = |target: &Value| {
            let weight = target.get("weight").and_then(Value::as_u64).unwrap_or(1);
            let weight = u32::try_from(weight).unwrap_or(u32::MAX);
            (text(target, "/modelRewrite").to_owned(), weight)
        };
        let rule = |rule: &Value| RewriteRule {
            models: items(rule, "matches").iter().map(model).collect(),
            targets: items(rule, "targets").iter().map(target).collect(),
        };
        let rules = items(spec, "rules").iter().map(rule);
        Self {
            pool: pool_of(&meta.namespace, spec),
            rewrite: Rewrite {
                name: meta.name,
                created: meta.creation_timestamp,
                rules: rules.filter(|rule| !rule.targets.is_empty()).collect(),
            },
        }
    }
}

impl RouteObject {
    fn new(meta: Meta, spec: Value, status: Value) -> Self {
        let written = spec.get("parentRefs").and_then(Value::as_array).cloned().unwrap_or_default();
        let parent = |written: Value| {
            Some(Parent { reference: ParentRef::deserialize(&written).ok()?, written })
        };
        let parents = written.into_iter().filter_map(parent).collect();
        let (hostnames, backends, compiled) = match serde_json::from_value::<RouteSpec>(spec) {
            Ok(spec) => {
                let (namespace, name) = (&meta.namespace, &meta.name);
                let compiled = Route::compile(namespace, name, &meta.creation_timestamp, &spec);
                let compiled = compiled.map(Arc::new).map_err(|error| error.to_string());
                let backends = route::referenced(namespace, &spec);
                (spec.hostnames, backends, compiled)
            }
            Err(error) => (Vec::new(), Vec::new(), Err(format!("it cannot be read: {error}"))),
        };
        Self { meta, parents, hostnames, backends, compiled, status }
    }
}

impl PoolObject {
    /// In the early group ports, selectors and pickers are written otherwise.
    fn new(meta: Meta, spec: &Value, status: Value) -> Self {
        let selector = spec.pointer("/selector/matchLabels").or_else(|| spec.get("selector"));
        let ports = spec.get("targetPorts").and_then(Value::as_array);
        let ports = ports.into_iter().flatten().filter_map(|port| port.get("number"));
        let ports = ports.chain(spec.get("targetPortNumber"));
        let number = |port: &Value| port.as_u64().and_then(|port| u16::try_from(port).ok());
        let picker: PickerRef =
            read(spec.get("endpointPickerRef").or_else(|| spec.get("extensionRef")));
        Self {
            meta,
            selector: read(selector),
            ports: ports.filter_map(number).collect(),
            fails_open: picker.failure_mode == "FailOpen",
            picker,
            status,
        }
    }
}

fn grants(namespace: &str, spec: &Value) -> Vec<Grant> {
    let of_routes =
        |from: &&Value| text(from, "/group") == GROUP && text(from, "/kind") == Kind::Route.name();
    let froms = items(spec, "from").iter().filter(of_routes).map(|from| text(from, "/namespace"));
    let grant = |from: &str, to: &Value| Grant {
        namespace: namespace.to_owned(),
        from: from.to_owned(),
        group: text(to, "/group").to_owned(),
        kind: text(to, "/kind").to_owned(),
        name: to.get("name").and_then(Value::as_str).map(str::to_owned),
    };
    froms.flat_map(|from| items(spec, "to").iter().map(move |to| grant(from, to))).collect()
}

/// None, if it is no list.
pub(super) fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What cannot be read counts as not said: definitions need not be strict.
fn read<T: DeserializeOwned + Default>(value: Option<&Value>) -> T {
    value.and_then(|value| T::deserialize(value).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
