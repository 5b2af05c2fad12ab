//! The domain as a whole, without a cluster: what it plans, says and reports.

mod golden;
mod past;
mod reading;
mod results;
mod retry;
mod simulation;
mod words;

use serde_json::json;
use windlass_engine::domain::{Access, Need};

use super::fixture::settings;
use super::*;
use windlass_api::model::artifact::{Artifact, ModelArtifact};

#[test]
fn both_kinds_go_by_the_same_names() {
    let (a, b) = (
        ArtifactDomain::<Artifact>::new(settings()).identity(),
        ArtifactDomain::<ModelArtifact>::new(settings()).identity(),
    );
    assert_eq!(a, b);
    assert_eq!(a.controller, "model-operator");
    assert_eq!(a.events.controller, "artifact-controller");
    assert_eq!(a.events.action, Some("Reconcile"));
    assert!(!a.state_word, "the kind has `phase` and no `status.status`");
}

/// An artifact on its way out is left alone by the engine, as nothing has to be done for it (W11).
#[test]
fn w11_an_artifact_needs_no_finalizer() {
    assert_eq!(ArtifactDomain::<ModelArtifact>::new(settings()).identity().finalizer, None);
}

#[test]
fn w20_only_labelled_children_are_watched() {
    let identity = ArtifactDomain::<ModelArtifact>::new(settings()).identity();
    let selector = windlass_engine::labels::selector(identity.controller, identity.components);
    assert_eq!(
        selector,
        "app.kubernetes.io/managed-by=model-operator,app.kubernetes.io/component in (model-artifact)"
    );
}

/// Workspaces too: a new run waits for the end of an old one's (W4).
#[test]
fn w04_jobs_workspaces_and_pods_wake_their_artifact() {
    let watches = ArtifactDomain::<ModelArtifact>::new(settings()).watches();
    let said: Vec<_> =
        watches.iter().map(|watch| (watch.kind.kind.as_ref(), watch.access, watch.need)).collect();
    assert_eq!(
        said,
        [
            ("Job", Access::Write, Need::Required),
            ("PersistentVolumeClaim", Access::Write, Need::Required),
            ("Pod", Access::Read, Need::Required),
        ]
    );
}

#[test]
fn phases_are_written_as_they_are_read() {
    for word in ["Pending", "Running", "Succeeded", "Failed"] {
        let status = serde_json::from_value(json!({ "phase": word })).unwrap();
        assert_eq!(Phase::stored(&status).map(|phase| phase.to_string()).as_deref(), Some(word));
    }
    let odd = serde_json::from_value(json!({ "phase": "Unheard-of" })).unwrap();
    assert_eq!(Phase::stored(&odd), None);
}
