//! The Job that asks an image what it holds and how it serves it.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, LocalObjectReference, PodSecurityContext, PodSpec,
    PodTemplateSpec, SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::aim::parameters::RuntimeParameters;
use windlass_engine::labels::{COMPONENT, MANAGED_BY, NAME};

use crate::aim::names;

/// The container whose output is the answer.
pub(in super::super) const CONTAINER: &str = "discovery";

/// On the Job: what it was asked with.
pub(in super::super) const INPUTS_ANNOTATION: &str = "windlass.dev/discovery-inputs";

const TRIES: i32 = 3;
const KEEP_FINISHED_SECONDS: i32 = 60;
const NOBODY: i64 = 65532;

/// What the Job is made of.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Question<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) template: &'a str,
    pub(in super::super) namespace: &'a str,
    pub(in super::super) image: &'a str,
    pub(in super::super) parameters: &'a RuntimeParameters,
    pub(in super::super) env: &'a [EnvVar],
    pub(in super::super) service_account: Option<&'a str>,
    pub(in super::super) pull_secrets: &'a [LocalObjectReference],
    pub(in super::super) inputs: &'a str,
}

pub(in super::super) fn job(question: Question<'_>) -> Job {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Job {
        metadata: ObjectMeta {
            name: Some(question.name.to_owned()),
            namespace: Some(question.namespace.to_owned()),
            labels: Some(BTreeMap::from([
                label(NAME, names::DISCOVERY),
                label(COMPONENT, names::DISCOVERY_COMPONENT),
                label(MANAGED_BY, names::MANAGER),
                label(names::TEMPLATE_LABEL, &names::sanitize(question.template)),
            ])),
            annotations: Some([label(INPUTS_ANNOTATION, question.inputs)].into()),
            ..Default::default()
        },
        spec: Some(JobSpec {
            backoff_limit: Some(TRIES),
            ttl_seconds_after_finished: Some(KEEP_FINISHED_SECONDS),
            template: PodTemplateSpec { metadata: None, spec: Some(pod(question)) },
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn pod(question: Question<'_>) -> PodSpec {
    let secrets = question.pull_secrets;
    PodSpec {
        restart_policy: Some("Never".to_owned()),
        service_account_name: question.service_account.map(str::to_owned),
        image_pull_secrets: (!secrets.is_empty()).then(|| secrets.to_vec()),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(NOBODY),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        containers: vec![Container {
            name: CONTAINER.to_owned(),
            image: Some(question.image.to_owned()),
            args: Some(vec!["dry-run".to_owned(), "--format=json".to_owned()]),
            env: Some(environment(question)).filter(|env| !env.is_empty()),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                run_as_non_root: Some(true),
                capabilities: Some(Capabilities {
                    drop: Some(vec!["ALL".to_owned()]),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// The template's own, then its parameters. A name that comes twice is refused by the API server:
/// of the template's own the last one counts, and a parameter goes before those.
fn environment(question: Question<'_>) -> Vec<EnvVar> {
    let RuntimeParameters { metric, precision, gpu_selector } = question.parameters;
    let variable = |name: &str, value: &str| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        ..Default::default()
    };
    let parameters = [
        metric.as_ref().map(|metric| variable("AIM_METRIC", metric)),
        precision.as_ref().map(|precision| variable("AIM_PRECISION", precision)),
        gpu_selector.as_ref().map(|gpu| variable("AIM_GPU_MODEL", &gpu.model)),
        gpu_selector.as_ref().map(|gpu| variable("AIM_GPU_COUNT", &gpu.count.to_string())),
    ];
    let mut env: Vec<EnvVar> = Vec::new();
    for variable in question.env.iter().cloned().chain(parameters.into_iter().flatten()) {
        env.retain(|known| known.name != variable.name);
        env.push(variable);
    }
    env
}
