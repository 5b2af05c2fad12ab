//! As much of HTTP as a benchmark needs: one thread for each connection, and nothing that takes time.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use anyhow::{Context, Result};

const PIECE: usize = 256 << 10;
/// Nobody here sends more of it.
const HEAD: u64 = 64 << 10;

pub(super) struct Request {
    pub(super) method: String,
    /// With its query.
    pub(super) target: String,
    /// Of the body, which is read after this, by whoever answers or by nobody.
    pub(super) length: u64,
    /// The first byte that is wanted.
    pub(super) from: u64,
}

pub(super) enum Body {
    Nothing,
    Text(String),
    /// So many bytes from where it is.
    File(std::fs::File, u64),
}

pub(super) struct Answer {
    /// With its words.
    pub(super) status: &'static str,
    /// Lines without their ends.
    pub(super) headers: Vec<String>,
    pub(super) body: Body,
}

impl Answer {
    pub(super) fn of(status: &'static str) -> Self {
        Self { status, headers: Vec::new(), body: Body::Nothing }
    }
}

/// On loopback, for as long as this process lives. Bodies are read and forgotten before the answer.
pub(super) fn serve(
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on loopback")?;
    let address = listener.local_addr().context("cannot tell the port")?;
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                // Who is gone is nobody's concern.
                let _ = connection(&client, &*answer);
            });
        }
    });
    Ok(address)
}

fn connection(client: &TcpStream, answer: &dyn Fn(&Request) -> Answer) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut from = BufReader::with_capacity(PIECE, client);
    while let Some(request) = head(&mut from)? {
        forget(&mut from, request.length)?;
        let Answer { status, headers, body } = answer(&request);
        let length = match &body {
            Body::Nothing => 0,
            Body::Text(text) => text.len() as u64,
            Body::File(_, length) => *length,
        };
        let mut text = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n");
        for header in headers {
            text += &format!("{header}\r\n");
        }
        let mut into = client;
        into.write_all(format!("{text}\r\n").as_bytes())?;
        match body {
            _ if request.method == "HEAD" => {}
            Body::Nothing => {}
            Body::Text(text) => into.write_all(text.as_bytes())?,
            // The kernel does it, without a copy in this process.
            Body::File(file, length) => {
                io::copy(&mut file.take(length), &mut into)?;
            }
        }
    }
    Ok(())
}

/// Nothing at the end of the connection.
fn head(from: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut from = from.take(HEAD);
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(io::Error::other("that is no request"));
    };
    let mut request = Request { method, target, length: 0, from: 0 };
    loop {
        line.clear();
        from.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { return Ok(Some(request)) };
        let number = |text: &str| text.trim().parse::<u64>().map_err(io::Error::other);
        match name.to_ascii_lowercase().as_str() {
            "content-length" => request.length = number(value)?,
            "range" => {
                let first = value.trim().trim_start_matches("bytes=").split('-').next();
                request.from = number(first.unwrap_or_default())?;
            }
            _ => {}
        }
    }
}

fn forget(from: &mut impl BufRead, mut length: u64) -> io::Result<()> {
    while length > 0 {
        let there = from.fill_buf()?.len();
        if there == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let part = there.min(usize::try_from(length).unwrap_or(usize::MAX));
        from.consume(part);
        length -= part as u64;
    }
    Ok(())
}

/// What a client gets for this, as it stands on the wire.
#[cfg(test)]
pub(super) fn ask(address: SocketAddr, request: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}
