//! The variables of a container.

mod field;
mod service;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, net::SocketAddr};

use k8s_openapi::{
    api::core::v1::{
        ConfigMapKeySelector, Container, EnvFromSource, EnvVarSource, Pod, SecretKeySelector,
        Service,
    },
    apimachinery::pkg::api::resource::Quantity,
};

pub(super) use field::{pod_field, resource};

use super::{
    command::expand,
    images::{Placeholders, Rule, Unfilled},
    sources::{Lack, Sources},
    translate::Mounts,
};

/// Names with values.
pub type Variables = BTreeMap<String, String>;

/// `CreateContainerConfigError`: the text is the message of the waiting container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// What the node knows, and the pod's object may not say yet.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub node_name: &'a str,
    pub host_ip: &'a str,
    pub pod_ip: &'a str,
    /// Of the node: the limits of containers that have none.
    pub allocatable: &'a BTreeMap<String, Quantity>,
    pub api: SocketAddr,
}

/// What the pod says: services, then `envFrom`, then `env`, later ones over earlier ones. Paths of
/// mounts are as the pod writes them.
///
/// `services` are those of the pod's namespace; they count if the pod wants links to them.
pub fn of_pod(
    pod: &Pod,
    container: &Container,
    sources: &Sources,
    services: &[Service],
    facts: Facts<'_>,
) -> Result<Variables, Error> {
    let linked = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    let mut services = service::variables(if linked { services } else { &[] });
    services.extend(service::of_api(facts.api));
    let mut known = Variables::new();
    for from in container.env_from.iter().flatten() {
        known.extend(whole(from, sources)?);
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    for variable in container.env.iter().flatten() {
        let text = variable.value.as_deref().unwrap_or_default();
        let value = match &variable.value_from {
            Some(from) if text.is_empty() => {
                value_from(from, pod, container, sources, facts, namespace)?
            }
            _ => {
                let look = |name: &str| known.get(name).or_else(|| services.get(name)).cloned();
                Some(expand(text, look))
            }
        };
        if let Some(value) = value {
            known.insert(variable.name.clone(), value);
        }
    }
    services.extend(known);
    Ok(services)
}

/// What a pod calls its machine: as its spec says, else by its own name.
pub fn hostname(pod: &Pod) -> &str {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.hostname.as_deref());
    let wanted = wanted.filter(|name| !name.is_empty());
    wanted.or(pod.metadata.name.as_deref()).unwrap_or_default()
}

/// What every process gets, whatever its pod says.
#[derive(Clone, Copy)]
pub struct Base<'a> {
    /// Reads the user's own environment.
    pub ambient: &'a dyn Fn(&str) -> Option<String>,
    pub hostname: &'a str,
    pub pod_ip: &'a str,
    /// `HOME`, `TMPDIR`.
    pub scratch: &'a str,
    /// `KUBECONFIG`, if the pod has a token for the API.
    pub kubeconfig: Option<&'a str>,
}

/// The whole environment of a process: the machine's `PATH`, `LANG` and `TZ`, what the rule says and
/// takes over, and the pod's own variables with the paths of its mounts translated.
pub fn of_process(
    base: Base<'_>,
    rule: &Rule,
    given: Placeholders<'_>,
    of_pod: &Variables,
    mounts: &Mounts,
) -> Result<Variables, Unfilled> {
    let mut all = Variables::new();
    let taken = ["PATH", "LANG", "TZ"].into_iter().chain(rule.inherit.iter().map(String::as_str));
    for name in taken {
        if let Some(value) = (base.ambient)(name) {
            all.insert(name.to_owned(), value);
        }
    }
    for (name, value) in [
        ("HOME", Some(base.scratch)),
        ("TMPDIR", Some(base.scratch)),
        ("HOSTNAME", Some(base.hostname)),
        ("POD_IP", Some(base.pod_ip)),
        ("HOST", Some(base.pod_ip)),
        ("KUBECONFIG", base.kubeconfig),
    ] {
        if let Some(value) = value {
            all.insert(name.to_owned(), value.to_owned());
        }
    }
    for (name, value) in &rule.env {
        all.insert(name.clone(), rule.fill(value, given)?);
    }
    for (name, value) in of_pod {
        all.insert(name.clone(), mounts.translate(value));
    }
    Ok(all)
}

fn whole(from: &EnvFromSource, sources: &Sources) -> Result<Variables, Error> {
    let prefix = from.prefix.as_deref().unwrap_or_default();
    let mut found = Variables::new();
    if let Some(source) = &from.config_map_ref {
        let object = or_nothing(sources.config_map(&source.name), source.optional)?;
        for (key, value) in object.iter().flat_map(|object| object.data.iter().flatten()) {
            found.insert(format!("{prefix}{key}"), value.clone());
        }
    } else if let Some(source) = &from.secret_ref {
        let object = or_nothing(sources.secret(&source.name), source.optional)?;
        for (key, value) in object.iter().flat_map(|object| object.data.iter().flatten()) {
            found.insert(format!("{prefix}{key}"), text(&value.0, key, &source.name)?);
        }
    }
    Ok(found)
}

/// `None` leaves the variable out.
fn value_from(
    from: &EnvVarSource,
    pod: &Pod,
    container: &Container,
    sources: &Sources,
    facts: Facts<'_>,
    namespace: &str,
) -> Result<Option<String>, Error> {
    if let Some(field) = &from.field_ref {
        return pod_field(pod, &field.field_path, facts).map(Some).map_err(Error);
    }
    if let Some(field) = &from.resource_field_ref {
        return resource(pod, Some(container), field, facts.allocatable).map(Some).map_err(Error);
    }
    if let Some(source) = &from.config_map_key_ref {
        return config_map_key(source, sources, namespace);
    }
    if let Some(source) = &from.secret_key_ref {
        return secret_key(source, sources, namespace);
    }
    Ok(Some(String::new()))
}

fn config_map_key(
    source: &ConfigMapKeySelector,
    sources: &Sources,
    namespace: &str,
) -> Result<Option<String>, Error> {
    let (name, key) = (&source.name, &source.key);
    let Some(object) = or_nothing(sources.config_map(name), source.optional)? else {
        return Ok(None);
    };
    match object.data.as_ref().and_then(|data| data.get(key)) {
        Some(value) => Ok(Some(value.clone())),
        None if source.optional == Some(true) => Ok(None),
        None => Err(Error(format!("couldn't find key {key} in ConfigMap {namespace}/{name}"))),
    }
}

fn secret_key(
    source: &SecretKeySelector,
    sources: &Sources,
    namespace: &str,
) -> Result<Option<String>, Error> {
    let (name, key) = (&source.name, &source.key);
    let Some(object) = or_nothing(sources.secret(name), source.optional)? else {
        return Ok(None);
    };
    match object.data.as_ref().and_then(|data| data.get(key)) {
        Some(value) => text(&value.0, key, name).map(Some),
        None if source.optional == Some(true) => Ok(None),
        None => Err(Error(format!("couldn't find key {key} in Secret {namespace}/{name}"))),
    }
}

fn or_nothing<T>(found: Result<T, Lack>, optional: Option<bool>) -> Result<Option<T>, Error> {
    match found {
        Ok(object) => Ok(Some(object)),
        Err(Lack::Missing(_)) if optional == Some(true) => Ok(None),
        Err(lack) => Err(Error(lack.into_text())),
    }
}

fn text(bytes: &[u8], key: &str, name: &str) -> Result<String, Error> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Error(format!("key {key} of secret {name:?} is not text")))
}
