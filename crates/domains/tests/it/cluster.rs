//! A cluster that consists of YAML documents.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;
use windlass_engine::error::Error;
use windlass_engine::fetch::{Reader, Selector};
use windlass_engine::health::LogKey;
use windlass_engine::kind::{Kind, ObjectKey};
use windlass_engine::object::Object;

pub(crate) struct Cluster {
    documents: Vec<Value>,
}

impl Cluster {
    pub(crate) fn new(documents: Vec<Value>) -> Self {
        Self { documents }
    }

    fn of_kind(&self, kind: &Kind) -> impl Iterator<Item = (&Value, Arc<Object>)> {
        let (api_version, name) = (kind.api_version(), kind.kind.to_string());
        self.documents
            .iter()
            .filter(move |value| value["apiVersion"] == api_version && value["kind"] == name)
            .map(|value| (value, Arc::new(Object::from_value(value.clone()).unwrap())))
    }
}

impl Reader for Cluster {
    fn get<'a>(
        &'a self,
        kind: &'a Kind,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, Error>> {
        let found = self.of_kind(kind).map(|(_, object)| object).find(|object| object.key == *key);
        ready(Ok(found)).boxed()
    }

    fn list<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        let has_fields = |value: &Value| {
            selector.fields.iter().all(|(path, want)| {
                let pointer = format!("/{}", path.replace('.', "/"));
                value.pointer(&pointer).and_then(Value::as_str) == Some(want)
            })
        };
        let found = self
            .of_kind(kind)
            .filter(|(value, object)| {
                object.key.namespace.as_deref() == namespace
                    && selector.matches_labels(&object.labels)
                    && has_fields(value)
            })
            .map(|(_, object)| object)
            .collect();
        ready(Ok(found)).boxed()
    }

    fn log<'a>(&'a self, _: &'a LogKey) -> BoxFuture<'a, Result<String, Error>> {
        ready(Ok(String::new())).boxed()
    }

    /// Kinds of others exist where a case holds their definition.
    fn serves(&self, kind: &Kind) -> bool {
        let is_built_in = !kind.group.contains('.') || kind.group.ends_with(".k8s.io");
        let has_definition = || {
            self.documents.iter().any(|value| {
                value["kind"] == "CustomResourceDefinition"
                    && value["metadata"]["name"] == kind.crd_name()
            })
        };
        (is_built_in && kind.group != "gateway.networking.k8s.io") || has_definition()
    }
}
