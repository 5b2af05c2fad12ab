//! The routing sidecar: what comes to its port goes to the server of the same pod.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::{Outcome, arguments::Arguments};

type Upstream = (std::net::IpAddr, u16);

pub(crate) async fn run(arguments: &Arguments, stop: CancellationToken) -> Outcome {
    let upstream: Upstream = (arguments.host(), arguments.port("vllm-port", 8200)?);
    let listener = TcpListener::bind((arguments.host(), arguments.port("port", 8000)?)).await?;
    let router = Router::new().fallback(hand_on).with_state(upstream);
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await?;
    Ok(())
}

async fn hand_on(State(upstream): State<Upstream>, request: Request) -> Response {
    match ask(upstream, request).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// One connection for each request, which ends when its answer has been read.
async fn ask(
    upstream: Upstream,
    request: Request,
) -> Result<Response, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(upstream).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?.map(Body::new))
}
