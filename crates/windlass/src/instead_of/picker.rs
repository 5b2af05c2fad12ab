//! An endpoint picker, as far as its pod shows it: gRPC health and metrics. Who really picks is the
//! gateway, by the same configuration.

use std::convert::Infallible;

use anyhow::Context;
use axum::{
    Router,
    body::{Body, Bytes},
    routing::get,
};
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body_util::StreamBody;
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Words;

/// The only field of the answer, with the number of `SERVING`; not compressed, two bytes long.
const SERVING: &[u8] = &[0, 0, 0, 0, 2, 0x08, 0x01];

pub(super) fn run(words: &Words) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(words))
}

async fn serve(words: &Words) -> anyhow::Result<()> {
    let stop = crate::operator::stop_on_signal()?;
    let metrics = listen(words, "metrics-port", 9090).await?;
    let health = listen(words, "grpc-health-port", 9003).await?;
    // Nobody speaks ext-proc with it, but its port is open.
    let _picks = listen(words, "grpc-port", 9002).await?;
    let router = Router::new().route("/metrics", get(|| async { "" }));
    let metrics =
        axum::serve(metrics, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let (served, ()) = tokio::join!(async { metrics.await }, answer_probes(health, stop));
    served.context("cannot serve metrics")
}

async fn listen(words: &Words, name: &str, usual: u16) -> anyhow::Result<TcpListener> {
    let (host, port) = (words.host(), words.port(name, usual)?);
    let cannot = || format!("cannot listen on {host}:{port} (--{name})");
    TcpListener::bind((host, port)).await.with_context(cannot)
}

async fn answer_probes(listener: TcpListener, stop: CancellationToken) {
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let Ok((stream, _)) = accepted else { continue };
        let stop = stop.clone();
        tokio::spawn(async move {
            let connection = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service_fn(healthy));
            // Probes come again if one is lost.
            let _ = stop.run_until_cancelled(connection).await;
        });
    }
}

async fn healthy(_: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
    let frames: [Result<_, Infallible>; 2] = [
        Ok(Frame::data(Bytes::from_static(SERVING))),
        Ok(Frame::trailers(HeaderMap::from_iter([status]))),
    ];
    let mut response = Response::new(Body::new(StreamBody::new(stream::iter(frames))));
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
