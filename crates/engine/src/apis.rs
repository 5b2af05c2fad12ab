//! Which kinds the API serves at the moment; CustomResourceDefinitions come and go while we run.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::sync::watch;

use crate::{error::chain, kind::Kind};

/// How often to ask where definitions cannot be watched, and while one is being installed.
const PROBE: Duration = Duration::from_secs(30);
const PROBE_INSTALLING: Duration = Duration::from_millis(250);
const TRIES: u32 = 120;

/// The kinds asked for, each with whether it is served.
#[derive(Clone, Debug)]
pub struct Apis {
    served: Arc<HashMap<Kind, watch::Sender<bool>>>,
}

impl Apis {
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Self {
        let served = kinds.into_iter().map(|kind| (kind, watch::Sender::new(false))).collect();
        Self { served: Arc::new(served) }
    }

    /// Kinds that were not asked for count as served: they are part of Kubernetes.
    pub fn serves(&self, kind: &Kind) -> bool {
        self.served.get(kind).is_none_or(|sender| *sender.borrow())
    }

    /// Follows one kind; `None` if it is part of Kubernetes and always there.
    pub fn follow(&self, kind: &Kind) -> Option<watch::Receiver<bool>> {
        self.served.get(kind).map(watch::Sender::subscribe)
    }

    /// Asks the API about each kind once. An unreachable API is an error, a missing kind is not.
    pub async fn probe(&self, client: &Client) -> Result<(), kube::Error> {
        for kind in self.served.keys() {
            self.probe_one(client, kind).await?;
        }
        Ok(())
    }

    async fn probe_one(&self, client: &Client, kind: &Kind) -> Result<bool, kube::Error> {
        let served = match client.list_api_group_resources(&kind.api_version()).await {
            Ok(list) => list.resources.iter().any(|resource| resource.name == kind.plural),
            // By the code: for a group that does not exist the answer is plain text.
            Err(kube::Error::Api(status)) if status.code == 404 => false,
            Err(error) => return Err(error),
        };
        if let Some(sender) = self.served.get(kind) {
            let changed =
                sender.send_if_modified(|known| std::mem::replace(known, served) != served);
            if changed {
                tracing::info!(%kind, served, "API availability changed");
            }
        }
        Ok(served)
    }

    /// Keeps the answers current, for ever.
    pub async fn run(self, client: Client) {
        let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> =
            Api::all(client.clone());
        let mut events = watcher(definitions, watcher::Config::default()).default_backoff().boxed();
        let mut pending: HashMap<Kind, Expected> = HashMap::new();
        loop {
            let wait = if pending.is_empty() { PROBE } else { PROBE_INSTALLING };
            let event = tokio::time::timeout(wait, events.next()).await;
            let quiet = event.is_err();
            match event {
                Ok(Some(Ok(event))) => pending.extend(self.announced(event)),
                Ok(Some(Err(error))) => {
                    let error = chain(&error);
                    tracing::debug!(
                        error,
                        "cannot watch CustomResourceDefinitions; asking instead"
                    );
                }
                Ok(None) => return,
                Err(_) => {}
            }
            if !pending.is_empty() {
                self.settle(&client, &mut pending).await;
            } else if quiet && let Err(error) = self.probe(&client).await {
                tracing::debug!(error = chain(&error), "cannot ask which kinds the API serves");
            }
        }
    }

    /// A definition is announced before its kind is served, and gone before it is not: ask until the
    /// API agrees, or long enough to believe that this version of the kind is not served.
    async fn settle(&self, client: &Client, pending: &mut HashMap<Kind, Expected>) {
        let mut open = HashMap::new();
        for (kind, expected) in pending.drain() {
            let settled = match self.probe_one(client, &kind).await {
                Ok(served) => served == expected.served,
                Err(_) => false,
            };
            if !settled && expected.tries > 1 {
                open.insert(kind, Expected { tries: expected.tries - 1, ..expected });
            }
        }
        *pending = open;
    }

    fn announced(
        &self,
        event: Event<PartialObjectMeta<CustomResourceDefinition>>,
    ) -> Vec<(Kind, Expected)> {
        let (object, served) = match event {
            Event::Apply(object) | Event::InitApply(object) => (object, true),
            Event::Delete(object) => (object, false),
            Event::Init | Event::InitDone => return Vec::new(),
        };
        let name = object.name_any();
        let kinds = self.served.keys().filter(|kind| kind.crd_name() == name);
        kinds.map(|kind| (kind.clone(), Expected { served, tries: TRIES })).collect()
    }
}

/// What an announcement should lead to.
#[derive(Clone, Copy, Debug)]
struct Expected {
    served: bool,
    tries: u32,
}
