//! Roles and their bindings.

use serde_json::{Value, json};

use super::{names, selectors};
use crate::builtin::{
    causes::{Causes, Path},
    object::{at, items, text},
};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(object: &Value, namespaced: bool, causes: &mut Causes) {
    for (index, rule) in items(object, &["rules"]).iter().enumerate() {
        self::rule(rule, namespaced, &Path::new("rules").index(index), causes);
    }
    let Some(aggregation) = at(object, &["aggregationRule"]) else { return };
    let path = Path::new("aggregationRule.clusterRoleSelectors");
    let selectors = items(aggregation, &["clusterRoleSelectors"]);
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        causes.required(&path, detail);
    }
    for (index, selector) in selectors.iter().enumerate() {
        selectors::check(selector, &path.index(index), causes);
    }
}

fn rule(rule: &Value, namespaced: bool, path: &Path, causes: &mut Causes) {
    let empty = |field: &str| items(rule, &[field]).is_empty();
    if empty("verbs") {
        causes.required(&path.child("verbs"), "verbs must contain at least one value");
    }
    if !empty("nonResourceURLs") {
        let urls = json!(items(rule, &["nonResourceURLs"]));
        let path = path.child("nonResourceURLs");
        if namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            causes.invalid(&path, urls.clone(), detail);
        }
        if !["apiGroups", "resources", "resourceNames"].into_iter().all(empty) {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            causes.invalid(&path, urls, detail);
        }
        return;
    }
    if empty("apiGroups") {
        let detail = "resource rules must supply at least one api group";
        causes.required(&path.child("apiGroups"), detail);
    }
    if empty("resources") {
        let detail = "resource rules must supply at least one resource";
        causes.required(&path.child("resources"), detail);
    }
}

pub(super) fn binding(object: &Value, namespaced: bool, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("roleRef");
    let group = text(object, &["roleRef", "apiGroup"]);
    if group != GROUP {
        causes.not_supported(&path.child("apiGroup"), group, &[GROUP]);
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let kind = text(object, &["roleRef", "kind"]);
    if !kinds.contains(&kind) {
        causes.not_supported(&path.child("kind"), kind, kinds);
    }
    let name = text(object, &["roleRef", "name"]);
    if name.is_empty() {
        causes.required(&path.child("name"), "");
    }
    for problem in names::path_segment(name) {
        causes.invalid(&path.child("name"), name, &problem);
    }
    for (index, subject) in items(object, &["subjects"]).iter().enumerate() {
        self::subject(subject, namespaced, &Path::new("subjects").index(index), causes);
    }
    if let Some(old) = old
        && at(object, &["roleRef"]) != at(old, &["roleRef"])
    {
        let role = at(object, &["roleRef"]).cloned().unwrap_or_default();
        causes.invalid(&path, role, "cannot change roleRef");
    }
}

fn subject(subject: &Value, namespaced: bool, path: &Path, causes: &mut Causes) {
    let name = text(subject, &["name"]);
    if name.is_empty() {
        causes.required(&path.child("name"), "");
    }
    let group = text(subject, &["apiGroup"]);
    match text(subject, &["kind"]) {
        "ServiceAccount" => {
            if !name.is_empty() {
                for problem in names::subdomain(name) {
                    causes.invalid(&path.child("name"), name, &problem);
                }
            }
            if !group.is_empty() {
                causes.not_supported(&path.child("apiGroup"), group, &[""]);
            }
            if !namespaced && text(subject, &["namespace"]).is_empty() {
                causes.required(&path.child("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                causes.not_supported(&path.child("apiGroup"), group, &[GROUP]);
            }
        }
        kind => {
            let kinds = &["ServiceAccount", "User", "Group"];
            causes.not_supported(&path.child("kind"), kind, kinds);
        }
    }
}
