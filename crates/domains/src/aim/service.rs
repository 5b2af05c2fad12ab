//! `AIMService`: a model of the catalogue, served as a template says.
//!
//! ```text
//! spec, images ─ resolution ─ template ─┐
//!                    └─ derivation      ├─ compose ─ plan ─ objects
//! runtime config ─ routing ─────────────┘     └──── report ─ health, status
//! ```
//!
//! A service with overrides gets a template that another one and the overrides make up together. It
//! belongs to nobody: whoever comes to the same one later shares it.

mod compose;
mod fetch;
mod health;
mod objects;
mod plan;
mod status;

mod derivation;
mod report;
mod resolution;
mod route_health;
mod routing;

pub mod reasons;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value};
use windlass_api::aim::image::{AimClusterImage, AimImage};
use windlass_api::aim::runtime_config::{AimClusterRuntimeConfig, AimRuntimeConfig};
use windlass_api::aim::service::AimService;
use windlass_api::aim::template::{AimClusterServiceTemplate, AimServiceTemplate};
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::foreign::inference_service::InferenceService;
use windlass_engine::domain::{
    Access, Domain, EventSource, Health, Identity, Need, Overall, Right, Watch, Whose,
};
use windlass_engine::fetch::Reader;
use windlass_engine::kind::{Kind, Scope};
use windlass_engine::labels::LabelRules;
use windlass_engine::plan::Plan;

use super::{Settings, names};

pub use compose::Observed;
pub use fetch::Answers;

#[derive(Clone, Debug, Default)]
pub struct ServiceDomain {
    pub settings: Settings,
}

impl Domain for ServiceDomain {
    type Object = AimService;
    type Fetched = Answers;
    type Observed = Observed;

    fn identity(&self) -> Identity {
        Identity {
            controller: names::SERVICE_FIELD_MANAGER,
            managed_by: names::MANAGER,
            events: EventSource {
                controller: names::SERVICE_FIELD_MANAGER,
                action: None,
                // This kind has no events at all.
                corrections: false,
            },
            name_label: "",
            namespace_label: None,
            components: &[names::SERVICE_COMPONENT],
            finalizer: None,
            hold: None,
            predecessors: &["manager"],
            state_word: false,
        }
    }

    fn watches(&self) -> Vec<Watch> {
        let watch = |kind, access, whose| Watch { kind, need: Need::Optional, access, whose };
        let read = |kind| watch(kind, Access::Read, Whose::Anyones);
        vec![
            watch(Kind::of::<InferenceService>(), Access::Write, Whose::Ours),
            watch(Kind::of::<HttpRoute>(), Access::Write, Whose::Ours),
            watch(Kind::of::<AimServiceTemplate>(), Access::Write, Whose::Anyones),
            read(Kind::of::<AimClusterServiceTemplate>()),
            read(Kind::of::<AimImage>()),
            read(Kind::of::<AimClusterImage>()),
            read(Kind::of::<AimRuntimeConfig>()),
            read(Kind::of::<AimClusterRuntimeConfig>()),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        // Whether anything is served by a derived template.
        vec![Right {
            group: "serving.kserve.io",
            resource: "servingruntimes",
            verbs: &["list"],
            scope: Scope::Namespaced,
        }]
    }

    async fn fetch(&self, reader: &dyn Reader, object: &AimService) -> Answers {
        fetch::fetch(reader, object).await
    }

    fn compose(&self, object: &AimService, fetched: Answers, _: Timestamp) -> Observed {
        compose::compose(&self.settings, object, fetched)
    }

    fn plan(&self, object: &AimService, observed: &Observed) -> Plan {
        plan::plan(object, observed)
    }

    fn health(&self, object: &AimService, observed: &Observed) -> Health {
        health::health(object, observed)
    }

    fn status(
        &self,
        object: &AimService,
        observed: &Observed,
        overall: &Overall,
    ) -> Map<String, Value> {
        status::status(object, observed, overall)
    }

    /// Others select by the labels of the children, so they have exactly those they always had.
    fn label_rules(&self, _: &Observed) -> LabelRules {
        LabelRules { always_prefixes: Vec::new(), enabled: false, patterns: Vec::new() }
    }
}
