//! What the endpoint picker may read in its namespace.

use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};

use crate::model_service::names::Names;

pub(super) const RBAC: &str = "rbac.authorization.k8s.io";

const READ: [&str; 3] = ["get", "watch", "list"];
const POOL: &str = "inference.networking.k8s.io";
const EXTENSION: &str = "inference.networking.x-k8s.io";

pub(crate) fn epp_role(names: &Names, replicas: i32) -> Role {
    let mut rules = vec![
        allow("", &["pods"], &READ),
        allow(EXTENSION, &["inferenceobjectives", "inferencemodelrewrites"], &READ),
        allow(POOL, &["inferencepools"], &READ),
    ];
    if replicas > 1 {
        let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
        rules.push(allow("coordination.k8s.io", &["leases"], &all));
        rules.push(allow("", &["events"], &["create", "patch"]));
    }
    Role { metadata: names.epp_metadata(names.epp()), rules: Some(rules) }
}

pub(crate) fn epp_role_binding(names: &Names) -> RoleBinding {
    RoleBinding {
        metadata: names.epp_metadata(names.epp()),
        role_ref: RoleRef {
            api_group: RBAC.to_owned(),
            kind: "Role".to_owned(),
            name: names.epp().to_owned(),
        },
        subjects: Some(vec![account(names)]),
    }
}

pub(super) fn account(names: &Names) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: names.epp().to_owned(),
        namespace: Some(names.namespace_or_default().to_owned()),
        ..Default::default()
    }
}

pub(super) fn allow(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..Default::default()
    }
}
