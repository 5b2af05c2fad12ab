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
    kind::{Kind, Scope as KindScope},
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

/// What the kinds ask for, inside of namespaces or outside of them.
fn of_kinds(scope: KindScope) -> Rights {
    let rights = Rights { scope, ..Rights::default() };
    KindName::ALL
        .into_iter()
        .fold(rights, |rights, kind| kind.visit(&kinds::Flags::default(), rights))
}

/// What the operator does in the namespaces it watches.
fn rules() -> Vec<PolicyRule> {
    let mut rights = of_kinds(KindScope::Namespaced);
    // Events are told through the newer API; `kubectl describe` shows both.
    rights.add("events.k8s.io", "events", &["create", "patch"]);
    rights.into_rules()
}

/// What it does in the cluster as a whole: notice which optional APIs there are, look after
/// children that lie in no namespace, and check who reads its metrics.
fn cluster_rules() -> Vec<PolicyRule> {
    let mut rights = of_kinds(KindScope::Cluster);
    rights.add("apiextensions.k8s.io", "customresourcedefinitions", &["list", "watch"]);
    // Who asks for the metrics over HTTPS. Endpoint pickers are given the same right by the
    // operator, so it has to have it anyway.
    rights.add("authentication.k8s.io", "tokenreviews", &["create"]);
    rights.add("authorization.k8s.io", "subjectaccessreviews", &["create"]);
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
struct Rights {
    /// What is asked for elsewhere is left out.
    scope: KindScope,
    resources: BTreeMap<(String, String), BTreeSet<&'static str>>,
    urls: BTreeMap<&'static str, BTreeSet<&'static str>>,
}

impl Default for Rights {
    fn default() -> Self {
        Self { scope: KindScope::Namespaced, resources: BTreeMap::new(), urls: BTreeMap::new() }
    }
}

impl Visitor for Rights {
    type Output = Self;

    fn visit<D: Domain>(mut self, domain: D) -> Self {
        self.add_domain(&domain);
        self
    }
}

impl Rights {
    fn add(&mut self, group: &str, resource: &str, verbs: &[&'static str]) {
        let key = (group.to_owned(), resource.to_owned());
        self.resources.entry(key).or_default().extend(verbs);
    }

    fn add_domain<D: Domain>(&mut self, domain: &D) {
        let own = Kind::of::<D::Object>();
        if own.scope == self.scope {
            self.add_own(&own, domain);
        }
        let scope = self.scope;
        for watch in domain.watches().into_iter().filter(|watch| watch.kind.scope == scope) {
            let verbs = match watch.access {
                Access::Write => WRITE,
                Access::Read => WATCH,
            };
            self.add(&watch.kind.group, &watch.kind.plural, verbs);
        }
        for Right { group, resource, verbs, scope } in domain.rights() {
            if scope == self.scope {
                self.add(group, resource, verbs);
            }
        }
        if self.scope == KindScope::Cluster {
            for (url, verbs) in domain.url_rights() {
                self.urls.entry(url).or_default().extend(verbs);
            }
        }
        if domain.identity().finalizer.is_some() && self.scope == KindScope::Cluster {
            self.add("", "namespaces", &["get"]);
        }
    }

    fn add_own<D: Domain>(&mut self, own: &Kind, domain: &D) {
        self.add(&own.group, &own.plural, WATCH);
        self.add(&own.group, &format!("{}/status", own.plural), &["patch"]);
        // Owner references that block the owner's deletion need this where the cluster checks it.
        self.add(&own.group, &format!("{}/finalizers", own.plural), &["update"]);
        if domain.identity().finalizer.is_some() {
            self.add(&own.group, &own.plural, &["patch"]);
        }
    }

    /// Resources of one group with the same verbs share a rule.
    fn into_rules(self) -> Vec<PolicyRule> {
        let mut rules: BTreeMap<(String, Vec<&str>), Vec<String>> = BTreeMap::new();
        for ((group, resource), verbs) in self.resources {
            rules.entry((group, verbs.into_iter().collect())).or_default().push(resource);
        }
        let rule = |((group, verbs), resources): ((String, Vec<&str>), Vec<String>)| PolicyRule {
            api_groups: Some(vec![group]),
            resources: Some(resources),
            verbs: verbs.into_iter().map(str::to_owned).collect(),
            ..Default::default()
        };
        let url = |(url, verbs): (&str, BTreeSet<&str>)| PolicyRule {
            non_resource_urls: Some(vec![url.to_owned()]),
            verbs: verbs.into_iter().map(str::to_owned).collect(),
            ..Default::default()
        };
        rules.into_iter().map(rule).chain(self.urls.into_iter().map(url)).collect()
    }
}

#[cfg(test)]
mod tests;
