//! One connection to one endpoint, kept open between reads.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, StatusCode, header::HOST};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::text::Reader;

pub(super) struct Connection {
    address: SocketAddr,
    path: String,
    sender: Option<SendRequest<Empty<Bytes>>>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot connect")]
    Connect(#[source] std::io::Error),
    #[error("cannot ask for the path {path}")]
    Path { path: String, source: http::Error },
    #[error("cannot read the answer")]
    Answer(#[source] hyper::Error),
    #[error("the answer has the status {0}")]
    Status(StatusCode),
    #[error("the answer is longer than 64 MiB")]
    TooLong,
}

const MAX_BYTES: usize = 64 << 20;

impl Connection {
    pub(super) fn new(address: SocketAddr, path: String) -> Self {
        Self { address, path, sender: None }
    }

    /// The next read begins with a new connection.
    pub(super) fn close(&mut self) {
        self.sender = None;
    }

    pub(super) async fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect().await?,
        };
        let request = Request::get(&self.path)
            .header(HOST, self.address.to_string())
            .body(Empty::new())
            .map_err(|source| Error::Path { path: self.path.clone(), source })?;
        sender.ready().await.map_err(Error::Answer)?;
        let answer = sender.send_request(request).await.map_err(Error::Answer)?;
        if answer.status() != StatusCode::OK {
            return Err(Error::Status(answer.status()));
        }
        let mut body = answer.into_body();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            let Ok(chunk) = frame.map_err(Error::Answer)?.into_data() else { continue };
            length += chunk.len();
            if length > MAX_BYTES {
                return Err(Error::TooLong);
            }
            reader.feed(&chunk);
        }
        reader.end();
        self.sender = Some(sender);
        Ok(())
    }

    async fn connect(&self) -> Result<SendRequest<Empty<Bytes>>, Error> {
        let stream = TcpStream::connect(self.address).await.map_err(Error::Connect)?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(Error::Answer)?;
        // It ends when the sender is dropped; its errors come to the sender too.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }
}
