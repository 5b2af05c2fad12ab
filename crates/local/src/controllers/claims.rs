//! Claims for storage and the volumes that they are bound to. Those of the class `local` are made
//! here, as directories.

mod claim;
#[cfg(test)]
mod tests;
mod volume;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::{Api, api::DeleteParams};

use super::{Caches, Context, Controller, Error, Key, Queue, posting};
use crate::directories::remove_all;
use claim::{Around, Binding, Told, volume_name};

pub(super) use claim::{binds_late, class_name, is_bound};

pub(super) struct Claims {
    context: Context,
    /// The last event of each claim, which is not repeated until there is another.
    told: Mutex<BTreeMap<Key, Told>>,
}

/// As many steps as one claim can need.
const STEPS: usize = 4;

impl Controller for Claims {
    const NAME: &'static str = "persistentvolume";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        let caches = &context.caches;
        caches.claims.feed(queue, |claim: &PersistentVolumeClaim| {
            let volume = volume_name(claim).map(|name| Key::new("", name));
            [Some(Key::of(claim)), volume].into_iter().flatten()
        });
        let known = Arc::downgrade(caches);
        caches.volumes.feed(queue, move |volume: &PersistentVolume| {
            let mut keys = waiting(&known);
            keys.push(Key::of(volume));
            keys.extend(claim_of(volume));
            keys
        });
        let known = Arc::downgrade(caches);
        caches.classes.feed(queue, move |_: &StorageClass| waiting(&known));
        caches.pods.feed(queue, keys_of);
        Self { context, told: Mutex::default() }
    }

    /// Volumes have no namespace, claims always have one.
    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        if key.namespace.is_empty() {
            return self.volume(key).await.map(|()| None);
        }
        for _ in 0..STEPS {
            if !self.claim(key).await? {
                break;
            }
        }
        Ok(None)
    }
}

impl Claims {
    /// Takes one step, and says whether there may be another.
    async fn claim(&self, key: &Key) -> Result<bool, Error> {
        let caches = &self.context.caches;
        let Some(claim) = caches.claims.get(key) else {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
            return Ok(false);
        };
        let class = class_name(&claim).and_then(|name| caches.classes.get(&Key::new("", name)));
        let pods = caches.pods.within(&key.namespace);
        let around = Around {
            class: class.as_deref(),
            volumes: &caches.volumes.all(),
            is_used: pods.iter().any(|pod| keys_of(pod).contains(key)),
            directory: self.directory(),
        };
        match claim::next(&claim, &around) {
            claim::Step::Rest => Ok(false),
            claim::Step::Provision(path, volume) => {
                self.provision(&claim, path, &volume).await.map(|()| true)
            }
            claim::Step::Bind(binding) => self.bind(key, &binding).await.map(|()| true),
            claim::Step::Lost => self.lose(key, &claim).await.map(|()| false),
            claim::Step::Wait(told) => {
                self.tell(key, &claim, told).await;
                Ok(false)
            }
        }
    }

    fn directory(&self) -> Option<&Path> {
        self.context.settings.volumes.as_deref()
    }

    async fn provision(
        &self,
        claim: &PersistentVolumeClaim,
        path: PathBuf,
        volume: &PersistentVolume,
    ) -> Result<(), Error> {
        let name = volume.metadata.name.clone().unwrap_or_default();
        let made = on_disk(move || std::fs::create_dir_all(path)).await;
        if let Err(error) = made {
            let message = format!("cannot make the directory of {name}: {error}");
            self.context.events.warning(claim, "ProvisioningFailed", &message).await;
            return Err(Error::on("make the directory of", &name)(unwritten(error)));
        }
        let api: Api<PersistentVolume> = Api::all(self.context.client.clone());
        let made = match api.create(&posting(), volume).await {
            // Made before, by a call whose answer was lost.
            Err(kube::Error::Api(status)) if status.code == 409 => api.get(&name).await,
            made => made,
        };
        self.context.caches.volumes.note(made.map_err(Error::on("create volume", &name))?);
        let message = format!("Successfully provisioned volume {name}");
        self.context.events.normal(claim, "ProvisioningSucceeded", &message).await;
        Ok(())
    }

    async fn bind(&self, key: &Key, binding: &Binding) -> Result<(), Error> {
        let caches = &self.context.caches;
        if let Some(volume) = &binding.volume {
            let name = volume.metadata.name.clone().unwrap_or_default();
            let api: Api<PersistentVolume> = Api::all(self.context.client.clone());
            let bound = api.replace(&name, &posting(), volume).await;
            caches.volumes.note(bound.map_err(Error::on("bind volume", &name))?);
        }
        let api: Api<PersistentVolumeClaim> = self.context.api(&key.namespace);
        let mut version = None;
        if let Some(claim) = &binding.claim {
            let bound = api.replace(&key.name, &posting(), claim).await;
            let bound = bound.map_err(Error::on("bind claim", &key.name))?;
            version.clone_from(&bound.metadata.resource_version);
            caches.claims.note(bound);
        }
        if let Some(shown) = &binding.status {
            let mut shown = Box::new(shown.clone());
            if version.is_some() {
                shown.metadata.resource_version = version;
            }
            let shown = api.replace_status(&key.name, &posting(), &shown).await;
            caches.claims.note(shown.map_err(Error::on("write the status of claim", &key.name))?);
        }
        Ok(())
    }

    async fn lose(&self, key: &Key, claim: &PersistentVolumeClaim) -> Result<(), Error> {
        let mut lost = claim.clone();
        lost.status.get_or_insert_default().phase = Some("Lost".into());
        let api: Api<PersistentVolumeClaim> = self.context.api(&key.namespace);
        let lost = api.replace_status(&key.name, &posting(), &lost).await;
        let lost = lost.map_err(Error::on("write the status of claim", &key.name))?;
        self.context.caches.claims.note(lost);
        let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
        self.context.events.warning(claim, "ClaimLost", message).await;
        Ok(())
    }

    async fn tell(&self, key: &Key, claim: &PersistentVolumeClaim, told: Option<Told>) {
        let Some(told) = told else { return };
        let last = {
            let mut known = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(key.clone(), told.clone())
        };
        if last.as_ref() == Some(&told) {
            return;
        }
        let Told { is_warning, reason, message } = told;
        if is_warning {
            self.context.events.warning(claim, reason, &message).await;
        } else {
            self.context.events.normal(claim, reason, &message).await;
        }
    }

    async fn volume(&self, key: &Key) -> Result<(), Error> {
        let caches = &self.context.caches;
        let Some(volume) = caches.volumes.get(key) else { return Ok(()) };
        let claim = claim_of(&volume).and_then(|key| caches.claims.get(&key));
        let api: Api<PersistentVolume> = Api::all(self.context.client.clone());
        match volume::next(&volume, claim.as_deref(), self.directory()) {
            volume::Step::Rest => {}
            volume::Step::Show(phase) => {
                let mut shown = (*volume).clone();
                shown.status.get_or_insert_default().phase = Some(phase.into());
                let shown = api.replace_status(&key.name, &posting(), &shown).await;
                let shown = shown.map_err(Error::on("write the status of volume", &key.name))?;
                caches.volumes.note(shown);
            }
            volume::Step::Remove(path) => {
                if let Err(error) = on_disk(move || remove_all(&path)).await {
                    let message = format!("cannot remove its directory: {error}");
                    self.context.events.warning(&*volume, "VolumeFailedDelete", &message).await;
                    return Err(Error::on("remove the directory of", &key.name)(unwritten(error)));
                }
                if volume.metadata.deletion_timestamp.is_none() {
                    let gone = api.delete(&key.name, &DeleteParams::default()).await;
                    let gone = gone.map_err(Error::on("delete volume", &key.name))?;
                    caches.volumes.note_deletion(&volume, gone);
                }
            }
        }
        Ok(())
    }
}

/// Claims that a new volume or class may help.
fn waiting(caches: &Weak<Caches>) -> Vec<Key> {
    let Some(caches) = caches.upgrade() else { return Vec::new() };
    let all = caches.claims.all();
    let waiting = all.iter().filter(|claim| {
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        !matches!(phase, Some("Bound"))
    });
    waiting.map(|claim| Key::of(&**claim)).collect()
}

fn claim_of(volume: &PersistentVolume) -> Option<Key> {
    let reference = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::new(reference.namespace.as_deref()?, reference.name.as_deref()?))
}

/// Of the claims that a pod mounts.
pub(super) fn keys_of(pod: &Pod) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claims.map(|claim| Key::new(namespace, &claim.claim_name)).collect()
}

/// Large directories take their time.
async fn on_disk(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn unwritten(error: io::Error) -> kube::Error {
    kube::Error::Service(error.into())
}
