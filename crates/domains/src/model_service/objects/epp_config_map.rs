//! The configuration of the endpoint picker.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;

use crate::model_service::epp_config::ConfigFile;
use crate::model_service::names::Names;

pub(crate) fn epp_config_map(names: &Names, file: ConfigFile) -> ConfigMap {
    ConfigMap {
        metadata: names.epp_metadata(&names.config_map()),
        data: Some(BTreeMap::from([(file.name.to_owned(), file.text.to_owned())])),
        ..Default::default()
    }
}
