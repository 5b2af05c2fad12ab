//! Somebody between a client and a server, who may hold the parts of an upload up, or cut one in its
//! middle.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

#[derive(Default)]
pub(crate) struct Seen {
    /// Parts of uploads that were let through or cut.
    pub(crate) parts: usize,
    /// All bytes that clients have sent.
    pub(crate) sent: u64,
    /// After so many parts nothing is let through any more.
    pub(crate) hold_after: Option<usize>,
    /// After so many parts, the next one is cut, once.
    pub(crate) cut_after: Option<usize>,
    /// After so many bytes nothing is let through any more, and what was under way by then ends when this
    /// does.
    pub(crate) hold_at: Option<u64>,
}

pub(crate) struct Between {
    pub(crate) address: String,
    pub(crate) seen: Arc<Mutex<Seen>>,
}

impl Between {
    pub(crate) fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen, server) = (Arc::new(Mutex::new(Seen::default())), server.to_owned());
        let known = seen.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (known, server) = (known.clone(), TcpStream::connect(&server).unwrap());
                thread::spawn(move || join(client, server, &known));
            }
        });
        Self { address, seen }
    }
}

/// Until one of them has gone.
fn join(mut client: TcpStream, mut server: TcpStream, seen: &Mutex<Seen>) {
    let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || {
        let _ = io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..count];
        // Nobody asks anew before there is an answer, so a request begins what is read.
        let passes = match bytes.starts_with(b"PATCH ") {
            true => next(seen),
            false => Passes::All,
        };
        let bytes = match passes {
            Passes::All => bytes,
            Passes::Beginning => &bytes[..beginning(bytes)],
            Passes::Nothing => loop {
                thread::park();
            },
        };
        let bytes = match until_held(seen, bytes.len()) {
            Some(count) => &bytes[..count],
            None => bytes,
        };
        if server.write_all(bytes).is_err() || passes == Passes::Beginning {
            break;
        }
        if bytes.len() < count && passes == Passes::All {
            while seen.lock().unwrap().hold_at.is_some() {
                thread::yield_now();
            }
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Write);
    let _ = client.shutdown(Shutdown::Both);
}

/// How many of these bytes may pass, if not all.
fn until_held(seen: &Mutex<Seen>, count: usize) -> Option<usize> {
    let mut seen = seen.lock().unwrap();
    let left = seen.hold_at.map(|at| usize::try_from(at.saturating_sub(seen.sent)).unwrap());
    let passes = left.filter(|left| *left < count);
    seen.sent += passes.unwrap_or(count) as u64;
    passes
}

/// The head of a request and a little of its body, if that has come with it.
fn beginning(bytes: &[u8]) -> usize {
    let head =
        bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    bytes.len().min(head + 1000)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Passes {
    All,
    Beginning,
    Nothing,
}

fn next(seen: &Mutex<Seen>) -> Passes {
    let mut seen = seen.lock().unwrap();
    if seen.hold_after.is_some_and(|limit| seen.parts >= limit) {
        return Passes::Nothing;
    }
    seen.parts += 1;
    let parts = seen.parts;
    match seen.cut_after.take_if(|limit| parts > *limit) {
        Some(_) => Passes::Beginning,
        None => Passes::All,
    }
}
