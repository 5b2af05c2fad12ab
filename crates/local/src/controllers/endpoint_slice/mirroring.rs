//! Slices for Services without a selector, of the Endpoints that somebody wrote for them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::{Endpoints, Service};

use super::{
    super::{Context, Controller, Error, Key, Queue, pods::is_for_ended_namespace},
    mirrored::{MANAGER, Mirrored, is_mirrored, mirrored},
    service_of,
    slices::{LIMIT, is_managed_by},
    slices_of, write,
};

pub(in super::super) struct Mirroring {
    context: Context,
    /// How many addresses of whom are known to be left out: invalid ones, and those without room.
    left_out: Mutex<BTreeMap<Key, (usize, usize)>>,
}

impl Controller for Mirroring {
    const NAME: &'static str = "endpointslicemirroring";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        let caches = &context.caches;
        caches.services.feed(queue, |service: &Service| [Key::of(service)]);
        caches.endpoints.feed(queue, |endpoints: &Endpoints| [Key::of(endpoints)]);
        caches
            .endpoint_slices
            .feed(queue, |slice| service_of(slice).filter(|_| is_managed_by(slice, MANAGER)));
        Self { context, left_out: Mutex::default() }
    }

    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let caches = &self.context.caches;
        let (endpoints, service) = (caches.endpoints.get(key), caches.services.get(key));
        let endpoints = endpoints.filter(|endpoints| is_mirrored(endpoints, service.as_deref()));
        let known = slices_of(caches, key);
        let Mirrored { changes, invalid, skipped } = mirrored(endpoints.as_deref(), &known);
        let is_news = self.is_news(key, (invalid, skipped));
        if let Some(endpoints) = endpoints.filter(|_| is_news) {
            self.tell(&endpoints, invalid, skipped).await;
        }
        match write(&self.context, key, changes, &known).await {
            // What is missing there would go with the rest anyway.
            Err(error) if is_for_ended_namespace(error.cause()) => Ok(None),
            written => written.map(|()| None),
        }
    }
}

impl Mirroring {
    /// It is told when it changes, not whenever somebody looks.
    fn is_news(&self, key: &Key, left_out: (usize, usize)) -> bool {
        let mut known = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match left_out {
            (0, 0) => known.remove(key),
            _ => known.insert(key.clone(), left_out),
        };
        before.unwrap_or_default() != left_out
    }

    async fn tell(&self, endpoints: &Endpoints, invalid: usize, skipped: usize) {
        let events = &self.context.events;
        if invalid > 0 {
            let text =
                format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
            events.warning(endpoints, "InvalidIPAddress", &text).await;
        }
        if skipped > 0 {
            let all = skipped + invalid;
            let text = format!(
                "A max of {LIMIT} addresses can be mirrored to EndpointSlices per Endpoints subset. \
                 {all} addresses were skipped"
            );
            events.warning(endpoints, "TooManyAddressesToMirror", &text).await;
        }
    }
}
