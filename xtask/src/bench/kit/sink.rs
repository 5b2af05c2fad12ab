//! A registry that hashes nothing and keeps but the names of blobs: what is measured with it is the client.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Result;

use super::serve::{Answer, Request, serve};

pub(super) struct Sink {
    pub(super) address: SocketAddr,
    taken: Arc<Taken>,
}

#[derive(Default)]
struct Taken {
    /// Bytes of bodies, of all uploads.
    bytes: AtomicU64,
    /// How far each upload is, by its number.
    uploads: Mutex<HashMap<String, u64>>,
    /// Digests of blobs that have come to their end. Who asks for one would send it twice otherwise.
    blobs: Mutex<HashSet<String>>,
}

impl Sink {
    pub(super) fn start() -> Result<Self> {
        let taken = Arc::new(Taken::default());
        let known = taken.clone();
        let address = serve(move |request| known.answer(request))?;
        Ok(Self { address, taken })
    }

    /// What clients have sent so far, without the heads of requests.
    pub(super) fn taken(&self) -> u64 {
        self.taken.bytes.load(Ordering::Relaxed)
    }

    /// For somebody who shall send everything.
    pub(super) fn forget(&self) {
        self.taken.blobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Taken {
    fn has(&self, path: &str) -> bool {
        let digest = path.rsplit_once("/blobs/").map(|(_, digest)| digest);
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        digest.is_some_and(|digest| blobs.contains(digest))
    }

    fn answer(&self, request: &Request) -> Answer {
        self.bytes.fetch_add(request.length, Ordering::Relaxed);
        let path = request.target.split('?').next().unwrap_or_default();
        let upload = path.rsplit_once("/blobs/uploads/").map(|(_, number)| number);
        match (request.method.as_str(), upload) {
            ("GET", _) if path == "/v2/" => Answer::of("200 OK"),
            ("POST", Some(_)) => {
                let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
                let number = uploads.len().to_string();
                let headers = vec![format!("Location: {path}{number}")];
                uploads.insert(number, 0);
                Answer { headers, ..Answer::of("202 Accepted") }
            }
            ("PATCH", Some(number)) => {
                let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
                let reached = uploads.entry(number.to_owned()).or_default();
                *reached += request.length;
                let range = format!("Range: 0-{}", reached.saturating_sub(1));
                Answer {
                    headers: vec![format!("Location: {path}"), range],
                    ..Answer::of("202 Accepted")
                }
            }
            ("PUT", Some(_)) => {
                let digest = request
                    .target
                    .split(['?', '&'])
                    .find_map(|part| Some(part.strip_prefix("digest=")?.replace("%3A", ":")));
                let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
                blobs.extend(digest);
                Answer::of("201 Created")
            }
            ("PUT", None) => Answer::of("201 Created"),
            ("HEAD", None) if self.has(path) => Answer::of("200 OK"),
            // It has nothing of what it was sent.
            _ => Answer::of("404 Not Found"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::serve::ask, *};

    #[test]
    fn what_is_sent_is_counted_and_forgotten() {
        let sink = Sink::start().unwrap();
        let begun = ask(sink.address, "POST /v2/a/b/blobs/uploads/ HTTP/1.1\r\n\r\n");
        assert!(begun.contains("202") && begun.contains("Location: /v2/a/b/blobs/uploads/0\r\n"));
        let part = "PATCH /v2/a/b/blobs/uploads/0 HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc";
        let answer = ask(sink.address, &part.repeat(2));
        assert!(answer.contains("Range: 0-2\r\n") && answer.contains("Range: 0-5\r\n"), "{answer}");
        let head = || ask(sink.address, "HEAD /v2/a/b/blobs/sha256:1 HTTP/1.1\r\n\r\n");
        assert!(head().starts_with("HTTP/1.1 404 "));
        let end =
            "PUT /v2/a/b/blobs/uploads/0?digest=sha256%3A1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
        assert!(ask(sink.address, end).starts_with("HTTP/1.1 201 "));
        assert!(head().starts_with("HTTP/1.1 200 "), "it is not sent twice");
        sink.forget();
        assert!(head().starts_with("HTTP/1.1 404 "));
        assert_eq!(sink.taken(), 6);
    }
}
