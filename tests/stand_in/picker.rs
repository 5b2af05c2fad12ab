//! An endpoint picker, as far as its pod shows it: gRPC health and metrics. Who really picks is the
//! gateway.

use std::{convert::Infallible, net::SocketAddr};

use axum::{
    Router,
    body::{Body, Bytes},
    routing::get,
};
use futures::stream;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::StreamBody;
use hyper::{body::Frame, body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{Outcome, arguments::Arguments};

/// The only field of the answer, with the number of `SERVING`; not compressed, two bytes long.
const SERVING: &[u8] = &[0, 0, 0, 0, 2, 0x08, 0x01];

pub(crate) async fn run(arguments: &Arguments, stop: CancellationToken) -> Outcome {
    let at = |name, usual| Ok::<_, String>((arguments.host(), arguments.port(name, usual)?));
    let metrics = TcpListener::bind(at("metrics-port", 9090)?).await?;
    let health = TcpListener::bind(at("grpc-health-port", 9003)?).await?;
    // Nobody speaks ext-proc with it, but its port is open.
    let _picks = TcpListener::bind(at("grpc-port", 9002)?).await?;
    let pool = arguments.get("pool-name").unwrap_or_default();
    let figure = format!("inference_pool_ready_pods{{name=\"{pool}\"}} 1\n");
    let router = Router::new().route("/metrics", get(move || async move { figure }));
    let metrics =
        axum::serve(metrics, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let (served, ()) = tokio::join!(async { metrics.await }, answer_probes(health, stop));
    Ok(served?)
}

async fn answer_probes(listener: TcpListener, stop: CancellationToken) {
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let Ok((stream, _)): Result<(_, SocketAddr), _> = accepted else { continue };
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
    let trailers = HeaderMap::from_iter([(
        header::HeaderName::from_static("grpc-status"),
        HeaderValue::from_static("0"),
    )]);
    let frames: [Result<_, Infallible>; 2] =
        [Ok(Frame::data(Bytes::from_static(SERVING))), Ok(Frame::trailers(trailers))];
    let mut response = Response::new(Body::new(StreamBody::new(stream::iter(frames))));
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
