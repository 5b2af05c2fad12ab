//! Definitions of kinds that other projects define, for a machine where nobody has installed them.
//!
//! They are our own and say little: names, and that spec and status are objects. One that is there is
//! never touched, so the real ones can be applied before or after.

use anyhow::Context;
use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

/// Whoever applies the real definitions with kubectl is meant to replace these, and only under its
/// own name that is no conflict.
const MANAGER: &str = "kubectl";
const GATEWAY: &str = "gateway.networking.k8s.io";
const SERVING: &str = "serving.kserve.io";
const EARLY_INFERENCE: &str = "inference.networking.x-k8s.io";
const POOL: Column = ("Inference Pool", "string", ".spec.poolRef.name");
const AGE: Column = ("Age", "date", ".metadata.creationTimestamp");
const HOSTNAMES: Column = ("Hostnames", "string", ".spec.hostnames");
const FORMATS: Column = ("Formats", "string", ".spec.supportedModelFormats[*].name");
const READY: Column = ("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status");
const ACCEPTED: Column =
    ("Accepted", "string", ".status.conditions[?(@.type==\"Accepted\")].status");
const PROGRAMMED: Column =
    ("Programmed", "string", ".status.conditions[?(@.type==\"Programmed\")].status");

/// Title, type and path.
type Column = (&'static str, &'static str, &'static str);

struct Kind {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    namespaced: bool,
    /// The first is the one that is stored.
    versions: &'static [&'static str],
    has_status: bool,
    columns: &'static [Column],
}

const KINDS: [Kind; 11] = [
    Kind {
        group: GATEWAY,
        kind: "GatewayClass",
        plural: "gatewayclasses",
        short: &["gc"],
        namespaced: false,
        versions: &["v1", "v1beta1"],
        has_status: true,
        columns: &[("Controller", "string", ".spec.controllerName"), ACCEPTED, AGE],
    },
    Kind {
        group: GATEWAY,
        kind: "Gateway",
        plural: "gateways",
        short: &["gtw"],
        namespaced: true,
        versions: &["v1", "v1beta1"],
        has_status: true,
        columns: &[
            ("Class", "string", ".spec.gatewayClassName"),
            ("Address", "string", ".status.addresses[*].value"),
            PROGRAMMED,
            AGE,
        ],
    },
    Kind {
        group: GATEWAY,
        kind: "HTTPRoute",
        plural: "httproutes",
        short: &[],
        namespaced: true,
        versions: &["v1", "v1beta1"],
        has_status: true,
        columns: &[HOSTNAMES, AGE],
    },
    Kind {
        group: GATEWAY,
        kind: "ReferenceGrant",
        plural: "referencegrants",
        short: &["refgrant"],
        namespaced: true,
        versions: &["v1beta1"],
        has_status: false,
        columns: &[AGE],
    },
    Kind {
        group: "inference.networking.k8s.io",
        kind: "InferencePool",
        plural: "inferencepools",
        short: &["infpool"],
        namespaced: true,
        versions: &["v1"],
        has_status: true,
        columns: &[("Ports", "string", ".spec.targetPorts[*].number"), AGE],
    },
    Kind {
        group: EARLY_INFERENCE,
        kind: "InferencePool",
        plural: "inferencepools",
        short: &["xinfpool"],
        namespaced: true,
        versions: &["v1alpha2"],
        has_status: true,
        columns: &[("Port", "integer", ".spec.targetPortNumber"), AGE],
    },
    Kind {
        group: EARLY_INFERENCE,
        kind: "InferenceObjective",
        plural: "inferenceobjectives",
        short: &[],
        namespaced: true,
        versions: &["v1alpha2"],
        has_status: true,
        columns: &[POOL, ("Priority", "integer", ".spec.priority"), AGE],
    },
    Kind {
        group: EARLY_INFERENCE,
        kind: "InferenceModelRewrite",
        plural: "inferencemodelrewrites",
        short: &[],
        namespaced: true,
        versions: &["v1alpha2"],
        has_status: true,
        columns: &[POOL, AGE],
    },
    Kind {
        group: SERVING,
        kind: "InferenceService",
        plural: "inferenceservices",
        short: &["isvc"],
        namespaced: true,
        versions: &["v1beta1"],
        has_status: true,
        columns: &[("URL", "string", ".status.url"), READY, AGE],
    },
    Kind {
        group: SERVING,
        kind: "ServingRuntime",
        plural: "servingruntimes",
        short: &[],
        namespaced: true,
        versions: &["v1alpha1"],
        has_status: false,
        columns: &[FORMATS, AGE],
    },
    Kind {
        group: SERVING,
        kind: "ClusterServingRuntime",
        plural: "clusterservingruntimes",
        short: &[],
        namespaced: false,
        versions: &["v1alpha1"],
        has_status: false,
        columns: &[FORMATS, AGE],
    },
];

/// Defines those kinds that nobody has defined.
pub(super) async fn define(client: &Client) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    try_join_all(KINDS.iter().map(|kind| define_one(&definitions, kind))).await?;
    Ok(())
}

async fn define_one(api: &Api<CustomResourceDefinition>, kind: &Kind) -> anyhow::Result<()> {
    let name = kind.name();
    let cannot = || format!("cannot define {name}");
    if api.get_metadata_opt(&name).await.with_context(cannot)?.is_none() {
        let applying = PatchParams::apply(MANAGER);
        api.patch(&name, &applying, &Patch::Apply(kind.definition())).await.with_context(cannot)?;
    }
    Ok(())
}

impl Kind {
    fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    fn definition(&self) -> Value {
        let versions: Vec<Value> = self
            .versions
            .iter()
            .enumerate()
            .map(|(at, name)| self.version(name, at == 0))
            .collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": self.name(),
                // Groups of Kubernetes ask for it; this is the word for those who are nobody.
                "annotations": { "api-approved.kubernetes.io": "unapproved, in short by windlass up" },
            },
            "spec": {
                "group": self.group,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "names": {
                    "kind": self.kind,
                    "listKind": format!("{}List", self.kind),
                    "plural": self.plural,
                    "singular": self.kind.to_ascii_lowercase(),
                    "shortNames": self.short,
                },
                "versions": versions,
            },
        })
    }

    fn version(&self, name: &str, is_stored: bool) -> Value {
        let column = |(title, type_, path): &Column| json!({ "name": title, "type": type_, "jsonPath": path });
        let columns: Vec<Value> = self.columns.iter().map(column).collect();
        let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        json!({
            "name": name,
            "served": true,
            "storage": is_stored,
            "additionalPrinterColumns": columns,
            "subresources": if self.has_status { json!({ "status": {} }) } else { json!({}) },
            "schema": { "openAPIV3Schema": {
                "type": "object",
                "properties": { "spec": free, "status": free },
            } },
        })
    }
}
