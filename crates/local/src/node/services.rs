//! The addresses of Services: the node listens there and passes connections on to ready endpoints.
//!
//! It listens only while there is somebody to answer, so that others are refused at once.

mod forward;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::time::{Instant, sleep_until};

use super::{events::Recorder, pod::Note};
use forward::Forwarder;

/// How often a port that could not be had is tried again.
const RETRY: Duration = Duration::from_secs(10);
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Where to listen, and who answers there.
type Wanted = BTreeMap<SocketAddr, Answering>;

#[derive(Clone, Debug, PartialEq)]
struct Answering {
    endpoints: Vec<SocketAddr>,
    /// In whose name, as a key of the Services that are known.
    service: Key,
}

type Key = (String, String);

/// What the API has.
#[derive(Default)]
struct Seen {
    services: BTreeMap<Key, Arc<Service>>,
    slices: BTreeMap<Key, Arc<EndpointSlice>>,
}

enum Change {
    Service(Box<Event<Service>>),
    Slice(Box<Event<EndpointSlice>>),
}

/// Serves until it is dropped.
pub async fn run(client: Client, recorder: Recorder) {
    let services =
        watched(Api::<Service>::all(client.clone())).map(|event| Change::Service(Box::new(event)));
    let slices =
        watched(Api::<EndpointSlice>::all(client)).map(|event| Change::Slice(Box::new(event)));
    let mut changes = std::pin::pin!(stream::select(services, slices));
    let mut seen = Seen::default();
    let mut fresh = Fresh::default();
    let mut listening: BTreeMap<SocketAddr, Forwarder> = BTreeMap::new();
    let mut refused: BTreeSet<SocketAddr> = BTreeSet::new();
    loop {
        let retry = Instant::now() + RETRY;
        tokio::select! {
            change = changes.next() => match change {
                Some(change) => if !fresh.take(&mut seen, change) { continue },
                None => return,
            },
            () = sleep_until(retry), if !refused.is_empty() => {}
        }
        let wanted = wanted(&seen);
        listening.retain(|address, _| wanted.contains_key(address));
        refused.retain(|address| wanted.contains_key(address));
        for (address, answering) in wanted {
            if let Some(known) = listening.get(&address) {
                known.set(answering.endpoints);
                continue;
            }
            match Forwarder::bind(address, answering.endpoints).await {
                Ok(made) => {
                    refused.remove(&address);
                    listening.insert(address, made);
                }
                Err(error) => {
                    let service = seen.services.get(&answering.service);
                    if let Some(service) = service.filter(|_| refused.insert(address)) {
                        let text = format!("cannot listen on {address}: {error}");
                        let about = service.object_ref(&());
                        recorder.about(about, Note::warning("PortNotBound", text));
                    }
                }
            }
        }
    }
}

fn watched<K>(api: Api<K>) -> impl Stream<Item = Event<K>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + 'static,
    K: serde::de::DeserializeOwned,
{
    let events = watcher(api, watcher::Config::default()).default_backoff();
    events.filter_map(|event| async {
        event.inspect_err(|error| tracing::debug!(%error, "cannot watch")).ok()
    })
}

/// Objects of a list that is not complete yet.
#[derive(Default)]
struct Fresh {
    services: BTreeMap<Key, Arc<Service>>,
    slices: BTreeMap<Key, Arc<EndpointSlice>>,
}

impl Fresh {
    /// Says whether there is something new to be seen.
    fn take(&mut self, seen: &mut Seen, change: Change) -> bool {
        match change {
            Change::Service(event) => take(&mut self.services, &mut seen.services, *event),
            Change::Slice(event) => take(&mut self.slices, &mut seen.slices, *event),
        }
    }
}

fn take<K: Resource<DynamicType = ()>>(
    fresh: &mut BTreeMap<Key, Arc<K>>,
    seen: &mut BTreeMap<Key, Arc<K>>,
    event: Event<K>,
) -> bool {
    let key = |object: &K| (object.namespace().unwrap_or_default(), object.name_any());
    match event {
        Event::Init => fresh.clear(),
        Event::InitApply(object) => {
            fresh.insert(key(&object), Arc::new(object));
        }
        Event::InitDone => *seen = std::mem::take(fresh),
        Event::Apply(object) => {
            seen.insert(key(&object), Arc::new(object));
            return true;
        }
        Event::Delete(object) => return seen.remove(&key(&object)).is_some(),
    }
    fresh.is_empty()
}

/// Of 127.96.0.0/16, but for the API's own: a Service does not get whatever else this machine answers to.
fn is_of_a_service(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            (a, b) == (127, 96) && (c, d) != (0, 1)
        }
        IpAddr::V6(_) => false,
    }
}

/// Every TCP port of every Service with an address of its own and somebody who answers.
fn wanted(seen: &Seen) -> Wanted {
    let mut wanted = Wanted::new();
    for (key, service) in &seen.services {
        let Some(spec) = &service.spec else { continue };
        let address = spec.cluster_ip.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
        let Some(address) = address.filter(is_of_a_service) else { continue };
        for port in spec.ports.iter().flatten() {
            let tcp = port.protocol.as_deref().unwrap_or("TCP") == "TCP";
            let Some(number) = u16::try_from(port.port).ok().filter(|_| tcp) else { continue };
            let name = port.name.as_deref().unwrap_or_default();
            let endpoints = endpoints(seen, key, name);
            if !endpoints.is_empty() {
                let answering = Answering { endpoints, service: key.clone() };
                wanted.insert(SocketAddr::new(address, number), answering);
            }
        }
    }
    wanted
}

/// The ready ones of a Service under one port name.
fn endpoints(seen: &Seen, service: &Key, port: &str) -> Vec<SocketAddr> {
    let of_service = |slice: &&Arc<EndpointSlice>| {
        slice.labels().get(SERVICE_NAME) == Some(&service.1)
            && slice.namespace().as_deref() == Some(&*service.0)
    };
    let mut found = BTreeSet::new();
    for slice in seen.slices.values().filter(of_service) {
        let numbers = slice.ports.iter().flatten();
        let numbers = numbers.filter(|known| known.name.as_deref().unwrap_or_default() == port);
        let numbers: Vec<_> = numbers.filter_map(|known| u16::try_from(known.port?).ok()).collect();
        for endpoint in &slice.endpoints {
            let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready);
            if ready == Some(false) {
                continue;
            }
            let addresses = endpoint.addresses.iter().filter_map(|text| text.parse().ok());
            for address in addresses {
                found.extend(numbers.iter().map(|number| SocketAddr::new(address, *number)));
            }
        }
    }
    found.into_iter().collect()
}
