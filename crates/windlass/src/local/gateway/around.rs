//! What the gateway reads of the controllers' caches.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{Container, Pod, Service, ServicePort},
        discovery::v1::EndpointSlice,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use windlass_local::controllers::Caches;
use windlass_routing::gateway::assemble::{
    Around, PodSeen, PortSeen, ServiceSeen, SliceSeen, Target,
};

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Its slices say the same as the pods, only later.
const SLICES_OF_PODS: &str = "endpointslice-controller.k8s.io";

/// The caches at one moment.
pub(super) struct Seen {
    pods: Vec<Arc<Pod>>,
    services: Vec<Arc<Service>>,
    slices: Vec<Arc<EndpointSlice>>,
}

impl Seen {
    pub(super) fn of(caches: &Caches) -> Self {
        Self {
            pods: caches.pods.all(),
            services: caches.services.all(),
            slices: caches.endpoint_slices.all(),
        }
    }

    pub(super) fn around(&self) -> Around<'_> {
        Around {
            pods: self.pods.iter().filter_map(|pod| pod_seen(pod)).collect(),
            services: self.services.iter().filter_map(|service| service_seen(service)).collect(),
            slices: self.slices.iter().filter_map(|slice| slice_seen(slice)).collect(),
        }
    }
}

fn pod_seen(pod: &Pod) -> Option<PodSeen<'_>> {
    static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
    let (meta, spec, status) = (&pod.metadata, pod.spec.as_ref()?, pod.status.as_ref()?);
    if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return None;
    }
    let mut conditions = status.conditions.iter().flatten();
    let sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(sidecar);
    let open = spec.containers.iter().chain(sidecars);
    let open = open.flat_map(|container| container.ports.iter().flatten());
    let tcp = open.filter(|port| is_tcp(port.protocol.as_deref()));
    let named = tcp.filter_map(|port| Some((port.name.as_deref()?, number(port.container_port)?)));
    Some(PodSeen {
        namespace: meta.namespace.as_deref()?,
        name: meta.name.as_deref()?,
        ip: status.pod_ip.as_deref()?.parse().ok()?,
        labels: meta.labels.as_ref().unwrap_or(&NO_LABELS),
        is_ready: conditions.any(|held| held.type_ == "Ready" && held.status == "True"),
        is_leaving: meta.deletion_timestamp.is_some(),
        ports: named.collect(),
    })
}

fn service_seen(service: &Service) -> Option<ServiceSeen<'_>> {
    let (meta, spec) = (&service.metadata, service.spec.as_ref()?);
    let is_elsewhere = spec.type_.as_deref() == Some("ExternalName");
    let selector = spec.selector.as_ref().filter(|known| !known.is_empty() && !is_elsewhere);
    let ports = spec.ports.iter().flatten().filter(|port| is_tcp(port.protocol.as_deref()));
    Some(ServiceSeen {
        namespace: meta.namespace.as_deref()?,
        name: meta.name.as_deref()?,
        selector,
        ports: ports.filter_map(port_seen).collect(),
        takes_unready: spec.publish_not_ready_addresses == Some(true),
    })
}

fn port_seen(port: &ServicePort) -> Option<PortSeen<'_>> {
    let own = number(port.port)?;
    let target = match &port.target_port {
        None => Target::Number(own),
        Some(IntOrString::Int(target)) => Target::Number(number(*target)?),
        Some(IntOrString::String(name)) => Target::Name(name),
    };
    Some(PortSeen { number: own, name: port.name.as_deref().unwrap_or_default(), target })
}

fn slice_seen(slice: &EndpointSlice) -> Option<SliceSeen<'_>> {
    let labels = slice.metadata.labels.as_ref()?;
    if labels.get(MANAGED_BY).is_some_and(|manager| manager == SLICES_OF_PODS) {
        return None;
    }
    let port = |port: &'_ k8s_openapi::api::discovery::v1::EndpointPort| {
        is_tcp(port.protocol.as_deref()).then(|| number(port.port?)).flatten()
    };
    let ports = slice.ports.iter().flatten();
    let ready = slice.endpoints.iter().filter(|endpoint| {
        let held = endpoint.conditions.as_ref();
        held.and_then(|held| held.ready).unwrap_or(true)
            && held.and_then(|held| held.terminating) != Some(true)
    });
    // Of several addresses of an endpoint any will do, so the first does.
    let first = |addresses: &[String]| addresses.first()?.parse::<IpAddr>().ok();
    Some(SliceSeen {
        namespace: slice.metadata.namespace.as_deref()?,
        service: labels.get(SERVICE_NAME)?,
        ports: ports
            .filter_map(|open| Some((open.name.as_deref().unwrap_or_default(), port(open)?)))
            .collect(),
        addresses: ready.filter_map(|endpoint| first(&endpoint.addresses)).collect(),
    })
}

fn is_tcp(protocol: Option<&str>) -> bool {
    protocol.unwrap_or("TCP") == "TCP"
}

fn number(port: i32) -> Option<u16> {
    u16::try_from(port).ok()
}
