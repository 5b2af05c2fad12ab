//! OpenAPI documents, made when first asked for and kept: they are large and change with the
//! definitions only.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use axum::body::Bytes;
use serde_json::Value;

use super::{Catalog, Served, Source};
use crate::{
    builtin::{self, Resource},
    show::openapi,
};

#[derive(Clone, Debug)]
pub struct Document {
    pub body: Bytes,
    pub hash: String,
}

/// By their path beneath `/openapi/v3`.
pub type Documents = BTreeMap<String, Document>;

/// Those of the built-in kinds never change.
static BUILTIN: LazyLock<Documents> =
    LazyLock::new(|| documents(builtin::RESOURCES.iter().map(|resource| (resource, None))));

impl Catalog {
    pub fn documents(&self) -> &Documents {
        self.documents.get_or_init(|| {
            let custom = self.served().iter().filter_map(custom);
            let mut all = BUILTIN.clone();
            all.extend(documents(custom));
            all
        })
    }
}

fn custom(served: &Arc<Served>) -> Option<(&Resource, Option<Value>)> {
    match &served.source {
        Source::Builtin(_) => None,
        Source::Custom(custom) => Some((&served.resource, Some(custom.version().raw_schema()))),
    }
}

fn documents<'a>(resources: impl Iterator<Item = (&'a Resource, Option<Value>)>) -> Documents {
    let mut versions: BTreeMap<String, Vec<(&Resource, Option<Value>)>> = BTreeMap::new();
    for (resource, schema) in resources {
        let path = openapi::path(&resource.group, &resource.version);
        versions.entry(path).or_default().push((resource, schema));
    }
    let made = versions.into_iter().map(|(path, resources)| {
        let body = Bytes::from(openapi::document(&resources).to_string());
        let hash = openapi::hash(&body);
        (path, Document { body, hash })
    });
    made.collect()
}
