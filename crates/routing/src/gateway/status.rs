//! What is said of routes, gateways, classes and pools in their status. Only what differs from what is
//! said already becomes a change, and entries of other controllers stay as they are.

mod conditions;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    assemble::{Around, Assembled, CONTROLLER, Ours, Settings, Verdict, has_picker, ours},
    backends::{Key, POOLS, PoolKey, Unresolved},
    listed::{ClassObject, GatewayObject, Kind, Listed, PoolObject, RouteObject, items, text},
    parent::{GROUP, ListenerSpec, ParentRef},
    route::Backend,
};
use conditions::{Held, Stamp, merged};

/// A new status for an object, if it is still of this version.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    pub version: String,
    /// The fields that change.
    pub status: Value,
}

/// `now` is as conditions carry it.
pub fn changes(
    listed: &Listed,
    around: &Around<'_>,
    settings: Settings,
    assembled: &Assembled,
    now: &str,
) -> Vec<Change> {
    let judged = Judged { listed, around, settings, assembled, now };
    let mut changes = Vec::new();
    for verdict in &assembled.verdicts {
        changes.extend(listed.routes.get(&verdict.route).and_then(|it| judged.route(it, verdict)));
    }
    changes.extend(listed.gateways.iter().filter_map(|(key, it)| judged.gateway(key, it)));
    changes.extend(listed.classes.values().filter_map(|it| judged.class(it)));
    let parents = judged.parents_of_pools();
    changes.extend(listed.pools.iter().filter_map(|(key, it)| judged.pool(key, it, &parents)));
    changes
}

struct Judged<'a> {
    listed: &'a Listed,
    around: &'a Around<'a>,
    settings: Settings,
    assembled: &'a Assembled,
    now: &'a str,
}

impl Judged<'_> {
    fn stamp(&self, generation: i64) -> Stamp<'_> {
        Stamp { generation, now: self.now }
    }

    fn route(&self, route: &RouteObject, verdict: &Verdict) -> Option<Change> {
        let resolved = self.resolved(route);
        let mut wanted = Vec::new();
        for (parent, verdict) in route.parents.iter().zip(&verdict.parents) {
            let Some(verdict) = verdict else { continue };
            let accepted = match (verdict, &route.compiled) {
                (Err(refusal), _) => {
                    Held::not("Accepted", refusal.reason(), refusal.message().to_owned())
                }
                (Ok(_), Err(why)) => Held::not("Accepted", "UnsupportedValue", why.clone()),
                (Ok(_), Ok(_)) => Held::yes("Accepted", "the gateway serves the route"),
            };
            wanted.push(Entry {
                parent: parent.written.clone(),
                names_controller: true,
                held: vec![accepted, resolved.clone()],
            });
        }
        let is_ours = |entry: &Value| text(entry, "/controllerName") == CONTROLLER;
        let before = items(&route.status, "parents");
        let stamp = self.stamp(route.meta.generation);
        let parents = entries(before, wanted, is_ours, stamp)?;
        Some(Change {
            kind: Kind::Route,
            namespace: route.meta.namespace.clone(),
            name: route.meta.name.clone(),
            version: route.meta.resource_version.clone(),
            status: json!({ "parents": parents }),
        })
    }

    fn resolved(&self, route: &RouteObject) -> Held {
        let backends = &self.assembled.routing.backends;
        let mut missing = route.backends.iter().filter_map(|backend| {
            let why = backends.resolve(&route.meta.namespace, backend).err()?;
            Some(Held::not("ResolvedRefs", why.reason(), unresolved(why, backend)))
        });
        missing.next().unwrap_or_else(|| Held::yes("ResolvedRefs", "all backends are there"))
    }

    /// That of a class that another controller has is left alone.
    fn gateway(&self, key: &Key, gateway: &GatewayObject) -> Option<Change> {
        let class = self.listed.classes.get(&gateway.spec.gateway_class_name);
        let is_ours =
            class.map_or(self.settings.accepts_any, |class| class.controller == CONTROLLER);
        if !is_ours {
            return None;
        }
        let stamp = self.stamp(gateway.meta.generation);
        let attached = self.attached(key);
        let before = items(&gateway.status, "listeners");
        let listener = |listener: &ListenerSpec| {
            let known = before.iter().find(|entry| text(entry, "/name") == listener.name);
            let known = known.map(|entry| items(entry, "conditions")).unwrap_or_default();
            let kinds = match listener.is_served() && listener.takes_http() {
                true => vec![json!({ "group": GROUP, "kind": Kind::Route.name() })],
                false => Vec::new(),
            };
            json!({
                "name": listener.name,
                "supportedKinds": kinds,
                "attachedRoutes": attached.get(listener.name.as_str()).copied().unwrap_or(0),
                "conditions": merged(known, &of_listener(listener), stamp),
            })
        };
        let listeners: Vec<Value> = gateway.spec.listeners.iter().map(listener).collect();
        let Settings { scheme, address, .. } = self.settings;
        let held = of_gateway(&gateway.spec.listeners, &format!("{scheme}://{address}"));
        let status = json!({
            "addresses": [{ "type": "IPAddress", "value": address.ip().to_string() }],
            "conditions": merged(items(&gateway.status, "conditions"), &held, stamp),
            "listeners": listeners,
        });
        let fields = ["addresses", "conditions", "listeners"];
        let same = fields.iter().all(|field| gateway.status.get(field) == status.get(field));
        (!same).then(|| Change {
            kind: Kind::Gateway,
            namespace: gateway.meta.namespace.clone(),
            name: gateway.meta.name.clone(),
            version: gateway.meta.resource_version.clone(),
            status,
        })
    }

    /// How many routes hang on each listener.
    fn attached(&self, gateway: &Key) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for (route, verdict) in self.served() {
            let mut listeners = BTreeSet::new();
            for (parent, verdict) in route.parents.iter().zip(&verdict.parents) {
                if let Some(Ok(attached)) = verdict
                    && parent.gateway(&route.meta.namespace) == *gateway
                {
                    listeners.extend(attached.listeners.iter().map(String::as_str));
                }
            }
            for listener in listeners {
                *counts.entry(listener).or_default() += 1;
            }
        }
        counts
    }

    /// Routes that make sense, with what their parents say of them.
    fn served(&self) -> impl Iterator<Item = (&RouteObject, &Verdict)> {
        self.assembled.verdicts.iter().filter_map(|verdict| {
            let route = self.listed.routes.get(&verdict.route)?;
            route.compiled.is_ok().then_some((route, verdict))
        })
    }

    fn class(&self, class: &ClassObject) -> Option<Change> {
        if class.controller != CONTROLLER {
            return None;
        }
        let held = [Held::yes("Accepted", "this machine's gateway serves it")];
        let stamp = self.stamp(class.meta.generation);
        let before = items(&class.status, "conditions");
        let conditions = merged(before, &held, stamp);
        (before != conditions).then(|| Change {
            kind: Kind::Class,
            namespace: String::new(),
            name: class.meta.name.clone(),
            version: class.meta.resource_version.clone(),
            status: json!({ "conditions": conditions }),
        })
    }

    /// The gateways through which each pool is reached.
    fn parents_of_pools(&self) -> BTreeMap<PoolKey, BTreeSet<Key>> {
        let mut parents: BTreeMap<PoolKey, BTreeSet<Key>> = BTreeMap::new();
        for (route, verdict) in self.served() {
            let accepted = route.parents.iter().zip(&verdict.parents);
            let accepted = accepted.filter(|(_, verdict)| matches!(verdict, Some(Ok(_))));
            let gateways: BTreeSet<Key> =
                accepted.map(|(parent, _)| parent.gateway(&route.meta.namespace)).collect();
            let backends = &self.assembled.routing.backends;
            let is_allowed =
                |backend: &&Backend| backends.resolve(&route.meta.namespace, backend).is_ok();
            for pool in route.backends.iter().filter(is_allowed).filter_map(Backend::pool) {
                parents.entry(pool).or_default().extend(gateways.iter().cloned());
            }
        }
        parents
    }

    fn pool(
        &self,
        key: &PoolKey,
        pool: &PoolObject,
        parents: &BTreeMap<PoolKey, BTreeSet<Key>>,
    ) -> Option<Change> {
        // The early group has another name for the list, and none for who wrote an entry.
        let is_early = key.group == POOLS[1];
        let (kind, field) =
            if is_early { (Kind::EarlyPool, "parent") } else { (Kind::Pool, "parents") };
        let held = vec![Held::yes("Accepted", "the gateway serves the pool"), self.picker_of(pool)];
        let entry = |(namespace, name): &Key| Entry {
            parent: json!({ "group": GROUP, "kind": Kind::Gateway.name(), "namespace": namespace,
                "name": name }),
            names_controller: !is_early,
            held: held.clone(),
        };
        let wanted = parents.get(key).into_iter().flatten().map(entry).collect();
        let is_ours = |entry: &Value| match text(entry, "/controllerName") {
            "" => self.is_our_gateway(&pool.meta.namespace, entry.get("parentRef")),
            controller => controller == CONTROLLER,
        };
        let stamp = self.stamp(pool.meta.generation);
        let parents = entries(items(&pool.status, field), wanted, is_ours, stamp)?;
        Some(Change {
            kind,
            namespace: pool.meta.namespace.clone(),
            name: pool.meta.name.clone(),
            version: pool.meta.resource_version.clone(),
            status: json!({ field: parents }),
        })
    }

    fn is_our_gateway(&self, namespace: &str, parent: Option<&Value>) -> bool {
        let Some(parent) = parent.and_then(|parent| ParentRef::deserialize(parent).ok()) else {
            return false;
        };
        let key =
            (parent.namespace.clone().unwrap_or_else(|| namespace.to_owned()), parent.name.clone());
        parent.is_gateway() && !matches!(ours(self.listed, self.settings, &key), Ours::No)
    }

    fn picker_of(&self, pool: &PoolObject) -> Held {
        let (namespace, name) = (&pool.meta.namespace, &pool.picker.name);
        match has_picker(pool, self.around) {
            true => Held::yes("ResolvedRefs", "the endpoint picker is there"),
            false => Held::not(
                "ResolvedRefs",
                "InvalidExtensionRef",
                format!("there is no Service {namespace}/{name} of an endpoint picker"),
            ),
        }
    }
}

fn of_listener(listener: &ListenerSpec) -> Vec<Held> {
    let reached = match listener.is_served() {
        true => [
            Held::yes("Accepted", "the gateway serves the listener"),
            Held::yes("Programmed", "requests are taken"),
        ],
        false => [
            Held::not(
                "Accepted",
                "UnsupportedProtocol",
                format!("the protocol {} is not supported", listener.protocol),
            ),
            Held::not("Programmed", "Invalid", "no requests are taken".to_owned()),
        ],
    };
    let kinds = match listener.takes_only_http() {
        true => Held::yes("ResolvedRefs", "all references are known"),
        false => Held::not(
            "ResolvedRefs",
            "InvalidRouteKinds",
            "only routes of kind HTTPRoute are supported".to_owned(),
        ),
    };
    let mut held = Vec::from(reached);
    held.push(kinds);
    held
}

fn of_gateway(listeners: &[ListenerSpec], url: &str) -> Vec<Held> {
    let invalid = "some listeners are not supported".to_owned();
    let served = listeners.iter().filter(|listener| listener.is_served()).count();
    let programmed = Held::yes("Programmed", &format!("requests are taken at {url}"));
    if served == 0 {
        let nothing = "no listener is supported".to_owned();
        return vec![
            Held::not("Accepted", "ListenersNotValid", nothing.clone()),
            Held::not("Programmed", "Invalid", nothing),
        ];
    }
    let accepted = Held::yes("Accepted", "the gateway is served");
    let accepted = match served == listeners.len() {
        true => accepted,
        false => Held { reason: "ListenersNotValid", message: invalid, ..accepted },
    };
    vec![accepted, programmed]
}

fn unresolved(why: Unresolved, backend: &Backend) -> String {
    let Backend { kind, namespace, name, .. } = backend;
    match (why, backend.port) {
        (Unresolved::InvalidKind, _) => format!("backends of kind {kind} are not supported"),
        (Unresolved::RefNotPermitted, _) => {
            format!("no ReferenceGrant permits the reference to {kind} {namespace}/{name}")
        }
        (Unresolved::BackendNotFound, Some(port)) if backend.is_service() => {
            format!("there is no {kind} {namespace}/{name} with port {port}")
        }
        (Unresolved::BackendNotFound, None) if backend.is_service() => {
            format!("the reference to {kind} {namespace}/{name} names no port")
        }
        (Unresolved::BackendNotFound, _) => format!("there is no {kind} {namespace}/{name}"),
    }
}

/// What a parent says.
struct Entry {
    parent: Value,
    names_controller: bool,
    held: Vec<Held>,
}

/// The list with our entries as they should be, if they are not so already. Nobody's order changes.
fn entries(
    before: &[Value],
    wanted: Vec<Entry>,
    is_ours: impl Fn(&Value) -> bool,
    stamp: Stamp<'_>,
) -> Option<Vec<Value>> {
    let mut changed = false;
    let mut wanted: Vec<Option<Entry>> = wanted.into_iter().map(Some).collect();
    let mut after = Vec::new();
    for old in before {
        if !is_ours(old) {
            after.push(old.clone());
            continue;
        }
        let same = |entry: &Option<Entry>| {
            let parents = entry.as_ref().map(|entry| &entry.parent).zip(old.get("parentRef"));
            parents.is_some_and(|(new, old)| is_same_parent(new, old))
        };
        let Some(entry) = wanted.iter_mut().find(|entry| same(entry)).and_then(Option::take) else {
            changed = true;
            continue;
        };
        let conditions = merged(items(old, "conditions"), &entry.held, stamp);
        changed |= conditions != items(old, "conditions");
        let mut new = old.clone();
        new["conditions"] = conditions.into();
        after.push(new);
    }
    for entry in wanted.into_iter().flatten() {
        changed = true;
        let conditions = merged(&[], &entry.held, stamp);
        let mut new = json!({ "parentRef": entry.parent, "conditions": conditions });
        if entry.names_controller {
            new["controllerName"] = CONTROLLER.into();
        }
        after.push(new);
    }
    changed.then_some(after)
}

/// Whatever is left to be filled in by a definition.
fn is_same_parent(one: &Value, other: &Value) -> bool {
    let full = |value: &Value| {
        let mut parent = ParentRef::deserialize(value).ok()?;
        parent.group.get_or_insert_with(|| GROUP.to_owned());
        parent.kind.get_or_insert_with(|| Kind::Gateway.name().to_owned());
        Some(parent)
    };
    full(one) == full(other)
}

#[cfg(test)]
mod tests;
