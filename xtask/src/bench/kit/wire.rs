//! The way to a registry, with a counter in it.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};

/// Forwards connections for as long as this process lives.
pub(super) struct Wire {
    pub(super) address: SocketAddr,
    sent: Arc<AtomicU64>,
}

impl Wire {
    pub(super) fn to(registry: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on loopback")?;
        let address = listener.local_addr().context("cannot tell the port")?;
        let sent = Arc::new(AtomicU64::new(0));
        let counter = sent.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let counter = counter.clone();
                thread::spawn(move || {
                    // A registry that is gone is for the client to notice.
                    let _ = forward(&client, registry, &counter);
                });
            }
        });
        Ok(Self { address, sent })
    }

    /// All bytes that clients have sent so far, heads of requests included.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

fn forward(client: &TcpStream, registry: SocketAddr, counter: &AtomicU64) -> std::io::Result<()> {
    let server = TcpStream::connect(registry)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pass(&server, client, |_| {});
        });
        pass(client, &server, |bytes| {
            counter.fetch_add(bytes, Ordering::Relaxed);
        })
    })
}

/// Until the sender ends, which the other side is told.
fn pass(mut from: &TcpStream, mut to: &TcpStream, count: impl Fn(u64)) -> std::io::Result<()> {
    let mut buffer = vec![0; 256 << 10];
    let outcome = loop {
        match from.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(read) => {
                count(read as u64);
                if let Err(error) = to.write_all(&buffer[..read]) {
                    break Err(error);
                }
            }
            Err(error) => break Err(error),
        }
    };
    // Either may have gone already.
    let _ = to.shutdown(Shutdown::Write);
    if outcome.is_err() {
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_to_the_registry_is_counted_and_what_comes_back_is_not() {
        let registry = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Wire::to(registry.local_addr().unwrap()).unwrap();
        let mut client = TcpStream::connect(wire.address).unwrap();
        client.write_all(b"12345").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let (mut server, _) = registry.accept().unwrap();
        let mut said = String::new();
        server.read_to_string(&mut said).unwrap();
        server.write_all(b"an answer").unwrap();
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!((&*said, &*answer, wire.sent()), ("12345", "an answer", 5));
    }
}
