use std::{path::Path, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{PersistentVolume, PersistentVolumeClaim},
        storage::v1::StorageClass,
    },
    apimachinery::pkg::api::resource::Quantity,
};
use serde_json::{Value, json};

use super::{
    claim::{Around, Binding, Step, next},
    volume,
};

fn claim(changes: Value) -> PersistentVolumeClaim {
    let mut value = json!({
        "metadata": {"name": "c", "namespace": "n", "uid": "u1", "resourceVersion": "7"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "local",
            "volumeMode": "Filesystem",
        },
        "status": {"phase": "Pending"},
    });
    json_patch::merge(&mut value, &changes);
    serde_json::from_value(value).unwrap()
}

fn volume(name: &str, changes: Value) -> PersistentVolume {
    let mut value = json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "capacity": {"storage": "2Gi"},
            "storageClassName": "local",
            "hostPath": {"path": "/x"},
        },
        "status": {"phase": "Available"},
    });
    json_patch::merge(&mut value, &changes);
    serde_json::from_value(value).unwrap()
}

fn class(changes: Value) -> StorageClass {
    let mut value = json!({"metadata": {"name": "local"}, "provisioner": "windlass.dev/local",
        "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"});
    json_patch::merge(&mut value, &changes);
    serde_json::from_value(value).unwrap()
}

fn step(claim: &PersistentVolumeClaim, class: Option<&StorageClass>, used: bool) -> Step {
    let directory = Some(Path::new("/state/volumes"));
    next(claim, &Around { class, volumes: &[], is_used: used, directory })
}

fn with(claim: &PersistentVolumeClaim, volumes: Vec<PersistentVolume>) -> Step {
    let volumes: Vec<_> = volumes.into_iter().map(Arc::new).collect();
    let class = class(json!({}));
    let directory = Some(Path::new("/state/volumes"));
    next(claim, &Around { class: Some(&class), volumes: &volumes, is_used: false, directory })
}

fn bound_to(step: Step) -> Option<String> {
    let Step::Bind(binding) = step else { return None };
    binding.claim?.spec?.volume_name
}

#[test]
fn a_claim_of_the_local_class_gets_a_directory_and_a_volume_of_its_own() {
    let class = class(json!({}));
    let Step::Provision(path, volume) = step(&claim(json!({})), Some(&class), false) else {
        panic!("nothing is made");
    };
    assert_eq!(path, Path::new("/state/volumes/pvc-u1"));
    let value = serde_json::to_value(&volume).unwrap();
    assert_eq!(value["metadata"]["name"], "pvc-u1");
    assert_eq!(
        value["metadata"]["annotations"],
        json!({"pv.kubernetes.io/provisioned-by": "windlass.dev/local"})
    );
    assert_eq!(
        value["spec"],
        json!({
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "n",
                "name": "c", "uid": "u1", "resourceVersion": "7"},
            "local": {"path": "/state/volumes/pvc-u1"},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "local",
            "volumeMode": "Filesystem",
        })
    );
}

#[test]
fn a_bound_claim_says_so_and_then_rests() {
    let claim = claim(json!({}));
    let made = volume(
        "pvc-u1",
        json!({"spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": "n", "name": "c", "uid": "u1"}}}),
    );
    let Step::Bind(binding) = with(&claim, vec![made.clone()]) else { panic!("not bound") };
    let Binding { volume, claim: bound, status } = *binding;
    assert_eq!(volume, None, "it is meant for this claim already");
    let bound = serde_json::to_value(bound.unwrap()).unwrap();
    assert_eq!(bound["spec"]["volumeName"], "pvc-u1");
    assert_eq!(
        bound["metadata"]["annotations"],
        json!({"pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes"})
    );
    let status = status.unwrap();
    assert_eq!(
        serde_json::to_value(&status.status).unwrap(),
        json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}})
    );
    assert_eq!(with(&status, vec![made]), Step::Rest);
    assert_eq!(with(&status, vec![]), Step::Lost);
}

#[test]
fn claims_wait_with_a_reason() {
    let foreign = class(json!({"provisioner": "ebs.csi.aws.com"}));
    let patient = class(json!({"volumeBindingMode": "WaitForFirstConsumer"}));
    for (changes, class, used, want) in [
        (json!({"spec": {"storageClassName": ""}}), None, false, Some("FailedBinding")),
        (json!({"spec": {"storageClassName": null}}), None, false, Some("FailedBinding")),
        (json!({}), None, false, Some("ProvisioningFailed")),
        (json!({}), Some(&foreign), false, Some("ExternalProvisioning")),
        (json!({}), Some(&patient), false, Some("WaitForFirstConsumer")),
        (json!({"spec": {"volumeName": "v"}}), Some(&patient), true, None),
        (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), None, true, None),
    ] {
        let Step::Wait(told) = step(&claim(changes.clone()), class, used) else {
            panic!("{changes} does not wait");
        };
        assert_eq!(told.map(|told| told.reason), want, "{changes}");
    }
    assert!(matches!(step(&claim(json!({})), Some(&patient), true), Step::Provision(..)));
}

#[test]
fn where_no_volumes_are_made_somebody_else_has_to() {
    let class = class(json!({}));
    let around = Around { class: Some(&class), volumes: &[], is_used: false, directory: None };
    let Step::Wait(Some(told)) = next(&claim(json!({})), &around) else { panic!("not waiting") };
    assert_eq!(told.reason, "ExternalProvisioning");
}

#[test]
fn a_free_volume_that_is_enough_is_taken_the_smallest_first() {
    let large = volume("large", json!({"spec": {"capacity": {"storage": "9Gi"}}}));
    let enough = volume("enough", json!({}));
    let small = volume("small", json!({"spec": {"capacity": {"storage": "1Mi"}}}));
    let all = vec![large, enough, small];
    assert_eq!(bound_to(with(&claim(json!({})), all)).as_deref(), Some("enough"));
    for (reason, changes) in [
        ("class", json!({"spec": {"storageClassName": "other"}})),
        ("modes", json!({"spec": {"accessModes": ["ReadOnlyMany"]}})),
        ("kind", json!({"spec": {"volumeMode": "Block"}})),
        ("taken", json!({"spec": {"claimRef": {"namespace": "n", "name": "d", "uid": "u2"}}})),
        ("namesake", json!({"spec": {"claimRef": {"namespace": "n", "name": "c", "uid": "u0"}}})),
        ("leaving", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})),
    ] {
        assert_eq!(bound_to(with(&claim(json!({})), vec![volume("v", changes)])), None, "{reason}");
    }
}

#[test]
fn what_is_named_or_selected_or_meant_decides() {
    let red = || volume("red", json!({"metadata": {"labels": {"colour": "red"}}}));
    let blue = || volume("blue", json!({"metadata": {"labels": {"colour": "blue"}}}));
    let selects = claim(json!({"spec": {"selector": {"matchLabels": {"colour": "red"}}}}));
    assert_eq!(bound_to(with(&selects, vec![blue(), red()])).as_deref(), Some("red"));
    let names = claim(json!({"spec": {"volumeName": "red"}}));
    let Step::Bind(binding) = with(&names, vec![blue(), red()]) else { panic!("not bound") };
    let taken = binding.volume.unwrap().spec.unwrap().claim_ref.unwrap();
    assert_eq!(taken.uid.as_deref(), Some("u1"));
    let meant = volume(
        "meant",
        json!({"spec": {"capacity": {"storage": "1"},
        "claimRef": {"namespace": "n", "name": "c"}}}),
    );
    assert_eq!(bound_to(with(&claim(json!({})), vec![blue(), meant])).as_deref(), Some("meant"));
}

#[test]
fn a_claim_that_waits_for_its_use_does_not_take_a_free_volume_before() {
    let patient = class(json!({"volumeBindingMode": "WaitForFirstConsumer"}));
    let free = || volume("free", json!({}));
    let meant = || volume("meant", json!({"spec": {"claimRef": {"namespace": "n", "name": "c"}}}));
    for (case, volume, changes, used, want) in [
        ("unused", free(), json!({}), false, None),
        ("used", free(), json!({}), true, Some("free")),
        ("meant for it", meant(), json!({}), false, Some("meant")),
        ("named", free(), json!({"spec": {"volumeName": "free"}}), false, Some("free")),
    ] {
        let volumes = [Arc::new(volume)];
        let directory = Some(Path::new("/state/volumes"));
        let around = Around { class: Some(&patient), volumes: &volumes, is_used: used, directory };
        let step = next(&claim(changes), &around);
        if let Step::Wait(told) = &step {
            assert_eq!(told.as_ref().unwrap().reason, "WaitForFirstConsumer", "{case}");
        }
        assert_eq!(bound_to(step).as_deref(), want, "{case}");
    }
}

#[test]
fn a_volume_that_is_named_has_to_satisfy_the_claim() {
    let named = claim(json!({"spec": {"volumeName": "v"}}));
    for (changes, want) in [
        (json!({"capacity": {"storage": "1Mi"}}), "requested PV is too small"),
        (json!({"storageClassName": "other"}), "storageClassName does not match"),
        (json!({"volumeMode": "Block"}), "incompatible volumeMode"),
        (json!({"accessModes": ["ReadOnlyMany"]}), "incompatible accessMode"),
    ] {
        let found = with(&named, vec![volume("v", json!({"spec": changes}))]);
        let Step::Wait(Some(told)) = found else { panic!("{want}: {found:?}") };
        let text = format!("Cannot bind to requested volume \"v\": {want}");
        assert_eq!((told.is_warning, told.reason, told.message), (true, "VolumeMismatch", text));
    }
    let leaving = volume("v", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let Step::Wait(Some(told)) = with(&named, vec![leaving]) else { panic!("not refused") };
    assert!(told.message.ends_with("the volume is marked for deletion \"v\""), "{told:?}");
    // One that is bound to it stays so, whatever becomes of it.
    let own = json!({"spec": {"capacity": {"storage": "1Mi"},
        "claimRef": {"namespace": "n", "name": "c", "uid": "u1"}}});
    assert!(matches!(with(&named, vec![volume("v", own)]), Step::Bind(_)));
}

#[test]
fn a_volume_follows_its_claim_and_only_our_directories_go() {
    let reference = json!({"namespace": "n", "name": "c", "uid": "u1"});
    let ours = |phase: &str| {
        volume(
            "pvc-u1",
            json!({
                "metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": "windlass.dev/local"}},
                "spec": {"claimRef": reference, "hostPath": null,
                    "local": {"path": "/state/volumes/pvc-u1"},
                    "persistentVolumeReclaimPolicy": "Delete"},
                "status": {"phase": phase},
            }),
        )
    };
    let bound = claim(json!({"spec": {"volumeName": "pvc-u1"}}));
    let successor = claim(json!({"metadata": {"uid": "u2"}, "spec": {"volumeName": "pvc-u1"}}));
    let mut kept = ours("Released");
    kept.spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some("Retain".into());
    let mut elsewhere = ours("Released");
    elsewhere.spec.as_mut().unwrap().local.as_mut().unwrap().path = "/etc".into();
    let mut foreign = ours("Released");
    foreign.metadata.annotations = None;
    let remove = volume::Step::Remove("/state/volumes/pvc-u1".into());
    for (reason, volume, claim, want) in [
        (
            "free",
            volume("v", json!({"status": {"phase": "Pending"}})),
            None,
            volume::Step::Show("Available"),
        ),
        ("bound", ours("Pending"), Some(&bound), volume::Step::Show("Bound")),
        ("still bound", ours("Bound"), Some(&bound), volume::Step::Rest),
        ("claim gone", ours("Bound"), None, volume::Step::Show("Released")),
        ("successor", ours("Bound"), Some(&successor), volume::Step::Show("Released")),
        ("released", ours("Released"), None, remove),
        ("kept", kept, None, volume::Step::Rest),
        ("elsewhere", elsewhere, None, volume::Step::Rest),
        ("foreign", foreign, None, volume::Step::Rest),
    ] {
        let directory = Some(Path::new("/state/volumes"));
        assert_eq!(volume::next(&volume, claim, directory), want, "{reason}");
    }
}

#[test]
fn the_volume_of_a_claim_that_has_grown_grows_with_it() {
    let bound = json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v", "resources": {"requests": {"storage": "3Gi"}}},
        "status": {"phase": "Bound"},
    });
    let claim = claim(bound);
    let reference = json!({"name": "c", "namespace": "n", "uid": "u1"});
    let made = |by: &str| {
        let marks = json!({"pv.kubernetes.io/provisioned-by": by});
        volume("v", json!({"metadata": {"annotations": marks}, "spec": {"claimRef": reference}}))
    };
    let amount = |step: Step| {
        let Step::Bind(binding) = step else { panic!("{step:?}") };
        let status = binding.status.and_then(|claim| claim.status?.capacity);
        (binding.volume.and_then(|volume| volume.spec?.capacity), status)
    };
    let of = |amount: &str| Some([("storage".into(), Quantity(amount.into()))].into());
    assert_eq!(amount(with(&claim, vec![made("windlass.dev/local")])), (of("3Gi"), of("3Gi")));
    // That of others is theirs to make larger.
    assert_eq!(amount(with(&claim, vec![made("ebs.csi.aws.com")])), (None, of("2Gi")));
}
