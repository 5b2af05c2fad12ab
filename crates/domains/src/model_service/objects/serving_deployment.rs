//! The Deployment of a role and its pods.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{PodSecurityContext, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::security::unprivileged;
use super::{Pods, non_empty, probes, proxy, server, unpack, volumes};
use crate::model_service::compose::Workload;
use crate::model_service::names::REPLICAS_ANNOTATION;

pub(crate) fn serving_deployment(pods: Pods<'_>, workload: &Workload) -> Deployment {
    let names = pods.blueprint.names;
    let startup = workload
        .template
        .spec
        .iter()
        .flat_map(|pod| &pod.containers)
        .find_map(|container| container.startup_probe.as_ref());
    let mut annotations = BTreeMap::from(workload.marks.annotations());
    annotations.insert(REPLICAS_ANNOTATION.to_owned(), pods.spec.replicas.to_string());
    Deployment {
        metadata: ObjectMeta { annotations: Some(annotations), ..names.role_metadata(pods.role) },
        spec: Some(DeploymentSpec {
            replicas: workload.replicas,
            selector: LabelSelector {
                match_labels: Some(names.role_selector(pods.role)),
                ..Default::default()
            },
            strategy: pods.spec.strategy.clone(),
            progress_deadline_seconds: Some(probes::progress_deadline_seconds(startup)),
            template: workload.template.clone(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The pods as the spec alone would have them.
pub(crate) fn template(pods: Pods<'_>) -> PodTemplateSpec {
    let spec = pods.spec;
    let init = [unpack::container(pods), proxy::container(pods)].into_iter().flatten().collect();
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(pods.blueprint.names.role_selector(pods.role)),
            annotations: Some(spec.annotations.clone()).filter(|map| !map.is_empty()),
            ..Default::default()
        }),
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            service_account_name: spec.service_account_name.clone(),
            image_pull_secrets: non_empty(pods.pull_secrets()),
            security_context: Some(PodSecurityContext {
                run_as_user: spec.run_as_user,
                fs_group: spec.fs_group,
                ..unprivileged()
            }),
            node_selector: Some(spec.node_selector.clone()).filter(|map| !map.is_empty()),
            tolerations: non_empty(spec.tolerations.clone()),
            affinity: spec.affinity.clone(),
            runtime_class_name: spec.runtime_class_name.clone(),
            priority_class_name: spec.priority_class_name.clone(),
            init_containers: non_empty(init),
            containers: vec![server::container(pods)],
            volumes: Some(volumes::volumes(pods)),
            ..Default::default()
        }),
    }
}
