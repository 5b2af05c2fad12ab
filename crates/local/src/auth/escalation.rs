//! Nobody hands out rights that it does not have.

use serde_json::Value;

use super::{
    Attributes, MASTERS, Rbac, Target, User,
    rules::{Rule, describe, go_list},
};
use crate::builtin::{
    Resource,
    object::{at, items, text},
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Why a role or a binding may not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Escalation {
    /// To be answered as forbidden.
    #[error("{0}")]
    Forbidden(String),
    /// The binding names a role that is not there.
    #[error("there is no {kind} {name:?}")]
    NoRole { kind: String, name: String },
}

/// Whether the user may write this role or binding. Other kinds are of no concern.
pub fn escalation(
    rbac: &Rbac,
    user: &User,
    resource: &Resource,
    namespace: &str,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), Escalation> {
    if resource.group != GROUP || user.is_in(MASTERS) {
        return Ok(());
    }
    if old.is_some_and(|old| only_collected(new, old)) {
        return Ok(());
    }
    let writer = Writer { rbac, user, namespace };
    match &*resource.plural {
        plural @ ("roles" | "clusterroles") => writer.role(plural, new, old),
        "rolebindings" | "clusterrolebindings" => writer.binding(new),
        _ => Ok(()),
    }
}

struct Writer<'a> {
    rbac: &'a Rbac,
    user: &'a User,
    namespace: &'a str,
}

impl Writer<'_> {
    fn role(&self, plural: &str, new: &Value, old: Option<&Value>) -> Result<(), Escalation> {
        let name = old.map_or("", |old| text(old, &["metadata", "name"]));
        if self.may("escalate", plural, name) {
            return Ok(());
        }
        let rules: Vec<Rule> = items(new, &["rules"]).iter().map(Rule::read).collect();
        self.covers(&rules)?;
        let gathers =
            |role: &Value| !items(role, &["aggregationRule", "clusterRoleSelectors"]).is_empty();
        if gathers(new) || old.is_some_and(gathers) {
            let all = |text: &str| vec![text.to_owned()];
            let everything = [
                Rule { groups: all("*"), resources: all("*"), verbs: all("*"), ..Rule::default() },
                Rule { urls: all("*"), verbs: all("*"), ..Rule::default() },
            ];
            self.covers(&everything).map_err(|_| {
                let text = "must have cluster-admin privileges to use the aggregationRule";
                Escalation::Forbidden(text.to_owned())
            })?;
        }
        Ok(())
    }

    fn binding(&self, binding: &Value) -> Result<(), Escalation> {
        let kind = text(binding, &["roleRef", "kind"]);
        let name = text(binding, &["roleRef", "name"]);
        let plural = if kind == "Role" { "roles" } else { "clusterroles" };
        if self.may("bind", plural, name) {
            return Ok(());
        }
        let rules = self.rbac.role(kind, self.namespace, name);
        let rules = rules
            .ok_or_else(|| Escalation::NoRole { kind: kind.to_owned(), name: name.to_owned() })?;
        self.covers(rules)
    }

    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let target = Target::Resource {
            group: GROUP,
            resource,
            subresource: "",
            namespace: self.namespace,
            name,
        };
        self.rbac.allows(self.user, &Attributes { verb, target })
    }

    fn covers(&self, rules: &[Rule]) -> Result<(), Escalation> {
        let own = self.rbac.rules(self.user, self.namespace);
        let parts = rules.iter().flat_map(Rule::parts);
        let missing: Vec<Rule> =
            parts.filter(|part| !own.iter().any(|rule| rule.covers(part))).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Escalation::Forbidden(format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.user.name,
            go_list(&self.user.groups),
            describe(&missing),
        )))
    }
}

/// Whether only what the garbage collector needs has changed.
fn only_collected(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                meta.remove(field);
            }
        }
        object
    };
    at(new, &["metadata"]).is_some() && rest(new) == rest(old)
}
