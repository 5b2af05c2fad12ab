//! `ModelService`: a packed model served by vLLM pods, behind a pool whose endpoint picker chooses
//! the pod for each request.
//!
//! ```text
//! spec ─ validate ─┐
//!                  ├─ revision, replicas, pairing ─ plan ─ objects
//! live ─ fetch ────┘                    └────────── health, status
//! ```
//!
//! Three modules hold what is not obvious: `revision` keeps pods running when another operator, or
//! another version of this one, takes a service over; `pairing` changes prefill and decode pods
//! together; `replicas` tells who decides how many pods there are.

mod compose;
mod fetch;
mod health;
mod objects;
mod plan;
mod status;
mod validate;

mod pairing;
mod replicas;
mod revision;

mod devices;
mod epp_config;
mod names;
pub mod reasons;
mod settings;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde_json::{Map, Value};
use windlass_api::foreign::destination_rule::DestinationRule;
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::foreign::inference_pool::InferencePool;
use windlass_api::foreign::pod_monitor::PodMonitor;
use windlass_api::foreign::service_monitor::ServiceMonitor;
use windlass_api::model::model_service::ModelService;
use windlass_engine::domain::{
    Access, Cleanup, Domain, EventSource, Health, Identity, Need, Overall, Right, Watch, Whose,
};
use windlass_engine::fetch::Reader;
use windlass_engine::kind::{Kind, Scope};
use windlass_engine::plan::Plan;

pub use compose::{Observed, Refusal};
pub use epp_config::Dialect;
pub use fetch::Answers;
pub use names::{COMPONENTS, CONTROLLER, EVENT_SOURCE, FINALIZER, NAME_LABEL, NAMESPACE_LABEL};
pub use settings::{MetricsRbac, Provider, Settings, Tracing, UnknownProvider};
pub use validate::Rule;

#[derive(Clone, Debug, Default)]
pub struct ModelServiceDomain {
    pub settings: Settings,
}

impl Domain for ModelServiceDomain {
    type Object = ModelService;
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
            namespace_label: Some(NAMESPACE_LABEL),
            components: &COMPONENTS,
            finalizer: Some(FINALIZER),
            hold: None,
            predecessors: &[names::PREDECESSOR],
            state_word: false,
        }
    }

    /// Of all kinds of children only Secrets are missing: watching them takes the right to read all
    /// Secrets of the cluster.
    fn watches(&self) -> Vec<Watch> {
        let write = |kind, need| Watch { kind, need, access: Access::Write, whose: Whose::Ours };
        vec![
            write(Kind::of::<Deployment>(), Need::Required),
            write(Kind::of::<ServiceAccount>(), Need::Required),
            write(Kind::of::<ConfigMap>(), Need::Required),
            write(Kind::of::<Service>(), Need::Required),
            write(Kind::of::<Role>(), Need::Required),
            write(Kind::of::<RoleBinding>(), Need::Required),
            write(Kind::of::<ClusterRole>(), Need::Required),
            write(Kind::of::<ClusterRoleBinding>(), Need::Required),
            write(Kind::of::<InferencePool>(), Need::Optional),
            write(Kind::of::<HttpRoute>(), Need::Optional),
            write(Kind::of::<DestinationRule>(), Need::Optional),
            write(Kind::of::<PodMonitor>(), Need::Optional),
            write(Kind::of::<ServiceMonitor>(), Need::Optional),
            Watch {
                kind: Kind::of::<Pod>(),
                need: Need::Required,
                access: Access::Read,
                whose: Whose::Ours,
            },
        ]
    }

    /// What `fetch` reads, the blind writing of token Secrets, and what endpoint pickers are granted:
    /// nobody may grant what they do not hold.
    fn rights(&self) -> Vec<Right> {
        let read: &[&str] = &["get", "list", "watch"];
        let extension = "inference.networking.x-k8s.io";
        let right =
            |group, resource, verbs| Right { group, resource, verbs, scope: Scope::Namespaced };
        let review =
            |group, resource| Right { group, resource, verbs: &["create"], scope: Scope::Cluster };
        vec![
            right("", "pods/log", &["get"]),
            right("", "events", &["create", "list", "patch"]),
            right("", "secrets", &["create", "delete"]),
            right(extension, "inferenceobjectives", read),
            right(extension, "inferencemodelrewrites", read),
            right(
                "coordination.k8s.io",
                "leases",
                &["get", "list", "watch", "create", "update", "patch", "delete"],
            ),
            review("authentication.k8s.io", "tokenreviews"),
            review("authorization.k8s.io", "subjectaccessreviews"),
        ]
    }

    async fn fetch(&self, reader: &dyn Reader, object: &ModelService) -> Answers {
        fetch::fetch(reader, &names::Names::of(object, &self.settings.version)).await
    }

    fn compose(&self, object: &ModelService, fetched: Answers, now: Timestamp) -> Observed {
        compose::compose(&self.settings, object, fetched, now)
    }

    fn plan(&self, object: &ModelService, observed: &Observed) -> Plan {
        plan::plan(&self.settings, object, observed)
    }

    fn health(&self, _: &ModelService, observed: &Observed) -> Health {
        health::health(observed)
    }

    fn status(
        &self,
        object: &ModelService,
        observed: &Observed,
        overall: &Overall,
    ) -> Map<String, Value> {
        status::status(object, observed, overall)
    }

    /// Only cluster-scoped objects have to be removed by us.
    fn needs_finalizer(&self, object: &ModelService) -> bool {
        validate::wants_cluster_rbac(&object.spec, &self.settings)
    }

    /// Granted to those who read the metrics of endpoint pickers.
    fn url_rights(&self) -> Vec<(&'static str, &'static [&'static str])> {
        vec![("/metrics", &["get"])]
    }

    fn cleanup(&self, object: &ModelService, observed: &Observed) -> Cleanup {
        plan::cleanup(object, observed)
    }
}
