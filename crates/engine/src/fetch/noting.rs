//! Reading while somebody takes note of it.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::{Reader, Selector};
use crate::{
    error::Error,
    health::pods::LogKey,
    kind::{Kind, ObjectKey},
    object::Object,
};

/// What is worth noting of what is read.
pub trait Notes: Send + Sync {
    /// An object is asked for by its name; whether it exists is not known yet.
    fn one(&self, _: &Kind, _: &ObjectKey) {}

    /// All objects of a kind are asked for, or those of a namespace.
    fn all(&self, _: &Kind, _: Option<&str>) {}

    /// The object that was asked for by its name.
    fn found(&self, _: &Kind, _: &Object) {}
}

/// Reads through another reader.
pub struct Noting<'r, N> {
    pub reader: &'r dyn Reader,
    pub notes: N,
}

impl<N: Notes> Reader for Noting<'_, N> {
    fn get<'a>(
        &'a self,
        kind: &'a Kind,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, Error>> {
        self.notes.one(kind, key);
        Box::pin(async move {
            let found = self.reader.get(kind, key).await?;
            if let Some(object) = &found {
                self.notes.found(kind, object);
            }
            Ok(found)
        })
    }

    fn list<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        self.notes.all(kind, namespace);
        self.reader.list(kind, namespace, selector)
    }

    fn list_now<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        self.notes.all(kind, namespace);
        self.reader.list_now(kind, namespace, selector)
    }

    fn log<'a>(&'a self, key: &'a LogKey) -> BoxFuture<'a, Result<String, Error>> {
        self.reader.log(key)
    }

    fn output<'a>(&'a self, key: &'a LogKey) -> BoxFuture<'a, Result<Vec<u8>, Error>> {
        self.reader.output(key)
    }

    fn serves(&self, kind: &Kind) -> bool {
        self.reader.serves(kind)
    }
}
