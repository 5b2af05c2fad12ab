//! The servers, as KServe runs them.

use std::collections::BTreeMap;

use windlass_api::aim::service::AimService;
use windlass_api::foreign::inference_service::{
    InferenceService, InferenceServiceSpec, Model, Predictor,
};
use windlass_api::foreign::serving_runtime::ModelFormat;
use windlass_engine::runtime_config::merge_pull_secrets;

use super::resources::resources;
use crate::aim::names;
use crate::aim::service::compose::{Observed, Served};
use crate::aim::service::derivation::unique_env;

pub(crate) fn inference_service(
    service: &AimService,
    served: Served<'_>,
    observed: &Observed,
) -> InferenceService {
    InferenceService {
        metadata: super::metadata(service, labels(served)),
        spec: InferenceServiceSpec { predictor: predictor(service, served, observed) },
        status: None,
    }
}

fn predictor(service: &AimService, served: Served<'_>, observed: &Observed) -> Predictor {
    let config = observed.config.config().map(|config| &config.spec);
    let account = config.and_then(|config| config.service_account_name.clone());
    let of_config = config.map_or(&[][..], |config| &config.image_pull_secrets);
    Predictor {
        min_replicas: service.spec.replicas,
        // To KServe a maximum of zero is none.
        max_replicas: service.spec.replicas.filter(|replicas| *replicas != 0),
        service_account_name: account.filter(|account| !account.is_empty()),
        image_pull_secrets: merge_pull_secrets(&service.spec.image_pull_secrets, of_config),
        model: Some(Model {
            model_format: ModelFormat { name: "aim".to_owned(), version: Some("1".to_owned()) },
            runtime: Some(served.template.name.clone()),
            storage_uri: Some(served.source.source_uri.clone()),
            env: unique_env(&service.spec.env),
            resources: resources(service, served.template, observed),
        }),
    }
}

fn labels(served: Served<'_>) -> BTreeMap<String, String> {
    let mut labels = super::labels(served);
    let image = names::sanitize(&served.template.spec.aim_image_name);
    labels.insert(names::IMAGE_LABEL.to_owned(), image);
    let profile = served.template.profile();
    for (key, value) in [
        (names::METRIC_LABEL, profile.and_then(|profile| profile.metric.as_deref())),
        (names::PRECISION_LABEL, profile.and_then(|profile| profile.precision.as_deref())),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            labels.insert(key.to_owned(), names::sanitize(value));
        }
    }
    labels
}
