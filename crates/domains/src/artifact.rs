//! `ModelArtifact` and `Artifact`: a model is imported, packed and pushed to a registry by a Job, once
//! for each generation, and the digest is reported. The two kinds differ in nothing but their name.
//!
//! ```text
//! spec, status ─┐
//!               ├─ run ─ compose ─ plan ─ objects
//! live ─ fetch ─┘           └──── observe ─ health, status
//! ```
//!
//! A *run* is one attempt: a new generation is a new run, and so is a new value of the retry annotation
//! on a failed artifact. Job and workspace carry the run they belong to. What is of another run has to
//! be gone, pods included, before a run gets its own, so two never work at once.

mod cause;
mod compose;
mod fetch;
mod health;
mod objects;
mod observe;
mod plan;
mod run;
mod status;

mod names;
pub mod reasons;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::marker::PhantomData;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::{Map, Value};
use windlass_api::model::artifact::ArtifactKind;
use windlass_engine::domain::{
    Access, Domain, EventSource, Health, Identity, Need, Overall, Right, Watch, Whose,
};
use windlass_engine::fetch::Reader;
use windlass_engine::kind::{Kind, Scope};
use windlass_engine::plan::Plan;

pub use compose::Observed;
pub use fetch::Answers;
pub use names::{
    COMPONENT, CONTROLLER, EVENT_SOURCE, GENERATION_ANNOTATION, HOLD, NAME_LABEL, RETRY_ANNOTATION,
};
pub use observe::{Evidence, Observation, observe};
pub use status::Phase;

/// What the operator's administrator decides for all artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Image of the Job's container. If it is Windlass's own, `windlass kit` does the work; otherwise
    /// a shell calls the image's `kit`.
    pub kit_image: String,
    /// Value of the version label; empty for none.
    pub version: String,
    /// After this time a run is given up.
    pub active_deadline_seconds: Option<i64>,
}

/// Image of the Job's container, unless the administrator names another.
pub const DEFAULT_KIT_IMAGE: &str = "ghcr.io/kitops-ml/kitops:v1.11.0";

impl Default for Settings {
    fn default() -> Self {
        Self {
            kit_image: DEFAULT_KIT_IMAGE.to_owned(),
            version: String::new(),
            active_deadline_seconds: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct ArtifactDomain<K> {
    pub settings: Settings,
    kind: PhantomData<fn() -> K>,
}

impl<K: ArtifactKind> ArtifactDomain<K> {
    pub fn new(settings: Settings) -> Self {
        Self { settings, kind: PhantomData }
    }
}

impl<K: ArtifactKind> Domain for ArtifactDomain<K> {
    type Object = K;
    type Fetched = Answers;
    type Observed = Observed;

    fn identity(&self) -> Identity {
        Identity {
            controller: CONTROLLER,
            managed_by: CONTROLLER,
            events: EventSource {
                controller: EVENT_SOURCE,
                action: Some("Reconcile"),
                corrections: true,
            },
            name_label: NAME_LABEL,
            namespace_label: None,
            components: &[COMPONENT],
            finalizer: None,
            hold: Some(HOLD),
            predecessors: &["manager"],
            state_word: false,
        }
    }

    fn watches(&self) -> Vec<Watch> {
        let watch = |kind, access| Watch { kind, need: Need::Required, access, whose: Whose::Ours };
        vec![
            watch(Kind::of::<Job>(), Access::Write),
            watch(Kind::of::<PersistentVolumeClaim>(), Access::Write),
            watch(Kind::of::<Pod>(), Access::Read),
        ]
    }

    /// Secrets are not among them: where they may not be read, the pods tell what is missing.
    fn rights(&self) -> Vec<Right> {
        vec![Right { group: "", resource: "events", verbs: &["list"], scope: Scope::Namespaced }]
    }

    fn fetch(&self, reader: &dyn Reader, object: &K) -> impl Future<Output = Answers> + Send {
        fetch::fetch(reader, object)
    }

    fn compose(&self, object: &K, fetched: Answers, now: Timestamp) -> Observed {
        compose::compose(&self.settings, object, fetched, now)
    }

    fn plan(&self, object: &K, observed: &Observed) -> Plan {
        plan::plan(&self.settings, object, observed)
    }

    fn health(&self, object: &K, observed: &Observed) -> Health {
        health::health(object, observed)
    }

    fn status(&self, object: &K, observed: &Observed, _: &Overall) -> Map<String, Value> {
        status::status(object, observed)
    }
}
