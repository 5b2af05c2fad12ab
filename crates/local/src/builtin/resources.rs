//! The table of served resources.

use std::{borrow::Cow, sync::LazyLock};

type Text = Cow<'static, str>;

/// One resource of one version, built in or of a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Empty for the core group.
    pub group: Text,
    pub version: Text,
    pub kind: Text,
    pub list_kind: Text,
    pub plural: Text,
    pub singular: Text,
    pub short_names: Vec<Text>,
    pub categories: Vec<Text>,
    pub namespaced: bool,
    pub verbs: &'static [&'static str],
    pub subresources: Vec<Subresource>,
    /// Whether `metadata.generation` counts the changes of what is wanted.
    pub has_generation: bool,
    /// Whether `status` is written through `/status` only.
    pub has_status: bool,
    /// Whether there is a definition behind it.
    pub custom: bool,
    pub storage: Storage,
    /// DELETE answers with the object even when it is gone at once.
    pub delete_shows_object: bool,
    /// PUT of a missing object creates it.
    pub put_creates: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Under its own group and plural.
    Own,
    /// Another view of the objects of this group and plural.
    Shared { group: &'static str, plural: &'static str },
    /// As `Own`, with a warning at each write that nothing acts on it.
    WithoutEffect,
    /// A question that is answered and forgotten.
    Nothing,
    /// As `Own`, but none can be made: nothing would act on it.
    Unmade,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subresource {
    pub name: &'static str,
    /// Group, version and kind of its bodies; none: those of the resource.
    pub kind: Option<(&'static str, &'static str, &'static str)>,
    pub verbs: &'static [&'static str],
}

impl Subresource {
    pub const STATUS: Subresource =
        Subresource { name: "status", kind: None, verbs: &["get", "patch", "update"] };
    pub const SCALE: Subresource = Subresource {
        name: "scale",
        kind: Some(("autoscaling", "v1", "Scale")),
        verbs: &["get", "patch", "update"],
    };
}

impl Resource {
    pub const ALL_VERBS: &'static [&'static str] =
        &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

    /// As objects spell it: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The plural with its group, as messages name it: `configmaps`, `deployments.apps`.
    pub fn qualified(&self) -> String {
        with_group(&self.plural, &self.group)
    }

    /// The kind with its group, as messages name it: `ConfigMap`, `Deployment.apps`.
    pub fn qualified_kind(&self) -> String {
        with_group(&self.kind, &self.group)
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Group and plural under which its objects are kept, if they are.
    pub fn stored_as(&self) -> Option<(&str, &str)> {
        match self.storage {
            Storage::Own | Storage::WithoutEffect | Storage::Unmade => {
                Some((&self.group, &self.plural))
            }
            Storage::Shared { group, plural } => Some((group, plural)),
            Storage::Nothing => None,
        }
    }

    /// What whoever asks for it is told, whatever comes of it.
    pub fn deprecation(&self) -> Option<&'static str> {
        (self.group.is_empty() && self.plural == "endpoints").then_some(
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        )
    }

    /// What a writer is told of an object that nothing acts on.
    pub fn warning(&self) -> Option<String> {
        (self.storage == Storage::WithoutEffect)
            .then(|| format!("{} is stored but has no effect on a local node", self.kind))
    }
}

fn with_group(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// Every built-in resource, in the order in which discovery lists the groups.
pub static RESOURCES: LazyLock<Vec<Resource>> =
    LazyLock::new(|| ROWS.iter().map(Row::resource).collect());

/// Kinds of which there are none, beside the others. Clients look for them by themselves, as `kubectl
/// apply --prune` does, and do not get over their absence.
pub static UNMADE: LazyLock<Vec<Resource>> =
    LazyLock::new(|| UNMADE_ROWS.iter().map(Row::resource).collect());

/// The built-in resource of this group, version and plural.
pub fn resource(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES
        .iter()
        .find(|res| res.group == group && res.version == version && res.plural == plural)
}

/// A line of the table; what most kinds have in common comes from the rows below.
#[derive(Clone, Copy)]
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    verbs: &'static [&'static str],
    subresources: &'static [Subresource],
    generation: bool,
    storage: Storage,
    delete_shows_object: bool,
    put_creates: bool,
}

impl Row {
    fn resource(&self) -> Resource {
        let texts = |list: &[&'static str]| list.iter().map(|text| Text::from(*text)).collect();
        Resource {
            group: self.group.into(),
            version: self.version.into(),
            kind: self.kind.into(),
            list_kind: format!("{}List", self.kind).into(),
            plural: self.plural.into(),
            singular: self.kind.to_lowercase().into(),
            short_names: texts(self.short_names),
            categories: texts(self.categories),
            namespaced: self.namespaced,
            verbs: self.verbs,
            subresources: self.subresources.to_vec(),
            has_generation: self.generation,
            has_status: self.subresources.contains(&STATUS),
            custom: false,
            storage: self.storage,
            delete_shows_object: self.delete_shows_object,
            put_creates: self.put_creates,
        }
    }
}

const STATUS: Subresource = Subresource::STATUS;
const SCALE: Subresource = Subresource::SCALE;

const NAMESPACED: Row = Row {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: Resource::ALL_VERBS,
    subresources: &[],
    generation: false,
    storage: Storage::Own,
    delete_shows_object: false,
    put_creates: false,
};
const CLUSTER: Row = Row { namespaced: false, ..NAMESPACED };
const APPS: Row = Row {
    group: "apps",
    categories: &["all"],
    subresources: &[SCALE, STATUS],
    generation: true,
    ..NAMESPACED
};
const RBAC: Row = Row { group: "rbac.authorization.k8s.io", put_creates: true, ..NAMESPACED };
const CLUSTER_RBAC: Row = Row { namespaced: false, ..RBAC };
const QUESTION: Row =
    Row { verbs: &["create"], storage: Storage::Nothing, namespaced: false, ..NAMESPACED };
const AUTHENTICATION: Row = Row { group: "authentication.k8s.io", ..QUESTION };
const AUTHORIZATION: Row = Row { group: "authorization.k8s.io", ..QUESTION };

const UNMADE_ROW: Row = Row { storage: Storage::Unmade, categories: &["all"], ..NAMESPACED };
const UNMADE_ROWS: &[Row] = &[
    Row {
        kind: "ReplicationController",
        plural: "replicationcontrollers",
        short_names: &["rc"],
        ..UNMADE_ROW
    },
    Row {
        group: "apps",
        kind: "DaemonSet",
        plural: "daemonsets",
        short_names: &["ds"],
        ..UNMADE_ROW
    },
    Row {
        group: "apps",
        kind: "StatefulSet",
        plural: "statefulsets",
        short_names: &["sts"],
        ..UNMADE_ROW
    },
    Row { group: "batch", kind: "CronJob", plural: "cronjobs", short_names: &["cj"], ..UNMADE_ROW },
    Row {
        group: "networking.k8s.io",
        kind: "Ingress",
        plural: "ingresses",
        short_names: &["ing"],
        categories: &[],
        ..UNMADE_ROW
    },
];

const ROWS: &[Row] = &[
    Row { kind: "ConfigMap", plural: "configmaps", short_names: &["cm"], ..NAMESPACED },
    Row {
        kind: "Endpoints",
        plural: "endpoints",
        short_names: &["ep"],
        put_creates: true,
        ..NAMESPACED
    },
    Row { kind: "Event", plural: "events", short_names: &["ev"], put_creates: true, ..NAMESPACED },
    Row {
        kind: "Namespace",
        plural: "namespaces",
        short_names: &["ns"],
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        subresources: &[Subresource { name: "finalize", kind: None, verbs: &["update"] }, STATUS],
        delete_shows_object: true,
        ..CLUSTER
    },
    Row { kind: "Node", plural: "nodes", short_names: &["no"], subresources: &[STATUS], ..CLUSTER },
    Row {
        kind: "PersistentVolumeClaim",
        plural: "persistentvolumeclaims",
        short_names: &["pvc"],
        subresources: &[STATUS],
        delete_shows_object: true,
        ..NAMESPACED
    },
    Row {
        kind: "PersistentVolume",
        plural: "persistentvolumes",
        short_names: &["pv"],
        subresources: &[STATUS],
        delete_shows_object: true,
        ..CLUSTER
    },
    Row {
        kind: "Pod",
        plural: "pods",
        short_names: &["po"],
        categories: &["all"],
        subresources: &[
            Subresource { name: "binding", kind: Some(("", "v1", "Binding")), verbs: &["create"] },
            Subresource {
                name: "eviction",
                kind: Some(("policy", "v1", "Eviction")),
                verbs: &["create"],
            },
            Subresource { name: "log", kind: None, verbs: &["get"] },
            STATUS,
        ],
        generation: true,
        delete_shows_object: true,
        ..NAMESPACED
    },
    Row { kind: "Secret", plural: "secrets", ..NAMESPACED },
    Row {
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        short_names: &["sa"],
        subresources: &[Subresource {
            name: "token",
            kind: Some(("authentication.k8s.io", "v1", "TokenRequest")),
            verbs: &["create"],
        }],
        delete_shows_object: true,
        ..NAMESPACED
    },
    Row {
        kind: "Service",
        plural: "services",
        put_creates: true,
        short_names: &["svc"],
        categories: &["all"],
        subresources: &[STATUS],
        delete_shows_object: true,
        ..NAMESPACED
    },
    Row { kind: "Deployment", plural: "deployments", short_names: &["deploy"], ..APPS },
    Row { kind: "ReplicaSet", plural: "replicasets", short_names: &["rs"], ..APPS },
    Row {
        group: "events.k8s.io",
        kind: "Event",
        plural: "events",
        short_names: &["ev"],
        storage: Storage::Shared { group: "", plural: "events" },
        put_creates: true,
        ..NAMESPACED
    },
    Row { kind: "SelfSubjectReview", plural: "selfsubjectreviews", ..AUTHENTICATION },
    Row { kind: "TokenReview", plural: "tokenreviews", ..AUTHENTICATION },
    Row {
        kind: "LocalSubjectAccessReview",
        plural: "localsubjectaccessreviews",
        namespaced: true,
        ..AUTHORIZATION
    },
    Row { kind: "SelfSubjectAccessReview", plural: "selfsubjectaccessreviews", ..AUTHORIZATION },
    Row { kind: "SelfSubjectRulesReview", plural: "selfsubjectrulesreviews", ..AUTHORIZATION },
    Row { kind: "SubjectAccessReview", plural: "subjectaccessreviews", ..AUTHORIZATION },
    Row {
        group: "autoscaling",
        version: "v2",
        kind: "HorizontalPodAutoscaler",
        plural: "horizontalpodautoscalers",
        short_names: &["hpa"],
        categories: &["all"],
        subresources: &[STATUS],
        ..NAMESPACED
    },
    Row {
        group: "batch",
        kind: "Job",
        plural: "jobs",
        categories: &["all"],
        subresources: &[STATUS],
        generation: true,
        ..NAMESPACED
    },
    Row {
        group: "networking.k8s.io",
        kind: "NetworkPolicy",
        plural: "networkpolicies",
        short_names: &["netpol"],
        generation: true,
        storage: Storage::WithoutEffect,
        ..NAMESPACED
    },
    Row {
        group: "policy",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
        short_names: &["pdb"],
        subresources: &[STATUS],
        generation: true,
        storage: Storage::WithoutEffect,
        ..NAMESPACED
    },
    Row { kind: "ClusterRoleBinding", plural: "clusterrolebindings", ..CLUSTER_RBAC },
    Row { kind: "ClusterRole", plural: "clusterroles", ..CLUSTER_RBAC },
    Row { kind: "RoleBinding", plural: "rolebindings", ..RBAC },
    Row { kind: "Role", plural: "roles", ..RBAC },
    Row {
        group: "storage.k8s.io",
        kind: "StorageClass",
        plural: "storageclasses",
        short_names: &["sc"],
        delete_shows_object: true,
        ..CLUSTER
    },
    Row {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        subresources: &[STATUS],
        generation: true,
        ..CLUSTER
    },
    Row {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        plural: "priorityclasses",
        short_names: &["pc"],
        generation: true,
        storage: Storage::WithoutEffect,
        ..CLUSTER
    },
    Row {
        group: "coordination.k8s.io",
        kind: "Lease",
        plural: "leases",
        put_creates: true,
        ..NAMESPACED
    },
    Row {
        group: "discovery.k8s.io",
        kind: "EndpointSlice",
        plural: "endpointslices",
        generation: true,
        ..NAMESPACED
    },
];
