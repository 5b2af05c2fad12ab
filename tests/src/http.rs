//! A plain GET, so that the tests need no other program for it.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// The body of a successful answer.
pub fn get(address: &str, path: &str) -> Result<String, String> {
    let answer = ask(address, path).map_err(|error| format!("{address}{path}: {error}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("an answer without an end of head")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status == "200" { Ok(body.to_owned()) } else { Err(format!("{status}: {body}")) }
}

/// Version 1.0, so that the body ends with the connection and has no other framing.
fn ask(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
