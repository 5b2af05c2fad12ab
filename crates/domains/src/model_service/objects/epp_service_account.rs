//! The account of the endpoint picker.

use k8s_openapi::api::core::v1::{ObjectReference, ServiceAccount};

use crate::model_service::names::Names;

/// With `token` it tells that it has a token Secret, which may not be read: the control plane takes
/// the name off when the Secret goes.
pub(crate) fn epp_service_account(names: &Names, token: bool) -> ServiceAccount {
    let secret = ObjectReference { name: Some(names.token_secret()), ..Default::default() };
    ServiceAccount {
        metadata: names.epp_metadata(names.epp()),
        secrets: token.then(|| vec![secret]),
        ..Default::default()
    }
}

pub(crate) fn tells_of_token(names: &Names, account: &ServiceAccount) -> bool {
    let secrets = account.secrets.iter().flatten();
    secrets.filter_map(|secret| secret.name.as_ref()).any(|name| *name == names.token_secret())
}
