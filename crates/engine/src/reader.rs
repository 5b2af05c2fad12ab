//! The production [`Reader`]: watch caches where a kind is watched, the API elsewhere.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{AsyncRead, AsyncReadExt, future::BoxFuture};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ListParams, LogParams},
};

use crate::{
    apis::Apis,
    cache::Cache,
    error::{Error, reasons},
    fetch::{Reader, Selector},
    health::pods::LogKey,
    kind::{Kind, ObjectKey},
    object::{Object, Watched},
};

/// Enough to hold an error and its stack; more only costs memory.
const LOG_LINES: i64 = 50;
const LOG_BYTES: i64 = 64 * 1024;

/// Logs kept for the passes that follow.
const LOGS: usize = 64;

/// How much of what a container has printed is kept: its end, where results stand.
const OUTPUT_BYTES: usize = 4 * 1024 * 1024;
/// A container may have printed without end; reading what it has printed may not go on without one.
const OUTPUT_READ: usize = 256 * 1024 * 1024;
const OUTPUT_TIME: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct ClusterReader {
    pub client: Client,
    pub cache: Arc<Cache>,
    pub apis: Apis,
    pub logs: Logs,
}

/// The log of a container that has ended does not change, so it is read once. The key names the run
/// of the container, not only the container.
#[derive(Clone, Debug, Default)]
pub struct Logs(Arc<Mutex<VecDeque<(LogKey, String)>>>);

impl Logs {
    fn get(&self, key: &LogKey) -> Option<String> {
        let logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logs.iter().find(|(known, _)| known == key).map(|(_, text)| text.clone())
    }

    fn keep(&self, key: &LogKey, text: &str) {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logs.len() == LOGS {
            logs.pop_front();
        }
        logs.push_back((key.clone(), text.to_owned()));
    }
}

impl ClusterReader {
    fn api(&self, kind: &Kind, namespace: Option<&str>) -> Api<Watched> {
        api(&self.client, kind, namespace)
    }
}

pub(crate) fn api(client: &Client, kind: &Kind, namespace: Option<&str>) -> Api<Watched> {
    let resource = kind.api_resource();
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

impl Reader for ClusterReader {
    fn get<'a>(
        &'a self,
        kind: &'a Kind,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, Error>> {
        Box::pin(async move {
            if let Some(cached) = self.cache.get(kind, key) {
                return Ok(cached);
            }
            let found = self.api(kind, key.namespace.as_deref()).get_opt(&key.name).await?;
            Ok(found.map(|watched| Arc::new(Object::from(watched))))
        })
    }

    fn list<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        Box::pin(async move {
            if selector.fields.is_empty()
                && let Some(cached) = self.cache.list(kind, namespace, selector)
            {
                return Ok(cached);
            }
            self.list_now(kind, namespace, selector).await
        })
    }

    fn list_now<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        Box::pin(async move {
            let join = |pairs: &std::collections::BTreeMap<String, String>| {
                let terms: Vec<_> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
                Some(terms.join(",")).filter(|text| !text.is_empty())
            };
            let params = ListParams {
                label_selector: join(&selector.labels),
                field_selector: join(&selector.fields),
                ..ListParams::default()
            };
            let found = self.api(kind, namespace).list(&params).await?;
            Ok(found.items.into_iter().map(|watched| Arc::new(Object::from(watched))).collect())
        })
    }

    fn log<'a>(&'a self, key: &'a LogKey) -> BoxFuture<'a, Result<String, Error>> {
        Box::pin(async move {
            if let Some(known) = self.logs.get(key) {
                return Ok(known);
            }
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
            let params = LogParams {
                container: Some(key.container.clone()),
                previous: key.previous,
                tail_lines: Some(LOG_LINES),
                limit_bytes: Some(LOG_BYTES),
                ..LogParams::default()
            };
            let text = pods.logs(&key.pod, &params).await?;
            self.logs.keep(key, &text);
            Ok(text)
        })
    }

    fn output<'a>(&'a self, key: &'a LogKey) -> BoxFuture<'a, Result<Vec<u8>, Error>> {
        Box::pin(async move {
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
            let params = LogParams {
                container: Some(key.container.clone()),
                previous: key.previous,
                ..LogParams::default()
            };
            let reading = async { last_of(pods.log_stream(&key.pod, &params).await?).await };
            match tokio::time::timeout(OUTPUT_TIME, reading).await {
                Ok(read) => read,
                Err(_) => {
                    let seconds = OUTPUT_TIME.as_secs();
                    let message = format!("the log could not be read within {seconds} seconds");
                    Err(Error::infrastructure(reasons::LOG_TOO_SLOW, message))
                }
            }
        })
    }

    fn serves(&self, kind: &Kind) -> bool {
        self.apis.serves(kind)
    }
}

/// The end of what a stream brings, whatever it brings and however long it is.
async fn last_of(stream: impl AsyncRead) -> Result<Vec<u8>, Error> {
    let mut stream = std::pin::pin!(stream);
    let mut kept = Vec::new();
    let mut part = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        let read = stream.read(&mut part).await.map_err(|cause| {
            Error::infrastructure(reasons::LOG_INTERRUPTED, "the log could not be read to its end")
                .with_cause(cause)
        })?;
        total += read;
        if read == 0 {
            break;
        }
        if total > OUTPUT_READ {
            let message = format!("the log is longer than {OUTPUT_READ} bytes");
            return Err(Error::invalid_spec(reasons::LOG_TOO_LONG, message));
        }
        kept.extend_from_slice(&part[..read]);
        // Not at each part: moving what stays costs as much as it is long.
        if kept.len() > 2 * OUTPUT_BYTES {
            kept.drain(..kept.len() - OUTPUT_BYTES);
        }
    }
    kept.drain(..kept.len().saturating_sub(OUTPUT_BYTES));
    Ok(kept)
}

#[cfg(test)]
mod tests;
