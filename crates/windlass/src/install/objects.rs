//! The objects that run the operator in a cluster.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, Namespace,
            ObjectFieldSelector, PodSecurityContext, PodSpec, PodTemplateSpec, Probe,
            ResourceRequirements, SeccompProfile, SecurityContext, ServiceAccount,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};

use super::Flags;

pub(crate) const NAME: &str = "windlass";

pub(super) fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("app.kubernetes.io/name".to_owned(), NAME.to_owned())])
}

pub(super) fn namespace(flags: &Flags) -> Namespace {
    Namespace {
        metadata: ObjectMeta {
            name: Some(flags.namespace.clone()),
            labels: Some(labels()),
            ..Default::default()
        },
        ..Default::default()
    }
}

pub(super) fn service_account(flags: &Flags) -> ServiceAccount {
    ServiceAccount { metadata: metadata(flags), ..Default::default() }
}

pub(super) fn deployment(flags: &Flags) -> Deployment {
    Deployment {
        metadata: metadata(flags),
        spec: Some(DeploymentSpec {
            replicas: Some(flags.replicas),
            selector: LabelSelector { match_labels: Some(labels()), ..Default::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels()), ..Default::default() }),
                spec: Some(pod(flags)),
            },
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn pod(flags: &Flags) -> PodSpec {
    PodSpec {
        service_account_name: Some(NAME.to_owned()),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(65532),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        containers: vec![container(flags)],
        ..Default::default()
    }
}

fn container(flags: &Flags) -> Container {
    let args = [
        "operator",
        "--leader-elect",
        "--metrics-bind-address=:8080",
        // Who scrapes needs no rights then. There is nothing in them to be kept from anybody.
        "--metrics-secure=false",
    ];
    let mut args: Vec<String> = args.map(str::to_owned).into();
    if !flags.watch_namespaces.is_empty() {
        args.push(format!("--watch-namespaces={}", flags.watch_namespaces.join(",")));
    }
    Container {
        name: "operator".to_owned(),
        image: Some(flags.image.clone()),
        args: Some(args),
        env: Some(vec![
            from_field("POD_NAMESPACE", "metadata.namespace"),
            from_field("POD_NAME", "metadata.name"),
        ]),
        ports: Some(vec![port("metrics", 8080), port("probes", 8081)]),
        liveness_probe: Some(probe("/healthz")),
        readiness_probe: Some(probe("/readyz")),
        resources: Some(ResourceRequirements {
            requests: Some(quantities(&[("cpu", "10m"), ("memory", "64Mi")])),
            limits: Some(quantities(&[("memory", "256Mi")])),
            ..Default::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn metadata(flags: &Flags) -> ObjectMeta {
    ObjectMeta {
        name: Some(NAME.to_owned()),
        namespace: Some(flags.namespace.clone()),
        labels: Some(labels()),
        ..Default::default()
    }
}

fn from_field(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: path.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn port(name: &str, port: i32) -> ContainerPort {
    ContainerPort { name: Some(name.to_owned()), container_port: port, ..Default::default() }
}

fn probe(path: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("probes".to_owned()),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn quantities(pairs: &[(&str, &str)]) -> BTreeMap<String, Quantity> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Quantity((*value).to_owned()))).collect()
}
