//! The token with which Prometheus reads the endpoint picker's metrics.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::model_service::names::Names;

/// The control plane fills in the token. Where the account's uid is known it is named, so that the
/// Secret is not swept away with an earlier account of that name.
pub(crate) fn epp_token_secret(names: &Names, account_uid: Option<&str>) -> Secret {
    let name = ("kubernetes.io/service-account.name".to_owned(), names.epp().to_owned());
    let uid =
        account_uid.map(|uid| ("kubernetes.io/service-account.uid".to_owned(), uid.to_owned()));
    Secret {
        metadata: ObjectMeta {
            annotations: Some(BTreeMap::from_iter([name].into_iter().chain(uid))),
            ..names.epp_metadata(&names.token_secret())
        },
        type_: Some("kubernetes.io/service-account-token".to_owned()),
        ..Default::default()
    }
}
