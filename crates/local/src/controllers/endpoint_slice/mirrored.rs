//! The slices of a Service whose Endpoints somebody else writes.
//!
//! The rules are those of Kubernetes' mirroring controller: one slice for each set of ports and each
//! family, and no more addresses of a subset than fit into one.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use k8s_openapi::{
    api::{
        core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Service},
        discovery::v1::{self as discovery, Endpoint, EndpointConditions, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::{
    super::owners::reference,
    slices::{Change, LIMIT, MANAGED_BY, SERVICE_NAME, delete, is_managed_by, reused, same_ports},
    wanted::Family,
};

pub(super) const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Endpoints were once used as locks.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// They tell of the Endpoints alone.
const NOT_COPIED: [&str; 2] = [
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// What is to be done, and what cannot.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Mirrored {
    pub(super) changes: Vec<Change>,
    /// Addresses that are none.
    pub(super) invalid: usize,
    /// Addresses for which there is no room.
    pub(super) skipped: usize,
}

/// Whether the slices of these Endpoints are to be made here. Those of a Service with a selector
/// are made of its pods.
pub(super) fn is_mirrored(endpoints: &Endpoints, service: Option<&Service>) -> bool {
    let has = |map: &Option<BTreeMap<String, String>>, key: &str| {
        map.as_ref().and_then(|map| map.get(key)).cloned()
    };
    let metadata = &endpoints.metadata;
    service.is_some_and(|service| !has_selector(service))
        && has(&metadata.labels, SKIP).is_none_or(|skip| skip != "true")
        && has(&metadata.annotations, LEADER).is_none()
}

/// Whether it is used or not, as Kubernetes has it.
fn has_selector(service: &Service) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| !selector.is_empty())
}

/// What makes `existing`, the slices that were mirrored for this name, those of the Endpoints.
/// Without Endpoints there are none.
pub(super) fn mirrored(endpoints: Option<&Endpoints>, existing: &[EndpointSlice]) -> Mirrored {
    let ours: Vec<_> = existing.iter().filter(|slice| is_managed_by(slice, MANAGER)).collect();
    let Some(endpoints) = endpoints else {
        let changes = ours.into_iter().filter_map(delete).collect();
        return Mirrored { changes, ..Mirrored::default() };
    };
    let mut all = Mirrored::default();
    let mut groups: Vec<Group> = Vec::new();
    for subset in repacked(endpoints.subsets.as_deref().unwrap_or_default()) {
        all.add(subset, &mut groups);
    }
    for family in [Family::V4, Family::V6] {
        let groups = groups.iter().filter(|group| group.family == family);
        let ours = ours.iter().copied().filter(|slice| slice.address_type == family.name());
        let changes = of_family(endpoints, groups, &ours.collect::<Vec<_>>());
        all.changes.extend(reused(changes));
    }
    let leaving = endpoints.metadata.deletion_timestamp.is_some();
    all.changes.retain(|change| !leaving || !matches!(change, Change::Create(_)));
    all
}

/// Endpoints that share a slice.
struct Group {
    family: Family,
    ports: Vec<discovery::EndpointPort>,
    endpoints: Vec<Endpoint>,
}

impl Mirrored {
    fn add(&mut self, subset: Subset, groups: &mut Vec<Group>) {
        let ports: Vec<_> = subset.ports.iter().map(port).collect();
        let mut added = 0;
        let (ready, waiting): (Vec<_>, Vec<_>) =
            subset.addresses.into_iter().partition(|(_, ready)| *ready);
        for (address, ready) in ready.into_iter().chain(waiting) {
            if added == LIMIT {
                self.skipped += 1;
                continue;
            }
            let Some(ip) = parsed(&address.ip) else {
                self.invalid += 1;
                continue;
            };
            added += 1;
            let family = if ip.is_ipv4() { Family::V4 } else { Family::V6 };
            let same = |group: &&mut Group| group.family == family && group.ports == ports;
            let endpoint = endpoint(address, ip, ready);
            match groups.iter_mut().find(same) {
                Some(group) if group.endpoints.contains(&endpoint) => {}
                Some(group) => group.endpoints.push(endpoint),
                None => {
                    groups.push(Group { family, ports: ports.clone(), endpoints: vec![endpoint] });
                }
            }
        }
    }
}

/// Addresses that offer the same ports.
struct Subset {
    ports: Vec<EndpointPort>,
    /// In the order of their texts, and whether each is ready.
    addresses: Vec<(EndpointAddress, bool)>,
}

/// Who an address is: that of a node may be that of several pods.
type Identity = (String, String);
type PortKey = (String, i32, String, Option<String>);

/// The subsets as each set of ports has them, whatever was written: what is said twice counts once,
/// and who is not ready somewhere is not.
fn repacked(subsets: &[EndpointSubset]) -> Vec<Subset> {
    let mut known: BTreeMap<Identity, &EndpointAddress> = BTreeMap::new();
    let mut offers: BTreeMap<Option<PortKey>, BTreeMap<Identity, bool>> = BTreeMap::new();
    for subset in subsets {
        let ports: Vec<_> = subset.ports.iter().flatten().map(|port| Some(key(port))).collect();
        let ports = if ports.is_empty() { vec![None] } else { ports };
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let waiting = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        for (address, is_ready) in ready.chain(waiting) {
            known.entry(identity(address)).or_insert(address);
            for port in &ports {
                let held = offers.entry(port.clone()).or_default();
                let held = held.entry(identity(address)).or_insert(true);
                *held = *held && is_ready;
            }
        }
    }
    let mut groups: BTreeMap<BTreeSet<(Identity, bool)>, Vec<EndpointPort>> = BTreeMap::new();
    for (port, addresses) in offers {
        let ports = groups.entry(addresses.into_iter().collect()).or_default();
        ports.extend(port.map(|(name, port, protocol, app_protocol)| EndpointPort {
            name: Some(name),
            port,
            protocol: Some(protocol),
            app_protocol,
        }));
    }
    let subset = |(addresses, ports): (BTreeSet<(Identity, bool)>, _)| Subset {
        ports,
        addresses: addresses
            .into_iter()
            .filter_map(|(identity, ready)| Some(((*known.get(&identity)?).clone(), ready)))
            .collect(),
    };
    groups.into_iter().map(subset).collect()
}

fn identity(address: &EndpointAddress) -> Identity {
    let target = address.target_ref.as_ref();
    (address.ip.clone(), target.and_then(|target| target.uid.clone()).unwrap_or_default())
}

fn key(port: &EndpointPort) -> PortKey {
    let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".into());
    (port.name.clone().unwrap_or_default(), port.port, protocol, port.app_protocol.clone())
}

fn port(port: &EndpointPort) -> discovery::EndpointPort {
    discovery::EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(port.port),
        protocol: port.protocol.clone(),
        app_protocol: port.app_protocol.clone(),
    }
}

/// As old readers took it: zeros may lead, and an old address may be written as a new one.
fn parsed(text: &str) -> Option<IpAddr> {
    let plain: Vec<&str> = text
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            rest => rest,
        })
        .collect();
    let text = if text.contains(':') { text.to_owned() } else { plain.join(".") };
    text.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

fn endpoint(address: EndpointAddress, ip: IpAddr, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..Default::default() }),
        hostname: address.hostname.filter(|name| !name.is_empty()),
        node_name: address.node_name,
        target_ref: address.target_ref,
        ..Default::default()
    }
}

fn of_family<'a>(
    endpoints: &Endpoints,
    groups: impl Iterator<Item = &'a Group>,
    existing: &[&EndpointSlice],
) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut left = existing.to_vec();
    for group in groups {
        let same = left.iter().position(|slice| same_ports(&group.ports, slice));
        let old = same.map(|at| left.remove(at));
        let mut slice = endpoint_slice(endpoints, group);
        match old {
            None => changes.push(Change::Create(Box::new(slice))),
            Some(old) if is_as(old, &slice) => {}
            Some(old) => {
                slice.metadata.name = old.metadata.name.clone();
                slice.metadata.generate_name = None;
                changes.push(Change::Update(Box::new(slice)));
            }
        }
    }
    changes.extend(left.into_iter().filter_map(delete));
    changes
}

fn is_as(old: &EndpointSlice, wanted: &EndpointSlice) -> bool {
    let (is, should) = (&old.metadata, &wanted.metadata);
    old.endpoints == wanted.endpoints
        && is.labels == should.labels
        && is.annotations.clone().unwrap_or_default()
            == should.annotations.clone().unwrap_or_default()
        && is.owner_references == should.owner_references
}

fn endpoint_slice(endpoints: &Endpoints, group: &Group) -> EndpointSlice {
    let name = endpoints.metadata.name.clone().unwrap_or_default();
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.into(), name.clone());
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    let mut annotations = endpoints.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| !NOT_COPIED.contains(&&**key));
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: endpoints.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
            owner_references: Some(vec![reference(endpoints)]),
            ..Default::default()
        },
        address_type: group.family.name().into(),
        endpoints: group.endpoints.clone(),
        ports: Some(group.ports.clone()),
    }
}
