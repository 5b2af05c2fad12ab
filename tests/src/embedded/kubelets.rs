//! Logs for the embedded API from where a real API server gets them: the kubelet of the pod's node.

use std::{io, sync::Arc};

use futures::{
    FutureExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, StreamExt},
};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client, Config, api::ListParams, client::Body};
use windlass_local::{
    auth::User,
    http::{LogOptions, LogRun, LogStream, Logs, Server},
};

pub(super) struct Kubelets {
    client: Client,
}

impl Kubelets {
    pub(super) fn of(server: &Arc<Server>) -> Arc<Self> {
        Arc::new(Self { client: Client::new(server.service(User::admin()), "default") })
    }

    async fn ask(&self, run: &LogRun) -> io::Result<LogStream> {
        let pods = Api::<Pod>::all(self.client.clone()).list(&ListParams::default()).await;
        let pods = pods.map_err(io::Error::other)?.items;
        let is_meant = |pod: &Pod| pod.metadata.uid.as_deref() == Some(run.pod.as_str());
        let Some(pod) = pods.into_iter().find(is_meant) else { return Err(gone()) };
        let node = pod.spec.and_then(|spec| spec.node_name).ok_or_else(gone)?;
        let node = Api::<Node>::all(self.client.clone()).get_opt(&node).await;
        let node = node.map_err(io::Error::other)?.ok_or_else(gone)?;
        let endpoints = node.status.and_then(|status| status.daemon_endpoints);
        let port = endpoints.and_then(|ends| ends.kubelet_endpoint).ok_or_else(gone)?.port;
        let (namespace, name) = (pod.metadata.namespace, pod.metadata.name);
        let path = format!(
            "/containerLogs/{}/{}/{}",
            namespace.unwrap_or_default(),
            name.unwrap_or_default(),
            run.container
        );
        fetch(port, &path).await
    }
}

async fn fetch(port: i32, path: &str) -> io::Result<LogStream> {
    let url = format!("https://127.0.0.1:{port}").parse().map_err(io::Error::other)?;
    let mut config = Config::new(url);
    // As the real API server does without a certificate authority for kubelets.
    config.accept_invalid_certs = true;
    let kubelet = Client::try_from(config).map_err(io::Error::other)?;
    let request = http::Request::get(path).body(Body::empty()).map_err(io::Error::other)?;
    let answer = kubelet.send(request).await.map_err(io::Error::other)?;
    if !answer.status().is_success() {
        return Err(gone());
    }
    let frames = answer.into_body().into_data_stream().map_err(io::Error::other);
    // The kubelet is kept until its answer has been read.
    let kept = stream::repeat(kubelet);
    Ok(frames.zip(kept).map(|(frame, _kubelet)| frame).boxed())
}

fn gone() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl Logs for Kubelets {
    fn read(&self, run: LogRun, _: LogOptions) -> BoxFuture<'_, io::Result<LogStream>> {
        async move { self.ask(&run).await }.boxed()
    }
}
