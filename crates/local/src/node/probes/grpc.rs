//! `grpc`: the health service of gRPC, version 1. The two messages have one field each, so they are
//! written and read here.

use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Request, header};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::timeout;

use super::{ask::connect, http::AGENT};

const PATH: &str = "/grpc.health.v1.Health/Check";
const UNIMPLEMENTED: &str = "12";
const SERVING: u64 = 1;

pub(super) async fn check(
    host: &str,
    port: u16,
    service: &str,
    limit: Duration,
) -> Result<(), String> {
    let at = format!("{host}:{port}");
    match timeout(limit, ask(host, port, service)).await {
        Ok(Ok(SERVING)) => Ok(()),
        Ok(Ok(status)) => Err(format!("service unhealthy (responded with {:?})", name_of(status))),
        Ok(Err(Failure::Connect(text))) => {
            Err(format!("error: failed to connect service at {at:?}: {text}"))
        }
        Ok(Err(Failure::Unknown(text))) => Err(format!(
            "error: this server does not implement the grpc health protocol \
             (grpc.health.v1.Health): {text}"
        )),
        Ok(Err(Failure::Call(text))) => Err(format!("error: health rpc probe failed: {text}")),
        Err(_) => Err(format!("timeout: health rpc did not complete within {}s", limit.as_secs())),
    }
}

enum Failure {
    Connect(String),
    /// There is no such service.
    Unknown(String),
    Call(String),
}

async fn ask(host: &str, port: u16, service: &str) -> Result<u64, Failure> {
    let stream = connect(host, port).await.map_err(Failure::Connect)?;
    let call = |error: &dyn std::fmt::Display| Failure::Call(error.to_string());
    let made = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = made.await.map_err(|error| call(&error))?;
    let request = Request::post(format!("http://{host}:{port}{PATH}"))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header(header::USER_AGENT, AGENT)
        .body(Body::from(framed(&request(service))))
        .map_err(|error| call(&error))?;
    let mut answer = std::pin::pin!(async {
        let answer = sender.send_request(request).await.map_err(|error| call(&error))?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(|error| call(&error))?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        verdict(&head.headers, &trailers)?;
        message(&body.to_bytes()).ok_or_else(|| call(&"the answer cannot be read"))
    });
    tokio::select! {
        answer = &mut answer => answer,
        // What it has brought before it ended counts.
        _ = connection => answer.await,
    }
}

/// An error without a body has its status in the headers.
fn verdict(headers: &HeaderMap, trailers: &HeaderMap) -> Result<(), Failure> {
    let of = |name: &str| {
        let value = trailers.get(name).or_else(|| headers.get(name));
        value.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    match &*of("grpc-status") {
        "0" => Ok(()),
        UNIMPLEMENTED => Err(Failure::Unknown(of("grpc-message"))),
        "" => Err(Failure::Call("no gRPC status in the answer".to_owned())),
        code => {
            Err(Failure::Call(format!("rpc error: code = {code} desc = {}", of("grpc-message"))))
        }
    }
}

fn name_of(status: u64) -> String {
    match status {
        0 => "UNKNOWN".to_owned(),
        2 => "NOT_SERVING".to_owned(),
        3 => "SERVICE_UNKNOWN".to_owned(),
        other => other.to_string(),
    }
}

/// Field 1, a string, unless it is empty.
fn request(service: &str) -> Vec<u8> {
    if service.is_empty() {
        return Vec::new();
    }
    let mut bytes = vec![0x0a];
    let mut length = service.len();
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(service.as_bytes());
    bytes
}

/// Not compressed, and with its length before it.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut bytes = vec![0];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

/// The status in an answer: field 1, a number, left out when it is zero.
fn message(framed: &[u8]) -> Option<u64> {
    let (head, message) = framed.split_at_checked(5)?;
    let length: [u8; 4] = head.get(1..)?.try_into().ok()?;
    if head.first() != Some(&0) || u32::from_be_bytes(length) as usize != message.len() {
        return None;
    }
    match message {
        [] => Some(0),
        [0x08, value @ 0..0x80] => Some(u64::from(*value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_framed_and_read() {
        assert_eq!(framed(&request("")), [0, 0, 0, 0, 0]);
        assert_eq!(framed(&request("ab")), [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        let long = request(&"x".repeat(300));
        assert_eq!(long[..3], [0x0a, 0xac, 0x02]);
        for (bytes, want) in [
            (&[0, 0, 0, 0, 2, 8, 1][..], Some(1)),
            (&[0, 0, 0, 0, 0], Some(0)),
            (&[0, 0, 0, 0, 2, 8, 2], Some(2)),
            (&[1, 0, 0, 0, 2, 8, 1], None),
            (&[0, 0, 0, 0, 3, 8, 1], None),
            (&[0, 0], None),
        ] {
            assert_eq!(message(bytes), want, "{bytes:?}");
        }
    }
}
