//! The columns of built-in kinds and what stands in them.

mod apps;
mod network;
mod pods;
mod storage;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;

/// Name, type and priority of a column.
type Column = (&'static str, &'static str, i64);

const NAME: Column = ("Name", "string", 0);
const AGE: Column = ("Age", "string", 0);
const CONTAINERS: [Column; 3] =
    [("Containers", "string", 1), ("Images", "string", 1), ("Selector", "string", 1)];

const fn text(name: &'static str) -> Column {
    (name, "string", 0)
}

const fn wide(name: &'static str) -> Column {
    (name, "string", 1)
}

const fn count(name: &'static str) -> Column {
    (name, "integer", 0)
}

/// Kinds without columns of their own say when they were made.
const PLAIN: &[Column] = &[NAME, ("Created At", "date", 0)];

pub(super) fn columns(group: &str, plural: &str) -> &'static [Column] {
    const REPLICA_SETS: &[Column] = &[
        NAME,
        count("Desired"),
        count("Current"),
        count("Ready"),
        AGE,
        CONTAINERS[0],
        CONTAINERS[1],
        CONTAINERS[2],
    ];
    const DEPLOYMENTS: &[Column] = &[
        NAME,
        text("Ready"),
        text("Up-to-date"),
        text("Available"),
        AGE,
        CONTAINERS[0],
        CONTAINERS[1],
        CONTAINERS[2],
    ];
    const JOBS: &[Column] = &[
        NAME,
        text("Status"),
        text("Completions"),
        text("Duration"),
        AGE,
        CONTAINERS[0],
        CONTAINERS[1],
        CONTAINERS[2],
    ];
    match (group, plural) {
        ("", "pods") => {
            const {
                &[
                    NAME,
                    text("Ready"),
                    text("Status"),
                    text("Restarts"),
                    AGE,
                    wide("IP"),
                    wide("Node"),
                    wide("Nominated Node"),
                    wide("Readiness Gates"),
                ]
            }
        }
        ("", "services") => {
            const {
                &[
                    NAME,
                    text("Type"),
                    text("Cluster-IP"),
                    text("External-IP"),
                    text("Port(s)"),
                    AGE,
                    wide("Selector"),
                ]
            }
        }
        ("", "nodes") => {
            const {
                &[
                    NAME,
                    text("Status"),
                    text("Roles"),
                    AGE,
                    text("Version"),
                    wide("Internal-IP"),
                    wide("External-IP"),
                    wide("OS-Image"),
                    wide("Kernel-Version"),
                    wide("Container-Runtime"),
                ]
            }
        }
        ("" | "events.k8s.io", "events") => {
            const {
                &[
                    text("Last Seen"),
                    text("Type"),
                    text("Reason"),
                    text("Object"),
                    wide("Subobject"),
                    wide("Source"),
                    text("Message"),
                    wide("First Seen"),
                    wide("Count"),
                    wide("Name"),
                ]
            }
        }
        ("", "namespaces") => const { &[NAME, text("Status"), AGE] },
        ("", "secrets") => const { &[NAME, text("Type"), text("Data"), AGE] },
        ("", "configmaps") => const { &[NAME, text("Data"), AGE] },
        ("", "serviceaccounts") => const { &[NAME, AGE] },
        ("", "endpoints") => const { &[NAME, text("Endpoints"), AGE] },
        ("", "persistentvolumes") => {
            const {
                &[
                    NAME,
                    text("Capacity"),
                    text("Access Modes"),
                    text("Reclaim Policy"),
                    text("Status"),
                    text("Claim"),
                    text("StorageClass"),
                    text("VolumeAttributesClass"),
                    text("Reason"),
                    AGE,
                    wide("VolumeMode"),
                ]
            }
        }
        ("", "persistentvolumeclaims") => {
            const {
                &[
                    NAME,
                    text("Status"),
                    text("Volume"),
                    text("Capacity"),
                    text("Access Modes"),
                    text("StorageClass"),
                    text("VolumeAttributesClass"),
                    AGE,
                    wide("VolumeMode"),
                ]
            }
        }
        ("apps", "deployments") => DEPLOYMENTS,
        ("apps", "replicasets") => REPLICA_SETS,
        ("batch", "jobs") => JOBS,
        ("autoscaling", "horizontalpodautoscalers") => {
            const {
                &[
                    NAME,
                    text("Reference"),
                    text("Targets"),
                    text("MinPods"),
                    text("MaxPods"),
                    text("Replicas"),
                    AGE,
                ]
            }
        }
        ("discovery.k8s.io", "endpointslices") => {
            const { &[NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE] }
        }
        ("coordination.k8s.io", "leases") => const { &[NAME, text("Holder"), AGE] },
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            const { &[NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")] }
        }
        ("storage.k8s.io", "storageclasses") => {
            const {
                &[
                    NAME,
                    text("Provisioner"),
                    text("ReclaimPolicy"),
                    text("VolumeBindingMode"),
                    text("AllowVolumeExpansion"),
                    AGE,
                ]
            }
        }
        ("networking.k8s.io", "networkpolicies") => const { &[NAME, text("Pod-Selector"), AGE] },
        ("policy", "poddisruptionbudgets") => {
            const {
                &[
                    NAME,
                    text("Min Available"),
                    text("Max Unavailable"),
                    count("Allowed Disruptions"),
                    AGE,
                ]
            }
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            const {
                &[
                    NAME,
                    count("Value"),
                    ("Global-Default", "boolean", 0),
                    AGE,
                    text("PreemptionPolicy"),
                ]
            }
        }
        _ => PLAIN,
    }
}

pub(super) fn of(group: &str, plural: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let object = &Object { value: object, now };
    match (group, plural) {
        ("", "pods") => pods::pod(object),
        ("", "nodes") => pods::node(object),
        ("" | "events.k8s.io", "events") => pods::event(object),
        ("", "namespaces") => vec![object.name(), json!(object.text("status.phase")), object.age()],
        ("", "secrets") => {
            vec![object.name(), json!(object.text("type")), json!(object.len("data")), object.age()]
        }
        ("", "configmaps") => {
            let count = object.len("data") + object.len("binaryData");
            vec![object.name(), json!(count), object.age()]
        }
        ("", "serviceaccounts") => vec![object.name(), object.age()],
        ("", "services") => network::service(object),
        ("", "endpoints") => network::endpoints(object),
        ("discovery.k8s.io", "endpointslices") => network::endpoint_slice(object),
        ("networking.k8s.io", "networkpolicies") => {
            vec![
                object.name(),
                json!(apps::selector(object.find("spec.podSelector"))),
                object.age(),
            ]
        }
        ("", "persistentvolumes") => storage::volume(object),
        ("", "persistentvolumeclaims") => storage::claim(object),
        ("storage.k8s.io", "storageclasses") => storage::class(object),
        ("apps", "deployments") => apps::deployment(object),
        ("apps", "replicasets") => apps::replica_set(object),
        ("batch", "jobs") => apps::job(object),
        ("autoscaling", "horizontalpodautoscalers") => apps::autoscaler(object),
        ("policy", "poddisruptionbudgets") => apps::disruption_budget(object),
        ("coordination.k8s.io", "leases") => {
            vec![object.name(), json!(object.text("spec.holderIdentity")), object.age()]
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => binding(object),
        ("scheduling.k8s.io", "priorityclasses") => vec![
            object.name(),
            json!(object.int("value")),
            json!(object.flag("globalDefault")),
            object.age(),
            json!(object.text("preemptionPolicy")),
        ],
        _ => vec![object.name(), json!(object.text("metadata.creationTimestamp"))],
    }
}

/// What a row says beside its cells: whether a pod is done.
pub(super) fn conditions(group: &str, plural: &str, object: &Value) -> Option<Value> {
    if (group, plural) != ("", "pods") {
        return None;
    }
    let phase = object.get("status")?.get("phase")?.as_str()?;
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

fn binding(object: &Object<'_>) -> Vec<Value> {
    let role = format!("{}/{}", object.text("roleRef.kind"), object.text("roleRef.name"));
    let mut cells = vec![object.name(), json!(role), object.age()];
    for kind in ["User", "Group", "ServiceAccount"] {
        let subjects = object.list("subjects").iter().filter(|subject| subject["kind"] == kind);
        let names = subjects.map(|subject| {
            let name = subject["name"].as_str().unwrap_or_default();
            match (kind, subject["namespace"].as_str()) {
                ("ServiceAccount", Some(namespace)) => format!("{namespace}/{name}"),
                _ => name.to_owned(),
            }
        });
        cells.push(json!(names.collect::<Vec<_>>().join(", ")));
    }
    cells
}

/// An object and the moment it is looked at.
struct Object<'a> {
    value: &'a Value,
    now: Timestamp,
}

impl<'a> Object<'a> {
    /// By dots, as in `spec.template.spec`.
    fn find(&self, path: &str) -> Option<&'a Value> {
        path.split('.').try_fold(self.value, |value, name| value.get(name))
    }

    fn text(&self, path: &str) -> &'a str {
        self.find(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text, or another where there is none.
    fn text_or(&self, path: &str, other: &'a str) -> &'a str {
        Some(self.text(path)).filter(|text| !text.is_empty()).unwrap_or(other)
    }

    fn int(&self, path: &str) -> i64 {
        self.find(path).and_then(Value::as_i64).unwrap_or_default()
    }

    fn flag(&self, path: &str) -> bool {
        self.find(path).and_then(Value::as_bool).unwrap_or_default()
    }

    fn list(&self, path: &str) -> &'a [Value] {
        self.find(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn len(&self, path: &str) -> usize {
        self.find(path).and_then(Value::as_object).map_or(0, serde_json::Map::len)
    }

    fn name(&self) -> Value {
        json!(self.text("metadata.name"))
    }

    fn is_deleting(&self) -> bool {
        self.find("metadata.deletionTimestamp").is_some()
    }

    fn since(&self, path: &str) -> String {
        age::since(self.find(path), self.now)
    }

    fn age(&self) -> Value {
        json!(self.since("metadata.creationTimestamp"))
    }

    /// Whether `status.conditions` has this one as true.
    fn is(&self, condition: &str) -> bool {
        let mut conditions = self.list("status.conditions").iter();
        conditions.any(|c| c["type"] == condition && c["status"] == "True")
    }
}
