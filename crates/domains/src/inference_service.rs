//! `ZerfooInferenceService`: a model on a Deployment, scaled by an autoscaler, with a canary beside
//! it that receives a share of the traffic.
//!
//! ```text
//! spec ─ validate ─┐
//!                  ├─ traffic ─ plan ─ objects
//! live ─ fetch ────┘      └──── health, status
//! ```

mod compose;
mod fetch;
mod health;
mod objects;
mod plan;
mod status;
mod traffic;
mod validate;

mod aliases;
mod gpu;
mod names;
mod probes;
pub mod reasons;
mod replicas;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::{Map, Value};
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::serving::zerfoo_inference_service::{DEFAULT_HOST_PATH, ZerfooInferenceService};
use windlass_engine::domain::{
    Access, Domain, EventSource, Health, Identity, Need, Overall, Right, Watch, Whose,
};
use windlass_engine::fetch::Reader;
use windlass_engine::kind::{Kind, Scope};
use windlass_engine::plan::Plan;

pub use compose::Observed;
pub use fetch::Answers;
pub use gpu::Mapping as GpuMapping;
pub use names::{CONTROLLER, NAME_LABEL};
pub use validate::{InvalidSpec, Rule};

/// What the operator's administrator decides for all services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Refuse services that anyone may call.
    pub require_auth: bool,
    /// Image of services that name none.
    pub default_image: String,
    /// How long a canary without traffic may finish its work; the server itself takes up to 30 s.
    pub drain: Duration,
    /// How device memory is requested.
    pub gpu: GpuMapping,
    /// Directories of nodes that services may use, with all that is below them. A service is not
    /// allowed more than that, as its author need not be allowed to make pods.
    pub host_path_prefixes: Vec<String>,
}

/// Image of services that name none, unless the administrator names another.
pub const DEFAULT_IMAGE: &str = "ghcr.io/zerfoo/zerfoo:0.1.0";

impl Default for Settings {
    fn default() -> Self {
        Self {
            require_auth: false,
            default_image: DEFAULT_IMAGE.to_owned(),
            drain: Duration::from_secs(30),
            gpu: GpuMapping::Devices,
            host_path_prefixes: vec![DEFAULT_HOST_PATH.to_owned()],
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct InferenceServiceDomain {
    pub settings: Settings,
}

impl Domain for InferenceServiceDomain {
    type Object = ZerfooInferenceService;
    type Fetched = Answers;
    type Observed = Observed;

    fn identity(&self) -> Identity {
        Identity {
            controller: CONTROLLER,
            managed_by: CONTROLLER,
            events: EventSource { controller: CONTROLLER, action: None, corrections: true },
            name_label: NAME_LABEL,
            namespace_label: None,
            components: &[],
            finalizer: None,
            hold: None,
            predecessors: &[],
            state_word: true,
        }
    }

    fn watches(&self) -> Vec<Watch> {
        let write = |kind, need| Watch { kind, need, access: Access::Write, whose: Whose::Ours };
        vec![
            write(Kind::of::<Deployment>(), Need::Required),
            write(Kind::of::<Service>(), Need::Required),
            write(Kind::of::<HorizontalPodAutoscaler>(), Need::Required),
            write(Kind::of::<HttpRoute>(), Need::Optional),
            Watch {
                kind: Kind::of::<Pod>(),
                need: Need::Required,
                access: Access::Read,
                whose: Whose::Ours,
            },
        ]
    }

    /// Secrets are not among them: where they may not be read, the pods tell what is missing.
    fn rights(&self) -> Vec<Right> {
        vec![
            Right { group: "", resource: "pods/log", verbs: &["get"], scope: Scope::Namespaced },
            Right { group: "", resource: "events", verbs: &["list"], scope: Scope::Namespaced },
        ]
    }

    fn fetch(
        &self,
        reader: &dyn Reader,
        object: &ZerfooInferenceService,
    ) -> impl Future<Output = Answers> + Send {
        fetch::fetch(reader, object)
    }

    fn compose(
        &self,
        object: &ZerfooInferenceService,
        fetched: Answers,
        now: Timestamp,
    ) -> Observed {
        compose::compose(&self.settings, object, fetched, now)
    }

    fn plan(&self, object: &ZerfooInferenceService, observed: &Observed) -> Plan {
        plan::plan(&self.settings, object, observed)
    }

    fn health(&self, _: &ZerfooInferenceService, observed: &Observed) -> Health {
        health::health(observed)
    }

    fn status(
        &self,
        object: &ZerfooInferenceService,
        observed: &Observed,
        overall: &Overall,
    ) -> Map<String, Value> {
        status::status(object, observed, overall)
    }
}
