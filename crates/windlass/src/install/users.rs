//! What people may do with our kinds, added to the roles that every cluster has.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::rbac::v1::{ClusterRole, PolicyRule},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::objects::{NAME, labels};

const VIEW: &[&str] = &["get", "list", "watch"];
const EDIT: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
/// As the usual admin role has it: all that may be done, also in future.
const ADMIN: &[&str] = &["*"];

/// Three roles for a kind.
pub(crate) fn roles(definition: &CustomResourceDefinition) -> [ClusterRole; 3] {
    [("admin", "admin", ADMIN), ("editor", "edit", EDIT), ("viewer", "view", VIEW)]
        .map(|(role, aggregate_to, verbs)| cluster_role(definition, role, aggregate_to, verbs))
}

fn cluster_role(
    definition: &CustomResourceDefinition,
    role: &str,
    aggregate_to: &str,
    verbs: &[&str],
) -> ClusterRole {
    let names = &definition.spec.names;
    let kind = names.kind.to_lowercase();
    let rule = |resource: String, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![definition.spec.group.clone()]),
        resources: Some(vec![resource]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..Default::default()
    };
    let aggregate = format!("rbac.authorization.k8s.io/aggregate-to-{aggregate_to}");
    ClusterRole {
        metadata: ObjectMeta {
            name: Some(format!("{NAME}-{kind}-{role}-role")),
            labels: Some(
                labels()
                    .into_iter()
                    .chain(BTreeMap::from([(aggregate, "true".to_owned())]))
                    .collect(),
            ),
            ..Default::default()
        },
        rules: Some(vec![
            rule(names.plural.clone(), verbs),
            rule(format!("{}/status", names.plural), &["get"]),
        ]),
        ..Default::default()
    }
}
