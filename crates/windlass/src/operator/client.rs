//! The connection to the API, with every request counted and none of them allowed to hang.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use anyhow::Context as _;
use axum::Router;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
    config::{KubeConfigOptions, Kubeconfig},
};
use tower::{BoxError, Layer, Service};
use windlass_engine::metrics::{Metrics, RequestLabels};

use super::flags::Flags;

/// Longer than the API server itself works on a request. A watch has no end, but must begin by then.
const TIMEOUT: Duration = Duration::from_secs(70);
/// For the rest of an answer, once it has begun.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

/// The operator's connections to one cluster.
pub(super) struct Cluster {
    pub(super) client: Client,
    /// For watches, which have a way of their own to try again.
    pub(super) watching: Client,
    /// The one that the operator calls its own.
    pub(super) namespace: String,
}

pub(super) async fn connect(flags: &Flags, metrics: Metrics) -> anyhow::Result<Cluster> {
    let mut config = match &flags.kubeconfig {
        Some(path) => {
            let cannot = || format!("cannot use the kubeconfig {}", path.display());
            let file = Kubeconfig::read_from(path).with_context(cannot)?;
            let options = KubeConfigOptions::default();
            Config::from_custom_kubeconfig(file, &options).await.with_context(cannot)?
        }
        None => Config::infer().await.context(
            "cannot find a cluster: no kubeconfig and not running in a pod (use --kubeconfig)",
        )?,
    };
    // Longer than a watch may be silent: the server ends each after less than five minutes.
    config.read_timeout = Some(READ_TIMEOUT);
    config.write_timeout = Some(TIMEOUT);
    let namespace =
        std::env::var("POD_NAMESPACE").unwrap_or_else(|_| config.default_namespace.clone());
    let client = build(config.clone(), metrics.clone())?;
    // An API server that only just opens the storage of a kind asks for a second's patience, in which
    // nothing would be done, and has it after some hundredths.
    config.default_retry = false;
    let watching = build(config, metrics)?;
    Ok(Cluster { client, watching, namespace })
}

/// An API in this process that knows who asks.
pub(super) fn within(api: Router, namespace: &str, metrics: Metrics) -> Cluster {
    let client = ClientBuilder::new(api, namespace).with_layer(&Meter { metrics }).build();
    Cluster { watching: client.clone(), client, namespace: namespace.to_owned() }
}

fn build(config: Config, metrics: Metrics) -> anyhow::Result<Client> {
    let builder = ClientBuilder::try_from(config)
        .context("cannot set up the connection to the cluster")?
        .with_layer(&Meter { metrics });
    Ok(builder.build())
}

#[derive(Clone)]
struct Meter {
    metrics: Metrics,
}

impl<S> Layer<S> for Meter {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Metered { inner, metrics: self.metrics.clone() }
    }
}

#[derive(Clone)]
struct Metered<S> {
    inner: S,
    metrics: Metrics,
}

impl<S, B> Service<Request<Body>> for Metered<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (verb, kind) = describe(&request);
        let metrics = self.metrics.clone();
        let answer = tokio::time::timeout(TIMEOUT, self.inner.call(request));
        Box::pin(async move {
            let answer = match answer.await {
                Ok(answer) => answer.map_err(Into::into),
                Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
            };
            let status = match &answer {
                Ok(response) if response.status().is_server_error() => "5xx",
                Ok(response) if response.status().is_client_error() => "4xx",
                Ok(_) => "2xx",
                Err(_) => "error",
            };
            metrics.requested(&RequestLabels { verb, kind, status });
            answer
        })
    }
}

/// The verb as in the rules of a role, and the resource with its subresource.
fn describe<B>(request: &Request<B>) -> (&'static str, String) {
    let path: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let rest = match path.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return (verb(request, true), "discovery".to_owned()),
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let (kind, named) = match rest {
        [] => ("discovery".to_owned(), true),
        [resource] => ((*resource).to_owned(), false),
        [resource, _name] => ((*resource).to_owned(), true),
        [resource, _name, subresource, ..] => (format!("{resource}/{subresource}"), true),
    };
    (verb(request, named), kind)
}

fn verb<B>(request: &Request<B>, named: bool) -> &'static str {
    let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    match *request.method() {
        Method::GET if watch => "watch",
        Method::GET if named => "get",
        Method::GET => "list",
        Method::POST => "create",
        Method::PATCH => "patch",
        Method::PUT => "update",
        Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_by_verb_and_resource() {
        for (method, uri, want) in [
            ("GET", "/api/v1/pods?watch=true&x=y", ("watch", "pods")),
            ("GET", "/api/v1/namespaces/a/pods", ("list", "pods")),
            ("GET", "/api/v1/namespaces/a/pods/b", ("get", "pods")),
            ("GET", "/api/v1/namespaces/a", ("get", "namespaces")),
            ("GET", "/api/v1/namespaces/a/pods/b/log", ("get", "pods/log")),
            ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b", ("patch", "deployments")),
            ("DELETE", "/apis/apps/v1/namespaces/a/deployments/b", ("delete", "deployments")),
            ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", ("update", "leases")),
            ("GET", "/apis/gateway.networking.k8s.io/v1", ("get", "discovery")),
            ("GET", "/version", ("get", "discovery")),
        ] {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            let (verb, kind) = describe(&request);
            assert_eq!((verb, kind.as_str()), want, "{method} {uri}");
        }
    }
}
