//! What is there of an object that is about to be written or deleted.

use std::sync::Arc;

use super::Applier;
use crate::{
    kind::{Kind, ObjectKey},
    looked::Looked,
    object::Object,
};

impl Applier {
    /// From the cache, or from the API where the cache would not have it.
    pub(super) async fn live(
        &self,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Result<Option<Arc<Object>>, kube::Error> {
        match self.cache.get(kind, key) {
            Some(cached) => Ok(cached),
            None => self.read(kind, key).await,
        }
    }

    /// The same for what a look may have seen. The cache does not know an object that has lost its
    /// labels, but a look finds it by its name.
    pub(super) async fn live_since(
        &self,
        looked: &Looked,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Result<Option<Arc<Object>>, kube::Error> {
        match self.live(kind, key).await? {
            None if looked.saw(kind, key) => self.read(kind, key).await,
            live => Ok(live),
        }
    }

    async fn read(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Arc<Object>>, kube::Error> {
        match self.api(kind, key).get(&key.name).await {
            Ok(watched) => Ok(Some(Arc::new(watched.into()))),
            // By the code: where the whole kind is missing the answer is plain text.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }
}
