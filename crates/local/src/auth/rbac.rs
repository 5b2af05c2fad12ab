//! What roles and their bindings let users do.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{ACCOUNT_PREFIX, Attributes, MASTERS, User, rules::Rule};
use crate::builtin::{
    object::{at, items, text},
    selectors,
};

/// Who may do what, read once from the objects that say so.
#[derive(Debug, Default)]
pub struct Rbac {
    /// By namespace and name; cluster roles have no namespace.
    roles: BTreeMap<(String, String), Vec<Rule>>,
    /// By namespace; those of the whole cluster have none.
    bindings: BTreeMap<String, Vec<Binding>>,
}

#[derive(Debug)]
struct Binding {
    name: String,
    role_kind: String,
    role: String,
    subjects: Vec<Subject>,
}

#[derive(Debug)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Rbac {
    /// From the stored objects of the four kinds, in any order.
    pub fn new<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Rbac {
        let objects: Vec<&Value> = objects.into_iter().collect();
        let of_kind = |kind: &'static str| {
            objects.iter().copied().filter(move |object| text(object, &["kind"]) == kind)
        };
        let cluster_roles: Vec<&Value> = of_kind("ClusterRole").collect();
        let mut rbac = Rbac::default();
        for role in of_kind("Role").chain(of_kind("ClusterRole")) {
            let rules = aggregated(role, &cluster_roles);
            let namespace = text(role, &["metadata", "namespace"]).to_owned();
            let name = text(role, &["metadata", "name"]).to_owned();
            rbac.roles.insert((namespace, name), rules.iter().map(Rule::read).collect());
        }
        for binding in of_kind("RoleBinding").chain(of_kind("ClusterRoleBinding")) {
            let namespace = text(binding, &["metadata", "namespace"]).to_owned();
            rbac.bindings.entry(namespace).or_default().push(Binding::read(binding));
        }
        for bindings in rbac.bindings.values_mut() {
            bindings.sort_by(|one, other| one.name.cmp(&other.name));
        }
        rbac
    }

    pub fn allows(&self, user: &User, wish: &Attributes<'_>) -> bool {
        user.is_in(MASTERS) || self.grant(user, wish).is_some()
    }

    /// Why the user may, in Kubernetes' words; empty for those who may do everything.
    pub fn reason(&self, user: &User, wish: &Attributes<'_>) -> Option<String> {
        if user.is_in(MASTERS) { Some(String::new()) } else { self.grant(user, wish) }
    }

    /// What stands in the way of an answer, in Kubernetes' words: bindings to roles that are not there.
    pub fn trouble(&self, user: &User, wish: &Attributes<'_>) -> Option<String> {
        let namespace = wish.namespace();
        let missing: Vec<String> = self
            .bound(user, namespace)
            .filter(|(binding, _, scope)| {
                self.role(&binding.role_kind, scope, &binding.role).is_none()
            })
            .map(|(binding, ..)| {
                let kind = binding.role_kind.to_lowercase();
                format!("{kind}.rbac.authorization.k8s.io {:?} not found", binding.role)
            })
            .collect();
        match missing.as_slice() {
            [] => None,
            [one] => Some(format!("RBAC: {one}")),
            several => Some(format!("RBAC: [{}]", several.join(", "))),
        }
    }

    fn grant(&self, user: &User, wish: &Attributes<'_>) -> Option<String> {
        self.granted(user, wish.namespace()).find_map(|grant| {
            let fits = grant.rules.iter().any(|rule| rule.allows(wish));
            fits.then(|| grant.describe())
        })
    }

    /// The rules that hold for the user in a namespace, and in the whole cluster.
    pub(super) fn rules<'a>(&'a self, user: &'a User, namespace: &'a str) -> Vec<&'a Rule> {
        self.granted(user, namespace).flat_map(|grant| grant.rules).collect()
    }

    /// The rules of a role that a binding in this namespace names.
    pub(super) fn role(&self, kind: &str, namespace: &str, name: &str) -> Option<&[Rule]> {
        let namespace = if kind == "Role" { namespace } else { "" };
        self.roles.get(&(namespace.to_owned(), name.to_owned())).map(Vec::as_slice)
    }

    fn granted<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = Grant<'a>> {
        self.bound(user, namespace).filter_map(|(binding, subject, namespace)| {
            let rules = self.role(&binding.role_kind, namespace, &binding.role)?;
            Some(Grant { binding, subject, namespace, rules })
        })
    }

    /// The bindings that hold for the user, each with the subject that it is and where.
    fn bound<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Binding, &'a Subject, &'a str)> {
        let scopes: &[&str] = if namespace.is_empty() { &[""] } else { &["", "+"] };
        scopes.iter().flat_map(move |scope| {
            let namespace = if scope.is_empty() { "" } else { namespace };
            let bindings = self.bindings.get(namespace).into_iter().flatten();
            bindings.filter_map(move |binding| {
                let subject = binding.subjects.iter().find(|one| one.is(user, namespace))?;
                Some((binding, subject, namespace))
            })
        })
    }
}

/// A binding that holds for somebody.
struct Grant<'a> {
    binding: &'a Binding,
    subject: &'a Subject,
    namespace: &'a str,
    rules: &'a [Rule],
}

impl Grant<'_> {
    fn describe(&self) -> String {
        let Binding { name, role_kind, role, .. } = self.binding;
        let binding = match self.namespace {
            "" => format!("ClusterRoleBinding {name:?}"),
            namespace => format!("RoleBinding {:?}", format!("{name}/{namespace}")),
        };
        let Subject { kind, name, namespace } = self.subject;
        let subject = match (kind.as_str(), namespace.as_str()) {
            ("ServiceAccount", "") => format!("{name}/{}", self.namespace),
            ("ServiceAccount", namespace) => format!("{name}/{namespace}"),
            _ => name.clone(),
        };
        format!("RBAC: allowed by {binding} of {role_kind} {role:?} to {kind} {subject:?}")
    }
}

impl Binding {
    fn read(binding: &Value) -> Binding {
        let owned = |value: &Value, path: &[&str]| text(value, path).to_owned();
        let subjects = items(binding, &["subjects"]).iter().map(|subject| Subject {
            kind: owned(subject, &["kind"]),
            name: owned(subject, &["name"]),
            namespace: owned(subject, &["namespace"]),
        });
        Binding {
            name: owned(binding, &["metadata", "name"]),
            role_kind: owned(binding, &["roleRef", "kind"]),
            role: owned(binding, &["roleRef", "name"]),
            subjects: subjects.collect(),
        }
    }
}

impl Subject {
    fn is(&self, user: &User, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => user.name == self.name,
            "Group" => user.is_in(&self.name),
            "ServiceAccount" => {
                let own = self.namespace.as_str();
                let namespace = if own.is_empty() { namespace } else { own };
                let account = user.name.strip_prefix(ACCOUNT_PREFIX);
                !namespace.is_empty()
                    && account.and_then(|account| account.split_once(':'))
                        == Some((namespace, &self.name))
            }
            _ => false,
        }
    }
}

/// The rules of a role: its own, or those of all cluster roles that it gathers by their labels.
pub fn aggregated(role: &Value, cluster_roles: &[&Value]) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut rules = Vec::new();
    gather(role, cluster_roles, &mut seen, &mut rules);
    rules
}

fn gather<'a>(
    role: &'a Value,
    all: &[&'a Value],
    seen: &mut BTreeSet<&'a str>,
    rules: &mut Vec<Value>,
) {
    // Roles may gather each other.
    if !seen.insert(text(role, &["metadata", "name"])) {
        return;
    }
    let Some(aggregation) = at(role, &["aggregationRule"]) else {
        for rule in items(role, &["rules"]) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
        return;
    };
    let none = json!({});
    for selector in items(aggregation, &["clusterRoleSelectors"]) {
        for other in all {
            let labels = at(other, &["metadata", "labels"]).unwrap_or(&none);
            if selectors::matches(selector, Some(labels)) {
                gather(other, all, seen, rules);
            }
        }
    }
}
