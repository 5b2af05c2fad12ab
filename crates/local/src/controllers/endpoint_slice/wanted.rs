//! Who answers for a Service: its pods, as endpoints and ports.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{Container, ObjectReference, Pod, Service, ServicePort},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort},
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) fn name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    fn has(self, address: &str) -> bool {
        match address.parse() {
            Ok(IpAddr::V4(_)) => self == Family::V4,
            Ok(IpAddr::V6(_)) => self == Family::V6,
            Err(_) => false,
        }
    }
}

/// Endpoints that are reached at the same ports.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) ports: Vec<EndpointPort>,
    pub(super) endpoints: Vec<Endpoint>,
}

/// `None`: nobody has said which pods are meant, so the endpoints are somebody else's as well.
pub(super) fn selector(service: &Service) -> Option<&BTreeMap<String, String>> {
    let spec = service.spec.as_ref()?;
    let external = spec.type_.as_deref() == Some("ExternalName");
    spec.selector.as_ref().filter(|selector| !selector.is_empty() && !external)
}

pub(super) fn selects(selector: &BTreeMap<String, String>, pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

/// The families that the Service has, in a fixed order.
pub(super) fn families(service: &Service) -> Vec<Family> {
    let spec = service.spec.as_ref();
    let named = spec.and_then(|spec| spec.ip_families.as_deref()).unwrap_or_default();
    let mut families: Vec<_> =
        named.iter().map(|name| if name == "IPv6" { Family::V6 } else { Family::V4 }).collect();
    families.sort_unstable();
    families.dedup();
    if families.is_empty() { vec![Family::V4] } else { families }
}

/// Pods with named ports may differ in the numbers, so there may be several groups.
pub(super) fn groups(service: &Service, pods: &[Arc<Pod>], family: Family) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for pod in pods.iter().filter(|pod| is_reachable(pod)) {
        let addresses = addresses(pod, family);
        if addresses.is_empty() {
            continue;
        }
        let ports = ports(service, pod);
        let endpoint = endpoint(service, pod, addresses);
        match groups.iter_mut().find(|group| group.ports == ports) {
            Some(group) => group.endpoints.push(endpoint),
            None => groups.push(Group { ports, endpoints: vec![endpoint] }),
        }
    }
    groups
}

fn endpoint(service: &Service, pod: &Pod, addresses: Vec<String>) -> Endpoint {
    let serving = is_ready(pod);
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let ready = publishes_unready(service) || (serving && !terminating);
    Endpoint {
        addresses,
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: hostname(service, pod),
        node_name: node_name(pod),
        target_ref: Some(reference(pod)),
        ..Default::default()
    }
}

/// A finished pod keeps its address in the status, but nobody listens there any more.
pub(super) fn is_reachable(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    let mut conditions = conditions.unwrap_or_default().iter();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

pub(super) fn publishes_unready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses).unwrap_or(false)
}

pub(super) fn is_headless(service: &Service) -> bool {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref());
    matches!(address, None | Some("" | "None"))
}

pub(super) fn addresses(pod: &Pod, family: Family) -> Vec<String> {
    let Some(status) = &pod.status else { return Vec::new() };
    let all = status.pod_ips.iter().flatten().map(|entry| entry.ip.clone());
    let mut all: Vec<String> = all.filter(|address| family.has(address)).collect();
    if all.is_empty() {
        all.extend(status.pod_ip.clone().filter(|address| family.has(address)));
    }
    all
}

pub(super) fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let here = spec.subdomain.is_some() && spec.subdomain == service.metadata.name;
    spec.hostname.clone().filter(|hostname| here && !hostname.is_empty())
}

pub(super) fn node_name(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone().filter(|name| !name.is_empty())
}

pub(super) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".into()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..Default::default()
    }
}

/// The ports under the Service's names, with the numbers that this pod has for them. A name that the
/// pod does not know is left out.
pub(super) fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let resolved = ports.iter().filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(number(pod, port)?),
            protocol: Some(protocol(port.protocol.as_deref()).to_owned()),
            app_protocol: port.app_protocol.clone(),
        })
    });
    resolved.collect()
}

fn number(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        None => return Some(port.port),
        Some(IntOrString::Int(number)) => return Some(*number),
        Some(IntOrString::String(name)) => name,
    };
    let spec = pod.spec.as_ref()?;
    let sidecars = spec.init_containers.iter().flatten().filter(|container| is_sidecar(container));
    let containers = spec.containers.iter().chain(sidecars);
    let mut open = containers.flat_map(|container| container.ports.iter().flatten());
    let wanted = protocol(port.protocol.as_deref());
    let found = open.find(|open| {
        open.name.as_ref() == Some(name) && protocol(open.protocol.as_deref()) == wanted
    });
    found.map(|open| open.container_port)
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn protocol(name: Option<&str>) -> &str {
    name.unwrap_or("TCP")
}
