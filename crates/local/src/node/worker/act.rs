//! The actions of a pod.

use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, api::ListParams};
use tokio::{task::spawn_blocking, time::Instant};

use super::{REFRESH, Worker};
use crate::node::{
    addresses::HOST,
    launch::{self, Given, Ready, Refused},
    pod::{self, Action, Cause, Note, Setting, Started},
    sources::gather,
    volumes,
};

impl Worker {
    pub(super) async fn act(&mut self, action: Action) {
        match action {
            Action::Prepare => self.prepare().await,
            Action::Start(container) => self.start(&container).await,
            Action::Stop { container, by } => self.stop(&container, by),
            Action::Release => self.release().await,
            Action::Remove => self.remove().await,
        }
    }

    pub(super) fn uid(&self) -> String {
        self.pod.metadata.uid.clone().unwrap_or_default()
    }

    async fn prepare(&mut self) {
        match self.try_prepare().await {
            Ok(address) => {
                self.known.prepared(&address);
                self.refresh = Some(Instant::now() + REFRESH);
            }
            Err(note) => {
                self.node.recorder.tell(&self.pod, vec![note]);
                self.known.not_prepared(Timestamp::now());
            }
        }
    }

    async fn try_prepare(&mut self) -> Result<String, Note> {
        let address = self.address().ok_or_else(|| {
            Note::warning("FailedCreatePodSandBox", "no address is left for the pod")
        })?;
        let places = &self.node.shared.places;
        let dir =
            places.pod(&self.uid()).map_err(|error| Note::warning("Failed", error.to_string()))?;
        launch::make_dir(&dir).map_err(|error| {
            Note::warning("Failed", format!("error making pod data directories: {error}"))
        })?;
        self.fill_volumes(&address).await?;
        Ok(address)
    }

    fn address(&self) -> Option<String> {
        if self.pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true) {
            return Some(HOST.to_string());
        }
        let mut all = self.node.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.take(&self.uid(), self.known.address.as_deref());
        own.map(|own| own.to_string())
    }

    async fn fill_volumes(&mut self, address: &str) -> Result<(), Note> {
        let now = Timestamp::now();
        self.sources = gather(&*self.node.reader, &self.pod, &self.sources, now).await;
        let (node, pod, sources) = (self.node.clone(), self.pod.clone(), self.sources.clone());
        let address = address.to_owned();
        let filled = spawn_blocking(move || {
            let facts = node.shared.facts(&address);
            volumes::set_up(&pod, &node.shared.places, &sources, facts, now)
        });
        match filled.await {
            Ok(Ok(directories)) => {
                self.directories = directories;
                Ok(())
            }
            Ok(Err(error)) => Err(Note::warning("FailedMount", error.to_string())),
            Err(error) => Err(Note::warning("FailedMount", error.to_string())),
        }
    }

    /// Volumes follow their objects and may not outgrow their limits.
    pub(super) async fn look_at_volumes(&mut self) {
        self.refresh = Some(Instant::now() + REFRESH);
        let Some(address) = self.known.address.clone() else { return };
        if self.known.setting != Setting::Ready || self.known.over || !follows(&self.pod) {
            self.refresh = None;
            return;
        }
        if let Err(note) = self.fill_volumes(&address).await {
            // What there is stays as it was.
            tracing::debug!(message = note.message, "cannot bring the volumes of a pod up to date");
        }
        let (node, pod) = (self.node.clone(), self.pod.clone());
        let over = spawn_blocking(move || volumes::over_limit(&pod, &node.shared.places)).await;
        if let Ok(Ok(Some(message))) = over {
            let notes = self.known.evict(&self.pod, message, Timestamp::now());
            self.node.recorder.tell(&self.pod, notes);
        }
    }

    async fn start(&mut self, name: &str) {
        let now = Timestamp::now();
        let notes = match self.try_start(name).await {
            Ok(started) => self.known.started(&self.pod, name, started),
            Err((cause, message)) => self.known.refused(&self.pod, name, cause, message, now),
        };
        self.node.recorder.tell(&self.pod, notes);
        self.pass_gate(name);
    }

    /// What a container needs, as it is now.
    async fn try_start(&mut self, name: &str) -> Result<Started, (Cause, String)> {
        let now = Timestamp::now();
        let found = pod::container(&self.pod, name).map(|(role, spec)| (role, spec.clone()));
        let (role, spec) =
            found.ok_or_else(|| (Cause::Create, format!("no container {name:?}")))?;
        self.sources = gather(&*self.node.reader, &self.pod, &self.sources, now).await;
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        let services: Api<Service> = Api::namespaced(self.node.client.clone(), namespace);
        let services = services.list(&ListParams::default()).await;
        let services = services.map_err(|error| (Cause::Config, error.to_string()))?.items;
        let devices = {
            let mut all = self.node.devices.lock().unwrap_or_else(PoisonError::into_inner);
            all.take(&self.uid(), role, &spec).map_err(|busy| (Cause::Create, busy.to_string()))?
        };
        let given = Given {
            pod: self.pod.clone(),
            address: self.known.address.clone().unwrap_or_default(),
            sources: self.sources.clone(),
            services,
            directories: self.directories.clone(),
            devices,
        };
        let node = self.node.clone();
        let spec = Arc::new(spec);
        let of = spec.clone();
        let ready = spawn_blocking(move || node.shared.ready(&given, &of)).await;
        let ready: Result<Ready, Refused> =
            ready.map_err(|error| (Cause::Create, error.to_string()))?;
        match ready {
            Ok(ready) => self.launch(spec, ready),
            Err(Refused::Waits(cause, text)) => Err((cause, text)),
            Err(Refused::Fails(text)) => self.note_failure(name, text),
        }
    }

    /// The pod is over: secrets and devices are for others again. Its logs stay.
    async fn release(&mut self) {
        self.refresh = None;
        self.node.release(&self.uid());
        let (node, uid) = (self.node.clone(), self.uid());
        let removed =
            spawn_blocking(move || volumes::remove_private(&node.shared.places, &uid)).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, "cannot remove the secrets of a pod");
        }
    }

    /// The object is gone: so is everything of it.
    pub(super) async fn clean_up(&mut self) {
        self.node.release(&self.uid());
        let (node, uid) = (self.node.clone(), self.uid());
        let removed = spawn_blocking(move || volumes::remove(&node.shared.places, &uid)).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, "cannot remove the files of a pod");
        }
    }
}

/// Some volume of the pod may change while it runs.
fn follows(pod: &k8s_openapi::api::core::v1::Pod) -> bool {
    let mut volumes = crate::node::sources::mounted_volumes(pod);
    volumes.any(|volume| {
        volume.config_map.is_some()
            || volume.secret.is_some()
            || volume.downward_api.is_some()
            || volume.projected.is_some()
            || volume.empty_dir.as_ref().is_some_and(|dir| dir.size_limit.is_some())
    })
}
