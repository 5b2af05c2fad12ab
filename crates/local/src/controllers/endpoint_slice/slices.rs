//! How the endpoints are spread over slices, with as few writes as possible.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use k8s_openapi::{
    api::{
        core::v1::{Pod, Service},
        discovery::v1::{Endpoint, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use serde_json::Value;

use super::super::owners::reference;
use super::wanted::{Family, Group, families, groups, is_headless};

/// More than these do not fit into a slice.
pub(super) const LIMIT: usize = 1000;
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    Create(Box<EndpointSlice>),
    Update(Box<EndpointSlice>),
    /// By name.
    Delete(String),
}

/// What makes `existing`, the slices of this Service, those that it should have. New slices come
/// first, so that no endpoint is missing in between.
pub(super) fn changes(
    service: &Service,
    pods: &[Arc<Pod>],
    existing: &[EndpointSlice],
) -> Vec<Change> {
    let ours: Vec<_> = existing.iter().filter(|slice| is_managed_by(slice, MANAGER)).collect();
    let families = families(service);
    let mut changes = Vec::new();
    for family in &families {
        let (mine, strange): (Vec<_>, Vec<_>) = ours
            .iter()
            .filter(|slice| slice.address_type == family.name())
            .partition(|slice| is_owned(service, slice));
        changes.extend(reused(of_family(service, pods, *family, &mine)));
        changes.extend(strange.into_iter().filter_map(delete));
    }
    let other =
        |slice: &&&EndpointSlice| families.iter().all(|family| family.name() != slice.address_type);
    changes.extend(ours.iter().filter(other).filter_map(|slice| delete(slice)));
    changes.sort_by_key(|change| match change {
        Change::Create(_) => 0,
        Change::Update(_) => 1,
        Change::Delete(_) => 2,
    });
    changes
}

fn of_family(
    service: &Service,
    pods: &[Arc<Pod>],
    family: Family,
    existing: &[&EndpointSlice],
) -> Vec<Change> {
    let mut groups = groups(service, pods, family);
    if groups.is_empty() {
        // One that holds nothing tells readers that nobody answers, rather than that nobody looked.
        groups.push(Group { ports: Vec::new(), endpoints: Vec::new() });
    }
    let mut changes = Vec::new();
    let mut kept = Vec::new();
    for group in groups {
        let same = existing.iter().filter(|slice| same_ports(&group.ports, slice));
        let same: Vec<&EndpointSlice> = same.copied().collect();
        kept.extend(same.iter().map(|slice| slice.metadata.name.clone()));
        changes.extend(of_group(service, family, group, &same));
    }
    let gone = existing.iter().filter(|slice| !kept.contains(&slice.metadata.name));
    changes.extend(gone.filter_map(|slice| delete(slice)));
    changes
}

/// What is to be made takes the place of what is to go, so that readers see neither a gap nor an
/// endpoint twice.
pub(super) fn reused(changes: Vec<Change>) -> Vec<Change> {
    let is_new = |change: &Change| matches!(change, Change::Create(_));
    let (mut made, mut others): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_new);
    for change in &mut others {
        if let Change::Delete(name) = change
            && let Some(Change::Create(mut slice)) = made.pop()
        {
            slice.metadata.name = Some(name.clone());
            *change = Change::Update(slice);
        }
    }
    made.extend(others);
    made
}

fn of_group(
    service: &Service,
    family: Family,
    group: Group,
    existing: &[&EndpointSlice],
) -> Vec<Change> {
    let placeholder = group.endpoints.is_empty();
    let mut added: VecDeque<Endpoint> = VecDeque::new();
    let mut held: Vec<Vec<Endpoint>> = vec![Vec::new(); existing.len()];
    let places = places(existing);
    for endpoint in group.endpoints {
        match places.get(target(&endpoint)) {
            // Each stays where it is, so that a change of one pod is a change of one slice.
            Some(place) => held[*place].push(endpoint),
            None => added.push_back(endpoint),
        }
    }
    let mut changes = Vec::new();
    for (index, (slice, mut endpoints)) in existing.iter().zip(held).enumerate() {
        let room = LIMIT.saturating_sub(endpoints.len()).min(added.len());
        endpoints.extend(added.drain(..room));
        if endpoints.is_empty() && !(placeholder && index == 0) {
            changes.extend(delete(slice));
            continue;
        }
        let labels = Some(labels(service));
        if slice.endpoints != endpoints || slice.metadata.labels != labels {
            let mut slice = (*slice).clone();
            slice.endpoints = endpoints;
            slice.metadata.labels = labels;
            changes.push(Change::Update(Box::new(slice)));
        }
    }
    while !added.is_empty() || (placeholder && existing.is_empty() && changes.is_empty()) {
        let count = added.len().min(LIMIT);
        let endpoints = added.drain(..count).collect();
        let slice = endpoint_slice(service, family, &group.ports, endpoints);
        changes.push(Change::Create(Box::new(slice)));
    }
    changes
}

/// As it is sent: without empty lists, which Kubernetes prints as null and nobody owns.
pub(super) fn body(slice: &EndpointSlice) -> Value {
    let mut body = serde_json::to_value(slice).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    }
    body
}

/// Which pod is in which of the slices.
fn places<'a>(existing: &[&'a EndpointSlice]) -> BTreeMap<&'a str, usize> {
    let mut places = BTreeMap::new();
    for (index, slice) in existing.iter().enumerate() {
        for endpoint in &slice.endpoints {
            places.entry(target(endpoint)).or_insert(index);
        }
    }
    places
}

fn target(endpoint: &Endpoint) -> &str {
    endpoint.target_ref.as_ref().and_then(|target| target.uid.as_deref()).unwrap_or_default()
}

pub(super) fn same_ports(ports: &[EndpointPort], slice: &EndpointSlice) -> bool {
    let key = |port: &EndpointPort| {
        let name = port.name.clone().unwrap_or_default();
        (name, port.port, port.protocol.clone(), port.app_protocol.clone())
    };
    let mut wanted: Vec<_> = ports.iter().map(key).collect();
    let mut held: Vec<_> = slice.ports.iter().flatten().map(key).collect();
    wanted.sort();
    held.sort();
    wanted == held
}

pub(super) fn delete(slice: &EndpointSlice) -> Option<Change> {
    slice.metadata.name.clone().map(Change::Delete)
}

pub(super) fn is_managed_by(slice: &EndpointSlice, manager: &str) -> bool {
    let labels = slice.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(MANAGED_BY)).is_some_and(|named| named == manager)
}

/// One of an earlier Service of this name goes with it.
fn is_owned(service: &Service, slice: &EndpointSlice) -> bool {
    let mut owners = slice.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.kind == "Service" && Some(&owner.uid) == service.metadata.uid.as_ref())
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.into(), String::new());
    }
    labels.insert(SERVICE_NAME.into(), service.metadata.name.clone().unwrap_or_default());
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    labels
}

fn endpoint_slice(
    service: &Service,
    family: Family,
    ports: &[EndpointPort],
    endpoints: Vec<Endpoint>,
) -> EndpointSlice {
    let name = service.metadata.name.clone().unwrap_or_default();
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels(service)),
            owner_references: Some(vec![reference(service)]),
            ..Default::default()
        },
        address_type: family.name().into(),
        endpoints,
        ports: Some(ports.to_vec()),
    }
}
