//! The node: pods as processes of this machine.
//!
//! `pod` decides, without any I/O; a `worker` per pod does what it says, with `launch` and `volumes`
//! to prepare a container, `process` to run it and `probes` to ask how it is. `recovery` ends what
//! an earlier start has left.

pub mod addresses;
pub mod bubblewrap;
pub mod command;
pub mod devices;
pub mod environment;
pub mod events;
mod held;
pub mod images;
pub mod launch;
pub mod limits;
pub mod logs;
pub mod machine;
pub mod mark;
pub mod memory;
pub mod places;
pub mod pod;
pub mod probes;
pub mod process;
pub mod processes;
pub mod reader;
pub mod record;
pub mod recovery;
pub mod services;
pub mod sources;
pub mod translate;
pub mod usage;
pub mod users;
pub mod volumes;
mod worker;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use rustix::fs::Mode;
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;

use self::{
    addresses::Addresses,
    devices::Devices,
    events::Recorder,
    images::{Executables, Images, Rule},
    launch::Shared,
    limits::Limits,
    logs::ContainerLogs,
    machine::Machine,
    memory::Memory,
    places::Places,
    reader::ClientReader,
    record::Records,
    recovery::Left,
    sources::Reader,
    worker::{Mailbox, Message, Worker},
};
use crate::{
    auth::{AUTHENTICATED, MASTERS, User},
    http::Server,
};

/// What a node has to be told.
#[derive(Clone, Debug)]
pub struct Settings {
    pub name: String,
    pub places: Places,
    /// Where processes reach the API.
    pub api: SocketAddr,
    /// The running program, for rules that name it.
    pub windlass: PathBuf,
    /// Rules of the command line, before those of the user's file.
    pub first_rules: Vec<Rule>,
    /// Rules that come with the program, after all others.
    pub last_rules: Vec<Rule>,
    /// What the node offers beyond what it has.
    pub resources: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make {}", .0.display())]
    Directory(PathBuf, #[source] io::Error),
    #[error("cannot end what an earlier start has left")]
    Recovery(#[source] tokio::task::JoinError),
    #[error("cannot register the node {0:?}")]
    Register(String, #[source] Box<kube::Error>),
}

/// When the node has to end.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Pods get their grace.
    pub stop: CancellationToken,
    /// Once it stops: they have had it.
    pub now: CancellationToken,
}

impl From<CancellationToken> for Ending {
    fn from(stop: CancellationToken) -> Self {
        Self { stop, ..Self::default() }
    }
}

/// What all workers share.
pub(crate) struct Node {
    pub(crate) shared: Shared,
    pub(crate) client: Client,
    pub(crate) reader: Box<dyn Reader>,
    pub(crate) recorder: Recorder,
    pub(crate) logs: Arc<ContainerLogs>,
    pub(crate) limits: Limits,
    pub(crate) memory: Arc<Memory>,
    pub(crate) addresses: Mutex<Addresses>,
    pub(crate) devices: Mutex<Devices>,
}

impl Node {
    /// What a pod has of the machine is for others again.
    fn release(&self, uid: &str) {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).give_back(uid);
        self.devices.lock().unwrap_or_else(PoisonError::into_inner).give_back(uid);
    }
}

/// Runs the pods of the node until `stop`, and then ends them within their grace.
///
/// Nothing else may run on the same directories: the caller holds their lock. Files that are made
/// from now on are for the owner alone, those of the pods too.
pub async fn run(
    server: Arc<Server>,
    settings: Settings,
    ending: impl Into<Ending>,
) -> Result<(), Error> {
    let Ending { stop, now } = ending.into();
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let pods = settings.places.pods();
    launch::make_dir(&pods).map_err(|error| Error::Directory(pods.clone(), error))?;
    let left = spawn_blocking(move || recovery::end_processes(&pods)).await;
    let left = left.map_err(Error::Recovery)?;
    if cfg!(target_os = "linux") && !mark::is_shown() {
        tracing::warn!(
            "processes cannot be marked by a limit: without cgroup v2 no limit of memory is kept, \
             and who clears its environment may outlive its pod"
        );
    }
    let client = Client::new(server.service(user(&settings.name)), "default");
    let devices = Devices::find().offered(&settings.resources);
    let mut resources = devices.capacity();
    resources.extend(settings.resources.clone());
    let state = &settings.places.state;
    let machine = Machine::find(&settings.name, state, resources, settings.labels.clone());
    let registered = machine.register(&client).await;
    let object =
        registered.map_err(|error| Error::Register(settings.name.clone(), error.into()))?;
    let (recorder, write_events) = Recorder::new(client.clone(), settings.name.clone());
    // Ends with the last recorder, so that the last events are written too.
    let events = tokio::spawn(write_events);
    let logs = ContainerLogs::new(settings.places.clone());
    server.set_logs(logs.clone());
    let node = Arc::new(Node {
        logs,
        limits: Limits::find(),
        memory: Arc::default(),
        addresses: Mutex::new(Addresses::new(state)),
        devices: Mutex::new(devices),
        reader: Box::new(ClientReader(client.clone())),
        recorder: recorder.clone(),
        client: client.clone(),
        shared: Shared {
            images: Images::new(
                &settings.places.images(),
                settings.first_rules,
                settings.last_rules,
            ),
            executables: Executables::default(),
            host: addresses::HOST.to_string(),
            allocatable: machine.resources.clone(),
            api: settings.api,
            windlass: settings.windlass,
            node: settings.name,
            places: settings.places,
        },
    });
    let mut crew = Crew { node, left, workers: BTreeMap::new(), tasks: JoinSet::new() };
    tokio::select! {
        () = crew.work() => {}
        () = machine.renew(client.clone(), &object) => {}
        () = services::run(client, recorder.clone()) => {}
        () = stop.cancelled() => {}
    }
    crew.shut_down(&now).await;
    drop((crew, recorder));
    // An event that cannot be written is no reason to stay.
    let _ = events.await;
    Ok(())
}

/// The node is trusted with everything, as it runs everything.
fn user(name: &str) -> User {
    User {
        name: format!("system:node:{name}"),
        groups: ["system:nodes", MASTERS, AUTHENTICATED].map(str::to_owned).into(),
        ..User::default()
    }
}

/// A worker for each pod.
struct Crew {
    node: Arc<Node>,
    /// What an earlier start has written down, until its pod is seen.
    left: Left,
    workers: BTreeMap<String, Mailbox>,
    tasks: JoinSet<String>,
}

impl Crew {
    /// Follows the pods of this node.
    async fn work(&mut self) {
        let api: Api<Pod> = Api::all(self.node.client.clone());
        let of_node = format!("spec.nodeName={}", self.node.shared.node);
        let events = watcher(api, watcher::Config::default().fields(&of_node)).default_backoff();
        let mut events = std::pin::pin!(events);
        let mut listed = Vec::new();
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => self.hear(event, &mut listed).await,
                    Some(Err(error)) => tracing::debug!(%error, "cannot watch pods"),
                    None => return,
                },
                Some(ended) = self.tasks.join_next() => match ended {
                    Ok(uid) => self.forget(&uid),
                    Err(error) => tracing::error!(%error, "a worker has failed"),
                },
            }
        }
    }

    /// A worker that has ended; another may have taken its place meanwhile.
    fn forget(&mut self, uid: &str) {
        if self.workers.get(uid).is_some_and(Mailbox::is_closed) {
            self.workers.remove(uid);
        }
    }

    async fn hear(&mut self, event: Event<Pod>, listed: &mut Vec<Pod>) {
        let uid = |pod: &Pod| pod.metadata.uid.clone().unwrap_or_default();
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(pod) => listed.push(pod),
            Event::InitDone => {
                let listed = std::mem::take(listed);
                let uids: BTreeSet<String> = listed.iter().map(uid).collect();
                self.keep_addresses(&listed);
                listed.into_iter().for_each(|pod| self.pass_on(pod));
                self.workers
                    .retain(|uid, worker| uids.contains(uid) || worker.send(Message::Gone).is_ok());
                self.forget_others(uids).await;
            }
            Event::Apply(pod) => self.pass_on(pod),
            Event::Delete(pod) => {
                if let Some(worker) = self.workers.get(&uid(&pod)) {
                    // One that has ended has nothing left to clean up.
                    let _ = worker.send(Message::Gone);
                }
            }
        }
    }

    /// Before any pod gets a new one.
    fn keep_addresses(&self, pods: &[Pod]) {
        let mut all = self.node.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        for pod in pods {
            let (uid, status) = (pod.metadata.uid.as_deref(), pod.status.as_ref());
            let status = status
                .filter(|status| !matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")));
            if let (Some(uid), Some(own)) =
                (uid, status.and_then(|status| status.pod_ip.as_deref()))
            {
                all.keep(uid, own);
            }
        }
    }

    fn pass_on(&mut self, pod: Pod) {
        let (pod, uid) = (Arc::new(pod.clone()), pod.metadata.uid.unwrap_or_default());
        if let Some(worker) = self.workers.get(&uid)
            && worker.send(Message::Pod(pod.clone())).is_ok()
        {
            return;
        }
        let Ok(dir) = self.node.shared.places.pod(&uid) else { return };
        let records = self.left.remove(&uid).unwrap_or_else(|| Records::none(&dir));
        let (worker, mailbox) = Worker::new(self.node.clone(), pod, records);
        self.workers.insert(uid.clone(), mailbox);
        self.tasks.spawn(async move {
            worker.run().await;
            uid
        });
    }

    /// Directories of pods that are gone, once all that are there have been seen.
    async fn forget_others(&mut self, mut known: BTreeSet<String>) {
        self.left.clear();
        // Those that are about to go clean up themselves.
        known.extend(self.workers.keys().cloned());
        let node = self.node.clone();
        let done = spawn_blocking(move || {
            let places = &node.shared.places;
            recovery::remove_unknown(&[&places.pods(), &places.private_pods()], &known);
        });
        if let Err(error) = done.await {
            tracing::error!(%error, "cannot remove what others have left");
        }
    }

    async fn shut_down(&mut self, now: &CancellationToken) {
        self.workers.values().for_each(|worker| drop(worker.send(Message::Shutdown)));
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if now.run_until_cancelled(ended).await.is_none() {
            self.workers.values().for_each(|worker| drop(worker.send(Message::Hurry)));
            while self.tasks.join_next().await.is_some() {}
        }
    }
}
