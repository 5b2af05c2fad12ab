//! `ZerfooInferenceService`: one model, its replicas, an optional canary and its probes.
//!
//! The schema carries the same rules, in the same words, as the validation in the reconciler; the
//! reconciler repeats them for objects that were stored before a rule existed.

mod pod;
mod rules;
mod status;
mod traffic;

#[cfg(test)]
mod tests;

pub use pod::{
    Auth, Cache, DEFAULT_HOST_PATH, EmptyDirCache, Gpu, GpuVendor, HealthCheck, HostPathCache,
    PersistentVolumeCache, Prefetch, Resources, SecretKeyRef,
};
pub use rules::{MODEL_REF_PATTERN, QUANT_PATTERN};
pub use status::{
    CanaryPhase, CanaryStatus, PrimaryStatus, TrafficMode, ZerfooInferenceServiceStatus,
};
pub use traffic::{Autoscaling, Canary, ParentRef, Routing};

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, EnvVar, LocalObjectReference, Toleration};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::GoDuration;
use crate::schema;

/// What is to be served, and how.
#[allow(clippy::duplicated_attributes, reason = "two printer columns may have the same type")]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "serving.zerfoo.com",
    version = "v1alpha1",
    kind = "ZerfooInferenceService",
    plural = "zerfooinferenceservices",
    shortname = "zis",
    namespaced,
    doc = "A model served by a Deployment with optional autoscaling and an optional canary.",
    status = "ZerfooInferenceServiceStatus",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.primary.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.modelRef"),
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(
        name = "Canary weight",
        type_ = "integer",
        json_path = ".status.canary.effectiveWeight",
        description = "Share of the traffic that the canary receives now, in percent"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rules::require_model_ref,
    extend("x-kubernetes-validations" = rules::spec())
)]
pub struct ZerfooInferenceServiceSpec {
    /// Model to serve: an alias of the server or a Hugging Face repository id.
    #[serde(default)]
    #[schemars(extend("maxLength" = 512, "x-kubernetes-validations" = rules::model_ref("modelRef")))]
    pub model_ref: String,

    /// Number of inference pods; with autoscaling only the number to start from.
    #[serde(default = "one")]
    #[schemars(extend("x-kubernetes-validations" = rules::replicas()))]
    pub replicas: i32,

    /// Lower bound for autoscaling; 0 means no autoscaling.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub min_replicas: i32,

    /// Upper bound for autoscaling; 0 means no autoscaling.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub max_replicas: i32,

    /// Compute resources of one pod; requests equal limits.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,

    /// A second model that receives a share of the traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,

    /// How the pods are probed.
    #[serde(default)]
    pub health_check: HealthCheck,

    /// Container image; by default the one the operator was configured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^\S+$"))]
    pub image: Option<String>,

    /// Secrets for pulling the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub image_pull_secrets: Vec<LocalObjectReference>,

    /// Port that the server listens on.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// Who may call the server. Without this block anyone may, unless the operator requires
    /// authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,

    /// Token for gated Hugging Face repositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hugging_face_token_secret_ref: Option<SecretKeyRef>,

    /// Where downloaded models are kept; by default an emptyDir volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,

    /// Which devices hold `resources.gpuMemory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,

    /// What the autoscaler looks at; takes effect with `minReplicas` and `maxReplicas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,

    /// Gateways that expose the service and split its traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,

    /// How long a pod may take to load its model before it is restarted.
    #[serde(default = "default_startup_timeout")]
    #[schemars(extend("x-kubernetes-validations" = rules::duration("startupTimeout")))]
    pub startup_timeout: GoDuration,

    /// Environment of the server; an entry replaces the operator's own of the same name, save the
    /// key that `auth` names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,

    /// Further arguments of the server, placed before the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_args: Vec<String>,

    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub tolerations: Vec<Toleration>,

    /// Scheduling constraints; the GPU constraint is added to each required node term.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Labels of the pods; the operator's own labels win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_labels: BTreeMap<String, String>,

    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_annotations: BTreeMap<String, String>,
}

/// The definition to install: the derived one plus the rule on the object's name.
pub(crate) fn crd() -> CustomResourceDefinition {
    schema::finish_crd(ZerfooInferenceService::crd(), Some(rules::name()), |_| {})
}

fn one() -> i32 {
    1
}

fn default_port() -> i32 {
    8080
}

fn default_startup_timeout() -> GoDuration {
    GoDuration::from("30m")
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}
