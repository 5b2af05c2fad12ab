//! Reading the cluster: failures are values, so that composing always happens.

mod documents;
mod noting;

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use kube::Resource;
use serde::de::DeserializeOwned;

use crate::{
    error::{Error, reasons},
    health::{Blocks, ComponentHealth, Dependency, Inspection, pods::LogKey},
    kind::{Kind, ObjectKey, TypedScope},
    object::Object,
};

pub use documents::{Documents, Serves};
pub use noting::{Notes, Noting};

/// The only way to read: watch caches and the API in production, a folder of YAML in tests.
/// It cannot write, so there is no API behaviour to imitate badly.
pub trait Reader: Send + Sync {
    fn get<'a>(
        &'a self,
        kind: &'a Kind,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, Error>>;

    fn list<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>>;

    /// As the API has it now, where a cache that is behind could do harm.
    fn list_now<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>>;

    /// The last lines of a container's log.
    fn log<'a>(&'a self, key: &'a LogKey) -> BoxFuture<'a, Result<String, Error>>;

    /// All that a container has printed, as far as it is worth reading.
    fn output<'a>(&'a self, key: &'a LogKey) -> BoxFuture<'a, Result<Vec<u8>, Error>>;

    /// Whether the API has this kind at the moment.
    fn serves(&self, kind: &Kind) -> bool;
}

/// Equality on labels and fields; empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    pub labels: BTreeMap<String, String>,
    pub fields: BTreeMap<String, String>,
}

impl Selector {
    pub fn label(key: &str, value: &str) -> Self {
        Self { labels: BTreeMap::from([(key.into(), value.into())]), ..Self::default() }
    }

    pub fn field(key: &str, value: &str) -> Self {
        Self { fields: BTreeMap::from([(key.into(), value.into())]), ..Self::default() }
    }

    pub fn matches_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// What came of reading one thing.
#[derive(Clone, Debug)]
pub enum Fetched<T> {
    Found(T),
    Missing,
    Failed(Error),
}

pub async fn get<K>(reader: &dyn Reader, namespace: Option<&str>, name: &str) -> Fetched<K>
where
    K: Resource<DynamicType = (), Scope: TypedScope> + DeserializeOwned,
{
    let kind = Kind::of::<K>();
    match reader.get(&kind, &ObjectKey::new(namespace, name)).await {
        Ok(None) => Fetched::Missing,
        Ok(Some(object)) => match object.parse() {
            Ok(value) => Fetched::Found(value),
            Err(cause) => Fetched::Failed(unreadable(&kind, cause)),
        },
        Err(error) => Fetched::Failed(error),
    }
}

/// Whether the object exists, without looking into it.
pub async fn exists<K>(reader: &dyn Reader, namespace: Option<&str>, name: &str) -> Fetched<()>
where
    K: Resource<DynamicType = (), Scope: TypedScope>,
{
    match reader.get(&Kind::of::<K>(), &ObjectKey::new(namespace, name)).await {
        Ok(Some(_)) => Fetched::Found(()),
        Ok(None) => Fetched::Missing,
        Err(error) => Fetched::Failed(error),
    }
}

pub async fn list<K>(
    reader: &dyn Reader,
    namespace: Option<&str>,
    selector: &Selector,
) -> Fetched<Vec<K>>
where
    K: Resource<DynamicType = (), Scope: TypedScope> + DeserializeOwned,
{
    let kind = Kind::of::<K>();
    parse_all(&kind, reader.list(&kind, namespace, selector).await)
}

/// See [`Reader::list_now`].
pub async fn list_now<K>(
    reader: &dyn Reader,
    namespace: Option<&str>,
    selector: &Selector,
) -> Fetched<Vec<K>>
where
    K: Resource<DynamicType = (), Scope: TypedScope> + DeserializeOwned,
{
    let kind = Kind::of::<K>();
    parse_all(&kind, reader.list_now(&kind, namespace, selector).await)
}

fn parse_all<K: DeserializeOwned>(
    kind: &Kind,
    answer: Result<Vec<Arc<Object>>, Error>,
) -> Fetched<Vec<K>> {
    let objects = match answer {
        Ok(objects) => objects,
        Err(error) => return Fetched::Failed(error),
    };
    match objects.iter().map(|object| object.parse()).collect() {
        Ok(values) => Fetched::Found(values),
        Err(cause) => Fetched::Failed(unreadable(kind, cause)),
    }
}

fn unreadable(kind: &Kind, cause: crate::object::Unreadable) -> Error {
    Error::infrastructure("Unreadable", format!("The API returned a {kind} that cannot be read"))
        .with_cause(cause)
}

impl<T> Fetched<T> {
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(value) => Some(value),
            _ => None,
        }
    }

    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }

    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// A part whose relation to the object is not said.
    pub fn component(&self, name: &str, inspect: impl FnOnce(&T) -> Inspection) -> ComponentHealth {
        let missing = || Error::missing_downstream(reasons::NOT_FOUND, "Resource not found");
        self.convert(name, Dependency::Unspecified, missing, inspect)
    }

    /// Something the user must provide.
    pub fn upstream(&self, name: &str, inspect: impl FnOnce(&T) -> Inspection) -> ComponentHealth {
        let missing = || {
            Error::missing_upstream(reasons::REFERENCE_NOT_FOUND, "Upstream dependency not found")
        };
        self.convert(name, Dependency::Upstream, missing, inspect)
    }

    /// Something the object brings into being.
    pub fn downstream(
        &self,
        name: &str,
        inspect: impl FnOnce(&T) -> Inspection,
    ) -> ComponentHealth {
        let missing = || {
            Error::missing_downstream(
                reasons::RESOURCE_NOT_READY,
                "Downstream resource not found or being created",
            )
        };
        self.convert(name, Dependency::Downstream, missing, inspect)
    }

    fn convert(
        &self,
        name: &str,
        dependency: Dependency,
        missing: impl FnOnce() -> Error,
        inspect: impl FnOnce(&T) -> Inspection,
    ) -> ComponentHealth {
        match self {
            // An ailing child must not stand in the way of the change that cures it.
            Self::Found(value) if dependency == Dependency::Downstream => {
                inspect(value).into_component(name, dependency, Blocks::Nothing)
            }
            Self::Found(value) => inspect(value).into_component(name, dependency, Blocks::Apply),
            Self::Missing => {
                Inspection::failed(missing()).into_component(name, dependency, Blocks::Apply)
            }
            Self::Failed(error) => {
                Inspection::failed(error.clone()).into_component(name, dependency, Blocks::Apply)
            }
        }
    }
}
