//! `AIMServiceTemplate` and `AIMClusterServiceTemplate`: one way to serve an image. The image is asked
//! once what it holds and how it serves it; from the answer comes what KServe runs.
//!
//! ```text
//! catalogue, runtime config, Job, its output ─ fetch ─ compose ─ plan ─ objects
//!                                                         └─── health, news, status
//! ```
//!
//! An answer belongs to its *inputs*: the image and the parameters it was asked with. As long as they
//! stay the same it stands, whatever else happens; if they change it stands until there is another.

mod compose;
mod discovery;
mod fetch;
mod health;
mod news;
mod objects;
mod plan;
mod status;
mod usage;

pub mod reasons;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::marker::PhantomData;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Map, Value};
use windlass_api::aim::image::{AimClusterImage, AimImage};
use windlass_api::aim::runtime_config::{AimClusterRuntimeConfig, AimRuntimeConfig};
use windlass_api::aim::service::AimService;
use windlass_api::aim::template::TemplateKind;
use windlass_api::foreign::serving_runtime::{ClusterServingRuntime, ServingRuntime};
use windlass_engine::domain::{
    Access, Domain, EventSource, Health, Identity, Need, Overall, Right, Watch, Whose,
};
use windlass_engine::fetch::Reader;
use windlass_engine::kind::{Kind, Scope, TypedScope};
use windlass_engine::labels::LabelRules;
use windlass_engine::plan::Plan;

pub use compose::Observed;
pub(super) use discovery::has_traces;
pub use fetch::Answers;
pub(super) use health::is_hopeless;
pub(super) use usage::is_served;

use super::{Settings, names};

#[derive(Clone, Debug)]
pub struct TemplateDomain<K> {
    pub settings: Settings,
    kind: PhantomData<fn() -> K>,
}

impl<K: TemplateKind> TemplateDomain<K> {
    pub fn new(settings: Settings) -> Self {
        Self { settings, kind: PhantomData }
    }
}

/// Under which name the fields of the children are held, and events told.
fn field_manager(scope: Scope) -> &'static str {
    match scope {
        Scope::Namespaced => names::NAMESPACE_TEMPLATE_FIELD_MANAGER,
        Scope::Cluster => names::CLUSTER_TEMPLATE_FIELD_MANAGER,
    }
}

/// What KServe runs is of the same scope as the template.
fn runtime_kind(scope: Scope) -> Kind {
    match scope {
        Scope::Namespaced => Kind::of::<ServingRuntime>(),
        Scope::Cluster => Kind::of::<ClusterServingRuntime>(),
    }
}

impl<K: TemplateKind<Scope: TypedScope>> Domain for TemplateDomain<K> {
    type Object = K;
    type Fetched = Answers;
    type Observed = Observed;

    fn identity(&self) -> Identity {
        Identity {
            controller: field_manager(K::Scope::SCOPE),
            managed_by: names::MANAGER,
            events: EventSource {
                controller: field_manager(K::Scope::SCOPE),
                action: Some("Reconcile"),
                // The events of these kinds are a closed list.
                corrections: false,
            },
            // Not all children carry the template's name in a label; all name it as their owner.
            name_label: "",
            namespace_label: None,
            components: &[names::DISCOVERY_COMPONENT, names::RUNTIME_COMPONENT],
            finalizer: None,
            hold: None,
            predecessors: &["manager"],
            state_word: false,
        }
    }

    fn watches(&self) -> Vec<Watch> {
        let ours = |kind, need| Watch { kind, need, access: Access::Write, whose: Whose::Ours };
        let read = |kind| Watch {
            kind,
            need: Need::Optional,
            access: Access::Read,
            whose: Whose::Anyones,
        };
        // A template is woken by the service that it rests on, not by all of its namespace.
        let by_name = |kind| Watch { whose: Whose::Named, ..read(kind) };
        vec![
            ours(Kind::of::<Job>(), Need::Required),
            ours(runtime_kind(K::Scope::SCOPE), Need::Optional),
            read(Kind::of::<AimImage>()),
            read(Kind::of::<AimClusterImage>()),
            read(Kind::of::<AimRuntimeConfig>()),
            read(Kind::of::<AimClusterRuntimeConfig>()),
            by_name(Kind::of::<AimService>()),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        let right =
            |group, resource, verbs| Right { group, resource, verbs, scope: Scope::Namespaced };
        vec![
            right("", "pods", &["list"]),
            right("", "pods/log", &["get"]),
            // Whether servers still run by a derived template.
            right("serving.kserve.io", "inferenceservices", &["list"]),
            // Derived templates that no service uses any more.
            right("aim.silogen.ai", "aimservicetemplates", &["delete"]),
        ]
    }

    fn fetch(&self, reader: &dyn Reader, object: &K) -> impl Future<Output = Answers> + Send {
        fetch::fetch(&self.settings, reader, object)
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

    fn status(&self, _: &K, observed: &Observed, overall: &Overall) -> Map<String, Value> {
        status::status(observed, overall)
    }

    fn label_rules(&self, _: &Observed) -> LabelRules {
        LabelRules { always_prefixes: Vec::new(), enabled: false, patterns: Vec::new() }
    }
}
