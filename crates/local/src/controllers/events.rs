//! Events: what a user should hear of. Repeated ones are counted up.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PostParams},
};
use serde_json::json;

use super::patching;

/// How many of the latest events are known, so that they can be counted up.
const KNOWN: usize = 256;
/// As long as a name may be.
const NAME: usize = 253;

/// Writes events about objects in the name of one controller.
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    component: String,
    known: Arc<Mutex<VecDeque<Known>>>,
}

struct Known {
    about: About,
    name: String,
    count: i32,
}

/// What makes an event the same as an earlier one.
#[derive(Clone, PartialEq, Eq)]
struct About {
    uid: String,
    kind: &'static str,
    reason: String,
    message: String,
}

impl Recorder {
    pub(super) fn new(client: Client, component: String) -> Self {
        Self { client, component, known: Arc::default() }
    }

    pub async fn normal(
        &self,
        object: &impl Resource<DynamicType = ()>,
        reason: &str,
        message: &str,
    ) {
        self.record(object, "Normal", reason, message).await;
    }

    pub async fn warning(
        &self,
        object: &impl Resource<DynamicType = ()>,
        reason: &str,
        message: &str,
    ) {
        self.record(object, "Warning", reason, message).await;
    }

    /// An event that cannot be written is lost: the work must not wait for it.
    async fn record(
        &self,
        object: &impl Resource<DynamicType = ()>,
        kind: &'static str,
        reason: &str,
        message: &str,
    ) {
        let uid = object.meta().uid.clone().unwrap_or_default();
        let about = About { uid, kind, reason: reason.into(), message: message.into() };
        let now = Timestamp::now();
        // Those of objects of the cluster have to be somewhere too.
        let namespace = object.meta().namespace.as_deref().unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        if let Some((name, count)) = self.repeated(&about) {
            let patch = json!({"count": count, "lastTimestamp": Time(now)});
            match api.patch(&name, &patching(), &Patch::Merge(patch)).await {
                Ok(_) => return,
                // Old events go after a while.
                Err(kube::Error::Api(status)) if status.code == 404 => self.forget(&about),
                Err(error) => return tracing::debug!(%error, reason, "cannot count up an event"),
            }
        }
        let event = self.event(object, namespace, &about, now);
        let name = event.metadata.name.clone().unwrap_or_default();
        match api.create(&PostParams::default(), &event).await {
            Ok(_) => self.remember(Known { about, name, count: 1 }),
            Err(error) => tracing::debug!(%error, reason, "cannot write an event"),
        }
    }

    fn event(
        &self,
        object: &impl Resource<DynamicType = ()>,
        namespace: &str,
        about: &About,
        now: Timestamp,
    ) -> Event {
        let meta = object.meta();
        let name = meta.name.clone().unwrap_or_default();
        Event {
            metadata: ObjectMeta {
                name: Some(event_name(&name, now)),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: reference(object),
            type_: Some(about.kind.to_owned()),
            reason: Some(about.reason.clone()),
            message: Some(about.message.clone()),
            source: Some(EventSource { component: Some(self.component.clone()), host: None }),
            reporting_component: Some(self.component.clone()),
            reporting_instance: Some(String::new()),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(1),
            ..Event::default()
        }
    }

    /// Counts it up, if it was written before.
    fn repeated(&self, about: &About) -> Option<(String, i32)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let same = known.iter_mut().find(|known| known.about == *about)?;
        same.count = same.count.saturating_add(1);
        Some((same.name.clone(), same.count))
    }

    fn remember(&self, event: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back(event);
        if known.len() > KNOWN {
            known.pop_front();
        }
    }

    fn forget(&self, about: &About) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.about != *about);
    }
}

/// Of the object and the moment, as much of it as a name may have.
pub fn event_name(object: &str, now: Timestamp) -> String {
    let moment = format!("{:x}", now.as_nanosecond());
    let room = NAME.saturating_sub(moment.len() + 1).min(object.len());
    let object = object.get(..room).unwrap_or_default();
    // A part of a name must not end in anything else.
    let object = object.trim_end_matches(|last: char| !last.is_ascii_alphanumeric());
    format!("{object}.{moment}")
}

fn reference(object: &impl Resource<DynamicType = ()>) -> ObjectReference {
    fn of<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
        object.object_ref(&())
    }
    of(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_event_fits_however_long_that_of_its_object_is() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(event_name("p", now), "p.18867251edfa0000");
        for object in ["a".repeat(253), format!("{}-.{}", "a".repeat(235), "b".repeat(16))] {
            let name = event_name(&object, now);
            let (head, tail) = name.rsplit_once('.').unwrap();
            assert!(name.len() <= 253 && name.len() > 240, "{name}");
            assert!(head.ends_with('a') && tail == "18867251edfa0000", "{name}");
        }
    }
}
