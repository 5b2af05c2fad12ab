//! What pods take from other objects: which ones they name, and what those say.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::future::{BoxFuture, join_all};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Volume,
};

/// A token never lives longer than this before it is replaced.
const OLDEST_TOKEN: SignedDuration = SignedDuration::from_hours(24);
/// What the API gives when a pod does not say.
const USUAL_SECONDS: i64 = 3600;

/// What an API has under a name: nothing, something, or the words in which it refused.
pub type Found<T> = Result<Option<Arc<T>>, String>;

/// The objects that a pod names in its environment and in the volumes that it mounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    pub config_maps: BTreeSet<String>,
    pub secrets: BTreeSet<String>,
    pub claims: BTreeSet<String>,
    pub tokens: BTreeSet<TokenKey>,
}

/// A kind of token of the pod's account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenKey {
    /// Empty for the API itself.
    pub audience: String,
    pub seconds: i64,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub issued: Timestamp,
    pub expires: Timestamp,
}

/// It has no place in a log.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl Token {
    /// Whether a new one is wanted: after four fifths of its life, or a day.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let life = self.expires.duration_since(self.issued);
        let age = now.duration_since(self.issued);
        age >= OLDEST_TOKEN || age.as_secs() >= life.as_secs() * 4 / 5
    }
}

/// What the API said about a pod's references, refusals included.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub config_maps: BTreeMap<String, Found<ConfigMap>>,
    pub secrets: BTreeMap<String, Found<Secret>>,
    pub claims: BTreeMap<String, Claim>,
    pub tokens: BTreeMap<TokenKey, Result<Token, String>>,
}

/// A claim with the volume that is bound to it.
#[derive(Clone, Debug)]
pub struct Claim {
    pub claim: Found<PersistentVolumeClaim>,
    pub volume: Found<PersistentVolume>,
}

/// How objects are read: a client or its caches in production, maps in tests.
pub trait Reader: Send + Sync {
    fn config_map<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Found<ConfigMap>>;
    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Found<Secret>>;
    fn claim<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Found<PersistentVolumeClaim>>;
    fn volume<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Found<PersistentVolume>>;
    /// A token of the pod's account that ends with the pod.
    fn token<'a>(
        &'a self,
        pod: &'a Pod,
        wanted: &'a TokenKey,
    ) -> BoxFuture<'a, Result<Token, String>>;
}

impl References {
    pub fn of(pod: &Pod) -> Self {
        let mut found = Self::default();
        let mounted = mounted_volumes(pod);
        for container in containers(pod) {
            found.add_environment(container);
        }
        for volume in mounted {
            found.add_volume(volume);
        }
        found
    }

    fn add_environment(&mut self, container: &Container) {
        for from in container.env_from.iter().flatten() {
            self.config_maps.extend(from.config_map_ref.iter().map(|source| source.name.clone()));
            self.secrets.extend(from.secret_ref.iter().map(|source| source.name.clone()));
        }
        for from in container.env.iter().flatten().filter_map(|env| env.value_from.as_ref()) {
            let keys = from.config_map_key_ref.iter().map(|source| source.name.clone());
            self.config_maps.extend(keys);
            self.secrets.extend(from.secret_key_ref.iter().map(|source| source.name.clone()));
        }
    }

    fn add_volume(&mut self, volume: &Volume) {
        self.config_maps.extend(volume.config_map.iter().map(|source| source.name.clone()));
        self.secrets.extend(volume.secret.iter().filter_map(|source| source.secret_name.clone()));
        let claims = volume.persistent_volume_claim.iter();
        self.claims.extend(claims.map(|source| source.claim_name.clone()));
        let projected = volume.projected.iter().flat_map(|source| source.sources.iter().flatten());
        for source in projected {
            self.config_maps.extend(source.config_map.iter().map(|source| source.name.clone()));
            self.secrets.extend(source.secret.iter().map(|source| source.name.clone()));
            self.tokens.extend(source.service_account_token.iter().map(|source| {
                TokenKey::new(source.audience.as_deref(), source.expiration_seconds)
            }));
        }
    }
}

impl TokenKey {
    pub(super) fn new(audience: Option<&str>, seconds: Option<i64>) -> Self {
        Self {
            audience: audience.unwrap_or_default().to_owned(),
            seconds: seconds.unwrap_or(USUAL_SECONDS),
        }
    }
}

/// Reads all that a pod names. Tokens of `earlier` are used again until they are due.
pub async fn gather(reader: &dyn Reader, pod: &Pod, earlier: &Sources, now: Timestamp) -> Sources {
    let wanted = References::of(pod);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let config_maps = wanted.config_maps.into_iter().map(|name| async move {
        let found = reader.config_map(namespace, &name).await;
        (name, found)
    });
    let secrets = wanted.secrets.into_iter().map(|name| async move {
        let found = reader.secret(namespace, &name).await;
        (name, found)
    });
    let claims = wanted.claims.into_iter().map(|name| async move {
        let claim = read_claim(reader, namespace, &name).await;
        (name, claim)
    });
    let tokens = wanted.tokens.into_iter().map(|key| async move {
        let token = match earlier.tokens.get(&key) {
            Some(Ok(token)) if !token.is_due(now) => Ok(token.clone()),
            // A token that still works is better than none.
            Some(Ok(token)) if now < token.expires => {
                Ok(reader.token(pod, &key).await.unwrap_or_else(|_| token.clone()))
            }
            _ => reader.token(pod, &key).await,
        };
        (key, token)
    });
    Sources {
        config_maps: join_all(config_maps).await.into_iter().collect(),
        secrets: join_all(secrets).await.into_iter().collect(),
        claims: join_all(claims).await.into_iter().collect(),
        tokens: join_all(tokens).await.into_iter().collect(),
    }
}

async fn read_claim(reader: &dyn Reader, namespace: &str, name: &str) -> Claim {
    let claim = reader.claim(namespace, name).await;
    let bound = match &claim {
        Ok(Some(claim)) => claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()),
        _ => None,
    };
    let volume = match bound.filter(|name| !name.is_empty()) {
        Some(name) => reader.volume(&name).await,
        None => Ok(None),
    };
    Claim { claim, volume }
}

/// Why something that a pod needs cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// It is not there, which an optional reference may live with.
    Missing(String),
    Refused(String),
}

impl Lack {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Missing(text) | Self::Refused(text) => text,
        }
    }
}

impl Sources {
    pub(super) fn config_map(&self, name: &str) -> Result<&ConfigMap, Lack> {
        look_up(&self.config_maps, "configmap", name)
    }

    pub(super) fn secret(&self, name: &str) -> Result<&Secret, Lack> {
        look_up(&self.secrets, "secret", name)
    }
}

fn look_up<'a, T>(
    found: &'a BTreeMap<String, Found<T>>,
    kind: &str,
    name: &str,
) -> Result<&'a T, Lack> {
    match found.get(name) {
        Some(Ok(Some(object))) => Ok(object),
        Some(Err(text)) => Err(Lack::Refused(text.clone())),
        Some(Ok(None)) | None => Err(Lack::Missing(format!("{kind} {name:?} not found"))),
    }
}

/// Initial ones first.
pub(super) fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.as_ref();
    let initial = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
    initial.chain(spec.map(|spec| &spec.containers).into_iter().flatten())
}

/// The volumes that some container mounts. Others are not looked at.
pub fn mounted_volumes(pod: &Pod) -> impl Iterator<Item = &Volume> {
    let mounts = containers(pod).flat_map(|container| container.volume_mounts.iter().flatten());
    let names: BTreeSet<&str> = mounts.map(|mount| &*mount.name).collect();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    volumes.filter(move |volume| names.contains(&*volume.name))
}
