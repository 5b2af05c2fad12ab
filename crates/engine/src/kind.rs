//! Which resource of the API an object belongs to, and its address there.

use std::{borrow::Cow, fmt};

use kube::{
    Resource,
    core::{ApiResource, ClusterResourceScope, NamespaceResourceScope},
};

/// A served resource: everything needed to build the URL of one of its objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    pub group: Cow<'static, str>,
    pub version: Cow<'static, str>,
    pub kind: Cow<'static, str>,
    pub plural: Cow<'static, str>,
    pub scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// The scope markers of typed objects, as a value.
pub trait TypedScope {
    const SCOPE: Scope;
}

impl TypedScope for NamespaceResourceScope {
    const SCOPE: Scope = Scope::Namespaced;
}

impl TypedScope for ClusterResourceScope {
    const SCOPE: Scope = Scope::Cluster;
}

impl Kind {
    pub fn of<K>() -> Self
    where
        K: Resource<DynamicType = (), Scope: TypedScope>,
    {
        Self {
            group: K::group(&()),
            version: K::version(&()),
            kind: K::kind(&()),
            plural: K::plural(&()),
            scope: <K::Scope as TypedScope>::SCOPE,
        }
    }

    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_string(),
            version: self.version.to_string(),
            api_version: self.api_version(),
            kind: self.kind.to_string(),
            plural: self.plural.to_string(),
        }
    }

    /// Whether it is part of Kubernetes itself, so that no definition is needed for it.
    pub fn is_built_in(&self) -> bool {
        // The projects around Kubernetes share its domain, one level deeper.
        let foreign =
            self.group.ends_with(".networking.k8s.io") || self.group.ends_with(".x-k8s.io");
        !self.group.contains('.') || (self.group.ends_with(".k8s.io") && !foreign)
    }

    /// The name that a CustomResourceDefinition serving this kind must have.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

/// Names one object of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    pub namespace: Option<String>,
    pub name: String,
}

impl ObjectKey {
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        Self { namespace: namespace.map(str::to_owned), name: name.to_owned() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}
