//! Fields that Kubernetes knows and a local node does not act on. They are refused rather than
//! ignored, so that nobody waits for what will not happen.

use serde_json::Value;

use super::{
    Resource,
    causes::{Causes, Path},
    object::{at, items, text},
};

const DETAIL: &str = "not supported on a local node";

/// One thing that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    pub group: &'static str,
    pub kind: &'static str,
    pub field: &'static str,
    /// None: whatever its value is.
    pub value: Option<&'static str>,
}

const fn any(group: &'static str, kind: &'static str, field: &'static str) -> Unsupported {
    Unsupported { group, kind, field, value: None }
}

const fn service_type(value: &'static str) -> Unsupported {
    Unsupported { group: "", kind: "Service", field: "spec.type", value: Some(value) }
}

/// Every refused field except volumes, of which [`VOLUMES`] lists those that are there.
pub const UNSUPPORTED: &[Unsupported] = &[
    Unsupported {
        group: "batch",
        kind: "Job",
        field: "spec.completionMode",
        value: Some("Indexed"),
    },
    any("batch", "Job", "spec.podFailurePolicy"),
    any("batch", "Job", "spec.successPolicy"),
    any("batch", "Job", "spec.managedBy"),
    service_type("ExternalName"),
    service_type("NodePort"),
    service_type("LoadBalancer"),
];

/// Volumes that a local node can mount.
pub const VOLUMES: &[&str] = &[
    "emptyDir",
    "configMap",
    "secret",
    "downwardAPI",
    "projected",
    "persistentVolumeClaim",
    "hostPath",
];

pub(super) fn check(resource: &Resource, object: &Value, causes: &mut Causes) {
    for row in UNSUPPORTED {
        if row.group != resource.group || row.kind != resource.kind {
            continue;
        }
        let path: Vec<&str> = row.field.split('.').collect();
        let given = match row.value {
            None => at(object, &path).is_some(),
            Some(value) => text(object, &path) == value,
        };
        if given {
            causes.forbidden(&Path::new(row.field), DETAIL);
        }
    }
    match (&*resource.group, &*resource.kind) {
        ("", "Pod") => volumes(at(object, &["spec"]), &Path::new("spec"), causes),
        ("apps" | "batch", _) => {
            volumes(
                at(object, &["spec", "template", "spec"]),
                &Path::new("spec.template.spec"),
                causes,
            );
        }
        _ => {}
    }
}

fn volumes(spec: Option<&Value>, path: &Path, causes: &mut Causes) {
    let Some(spec) = spec else { return };
    for (index, volume) in items(spec, &["volumes"]).iter().enumerate() {
        for (kind, value) in volume.as_object().into_iter().flatten() {
            if kind != "name" && !value.is_null() && !VOLUMES.contains(&kind.as_str()) {
                causes.forbidden(&path.child("volumes").index(index).child(kind), DETAIL);
            }
        }
    }
}
