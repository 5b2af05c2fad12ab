use serde_json::json;

use super::*;
use crate::error::Category::{Infrastructure, MissingDownstream};
use crate::health::tests::{brief, message, object};

fn claim(phase: &str) -> PersistentVolumeClaim {
    object(json!({
        "metadata": {"name": "data", "namespace": "ns", "uid": "u1"},
        "status": {"phase": phase},
    }))
}

fn event(reason: &str, minute: u8) -> Event {
    about("u1", reason, minute)
}

fn about(uid: &str, reason: &str, minute: u8) -> Event {
    object(json!({
        "metadata": {},
        "involvedObject":
            {"kind": "PersistentVolumeClaim", "name": "data", "namespace": "ns", "uid": uid},
        "reason": reason,
        "message": "the words",
        "lastTimestamp": format!("2026-01-01T00:{minute:02}:00Z"),
    }))
}

#[test]
fn a_claim_is_missing_bound_lost_or_pending() {
    let missing = (State::Progressing, "PvcNotFound".into(), Some(MissingDownstream));
    assert_eq!(brief(pvc(None, &[])), missing);
    for (phase, state, reason, category) in [
        ("Bound", State::Ready, "Ready", None),
        ("Lost", State::Degraded, "PvcLost", Some(Infrastructure)),
        ("Pending", State::Progressing, "PvcPending", None),
    ] {
        assert_eq!(brief(pvc(Some(&claim(phase)), &[])), (state, reason.into(), category));
    }
}

#[test]
fn w14_provisioning_failures_are_read_from_events() {
    let failed = (State::Degraded, "PvcProvisioningFailed".to_owned(), Some(Infrastructure));
    let pending = (State::Progressing, "PvcPending".to_owned(), None);
    for (events, want) in [
        (vec![event("ProvisioningFailed", 1)], &failed),
        (vec![event("ProvisioningFailed", 1), event("Provisioning", 2)], &failed),
        (vec![event("ProvisioningSucceeded", 2), event("ProvisioningFailed", 1)], &pending),
        (vec![about("namesake", "ProvisioningFailed", 1)], &pending),
    ] {
        assert_eq!(brief(pvc(Some(&claim("Pending")), &events)), *want);
    }
    let got = message(pvc(Some(&claim("Pending")), &[event("ProvisioningFailed", 1)]));
    assert_eq!(got, "PVC provisioning failed: the words");
}

#[test]
fn w14_waiting_for_the_first_consumer_is_normal() {
    let got = pvc(Some(&claim("Pending")), &[event("WaitForFirstConsumer", 1)]);
    assert_eq!(brief(got.clone()), (State::Progressing, "PvcPending".into(), None));
    assert_eq!(message(got), "PVC is waiting for its first consumer");
    let got = pvc(Some(&claim("Pending")), &[event("FailedBinding", 1)]);
    assert_eq!(brief(got), (State::Pending, "PvcPending".into(), None));
}
