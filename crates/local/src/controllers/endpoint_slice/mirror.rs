//! The same as the older kind Endpoints, which some programs still read.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service},
        discovery,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::{
    super::pods::{is_finished, is_ready},
    slices::HEADLESS,
    wanted::{
        Family, addresses, families, hostname, is_headless, node_name, ports, publishes_unready,
        reference,
    },
};

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";

/// How many addresses one object may hold; the rest is only in the slices.
const LIMIT: usize = 1000;

/// What `existing` has to become, or nothing if it is as it should be.
pub(super) fn endpoints(
    service: &Service,
    pods: &[Arc<Pod>],
    existing: Option<&Endpoints>,
) -> Option<Endpoints> {
    let subsets = Some(subsets(service, pods)).filter(|subsets| !subsets.is_empty());
    let labels = Some(labels(service));
    match existing {
        Some(old) if old.subsets == subsets && old.metadata.labels == labels => None,
        Some(old) => {
            let metadata = ObjectMeta { labels, ..old.metadata.clone() };
            Some(Endpoints { metadata, subsets })
        }
        None => {
            let metadata = ObjectMeta {
                name: service.metadata.name.clone(),
                namespace: service.metadata.namespace.clone(),
                labels,
                ..Default::default()
            };
            Some(Endpoints { metadata, subsets })
        }
    }
}

/// Whether it was made here, and goes with its Service.
pub(super) fn is_ours(endpoints: &Endpoints) -> bool {
    let labels = endpoints.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(MANAGED_BY)).is_some_and(|manager| manager == MANAGER)
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.into(), String::new());
    }
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    labels
}

/// Of the Service's first family only: the kind is older than the second one.
fn subsets(service: &Service, pods: &[Arc<Pod>]) -> Vec<EndpointSubset> {
    let family = families(service).first().copied().unwrap_or(Family::V4);
    let has_ports = service.spec.as_ref().is_some_and(|spec| spec.ports.is_some());
    let unready_too = publishes_unready(service);
    let mut groups: Vec<(Vec<EndpointPort>, Vec<EndpointAddress>, Vec<EndpointAddress>)> =
        Vec::new();
    let known = pods.iter().filter(|pod| {
        !is_finished(pod) && (unready_too || pod.metadata.deletion_timestamp.is_none())
    });
    for pod in known.take(LIMIT) {
        let Some(address) = address(service, pod, family) else { continue };
        let ports: Vec<_> = ports(service, pod).into_iter().filter_map(port).collect();
        if has_ports && ports.is_empty() {
            continue;
        }
        let index = groups.iter().position(|(held, ..)| *held == ports).unwrap_or_else(|| {
            groups.push((ports, Vec::new(), Vec::new()));
            groups.len() - 1
        });
        let group = &mut groups[index];
        if unready_too || is_ready(pod) { group.1.push(address) } else { group.2.push(address) }
    }
    let some = |mut list: Vec<EndpointAddress>| {
        list.sort_by(|a, b| a.ip.cmp(&b.ip));
        Some(list).filter(|list| !list.is_empty())
    };
    let subset = |(ports, ready, waiting): (Vec<_>, _, _)| EndpointSubset {
        addresses: some(ready),
        not_ready_addresses: some(waiting),
        ports: Some(ports).filter(|ports: &Vec<EndpointPort>| !ports.is_empty()),
    };
    groups.into_iter().map(subset).collect()
}

fn address(service: &Service, pod: &Pod, family: Family) -> Option<EndpointAddress> {
    Some(EndpointAddress {
        ip: addresses(pod, family).into_iter().next()?,
        hostname: hostname(service, pod),
        node_name: node_name(pod),
        target_ref: Some(reference(pod)),
    })
}

fn port(port: discovery::v1::EndpointPort) -> Option<EndpointPort> {
    Some(EndpointPort {
        // The only port of a Service may have no name, and here that is no name at all.
        name: port.name.filter(|name| !name.is_empty()),
        port: port.port?,
        protocol: port.protocol,
        app_protocol: port.app_protocol,
    })
}
