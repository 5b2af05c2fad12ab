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
use tokio::{sync::watch, time::Instant};

use crate::{error::chain, kind::Kind};

/// How often to ask where definitions cannot be watched, and while one is being installed.
const PROBE: Duration = Duration::from_secs(30);
const PROBE_INSTALLING: Duration = Duration::from_millis(250);
const TRIES: u32 = 120;
/// Answers, one after the other, that a kind is gone which nobody has announced to go.
const CONFIRMATIONS: u32 = 20;

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

    /// The kinds asked for that are not served, as `Kind of group/version`.
    pub fn missing(&self) -> Vec<String> {
        let missing = self.served.iter().filter(|(_, sender)| !*sender.borrow());
        let mut names: Vec<String> =
            missing.map(|(kind, _)| format!("{kind} of {}", kind.api_version())).collect();
        names.sort();
        names
    }

    /// Follows one kind; `None` if it is part of Kubernetes and always there.
    pub fn follow(&self, kind: &Kind) -> Option<watch::Receiver<bool>> {
        self.served.get(kind).map(watch::Sender::subscribe)
    }

    /// Asks the API about each kind once. An unreachable API is an error, a missing kind is not.
    pub async fn probe(&self, client: &Client) -> Result<(), kube::Error> {
        for kind in self.served.keys() {
            self.set(kind, ask(client, kind).await?);
        }
        Ok(())
    }

    fn set(&self, kind: &Kind, served: bool) {
        let Some(sender) = self.served.get(kind) else { return };
        if sender.send_if_modified(|known| std::mem::replace(known, served) != served) {
            tracing::info!(%kind, served, "API availability changed");
        }
    }

    /// Keeps the answers current, for ever.
    pub async fn run(self, client: Client) {
        let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> =
            Api::all(client.clone());
        let mut events = watcher(definitions, watcher::Config::default()).default_backoff().boxed();
        let mut pending: HashMap<Kind, Expected> = HashMap::new();
        let mut look_around = Instant::now() + PROBE;
        loop {
            let wake = match pending.is_empty() {
                true => look_around,
                false => look_around.min(Instant::now() + PROBE_INSTALLING),
            };
            match tokio::time::timeout_at(wake, events.next()).await {
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
            if Instant::now() >= look_around {
                look_around = Instant::now() + PROBE;
                self.look_around(&client, &mut pending).await;
            }
            self.settle(&client, &mut pending).await;
        }
    }

    /// For what no announcement tells: definitions may be unwatchable, and not every API has one.
    async fn look_around(&self, client: &Client, pending: &mut HashMap<Kind, Expected>) {
        for kind in self.served.keys() {
            match ask(client, kind).await {
                Ok(true) => self.set(kind, true),
                // One answer may be a hiccup of discovery, and believing it would remove objects.
                Ok(false) if self.serves(kind) => {
                    let doubt = Expected { served: false, agreeing: CONFIRMATIONS, tries: TRIES };
                    pending.entry(kind.clone()).or_insert(doubt);
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(%kind, error = chain(&error), "cannot ask for a kind");
                }
            }
        }
    }

    /// A definition is announced before its kind is served, and gone before it is not: ask until the
    /// API agrees, or long enough to believe that this version of the kind is not served.
    async fn settle(&self, client: &Client, pending: &mut HashMap<Kind, Expected>) {
        let mut open = HashMap::new();
        for (kind, mut expected) in pending.drain() {
            expected.tries -= 1;
            match ask(client, &kind).await {
                Ok(served) if served == expected.served => expected.agreeing -= 1,
                Ok(true) => self.set(&kind, true),
                Ok(false) | Err(_) => {}
            }
            if expected.agreeing == 0 {
                self.set(&kind, expected.served);
            } else if expected.tries > 0 {
                open.insert(kind, expected);
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
        let expected = Expected { served, agreeing: 1, tries: TRIES };
        kinds.map(|kind| (kind.clone(), expected)).collect()
    }
}

/// What an announcement should lead to.
#[derive(Clone, Copy, Debug)]
struct Expected {
    served: bool,
    /// So many more answers that say the same are needed.
    agreeing: u32,
    tries: u32,
}

async fn ask(client: &Client, kind: &Kind) -> Result<bool, kube::Error> {
    match client.list_api_group_resources(&kind.api_version()).await {
        Ok(list) => Ok(list.resources.iter().any(|resource| resource.name == kind.plural)),
        // By the code: for a group that does not exist the answer is plain text.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, batch::v1::Job, core::v1::Pod};

    use super::*;

    #[test]
    fn what_is_not_served_is_named() {
        let (job, deployment) = (Kind::of::<Job>(), Kind::of::<Deployment>());
        let apis = Apis::new([job.clone(), deployment.clone()]);
        assert_eq!(apis.missing(), ["Deployment of apps/v1", "Job of batch/v1"]);
        apis.set(&deployment, true);
        apis.set(&Kind::of::<Pod>(), false);
        assert_eq!(apis.missing(), ["Job of batch/v1"]);
        apis.set(&job, true);
        assert!(apis.missing().is_empty());
    }
}
