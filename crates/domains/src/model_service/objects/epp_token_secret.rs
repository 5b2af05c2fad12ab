//! The token with which Prometheus reads the endpoint picker's metrics.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::model_service::names::Names;

/// The control plane fills in the token.
pub(crate) fn epp_token_secret(names: &Names) -> Secret {
    let account = ("kubernetes.io/service-account.name".to_owned(), names.epp().to_owned());
    Secret {
        metadata: ObjectMeta {
            annotations: Some(BTreeMap::from([account])),
            ..names.epp_metadata(&names.token_secret())
        },
        type_: Some("kubernetes.io/service-account-token".to_owned()),
        ..Default::default()
    }
}
