//! What is in the volumes that are filled from objects.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret, Volume},
};

use crate::node::{
    environment::{Facts, pod_field, resource},
    sources::{Lack, Sources, TokenKey},
};

/// Files by their path in the volume.
pub(super) type Payload = BTreeMap<String, File>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
}

const USUAL_MODE: i32 = 0o644;
const LONGEST_PATH: usize = 4096;

/// The errors are Kubernetes' own.
pub(super) fn of(
    volume: &Volume,
    pod: &Pod,
    sources: &Sources,
    facts: Facts<'_>,
) -> Result<Payload, String> {
    let payload = if let Some(source) = &volume.config_map {
        let optional = source.optional == Some(true);
        let found = or_empty(sources.config_map(&source.name), optional)?;
        let mode = source.default_mode;
        config_map(found, source.items.as_deref(), mode, optional)?
    } else if let Some(source) = &volume.secret {
        let optional = source.optional == Some(true);
        let name = source.secret_name.as_deref().unwrap_or_default();
        let found = or_empty(sources.secret(name), optional)?;
        secret(found, source.items.as_deref(), source.default_mode, optional)?
    } else if let Some(source) = &volume.downward_api {
        downward(source.items.as_deref(), source.default_mode, pod, facts)?
    } else {
        projected(volume, pod, sources, facts)?
    };
    for path in payload.keys() {
        check(path)?;
    }
    Ok(payload)
}

/// Everything from several sources, later ones over earlier ones; or all that is wrong.
fn projected(
    volume: &Volume,
    pod: &Pod,
    sources: &Sources,
    facts: Facts<'_>,
) -> Result<Payload, String> {
    let Some(projected) = &volume.projected else { return Ok(Payload::new()) };
    let mode = projected.default_mode;
    let (mut payload, mut wrong) = (Payload::new(), Vec::new());
    for source in projected.sources.iter().flatten() {
        let part = if let Some(source) = &source.config_map {
            let optional = source.optional == Some(true);
            or_empty(sources.config_map(&source.name), optional)
                .and_then(|found| config_map(found, source.items.as_deref(), mode, optional))
        } else if let Some(source) = &source.secret {
            let optional = source.optional == Some(true);
            or_empty(sources.secret(&source.name), optional)
                .and_then(|found| secret(found, source.items.as_deref(), mode, optional))
        } else if let Some(source) = &source.downward_api {
            downward(source.items.as_deref(), mode, pod, facts)
        } else if let Some(source) = &source.service_account_token {
            let key = TokenKey::new(source.audience.as_deref(), source.expiration_seconds);
            token(sources, &key).map(|bytes| {
                let file = File { bytes, mode: mode_of(None, mode) };
                Payload::from([(source.path.clone(), file)])
            })
        } else {
            Err("this projection is not supported on a local node".into())
        };
        match part {
            Ok(part) => payload.extend(part),
            Err(why) => wrong.push(why),
        }
    }
    match &*wrong {
        [] => Ok(payload),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

fn token(sources: &Sources, key: &TokenKey) -> Result<Vec<u8>, String> {
    match sources.tokens.get(key) {
        Some(Ok(token)) => Ok(token.text.clone().into_bytes()),
        Some(Err(why)) => Err(format!("failed to fetch token: {why}")),
        None => Err("failed to fetch token: none was asked for".into()),
    }
}

/// `None` stands for an optional object that is not there.
fn or_empty<T>(found: Result<T, Lack>, optional: bool) -> Result<Option<T>, String> {
    match found {
        Ok(object) => Ok(Some(object)),
        Err(Lack::Missing(_)) if optional => Ok(None),
        Err(lack) => Err(lack.into_text()),
    }
}

fn config_map(
    found: Option<&ConfigMap>,
    items: Option<&[KeyToPath]>,
    mode: Option<i32>,
    optional: bool,
) -> Result<Payload, String> {
    let text = found.iter().flat_map(|map| map.data.iter().flatten());
    let text = text.map(|(key, value)| (&**key, value.as_bytes()));
    let binary = found.iter().flat_map(|map| map.binary_data.iter().flatten());
    let binary = binary.map(|(key, ByteString(value))| (&**key, value.as_slice()));
    let data = text.chain(binary).collect();
    pick(&data, items, mode, optional, "configmap references non-existent config key")
}

fn secret(
    found: Option<&Secret>,
    items: Option<&[KeyToPath]>,
    mode: Option<i32>,
    optional: bool,
) -> Result<Payload, String> {
    let data = found.iter().flat_map(|secret| secret.data.iter().flatten());
    let data = data.map(|(key, ByteString(value))| (&**key, value.as_slice())).collect();
    pick(&data, items, mode, optional, "references non-existent secret key")
}

/// All keys, or those that are asked for under the paths they shall have.
fn pick(
    data: &BTreeMap<&str, &[u8]>,
    items: Option<&[KeyToPath]>,
    mode: Option<i32>,
    optional: bool,
    missing: &str,
) -> Result<Payload, String> {
    let items = items.unwrap_or_default();
    if items.is_empty() {
        let file = |bytes: &[u8]| File { bytes: bytes.to_vec(), mode: mode_of(None, mode) };
        return Ok(data.iter().map(|(key, bytes)| ((*key).to_owned(), file(bytes))).collect());
    }
    let mut payload = Payload::new();
    for item in items {
        match data.get(&*item.key) {
            Some(bytes) => {
                let file = File { bytes: bytes.to_vec(), mode: mode_of(item.mode, mode) };
                payload.insert(item.path.clone(), file);
            }
            None if optional => {}
            None => return Err(format!("{missing}: {}", item.key)),
        }
    }
    Ok(payload)
}

fn downward(
    items: Option<&[DownwardAPIVolumeFile]>,
    mode: Option<i32>,
    pod: &Pod,
    facts: Facts<'_>,
) -> Result<Payload, String> {
    let mut payload = Payload::new();
    for item in items.unwrap_or_default() {
        let text = if let Some(field) = &item.field_ref {
            pod_field(pod, &field.field_path, facts)?
        } else if let Some(field) = &item.resource_field_ref {
            resource(pod, None, field, facts.allocatable)?
        } else {
            continue;
        };
        let file = File { bytes: text.into_bytes(), mode: mode_of(item.mode, mode) };
        payload.insert(item.path.clone(), file);
    }
    Ok(payload)
}

fn mode_of(own: Option<i32>, usual: Option<i32>) -> u32 {
    (own.or(usual).unwrap_or(USUAL_MODE) & 0o777).unsigned_abs()
}

/// The API lets no other path through; this is the last door before the disk.
fn check(path: &str) -> Result<(), String> {
    if path.starts_with('/') {
        return Err(format!("invalid path: must be relative path: {path}"));
    }
    if path.is_empty() || path.len() > LONGEST_PATH || path.contains('\0') {
        return Err(format!("invalid path: {path:?}"));
    }
    if path.starts_with("..") || path.split('/').any(|part| part == "..") {
        return Err(format!("invalid path: must not contain '..': {path}"));
    }
    if path.split('/').any(|part| part.is_empty() || part == ".") {
        return Err(format!("invalid path: {path:?}"));
    }
    Ok(())
}
