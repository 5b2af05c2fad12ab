//! A cluster that consists of documents: what `render` and the tests read.

use std::sync::Arc;

use futures::future::{BoxFuture, ready};
use serde_json::Value;

use super::{Reader, Selector};
use crate::{
    error::Error,
    health::pods::LogKey,
    kind::{Kind, ObjectKey},
    object::Object,
};

/// Objects as they would come from the API; no documents, no objects.
#[derive(Clone, Debug)]
pub struct Documents {
    pub objects: Vec<Value>,
    pub serves: Serves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    Everything,
    /// Kinds that are not part of Kubernetes only where a document is their definition.
    Definitions,
}

impl Documents {
    /// Documents without readable metadata are passed over: they are no objects.
    fn of_kind(&self, kind: &Kind) -> impl Iterator<Item = (&Value, Arc<Object>)> {
        let (version, name) = (kind.api_version(), kind.kind.to_string());
        let fits = move |value: &&Value| value["apiVersion"] == version && value["kind"] == name;
        self.objects
            .iter()
            .filter(fits)
            .filter_map(|value| Some((value, Arc::new(Object::from_value(value.clone()).ok()?))))
    }
}

impl Reader for Documents {
    fn get<'a>(
        &'a self,
        kind: &'a Kind,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, Error>> {
        let found = self.of_kind(kind).map(|(_, object)| object).find(|object| object.key == *key);
        Box::pin(ready(Ok(found)))
    }

    fn list<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        let has_field = |value: &Value, path: &str, want: &str| {
            let pointer = format!("/{}", path.replace('.', "/"));
            value.pointer(&pointer).and_then(Value::as_str) == Some(want)
        };
        let fits = |value: &Value, object: &Object| {
            namespace.is_none_or(|wanted| object.key.namespace.as_deref() == Some(wanted))
                && selector.matches_labels(&object.labels)
                && selector.fields.iter().all(|(path, want)| has_field(value, path, want))
        };
        let all = self.of_kind(kind);
        let found = all.filter(|(value, object)| fits(value, object)).map(|(_, object)| object);
        Box::pin(ready(Ok(found.collect())))
    }

    fn list_now<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        self.list(kind, namespace, selector)
    }

    fn log<'a>(&'a self, _: &'a LogKey) -> BoxFuture<'a, Result<String, Error>> {
        Box::pin(ready(Ok(String::new())))
    }

    fn output<'a>(&'a self, _: &'a LogKey) -> BoxFuture<'a, Result<Vec<u8>, Error>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn serves(&self, kind: &Kind) -> bool {
        let is_defined = || {
            self.objects.iter().any(|value| {
                value["kind"] == "CustomResourceDefinition"
                    && value["metadata"]["name"] == kind.crd_name()
            })
        };
        self.serves == Serves::Everything || kind.is_built_in() || is_defined()
    }
}
