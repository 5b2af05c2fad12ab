//! What the endpoint picker may ask of the whole cluster: who a caller is and what it may read.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef};

use super::epp_role::{RBAC, account, allow};
use crate::model_service::names::Names;

pub(crate) fn epp_cluster_role(names: &Names) -> ClusterRole {
    ClusterRole {
        metadata: names.cluster_metadata(),
        rules: Some(vec![
            allow("authentication.k8s.io", &["tokenreviews"], &["create"]),
            allow("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
            PolicyRule {
                non_resource_urls: Some(vec!["/metrics".to_owned()]),
                verbs: vec!["get".to_owned()],
                ..Default::default()
            },
        ]),
        ..Default::default()
    }
}

pub(crate) fn epp_cluster_role_binding(names: &Names) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: names.cluster_metadata(),
        role_ref: RoleRef {
            api_group: RBAC.to_owned(),
            kind: "ClusterRole".to_owned(),
            name: names.cluster_rbac(),
        },
        subjects: Some(vec![account(names)]),
    }
}
