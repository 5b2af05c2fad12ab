//! The operator's rights, read off what its domains watch, write and read. No wildcard, and no
//! reading of Secrets: that a Secret is missing shows in the pods that need it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::rbac::v1::{
        ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::Value;
use windlass_engine::{
    domain::{Access, Domain, Right},
    kind::Kind,
};

use super::{Flags, Scope, objects::NAME};
use crate::kinds::{self, KindName, Visitor};

const WATCH: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];

pub(crate) fn rules_in(scope: Scope) -> Vec<PolicyRule> {
    match scope {
        Scope::Namespace => rules(),
        Scope::Cluster => cluster_rules(),
        Scope::Leader => own_rules(),
    }
}

/// What the operator does in the namespaces it watches.
fn rules() -> Vec<PolicyRule> {
    let mut rights = Rights::default();
    for kind in KindName::ALL {
        rights = kind.visit(&kinds::Flags::default(), rights);
    }
    // Events are told through the newer API; `kubectl describe` shows both.
    rights.add("events.k8s.io", "events", &["create", "patch"]);
    rights.into_rules()
}

/// What it does in the cluster as a whole: notice which optional APIs there are.
fn cluster_rules() -> Vec<PolicyRule> {
    let mut rights = Rights::default();
    rights.add("apiextensions.k8s.io", "customresourcedefinitions", &["list", "watch"]);
    rights.into_rules()
}

/// What it does in its own namespace: agree with other operators who leads.
fn own_rules() -> Vec<PolicyRule> {
    let mut rights = Rights::default();
    rights.add("coordination.k8s.io", "leases", &["create", "get", "update"]);
    rights.into_rules()
}

pub(super) fn objects(flags: &Flags) -> serde_json::Result<Vec<Value>> {
    let mut objects = Vec::new();
    let everywhere = flags.watch_namespaces.is_empty();
    let cluster = if everywhere { [cluster_rules(), rules()].concat() } else { cluster_rules() };
    objects.push(serde_json::to_value(ClusterRole {
        metadata: metadata(None),
        rules: Some(cluster),
        ..Default::default()
    })?);
    objects.push(serde_json::to_value(ClusterRoleBinding {
        metadata: metadata(None),
        role_ref: role_ref("ClusterRole", NAME),
        subjects: Some(vec![subject(flags)]),
    })?);
    let leader = format!("{NAME}-leader");
    objects.extend(role(flags, &leader, &flags.namespace, own_rules())?);
    for namespace in &flags.watch_namespaces {
        objects.extend(role(flags, NAME, namespace, rules())?);
    }
    Ok(objects)
}

fn role(
    flags: &Flags,
    name: &str,
    namespace: &str,
    rules: Vec<PolicyRule>,
) -> serde_json::Result<[Value; 2]> {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..metadata(Some(namespace)) };
    Ok([
        serde_json::to_value(Role { metadata: metadata.clone(), rules: Some(rules) })?,
        serde_json::to_value(RoleBinding {
            metadata,
            role_ref: role_ref("Role", name),
            subjects: Some(vec![subject(flags)]),
        })?,
    ])
}

fn metadata(namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(NAME.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some(super::objects::labels()),
        ..Default::default()
    }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: "rbac.authorization.k8s.io".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

fn subject(flags: &Flags) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: NAME.to_owned(),
        namespace: Some(flags.namespace.clone()),
        ..Default::default()
    }
}

/// Verbs by group and resource.
#[derive(Default)]
struct Rights(BTreeMap<(String, String), BTreeSet<&'static str>>);

impl Visitor for Rights {
    type Output = Self;

    fn visit<D: Domain>(mut self, domain: D) -> Self {
        self.add_domain(&domain);
        self
    }
}

impl Rights {
    fn add(&mut self, group: &str, resource: &str, verbs: &[&'static str]) {
        self.0.entry((group.to_owned(), resource.to_owned())).or_default().extend(verbs);
    }

    fn add_domain<D: Domain>(&mut self, domain: &D) {
        let own = Kind::of::<D::Object>();
        self.add(&own.group, &own.plural, WATCH);
        self.add(&own.group, &format!("{}/status", own.plural), &["patch"]);
        // Owner references that block the owner's deletion need this where the cluster checks it.
        self.add(&own.group, &format!("{}/finalizers", own.plural), &["update"]);
        if domain.identity().finalizer.is_some() {
            self.add(&own.group, &own.plural, &["patch"]);
            self.add("", "namespaces", &["get"]);
        }
        for watch in domain.watches() {
            let verbs = match watch.access {
                Access::Write => WRITE,
                Access::Read => WATCH,
            };
            self.add(&watch.kind.group, &watch.kind.plural, verbs);
        }
        for Right { group, resource, verbs } in domain.rights() {
            self.add(group, resource, verbs);
        }
    }

    /// Resources of one group with the same verbs share a rule.
    fn into_rules(self) -> Vec<PolicyRule> {
        let mut rules: BTreeMap<(String, Vec<&str>), Vec<String>> = BTreeMap::new();
        for ((group, resource), verbs) in self.0 {
            rules.entry((group, verbs.into_iter().collect())).or_default().push(resource);
        }
        let rule = |((group, verbs), resources): ((String, Vec<&str>), Vec<String>)| PolicyRule {
            api_groups: Some(vec![group]),
            resources: Some(resources),
            verbs: verbs.into_iter().map(str::to_owned).collect(),
            ..Default::default()
        };
        rules.into_iter().map(rule).collect()
    }
}

#[cfg(test)]
mod tests;
