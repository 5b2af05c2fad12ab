//! Single objects, and which of many are wanted.

use std::{sync::Arc, time::Duration};

use super::{Registry, Served, Source, Target};
use crate::{
    error::Error,
    selector::{Fields, Labels, Selectable},
    store::Object,
};

/// How long a reader waits for a version that is not there yet.
const AHEAD: Duration = Duration::from_secs(1);

/// Which objects of a resource.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub labels: Labels,
    pub fields: Fields,
}

impl Selection {
    pub fn parse(served: &Served, labels: &str, fields: &str) -> Result<Self, Error> {
        let bad = |text: String| Error::BadRequest(text);
        let selectable = match &served.source {
            Source::Builtin(_) => {
                Selectable::builtin(&served.resource.group, &served.resource.plural)
            }
            Source::Custom(custom) => {
                Selectable::custom(custom.version().selectable_fields.iter().map(String::as_str))
            }
        };
        Ok(Self {
            labels: Labels::parse(labels).map_err(|error| bad(error.to_string()))?,
            fields: Fields::parse(fields, &selectable).map_err(|error| bad(error.to_string()))?,
        })
    }

    pub fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn matches(&self, served: &Served, object: &Object) -> bool {
        if !self.labels.matches(object.labels()) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        match served.shows_as_stored(object) {
            true => self.fields.matches(object.value()),
            false => self.fields.matches(&served.show(object)),
        }
    }
}

impl Registry {
    /// Any version that is not ahead of us means the newest object.
    pub async fn get(&self, target: &Target, version: Option<u64>) -> Result<Arc<Object>, Error> {
        if let Some(version) = version {
            self.wait_for(version).await?;
        }
        let found = self.store.read().get(&target.key()).cloned();
        found.ok_or_else(|| Error::NotFound(target.subject()))
    }

    pub(super) async fn wait_for(&self, version: u64) -> Result<(), Error> {
        if self.store.read().version() >= version {
            return Ok(());
        }
        match tokio::time::timeout(AHEAD, self.store.reached(version)).await {
            Ok(()) => Ok(()),
            Err(_) => {
                let current = self.store.read().version();
                Err(Error::NotYet { asked: version, current })
            }
        }
    }
}
