//! The children as struct literals, one function per object.

pub(super) mod destination_rule;
pub(super) mod epp_cluster_role;
pub(super) mod epp_config_map;
pub(super) mod epp_deployment;
pub(super) mod epp_role;
pub(super) mod epp_service;
pub(super) mod epp_service_account;
pub(super) mod epp_token_secret;
pub(super) mod http_route;
pub(super) mod inference_pool;
pub(super) mod pod_monitor;
pub(super) mod service_monitor;
pub(super) mod serving_deployment;

mod environment;
mod probes;
mod proxy;
mod security;
pub(super) mod server;
pub(super) mod unpack;
pub(super) mod volumes;

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{ContainerPort, LocalObjectReference};
use windlass_api::model::model_service::{ModelServiceSpec, Role as RoleSpec};
use windlass_engine::runtime_config::merge_pull_secrets;

use super::names::{Names, Role};
use super::settings::Settings;
use super::validate::Wanted;

/// What all children of a service are made of.
#[derive(Clone, Copy)]
pub(super) struct Blueprint<'a> {
    pub(super) names: &'a Names,
    pub(super) spec: &'a ModelServiceSpec,
    pub(super) wanted: &'a Wanted,
    pub(super) settings: &'a Settings,
}

/// What the pods of a role are made of.
#[derive(Clone, Copy)]
pub(super) struct Pods<'a> {
    pub(super) blueprint: Blueprint<'a>,
    pub(super) role: Role,
    pub(super) spec: &'a RoleSpec,
}

impl<'a> Pods<'a> {
    /// The routing proxy is for those who receive requests.
    fn proxy_image(&self) -> Option<&'a str> {
        let image = self.blueprint.wanted.proxy_image.as_deref();
        image.filter(|_| self.role == Role::Decode)
    }

    /// Each once: server-side apply refuses two entries of one name.
    fn pull_secrets(&self) -> Vec<LocalObjectReference> {
        merge_pull_secrets(&[], &self.blueprint.spec.model.image_pull_secrets)
    }
}

fn container_port(name: &str, number: i32) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: number,
        protocol: Some("TCP".to_owned()),
        ..Default::default()
    }
}

fn non_empty<T>(items: Vec<T>) -> Option<Vec<T>> {
    if items.is_empty() { None } else { Some(items) }
}
