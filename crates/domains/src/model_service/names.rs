//! Every name, label and annotation of the children; nothing else makes them up.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::model::model_service::ModelService;

#[cfg(test)]
mod tests;

/// Field manager and `managed-by` value, shared with the other kinds of the group.
pub const CONTROLLER: &str = "model-operator";

/// Under this name the operator before us wrote; what it holds it holds on our behalf.
pub(super) const PREDECESSOR: &str = "manager";

pub const EVENT_SOURCE: &str = "modelservice-controller";

/// Values of the component label on the children.
pub const COMPONENTS: [&str; 3] = ["model-decode", "model-prefill", "epp"];

/// Carries the service's name on every child, and on the serving pods.
pub const NAME_LABEL: &str = "llm-d.ai/model";

/// Held while cluster-scoped children exist, which no owner reference can clean up.
pub const FINALIZER: &str = "model.otterscale.io/epp-cluster-rbac";

/// With [`NAME_LABEL`] names the service that a cluster-scoped child belongs to.
pub const NAMESPACE_LABEL: &str = "model.otterscale.io/namespace";

pub(super) const ROLE_LABEL: &str = "llm-d.ai/role";
pub(super) const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// Of what a Deployment's pod template was made; see the module `revision`.
pub(super) const REVISION_ANNOTATION: &str = "model.otterscale.io/revision";

/// In which form a Deployment's pod template was written; see the module `revision`.
pub(super) const FORM_ANNOTATION: &str = "model.otterscale.io/form";

/// The number of pods that the spec asked for when it was last applied; see the module `replicas`.
pub(super) const REPLICAS_ANNOTATION: &str = "model.otterscale.io/replicas";

/// On the picker's Deployment: the generation for which the token Secret was made. Secrets cannot be
/// read, so this tells whether there is one.
pub(super) const TOKEN_ANNOTATION: &str = "model.otterscale.io/token-secret";

/// On the picker's Deployment and Service: the uid of the token Secret, if it was made by us and was not there before. Only then
/// it is ours to delete.
pub(super) const TOKEN_UID_ANNOTATION: &str = "model.otterscale.io/token-secret-uid";

const APP_NAME: &str = "app.kubernetes.io/name";
const COMPONENT: &str = "app.kubernetes.io/component";
const PART_OF: &str = "app.kubernetes.io/part-of";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const SERVING: &str = "llm-d.ai/inferenceServing";
const EPP_LABEL: &str = "inferencepool";

const PRODUCT: &str = "otterscale-system";
const EPP: &str = "epp";

/// Longest name of a Service.
pub(super) const MAX_SERVICE_NAME: usize = 63;

/// The two sets of serving pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Decode,
    Prefill,
}

impl Role {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Prefill => "prefill",
        }
    }

    fn component(self) -> &'static str {
        match self {
            Self::Decode => "model-decode",
            Self::Prefill => "model-prefill",
        }
    }
}

/// Names of the children of one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    namespace: Option<String>,
    name: String,
    epp: String,
    version: String,
}

impl Names {
    /// `version` is that of the operator; empty leaves its label out.
    pub(super) fn of(service: &ModelService, version: &str) -> Self {
        let name = service.metadata.name.clone().unwrap_or_default();
        Self {
            namespace: service.metadata.namespace.clone(),
            epp: format!("{}-{EPP}", sanitise(&name)),
            name,
            version: version.to_owned(),
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// For texts that need a namespace even where none was given.
    pub(super) fn namespace_or_default(&self) -> &str {
        self.namespace().unwrap_or("default")
    }

    /// The service's own name; also that of its pool and its route.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Deployment and PodMonitor of a role.
    pub(super) fn role(&self, role: Role) -> String {
        format!("{}-{}", self.name, role.as_str())
    }

    /// Most of what belongs to the endpoint picker.
    pub(super) fn epp(&self) -> &str {
        &self.epp
    }

    pub(super) fn config_map(&self) -> String {
        format!("{}-config", self.epp)
    }

    pub(super) fn token_secret(&self) -> String {
        format!("{}-sa-metrics-reader-secret", self.epp)
    }

    pub(super) fn cluster_rbac(&self) -> String {
        format!("{}-{}", self.namespace_or_default(), self.epp)
    }

    pub(super) fn epp_host(&self) -> String {
        format!("{}.{}.svc.cluster.local", self.epp, self.namespace_or_default())
    }

    /// Metadata of a role's Deployment and PodMonitor.
    pub(super) fn role_metadata(&self, role: Role) -> ObjectMeta {
        self.metadata(self.role(role), self.labels(&self.name, role.component()))
    }

    /// Metadata of the pool and the route.
    pub(super) fn traffic_metadata(&self) -> ObjectMeta {
        self.metadata(self.name.clone(), self.labels(&self.name, EPP))
    }

    pub(super) fn epp_metadata(&self, name: &str) -> ObjectMeta {
        self.metadata(name.to_owned(), self.labels(&self.epp, EPP))
    }

    /// Without an owner these labels are all that tells whose it is.
    pub(super) fn cluster_metadata(&self) -> ObjectMeta {
        let mut labels = self.labels(&self.epp, EPP);
        labels.insert(NAME_LABEL.to_owned(), self.name.clone());
        labels.insert(NAMESPACE_LABEL.to_owned(), self.namespace_or_default().to_owned());
        ObjectMeta { name: Some(self.cluster_rbac()), labels: Some(labels), ..Default::default() }
    }

    /// Selector of a role's Deployment and PodMonitor; also the labels of its pods. A version among
    /// them would replace all pods with every new operator.
    pub(super) fn role_selector(&self, role: Role) -> BTreeMap<String, String> {
        let mut labels = self.selector(&self.name, Some(role.component()));
        labels.extend(self.serving_labels());
        labels.insert(ROLE_LABEL.to_owned(), role.as_str().to_owned());
        labels
    }

    /// Selector of the pool: the pods of both roles, or of the one named.
    pub(super) fn pool_selector(&self, only: Option<Role>) -> BTreeMap<String, String> {
        let mut labels = self.selector(&self.name, None);
        labels.extend(self.serving_labels());
        if let Some(role) = only {
            labels.insert(ROLE_LABEL.to_owned(), role.as_str().to_owned());
        }
        labels
    }

    /// Selector of the picker's Service and ServiceMonitor.
    pub(super) fn epp_selector(&self) -> BTreeMap<String, String> {
        self.selector(&self.epp, Some(EPP))
    }

    /// Selector of the picker's Deployment, and the labels of its pods.
    pub(super) fn epp_pod_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.epp_selector();
        labels.insert(EPP_LABEL.to_owned(), self.epp.clone());
        labels
    }

    /// Whether a cluster-scoped object with these labels was made for this service, by us or by the
    /// operator before us, which wrote no name of a service on it.
    pub(super) fn is_of_this_service(&self, labels: &BTreeMap<String, String>) -> bool {
        let is = |key: &str, value: &str| labels.get(key).is_some_and(|known| known == value);
        let absent_or = |key: &str, value: &str| labels.get(key).is_none_or(|known| known == value);
        is(MANAGED_BY, CONTROLLER)
            && is(APP_NAME, &self.epp)
            && absent_or(NAME_LABEL, &self.name)
            && absent_or(NAMESPACE_LABEL, self.namespace_or_default())
    }

    fn metadata(&self, name: String, labels: BTreeMap<String, String>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: self.namespace.clone(),
            labels: Some(labels),
            ..Default::default()
        }
    }

    fn labels(&self, name: &str, component: &str) -> BTreeMap<String, String> {
        let mut labels = self.selector(name, Some(component));
        if !self.version.is_empty() {
            labels.insert(VERSION_LABEL.to_owned(), self.version.clone());
        }
        labels
    }

    fn selector(&self, name: &str, component: Option<&str>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([
            (APP_NAME.to_owned(), name.to_owned()),
            (PART_OF.to_owned(), PRODUCT.to_owned()),
            (MANAGED_BY.to_owned(), CONTROLLER.to_owned()),
        ]);
        if let Some(component) = component {
            labels.insert(COMPONENT.to_owned(), component.to_owned());
        }
        labels
    }

    fn serving_labels(&self) -> [(String, String); 2] {
        [(SERVING.to_owned(), "true".to_owned()), (NAME_LABEL.to_owned(), self.name.clone())]
    }
}

/// A text as the beginning of a Service's name. Two texts may give one: children are checked for
/// their owner before they are touched.
fn sanitise(text: &str) -> String {
    let kept = text.chars().filter_map(|c| match c {
        'a'..='z' | '0'..='9' => Some(c),
        'A'..='Z' => Some(c.to_ascii_lowercase()),
        '.' | '_' | '-' => Some('-'),
        _ => None,
    });
    let mut label = String::new();
    for c in kept {
        if c != '-' || !(label.is_empty() || label.ends_with('-')) {
            label.push(c);
        }
    }
    label.truncate(label.trim_end_matches('-').len());
    match label.bytes().next() {
        None => "modelservice".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("m-{label}"),
        Some(_) => label,
    }
}
