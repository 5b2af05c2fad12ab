//! The Job that imports a model, packs it and pushes it.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, EnvVarSource, KeyToPath, PersistentVolumeClaimVolumeSource,
    PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements, SeccompProfile,
    SecretKeySelector, SecretVolumeSource, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::model::artifact::{ArtifactSpec, DEFAULT_TAG, DEFAULT_TOKEN_KEY, Target};

use super::super::Settings;
use super::super::names::{HOLD, Names};
use super::super::run::Run;
use super::script::SCRIPT;
use crate::own_image;

pub(in super::super) const TARGET_ENV: &str = "OCI_TARGET";
pub(in super::super) const DOCKER_CONFIG_KEY: &str = ".dockerconfigjson";
const USER_KEY: &str = "username";
const PASSWORD_KEY: &str = "password";

const WORKSPACE: &str = "/workspace";
const DOCKER_CONFIG: &str = "/.docker";
const TERMINATION_LOG: &str = "/dev/termination-log";

/// Long enough to look at the logs of a run that has ended.
const KEEP_FINISHED: i32 = 3600;

/// The form in which a Secret holds the credentials of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Credentials {
    DockerConfig,
    /// User name and password in keys of their own, as early releases had it.
    Login,
}

impl Credentials {
    /// By the keys of the Secret; none if it is of neither form.
    pub(in super::super) fn of(keys: &BTreeSet<String>) -> Option<Self> {
        if keys.contains(DOCKER_CONFIG_KEY) {
            Some(Self::DockerConfig)
        } else {
            (keys.contains(USER_KEY) && keys.contains(PASSWORD_KEY)).then_some(Self::Login)
        }
    }
}

/// What a Job is made from.
#[derive(Clone, Copy)]
pub(in super::super) struct Blueprint<'a> {
    pub(in super::super) names: &'a Names,
    pub(in super::super) settings: &'a Settings,
    pub(in super::super) spec: &'a ArtifactSpec,
    pub(in super::super) run: &'a Run,
    pub(in super::super) credentials: Credentials,
}

/// Where the model is pushed to.
pub(in super::super) fn reference(target: &Target) -> String {
    let tag = target.tag.as_deref().filter(|tag| !tag.is_empty()).unwrap_or(DEFAULT_TAG);
    format!("{}/{}:{tag}", target.registry, target.repository)
}

pub(in super::super) fn job(blueprint: Blueprint<'_>) -> Job {
    let Blueprint { names, settings, run, .. } = blueprint;
    Job {
        metadata: ObjectMeta {
            finalizers: Some(vec![HOLD.to_owned()]),
            ..names.metadata(names.job(run), &settings.version, run)
        },
        spec: Some(JobSpec {
            // A failed run is a result, to be looked at before anything is tried again.
            backoff_limit: Some(0),
            ttl_seconds_after_finished: Some(KEEP_FINISHED),
            active_deadline_seconds: settings.active_deadline_seconds,
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(names.labels(&settings.version)),
                    ..Default::default()
                }),
                spec: Some(pod(blueprint)),
            },
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn pod(blueprint: Blueprint<'_>) -> PodSpec {
    PodSpec {
        automount_service_account_token: Some(false),
        restart_policy: Some("Never".to_owned()),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            fs_group: Some(1000),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        containers: vec![container(blueprint)],
        volumes: Some(volumes(blueprint)),
        ..Default::default()
    }
}

fn container(blueprint: Blueprint<'_>) -> Container {
    let image = &blueprint.settings.kit_image;
    let (command, args) = program(image);
    let quantity = |name: &str, amount: &str| (name.to_owned(), Quantity(amount.to_owned()));
    Container {
        name: "kit".to_owned(),
        image: Some(image.clone()),
        command: Some(command),
        args: Some(args),
        env: Some(environment(blueprint)),
        volume_mounts: Some(mounts(blueprint)),
        termination_message_path: Some(TERMINATION_LOG.to_owned()),
        // On success the file holds the digest; on failure the end of the log tells the cause.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        resources: Some(ResourceRequirements {
            requests: Some([quantity("cpu", "100m"), quantity("memory", "256Mi")].into()),
            ..Default::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Our own image has no shell and needs none: one command does all steps.
fn program(image: &str) -> (Vec<String>, Vec<String>) {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    if own_image::is_own(image) {
        let workspace = format!("--workspace={WORKSPACE}");
        let digest = format!("--digest-file={TERMINATION_LOG}");
        (owned(&[own_image::PROGRAM]), owned(&["kit", "publish", &workspace, &digest]))
    } else {
        (owned(&["/bin/sh", "-c"]), owned(&[SCRIPT]))
    }
}

fn environment(blueprint: Blueprint<'_>) -> Vec<EnvVar> {
    let ArtifactSpec { source, target, format, .. } = blueprint.spec;
    let mut env = vec![
        plain(TARGET_ENV, &reference(target)),
        plain("FORMAT", format),
        plain("DOCKER_CONFIG", DOCKER_CONFIG),
    ];
    if target.insecure {
        env.push(plain("PLAIN_HTTP", "true"));
    }
    if let Some(source) = &source.hugging_face {
        env.push(plain("HF_REPO", &source.model));
        let revision = source.revision.as_deref().filter(|revision| !revision.is_empty());
        env.extend(revision.map(|revision| plain("HF_REVISION", revision)));
        env.extend(source.token_secret_ref.as_ref().map(|token| {
            let key = token.key.as_deref().filter(|key| !key.is_empty());
            secret("HF_TOKEN", &token.name, key.unwrap_or(DEFAULT_TOKEN_KEY))
        }));
    }
    if let (Credentials::Login, Some(credentials)) =
        (blueprint.credentials, &target.credentials_secret_ref)
    {
        env.push(secret("OCI_USER", &credentials.name, USER_KEY));
        env.push(secret("OCI_PASS", &credentials.name, PASSWORD_KEY));
    }
    env
}

fn plain(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.to_owned()), ..Default::default() }
}

/// Read by the kubelet: the value never passes through the operator.
fn secret(name: &str, secret: &str, key: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret.to_owned(),
                key: key.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The Secret to be mounted, if there is one.
fn docker_config(blueprint: Blueprint<'_>) -> Option<&str> {
    let credentials = blueprint.spec.target.credentials_secret_ref.as_ref()?;
    (blueprint.credentials == Credentials::DockerConfig).then_some(credentials.name.as_str())
}

fn volumes(blueprint: Blueprint<'_>) -> Vec<Volume> {
    let workspace = Volume {
        name: "workspace".to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: blueprint.names.claim(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let config = docker_config(blueprint).map(|secret| Volume {
        name: "docker-config".to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            items: Some(vec![KeyToPath {
                key: DOCKER_CONFIG_KEY.to_owned(),
                path: "config.json".to_owned(),
                ..Default::default()
            }]),
            ..Default::default()
        }),
        ..Default::default()
    });
    [workspace].into_iter().chain(config).collect()
}

fn mounts(blueprint: Blueprint<'_>) -> Vec<VolumeMount> {
    let workspace = VolumeMount {
        name: "workspace".to_owned(),
        mount_path: WORKSPACE.to_owned(),
        ..Default::default()
    };
    let config = docker_config(blueprint).map(|_| VolumeMount {
        name: "docker-config".to_owned(),
        mount_path: DOCKER_CONFIG.to_owned(),
        read_only: Some(true),
        ..Default::default()
    });
    [workspace].into_iter().chain(config).collect()
}
