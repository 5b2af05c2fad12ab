//! What a claim for storage needs next.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use k8s_openapi::{
    api::{
        core::v1::{
            LocalVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim,
            PersistentVolumeSpec,
        },
        storage::v1::StorageClass,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};

use crate::{builtin::quantity, selector::Labels};

/// Who makes the volumes of the class `local`.
pub(super) const PROVISIONER: &str = "windlass.dev/local";
pub(super) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
pub(super) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// What is known around a claim.
pub(super) struct Around<'a> {
    pub(super) class: Option<&'a StorageClass>,
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    /// Whether a pod wants it.
    pub(super) is_used: bool,
    /// Where volumes are made, if they are made here.
    pub(super) directory: Option<&'a Path>,
}

impl Around<'_> {
    /// Nothing is to be bound before a pod wants it.
    fn waits_for_use(&self) -> bool {
        !self.is_used && self.class.is_some_and(binds_late)
    }
}

/// The volumes of this class are bound when they are used.
pub(in crate::controllers) fn binds_late(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// It is bound, and its object says so.
    Rest,
    /// The directory and the object of a new volume.
    Provision(PathBuf, Box<PersistentVolume>),
    /// To a volume that is free or already meant for it: first the volume, then the claim.
    Bind(Box<Binding>),
    /// Its volume is gone.
    Lost,
    /// It stays as it is until something changes.
    Wait(Option<Told>),
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) is_warning: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Each object is there if it has to change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Binding {
    pub(super) volume: Option<PersistentVolume>,
    pub(super) claim: Option<PersistentVolumeClaim>,
    /// The claim with its status.
    pub(super) status: Option<PersistentVolumeClaim>,
}

pub(super) fn next(claim: &PersistentVolumeClaim, around: &Around<'_>) -> Step {
    if claim.metadata.deletion_timestamp.is_some() {
        return Step::Wait(None);
    }
    let named = volume_name(claim);
    let Some(volume) = candidate(claim, named, around) else {
        return without_volume(claim, named, around);
    };
    let is_new = !(is_meant(claim, volume) || is_bound(claim));
    if let Some(reason) = mismatch(claim, volume).filter(|_| is_new) {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Cannot bind to requested volume {name:?}: {reason}");
        return Step::Wait(Some(Told { is_warning: true, reason: "VolumeMismatch", message }));
    }
    let binding = bind(claim, volume);
    let Binding { volume: None, claim: None, status: None } = &binding else {
        return Step::Bind(Box::new(binding));
    };
    Step::Rest
}

fn without_volume(claim: &PersistentVolumeClaim, named: Option<&str>, around: &Around<'_>) -> Step {
    if annotation(&claim.metadata, BIND_COMPLETED).is_some() {
        return match phase(claim) {
            Some("Lost") => Step::Wait(None),
            _ => Step::Lost,
        };
    }
    // Somebody has to bring the volume that it names.
    if named.is_some() {
        return Step::Wait(None);
    }
    let wait = |is_warning, reason, message| Step::Wait(Some(Told { is_warning, reason, message }));
    let Some(name) = class_name(claim) else {
        let message = "no persistent volumes available for this claim and no storage class is set";
        return wait(false, "FailedBinding", message.into());
    };
    let Some(class) = around.class else {
        let message = format!("storageclass.storage.k8s.io \"{name}\" not found");
        return wait(true, "ProvisioningFailed", message);
    };
    if around.waits_for_use() {
        let message = "waiting for first consumer to be created before binding";
        return wait(false, "WaitForFirstConsumer", message.into());
    }
    match around.directory.filter(|_| class.provisioner == PROVISIONER) {
        Some(directory) => {
            let volume = persistent_volume(claim, class, directory);
            let path = directory.join(volume.metadata.name.as_deref().unwrap_or_default());
            Step::Provision(path, Box::new(volume))
        }
        None => {
            let message = format!(
                "Waiting for a volume to be created either by the external provisioner '{}' or \
                 manually by the system administrator. If volume creation is delayed, please \
                 verify that the provisioner is running and correctly registered.",
                class.provisioner
            );
            wait(false, "ExternalProvisioning", message)
        }
    }
}

/// The volume that the claim names or that is meant for it, else the smallest that is enough.
fn candidate<'a>(
    claim: &PersistentVolumeClaim,
    named: Option<&str>,
    around: &Around<'a>,
) -> Option<&'a PersistentVolume> {
    let mut all = around.volumes.iter().map(|volume| &**volume);
    if let Some(name) = named {
        let volume = all.find(|volume| volume.metadata.name.as_deref() == Some(name))?;
        return (is_free(volume) || is_meant(claim, volume)).then_some(volume);
    }
    let meant = all.find(|volume| is_meant(claim, volume));
    meant.or_else(|| {
        let all = around.volumes.iter().map(|volume| &**volume);
        let fit = all.filter(|volume| {
            is_free(volume) && mismatch(claim, volume).is_none() && is_selected(claim, volume)
        });
        fit.filter(|_| !around.waits_for_use()).min_by_key(|volume| capacity(volume))
    })
}

fn is_free(volume: &PersistentVolume) -> bool {
    volume.spec.as_ref().is_none_or(|spec| spec.claim_ref.is_none())
}

/// A reference without a uid was written by hand for any claim of this name.
fn is_meant(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else {
        return false;
    };
    let uid = reference.uid.as_ref().filter(|uid| !uid.is_empty());
    reference.name == claim.metadata.name
        && reference.namespace == claim.metadata.namespace
        && uid.is_none_or(|uid| Some(uid) == claim.metadata.uid.as_ref())
}

/// Why the volume is not what the claim asks for.
fn mismatch(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<String> {
    let (wanted, offered) = (claim.spec.as_ref()?, volume.spec.as_ref()?);
    let offered_modes = offered.access_modes.as_deref().unwrap_or_default();
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".into());
    let class = offered.storage_class_name.as_deref().filter(|class| !class.is_empty());
    if volume.metadata.deletion_timestamp.is_some() {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        return Some(format!("the volume is marked for deletion {name:?}"));
    }
    let text = if capacity(volume) < request(claim) {
        "requested PV is too small"
    } else if class != class_name(claim) {
        "storageClassName does not match"
    } else if mode(&wanted.volume_mode) != mode(&offered.volume_mode) {
        "incompatible volumeMode"
    } else if !wanted.access_modes.iter().flatten().all(|mode| offered_modes.contains(mode)) {
        "incompatible accessMode"
    } else {
        return None;
    };
    Some(text.to_owned())
}

fn is_selected(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let Some(selector) = claim.spec.as_ref().and_then(|spec| spec.selector.as_ref()) else {
        return true;
    };
    let selector = serde_json::to_value(selector).ok().and_then(|value| Labels::of(&value).ok());
    let labels = serde_json::to_value(&volume.metadata.labels).unwrap_or_default();
    selector.is_some_and(|selector| selector.matches(labels.as_object()))
}

fn bind(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Binding {
    let mut bound = volume.clone();
    let spec = bound.spec.get_or_insert_default();
    if spec.claim_ref.as_ref().and_then(|reference| reference.uid.as_ref())
        != claim.metadata.uid.as_ref()
    {
        if spec.claim_ref.is_none() {
            annotate(&mut bound.metadata, BOUND_BY_CONTROLLER);
        }
        spec.claim_ref = Some(reference(claim));
    }
    // A directory is as large as is asked for.
    if annotation(&volume.metadata, PROVISIONED_BY) == Some(PROVISIONER)
        && request(claim) > capacity(volume)
    {
        spec.capacity =
            claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.clone());
    }
    let offered = spec.clone();
    let mut holder = claim.clone();
    let spec = holder.spec.get_or_insert_default();
    if spec.volume_name != volume.metadata.name {
        spec.volume_name.clone_from(&volume.metadata.name);
        annotate(&mut holder.metadata, BOUND_BY_CONTROLLER);
    }
    annotate(&mut holder.metadata, BIND_COMPLETED);
    let mut shown = holder.clone();
    let status = shown.status.get_or_insert_default();
    status.phase = Some("Bound".into());
    status.access_modes = offered.access_modes;
    status.capacity = offered.capacity;
    Binding {
        volume: Some(bound).filter(|bound| bound != volume),
        status: Some(shown).filter(|shown| shown.status != claim.status),
        claim: Some(holder).filter(|holder| holder != claim),
    }
}

fn persistent_volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    directory: &Path,
) -> PersistentVolume {
    let spec = claim.spec.clone().unwrap_or_default();
    let name = format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default());
    let amount = spec.resources.and_then(|resources| resources.requests?.remove("storage"));
    PersistentVolume {
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: Some([("storage".to_owned(), amount.unwrap_or_default())].into()),
            claim_ref: Some(reference(claim)),
            local: Some(LocalVolumeSource {
                path: directory.join(&name).to_string_lossy().into_owned(),
                ..Default::default()
            }),
            mount_options: class.mount_options.clone(),
            persistent_volume_reclaim_policy: Some(
                class.reclaim_policy.clone().unwrap_or_else(|| "Delete".into()),
            ),
            storage_class_name: class.metadata.name.clone(),
            volume_mode: spec.volume_mode,
            ..Default::default()
        }),
        metadata: ObjectMeta {
            name: Some(name),
            annotations: Some([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())].into()),
            ..Default::default()
        },
        status: None,
    }
}

fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("PersistentVolumeClaim".into()),
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..Default::default()
    }
}

/// The claim and its volume have found each other.
pub(in crate::controllers) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    volume_name(claim).is_some() && annotation(&claim.metadata, BIND_COMPLETED).is_some()
}

pub(in crate::controllers) fn class_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    let name = claim.spec.as_ref()?.storage_class_name.as_deref();
    name.filter(|name| !name.is_empty())
}

pub(super) fn volume_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
}

fn phase(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.status.as_ref()?.phase.as_deref()
}

pub(super) fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

fn annotate(metadata: &mut ObjectMeta, name: &str) {
    metadata.annotations.get_or_insert_default().insert(name.into(), "yes".into());
}

fn request(claim: &PersistentVolumeClaim) -> i128 {
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    amount(requests.and_then(|requests| requests.get("storage")))
}

fn capacity(volume: &PersistentVolume) -> i128 {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
    amount(capacity.and_then(|capacity| capacity.get("storage")))
}

fn amount(quantity: Option<&Quantity>) -> i128 {
    let parsed = quantity.and_then(|Quantity(text)| quantity::Quantity::parse(text).ok());
    parsed.map_or(0, quantity::Quantity::nano)
}
