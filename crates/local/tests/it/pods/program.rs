//! A server for containers: this test binary again, with one test that stands for a program.

use std::{convert::Infallible, path::Path};

use axum::body::{Body, Bytes};
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body_util::StreamBody;
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::node::until;

pub(super) const PORT: u16 = 4690;
pub(super) const GRPC_PORT: u16 = 4691;
/// Names the file without which it does not listen.
const GATE: &str = "WINDLASS_TEST_GATE";
/// What gRPC says of a service that serves.
const SERVING: &[u8] = &[0, 0, 0, 0, 2, 0x08, 0x01];

/// Which image it is. A script stands before it, because the sum of a large program takes its time.
pub(super) fn rule(state: &Path) -> String {
    let (program, script) = (std::env::current_exe().unwrap(), state.join("server.sh"));
    let test = "pods::program::a_server_in_a_container";
    let text = format!("exec '{}' --exact {test} --nocapture\n", program.display());
    std::fs::write(&script, text).unwrap();
    format!("*/server:*=sh {}", script.display())
}

/// A container of it.
pub(super) fn server(gate: &Path) -> Value {
    json!({
        "name": "c", "image": "server:1",
        "env": [{"name": GATE, "value": gate}],
        "ports": [{"name": "http", "containerPort": PORT}],
    })
}

#[tokio::test]
async fn a_server_in_a_container() {
    let Ok(gate) = std::env::var(GATE) else { return };
    until("the gate opens", || Path::new(&gate).exists()).await;
    let (host, pod) = (std::env::var("POD_IP").unwrap(), std::env::var("HOSTNAME").unwrap());
    let grpc = TcpListener::bind((&*host, GRPC_PORT)).await.unwrap();
    tokio::spawn(answer_probes(grpc));
    let http = TcpListener::bind((&*host, PORT)).await.unwrap();
    let router = axum::Router::new().route("/", axum::routing::get(async || pod));
    axum::serve(http, router).await.unwrap();
}

async fn answer_probes(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let connection = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service_fn(healthy));
        // Probes come again if one is lost.
        tokio::spawn(async { connection.await.unwrap_or_default() });
    }
}

async fn healthy(_: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
    let trailers = HeaderMap::from_iter([status]);
    let frames: [Result<_, Infallible>; 2] =
        [Ok(Frame::data(Bytes::from_static(SERVING))), Ok(Frame::trailers(trailers))];
    let mut response = Response::new(Body::new(StreamBody::new(stream::iter(frames))));
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
