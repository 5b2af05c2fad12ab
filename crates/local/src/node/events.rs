//! Events of the node, written one after the other beside the work. Repeated ones are counted up.

use std::collections::VecDeque;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::mpsc;

use super::pod::Note;
use crate::controllers::event_name;

/// How many of the latest events are known, so that they can be counted up.
const KNOWN: usize = 512;
/// How many may wait to be written. More are lost: the work must not wait for them.
const WAITING: usize = 1024;
const COMPONENT: &str = "kubelet";

#[derive(Clone)]
pub struct Recorder(mpsc::Sender<(ObjectReference, Note)>);

impl Recorder {
    /// With the task that does the writing, which ends with the last recorder.
    pub fn new(client: Client, host: String) -> (Self, impl Future<Output = ()>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), write(client, host, receiver))
    }

    pub fn tell(&self, pod: &Pod, notes: Vec<Note>) {
        for note in notes {
            let field_path = note.field_path(pod);
            self.about(ObjectReference { field_path, ..pod.object_ref(&()) }, note);
        }
    }

    pub fn about(&self, object: ObjectReference, note: Note) {
        if self.0.try_send((object, note)).is_err() {
            tracing::debug!("an event is lost");
        }
    }
}

struct Known {
    about: (ObjectReference, Note),
    name: String,
    count: i32,
}

async fn write(client: Client, host: String, mut waiting: mpsc::Receiver<(ObjectReference, Note)>) {
    let mut known: VecDeque<Known> = VecDeque::new();
    while let Some(about) = waiting.recv().await {
        let namespace = about.0.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
        let now = Timestamp::now();
        if let Some(same) = known.iter_mut().find(|known| known.about == about) {
            same.count = same.count.saturating_add(1);
            let patch = json!({ "count": same.count, "lastTimestamp": Time(now) });
            let params =
                PatchParams { field_manager: Some(COMPONENT.into()), ..Default::default() };
            match api.patch(&same.name, &params, &Patch::Merge(patch)).await {
                Ok(_) => continue,
                // Old events go after a while.
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    known.retain(|known| known.about != about);
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot count up an event");
                    continue;
                }
            }
        }
        let event = event(&about, &namespace, &host, now);
        let name = event.metadata.name.clone().unwrap_or_default();
        let params = PostParams { field_manager: Some(COMPONENT.into()), ..Default::default() };
        match api.create(&params, &event).await {
            Ok(_) => known.push_back(Known { about, name, count: 1 }),
            Err(error) => tracing::debug!(%error, "cannot write an event"),
        }
        if known.len() > KNOWN {
            known.pop_front();
        }
    }
}

fn event(
    (about, note): &(ObjectReference, Note),
    namespace: &str,
    host: &str,
    now: Timestamp,
) -> Event {
    let name = about.name.clone().unwrap_or_default();
    Event {
        metadata: ObjectMeta {
            name: Some(event_name(&name, now)),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: about.clone(),
        type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(note.reason.to_owned()),
        message: Some(note.message.clone()),
        source: Some(EventSource {
            component: Some(COMPONENT.to_owned()),
            host: Some(host.to_owned()),
        }),
        reporting_component: Some(COMPONENT.to_owned()),
        reporting_instance: Some(host.to_owned()),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        ..Event::default()
    }
}
