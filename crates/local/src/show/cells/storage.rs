//! Volumes, claims and classes.

use serde_json::{Value, json};

use super::Object;

pub(super) fn volume(object: &Object<'_>) -> Vec<Value> {
    let claim = match object.find("spec.claimRef") {
        Some(_) => {
            format!(
                "{}/{}",
                object.text("spec.claimRef.namespace"),
                object.text("spec.claimRef.name")
            )
        }
        None => String::new(),
    };
    vec![
        object.name(),
        json!(object.text_or("spec.capacity.storage", "0")),
        json!(modes(object.list("spec.accessModes"))),
        json!(object.text("spec.persistentVolumeReclaimPolicy")),
        json!(phase(object)),
        json!(claim),
        json!(object.text("spec.storageClassName")),
        json!(object.text_or("spec.volumeAttributesClassName", "<unset>")),
        json!(object.text("status.reason")),
        object.age(),
        json!(object.text_or("spec.volumeMode", "<unset>")),
    ]
}

pub(super) fn claim(object: &Object<'_>) -> Vec<Value> {
    let bound = !object.text("spec.volumeName").is_empty();
    let (capacity, modes) = match bound {
        true => (
            object.text_or("status.capacity.storage", "0").to_owned(),
            modes(object.list("status.accessModes")),
        ),
        false => Default::default(),
    };
    vec![
        object.name(),
        json!(phase(object)),
        json!(object.text("spec.volumeName")),
        json!(capacity),
        json!(modes),
        json!(object.text("spec.storageClassName")),
        json!(object.text_or("spec.volumeAttributesClassName", "<unset>")),
        object.age(),
        json!(object.text_or("spec.volumeMode", "<unset>")),
    ]
}

fn phase<'a>(object: &Object<'a>) -> &'a str {
    if object.is_deleting() { "Terminating" } else { object.text("status.phase") }
}

/// Short and in a fixed order, whatever order they were given in.
fn modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let given = SHORT.iter().filter(|(long, _)| modes.iter().any(|mode| mode == long));
    given.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

pub(super) fn class(object: &Object<'_>) -> Vec<Value> {
    let annotations = object.find("metadata.annotations");
    let is_default = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ]
    .iter()
    .any(|name| annotations.is_some_and(|annotations| annotations[name] == "true"));
    let mark = if is_default { " (default)" } else { "" };
    vec![
        json!(format!("{}{mark}", object.text("metadata.name"))),
        json!(object.text("provisioner")),
        json!(object.text_or("reclaimPolicy", "Delete")),
        json!(object.text_or("volumeBindingMode", "Immediate")),
        json!(object.flag("allowVolumeExpansion")),
        object.age(),
    ]
}
