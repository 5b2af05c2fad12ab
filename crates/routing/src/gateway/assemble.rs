//! From the objects of the API to what requests go by. All of it is pure.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{IpAddr, SocketAddr},
    sync::{Arc, LazyLock},
};

use super::{
    backends::{Backends, Key, Pool, PoolKey, Service},
    listed::{GatewayObject, Listed, Parent, PoolObject, RouteObject},
    parent::{self, Applicant, Attached, Refusal},
    proxy::Routing,
    route::{Backend, Hostname, Route},
    table::Table,
};
use crate::{
    Config, Endpoint, Picker,
    endpoint::Pod,
    picker::{Counters, Objectives, Rewrite, Settings as PickerSettings},
};

/// Under this name classes, routes and pools know this gateway.
pub const CONTROLLER: &str = "windlass.dev/gateway";
/// The class that is there from the start.
pub const CLASS: &str = "windlass";

/// A pod that has an address and has not ended.
#[derive(Clone, Debug)]
pub struct PodSeen<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub ip: IpAddr,
    pub labels: &'a BTreeMap<String, String>,
    pub is_ready: bool,
    pub is_leaving: bool,
    /// Of its containers.
    pub ports: Vec<(&'a str, u16)>,
}

#[derive(Clone, Debug)]
pub struct ServiceSeen<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    /// `None`: somebody else says who answers.
    pub selector: Option<&'a BTreeMap<String, String>>,
    pub ports: Vec<PortSeen<'a>>,
    /// Pods count before they are ready.
    pub takes_unready: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct PortSeen<'a> {
    pub number: u16,
    pub name: &'a str,
    pub target: Target<'a>,
}

/// The port of a pod.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    Number(u16),
    Name(&'a str),
}

/// Endpoints of a Service that do not follow from its selector.
#[derive(Clone, Debug)]
pub struct SliceSeen<'a> {
    pub namespace: &'a str,
    pub service: &'a str,
    pub ports: Vec<(&'a str, u16)>,
    /// The ready ones.
    pub addresses: Vec<IpAddr>,
}

/// What others know of the cluster too.
#[derive(Clone, Debug, Default)]
pub struct Around<'a> {
    pub pods: Vec<PodSeen<'a>>,
    pub services: Vec<ServiceSeen<'a>>,
    pub slices: Vec<SliceSeen<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether routes may hang on any gateway, even on one that is missing.
    pub accepts_any: bool,
    /// Of the listener.
    pub scheme: &'static str,
    pub address: SocketAddr,
}

pub struct Assembled {
    pub routing: Routing,
    /// For the pickers of the pools.
    pub endpoints: Vec<(PoolKey, Vec<Endpoint>)>,
    pub objectives: Vec<(PoolKey, Objectives)>,
    pub rewrites: Vec<(PoolKey, Vec<Rewrite>)>,
    pub verdicts: Vec<Verdict>,
}

/// What is to be said of a route, in the order of its parents.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub route: Key,
    /// `None`: the parent is somebody else's.
    pub parents: Vec<Option<Result<Attached, Refusal>>>,
}

/// Whose gateway a parent is.
pub(super) enum Ours<'a> {
    Gateway(&'a GatewayObject),
    /// There is none of that name, and routes are taken all the same.
    Missing,
    No,
}

/// Pickers of pools that are still there and choose as they did are those of `before`.
pub fn assemble(
    listed: &Listed,
    around: &Around<'_>,
    settings: Settings,
    before: &Backends,
) -> Assembled {
    let mut routes = Vec::new();
    let mut verdicts = Vec::new();
    let mut used = Used::default();
    for (key, object) in &listed.routes {
        let judge = |parent: &Parent| judge(listed, settings, object, parent);
        let verdict =
            Verdict { route: key.clone(), parents: object.parents.iter().map(judge).collect() };
        if verdict.parents.iter().any(Option::is_some) {
            used.note(&object.backends);
        }
        if let Ok(route) = &object.compiled {
            routes.extend(verdict.hostnames().map(|names| narrowed(route, &names)));
        }
        verdicts.push(verdict);
    }
    let pools = used.pools.iter().filter_map(|key| Some((key, listed.pools.get(key)?)));
    let endpoints: Vec<_> =
        pools.map(|(key, object)| (key.clone(), members(object, &around.pods))).collect();
    let pool = |(key, members): &(PoolKey, Vec<Endpoint>)| {
        let object = listed.pools.get(key);
        let config = object.and_then(|object| listed.configs.get(&config_of(object))).cloned();
        let same = before.pools.get(key).filter(|pool| pool.config == config);
        let pool = Pool {
            picker: match same {
                Some(pool) => pool.picker.clone(),
                None => picker_of(key, config.as_deref(), &before.counters),
            },
            config,
            has_picker: object.is_none_or(|object| has_picker(object, around)),
            fails_open: object.is_some_and(|object| object.fails_open),
            endpoints: members.iter().map(|member| member.address).collect(),
        };
        (key.clone(), pool)
    };
    let backends = Backends {
        services: services(around, &used),
        pools: endpoints.iter().map(pool).collect(),
        grants: listed.grants.values().flatten().cloned().collect(),
        counters: before.counters.clone(),
    };
    let table = Table::new(routes);
    let keys = || endpoints.iter().map(|(key, _)| key.clone());
    Assembled {
        objectives: keys().map(|key| (key.clone(), listed.objectives_of(&key))).collect(),
        rewrites: keys().map(|key| (key.clone(), listed.rewrites_of(&key))).collect(),
        routing: Routing { table, backends },
        endpoints,
        verdicts,
    }
}

/// What accepted routes refer to: only that is looked up.
#[derive(Default)]
struct Used {
    services: BTreeSet<Key>,
    pools: BTreeSet<PoolKey>,
}

impl Used {
    fn note(&mut self, backends: &[Backend]) {
        self.pools.extend(backends.iter().filter_map(Backend::pool));
        let services = backends.iter().filter(|backend| backend.is_service());
        let key = |backend: &Backend| (backend.namespace.clone(), backend.name.clone());
        self.services.extend(services.map(key));
    }
}

impl Verdict {
    /// Under which names the route is reached, if at all.
    fn hostnames(&self) -> Option<Vec<String>> {
        let attached = self.parents.iter().flatten().flatten();
        let names: Vec<_> = attached.map(|attached| &attached.hostnames).collect();
        if names.is_empty() {
            return None;
        }
        let any = names.iter().any(|names| names.is_empty());
        Some(if any { Vec::new() } else { names.into_iter().flatten().cloned().collect() })
    }
}

fn narrowed(route: &Arc<Route>, names: &[String]) -> Arc<Route> {
    let hostnames: Vec<Hostname> = names.iter().map(|name| Hostname::of(name)).collect();
    if hostnames == route.hostnames {
        return route.clone();
    }
    Arc::new(Route { hostnames, ..Route::clone(route) })
}

fn judge(
    listed: &Listed,
    settings: Settings,
    route: &RouteObject,
    parent: &Parent,
) -> Option<Result<Attached, Refusal>> {
    static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
    let namespace = &route.meta.namespace;
    let applicant = Applicant {
        namespace,
        labels: listed.namespaces.get(namespace).unwrap_or(&NO_LABELS),
        hostnames: &route.hostnames,
    };
    if !parent.reference.is_gateway() {
        return None;
    }
    let key = parent.gateway(namespace);
    match ours(listed, settings, &key) {
        Ours::No => None,
        Ours::Missing => {
            let hostnames = route.hostnames.clone();
            Some(Ok(Attached { hostnames, listeners: Vec::new() }))
        }
        Ours::Gateway(gateway) => {
            Some(parent::accept(applicant, &parent.reference, (&key.0, &gateway.spec)))
        }
    }
}

impl Parent {
    pub(super) fn gateway(&self, namespace: &str) -> Key {
        let namespace = self.reference.namespace.as_deref().unwrap_or(namespace);
        (namespace.to_owned(), self.reference.name.clone())
    }
}

pub(super) fn ours<'a>(listed: &'a Listed, settings: Settings, gateway: &Key) -> Ours<'a> {
    let Some(found) = listed.gateways.get(gateway) else {
        return if settings.accepts_any { Ours::Missing } else { Ours::No };
    };
    let class = listed.classes.get(&found.spec.gateway_class_name);
    let is_ours = class.is_some_and(|class| class.controller == CONTROLLER);
    if is_ours || settings.accepts_any { Ours::Gateway(found) } else { Ours::No }
}

fn selects(selector: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> bool {
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// The ready pods, with each of the ports. An empty selector means nobody.
fn members(pool: &PoolObject, pods: &[PodSeen<'_>]) -> Vec<Endpoint> {
    let is_member = |pod: &&PodSeen<'_>| {
        pod.is_ready
            && !pod.is_leaving
            && pod.namespace == pool.meta.namespace
            && !pool.selector.is_empty()
            && selects(&pool.selector, pod.labels)
    };
    let endpoints = |pod: &PodSeen<'_>| {
        let pod = Pod {
            namespace: pod.namespace.to_owned(),
            name: pod.name.to_owned(),
            ip: pod.ip,
            labels: pod.labels.clone(),
        };
        pod.endpoints(&pool.ports, None)
    };
    pods.iter().filter(is_member).flat_map(endpoints).collect()
}

/// Pods tell at once that they go; the slices that are made of them would do so a little later.
fn services(around: &Around<'_>, used: &Used) -> HashMap<Key, Service> {
    let mut services = HashMap::new();
    for service in &around.services {
        let key = (service.namespace.to_owned(), service.name.to_owned());
        if !used.services.contains(&key) {
            continue;
        }
        let ready = |port: &PortSeen<'_>| {
            let mut ready = from_pods(service, *port, &around.pods);
            ready.extend(from_slices(service, *port, &around.slices));
            ready.sort_unstable();
            ready.dedup();
            (port.number, ready)
        };
        services.insert(key, Service { ports: service.ports.iter().map(ready).collect() });
    }
    services
}

fn from_pods(
    service: &ServiceSeen<'_>,
    port: PortSeen<'_>,
    pods: &[PodSeen<'_>],
) -> Vec<SocketAddr> {
    let Some(selector) = service.selector else { return Vec::new() };
    let is_meant = |pod: &&PodSeen<'_>| {
        pod.namespace == service.namespace
            && (pod.is_ready || service.takes_unready)
            && !pod.is_leaving
            && selects(selector, pod.labels)
    };
    let address = |pod: &PodSeen<'_>| {
        let port = match port.target {
            Target::Number(number) => number,
            Target::Name(name) => pod.ports.iter().find(|(known, _)| *known == name)?.1,
        };
        Some(SocketAddr::new(pod.ip, port))
    };
    pods.iter().filter(is_meant).filter_map(address).collect()
}

fn from_slices(
    service: &ServiceSeen<'_>,
    port: PortSeen<'_>,
    slices: &[SliceSeen<'_>],
) -> Vec<SocketAddr> {
    let own = slices
        .iter()
        .filter(|slice| slice.namespace == service.namespace && slice.service == service.name);
    let addresses = |slice: &SliceSeen<'_>| {
        let number = slice.ports.iter().find(|(name, _)| *name == port.name).map(|(_, port)| *port);
        let address = |number| slice.addresses.iter().map(move |ip| SocketAddr::new(*ip, number));
        number.map(address).into_iter().flatten().collect::<Vec<_>>()
    };
    own.flat_map(addresses).collect()
}

/// Queue, cache and prefix decide; pods that only prefill are not asked by clients. The second best is
/// for when the best cannot be reached.
const PICKER: &str = "
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: decode-filter
- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: prefix-cache-scorer
- type: max-score-picker
  parameters:
    maxNumOfEndpoints: 2
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: decode-filter
  - pluginRef: queue-scorer
    weight: 2
  - pluginRef: kv-cache-utilization-scorer
    weight: 2
  - pluginRef: prefix-cache-scorer
    weight: 3
  - pluginRef: max-score-picker
";

static CONFIG: LazyLock<Config> = LazyLock::new(|| Config::parse(PICKER).unwrap_or_default());

/// The choice is made in here whatever a pool refers to, but elsewhere that would have to be there.
pub(super) fn has_picker(pool: &PoolObject, around: &Around<'_>) -> bool {
    let (namespace, picker) = (pool.meta.namespace.as_str(), &pool.picker);
    let is_service = picker.kind.as_deref().unwrap_or("Service") == "Service";
    let is_it =
        |service: &ServiceSeen<'_>| service.namespace == namespace && service.name == picker.name;
    let found = || around.services.iter().any(is_it);
    picker.name.is_empty() || is_service && picker.group.is_empty() && found()
}

/// Where a pool's picker, if it ran on its own, would have its configuration.
fn config_of(pool: &PoolObject) -> Key {
    (pool.meta.namespace.clone(), format!("{}-config", pool.picker.name))
}

fn picker_of(key: &PoolKey, config: Option<&str>, counters: &Counters) -> Picker {
    let said = config.and_then(|text| match Config::parse(text) {
        Ok(config) => Some(config),
        Err(error) => {
            tracing::warn!(pool = key.name, %error, "the pool is picked from in the usual way");
            None
        }
    });
    let settings = PickerSettings { pool: key.name.clone(), ..PickerSettings::default() };
    Picker::counting(said.unwrap_or_else(|| CONFIG.clone()), settings, counters)
}

#[cfg(test)]
mod tests;
