//! KServe's kinds, as far as they are read here: what is free-form to us stays as it came.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ClusterResourceScope, NamespaceResourceScope},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) const GROUP: &str = "serving.kserve.io";

macro_rules! kind {
    ($(#[$doc:meta])* $kind:ident, $version:literal, $plural:literal, $scope:ty) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub(in crate::controllers) struct $kind {
            #[serde(default)]
            pub(super) metadata: ObjectMeta,
            #[serde(default)]
            pub(super) spec: Value,
            #[serde(default, skip_serializing_if = "Value::is_null")]
            pub(super) status: Value,
        }

        impl Resource for $kind {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                stringify!($kind).into()
            }

            fn group((): &()) -> Cow<'_, str> {
                GROUP.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

kind!(
    /// A model and how it is served.
    InferenceService, "v1beta1", "inferenceservices", NamespaceResourceScope
);
kind!(
    /// Containers that can serve models of some formats.
    ServingRuntime, "v1alpha1", "servingruntimes", NamespaceResourceScope
);
kind!(
    /// The same for all namespaces.
    ClusterServingRuntime, "v1alpha1", "clusterservingruntimes", ClusterResourceScope
);

/// The definitions that all of this needs.
pub(super) const DEFINITIONS: [&str; 3] = [
    "inferenceservices.serving.kserve.io",
    "servingruntimes.serving.kserve.io",
    "clusterservingruntimes.serving.kserve.io",
];
