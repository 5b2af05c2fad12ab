//! The metadata of any object, custom ones too.

use serde_json::{Value, json};

use super::names;
use crate::{
    builtin::{
        Resource,
        causes::{Causes, Path},
        object::{at, entries, integer, items, text, truth},
    },
    error::Cause,
};

/// Keys and values of all annotations together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// What is wrong with the metadata of a new object, or of one that replaces `old`.
pub fn metadata(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Causes::default();
    check(resource, object, old, &mut causes);
    causes.0
}

pub(super) fn check(resource: &Resource, object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("metadata");
    let Some(old) = old else {
        name(resource, object, &path, causes);
        return common(resource, object, &path, causes);
    };
    // What all kinds have in common is checked before what each kind checks, and there once more.
    for _ in 0..2 {
        unchanged(object, old, &path, causes);
        common(resource, object, &path, causes);
    }
}

fn name(resource: &Resource, object: &Value, path: &Path, causes: &mut Causes) {
    let rule = name_rule(resource);
    let base = text(object, &["metadata", "generateName"]);
    if !base.is_empty() {
        // What follows is a letter or a digit, so the base may end in what a name may not end in.
        for problem in rule(&masked(base)) {
            causes.invalid(&path.child("generateName"), base, &problem);
        }
    }
    let name = text(object, &["metadata", "name"]);
    if name.is_empty() {
        causes.required(&path.child("name"), "name or generateName is required");
    }
    if !name.is_empty() {
        for problem in rule(name) {
            causes.invalid(&path.child("name"), name, &problem);
        }
    }
}

fn name_rule(resource: &Resource) -> fn(&str) -> Vec<String> {
    match (&*resource.group, &*resource.kind) {
        ("", "Namespace" | "Service") => names::label,
        ("rbac.authorization.k8s.io", _) => names::path_segment,
        _ => names::subdomain,
    }
}

fn masked(base: &str) -> String {
    match base.strip_suffix('-') {
        Some(head) if !head.is_empty() => format!("{head}a"),
        _ => base.to_owned(),
    }
}

fn unchanged(object: &Value, old: &Value, path: &Path, causes: &mut Causes) {
    if at(old, &["metadata", "deletionTimestamp"]).is_some() {
        let held = items(old, &["metadata", "finalizers"]);
        let finalizers = items(object, &["metadata", "finalizers"]);
        let mut added: Vec<_> = finalizers.iter().filter(|item| !held.contains(item)).collect();
        added.sort_by_key(|item| item.as_str());
        if !added.is_empty() {
            let added: Vec<_> = added.iter().map(ToString::to_string).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, \
                 found new finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.forbidden(&path.child("finalizers"), &detail);
        }
    }
    for field in ["name", "namespace", "uid"] {
        let (new, old) = (text(object, &["metadata", field]), text(old, &["metadata", field]));
        if new != old {
            causes.invalid(&path.child(field), new, "field is immutable");
        }
    }
}

fn common(resource: &Resource, object: &Value, path: &Path, causes: &mut Causes) {
    let namespace = text(object, &["metadata", "namespace"]);
    let field = path.child("namespace");
    match (resource.namespaced, namespace.is_empty()) {
        (true, true) => causes.required(&field, ""),
        (true, false) => {
            for problem in names::label(namespace) {
                causes.invalid(&field, namespace, &problem);
            }
        }
        (false, true) => {}
        (false, false) => causes.forbidden(&field, "not allowed on this type"),
    }
    if let Some(generation) = integer(object, &["metadata", "generation"]).filter(|n| *n < 0) {
        not_negative(&path.child("generation"), generation, causes);
    }
    labels(object, &["metadata", "labels"], &path.child("labels"), causes);
    annotations(object, &["metadata", "annotations"], &path.child("annotations"), causes);
    owners(object, &path.child("ownerReferences"), causes);
    finalizers(resource, object, &path.child("finalizers"), causes);
    managed_fields(object, &path.child("managedFields"), causes);
}

pub(super) fn not_negative(path: &Path, number: i64, causes: &mut Causes) {
    if number < 0 {
        causes.invalid(path, number, "must be greater than or equal to 0");
    }
}

pub(super) fn labels(object: &Value, at: &[&str], path: &Path, causes: &mut Causes) {
    for (key, value) in entries(object, at) {
        for problem in names::qualified(key) {
            causes.invalid(path, key.as_str(), &problem);
        }
        let value = value.as_str().unwrap_or_default();
        for problem in names::label_value(value) {
            causes.invalid(path, value, &problem);
        }
    }
}

pub(super) fn annotations(object: &Value, at: &[&str], path: &Path, causes: &mut Causes) {
    let mut total = 0;
    for (key, value) in entries(object, at) {
        for problem in names::qualified(&key.to_lowercase()) {
            causes.invalid(path, key.as_str(), &problem);
        }
        total += key.len() + value.as_str().unwrap_or_default().len();
    }
    if total > MAX_ANNOTATIONS {
        causes.too_long(path, MAX_ANNOTATIONS);
    }
}

fn owners(object: &Value, path: &Path, causes: &mut Causes) {
    let list = items(object, &["metadata", "ownerReferences"]);
    let mut controller: Option<String> = None;
    for owner in list {
        let version = text(owner, &["apiVersion"]);
        if version.is_empty() || version.ends_with('/') {
            causes.invalid(&path.child("apiVersion"), version, "version must not be empty");
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, &[field]).is_empty() {
                causes.invalid(&path.child(field), "", "must not be empty");
            }
        }
        if version == "v1" && text(owner, &["kind"]) == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            causes.invalid(path, owner.clone(), detail);
        }
        if truth(owner, &["controller"]) {
            let this = format!("{}/{}", text(owner, &["kind"]), text(owner, &["name"]));
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. \
                         Found \"true\" in references for {first} and {this}"
                    );
                    causes.invalid(path, json!(list), &detail);
                }
            }
        }
    }
}

const INCOMPLETE: &str = "name is neither a standard finalizer name nor is it fully qualified";

fn is_complete(finalizer: &str) -> bool {
    finalizer.contains('/') || matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion")
}

/// Who must agree before a namespace goes.
pub(super) fn namespace(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("spec.finalizers");
    let finalizers = items(object, &["spec", "finalizers"]);
    for (index, finalizer) in finalizers.iter().filter_map(Value::as_str).enumerate() {
        let path = if old.is_some() { path.index(index) } else { path.clone() };
        for problem in names::qualified(finalizer) {
            causes.invalid(&path, finalizer, &problem);
        }
        if !is_complete(finalizer) {
            causes.invalid(&path, finalizer, INCOMPLETE);
        }
    }
}

fn finalizers(resource: &Resource, object: &Value, path: &Path, causes: &mut Causes) {
    let list = items(object, &["metadata", "finalizers"]);
    for finalizer in list.iter().filter_map(Value::as_str) {
        for problem in names::qualified(finalizer) {
            causes.invalid(path, finalizer, &problem);
        }
    }
    if !resource.custom {
        for (index, finalizer) in list.iter().filter_map(Value::as_str).enumerate() {
            if !is_complete(finalizer) {
                causes.invalid(&path.index(index), finalizer, INCOMPLETE);
            }
        }
    }
    let both = ["orphan", "foregroundDeletion"];
    if both.iter().all(|name| list.iter().any(|item| item == name)) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.invalid(path, json!(list), detail);
    }
}

fn managed_fields(object: &Value, path: &Path, causes: &mut Causes) {
    for (index, entry) in items(object, &["metadata", "managedFields"]).iter().enumerate() {
        let path = path.index(index);
        let operation = text(entry, &["operation"]);
        if !matches!(operation, "Apply" | "Update") {
            causes.invalid(&path.child("operation"), operation, "must be `Apply` or `Update`");
        }
        let format = text(entry, &["fieldsType"]);
        if !matches!(format, "" | "FieldsV1") {
            causes.invalid(&path.child("fieldsType"), format, "must be `FieldsV1`");
        }
        if text(entry, &["manager"]).len() > 128 {
            causes.too_long(&path.child("manager"), 128);
        }
    }
}
