//! The account of the endpoint picker.

use k8s_openapi::api::core::v1::ServiceAccount;

use crate::model_service::names::Names;

pub(crate) fn epp_service_account(names: &Names) -> ServiceAccount {
    ServiceAccount { metadata: names.epp_metadata(names.epp()), ..Default::default() }
}
