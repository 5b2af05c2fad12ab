//! A small server that speaks as the Hugging Face hub does.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Response, header},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::net::TcpListener;
use windlass_kit::Digest;

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

#[derive(Default)]
pub(crate) struct Known {
    pub(crate) files: Vec<(&'static str, Vec<u8>)>,
    /// Of a file only so much is sent, and then nothing more.
    pub(crate) send_only: Option<usize>,
    /// Whether the sums that are told are those of other files.
    pub(crate) lies: bool,
    /// Of the list so much comes at once.
    pub(crate) page: Option<usize>,
    /// A file that is longer is cut there, once.
    pub(crate) cut: Option<usize>,
    /// Whether the branch is another commit for whoever asks a second time.
    pub(crate) moves: bool,
    /// Who has the files themselves.
    pub(crate) elsewhere: Option<String>,
    /// By how much the sizes that are told are too large.
    pub(crate) adds: usize,
    /// Status and code with which everybody is sent away.
    pub(crate) refuse: Option<(u16, &'static str)>,
    /// Path, range and who asked.
    pub(crate) asked: Vec<(String, Option<String>, Option<String>)>,
}

pub(crate) type Shared = Arc<Mutex<Known>>;

pub(crate) struct Hub {
    pub(crate) address: String,
    pub(crate) known: Shared,
}

impl Hub {
    pub(crate) async fn start(files: Vec<(&'static str, Vec<u8>)>) -> Self {
        let known = Arc::new(Mutex::new(Known { files, ..Known::default() }));
        let router = Router::new().fallback(answer).with_state(known.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, known }
    }
}

async fn answer(State(known): State<Shared>, request: Request) -> Response<Body> {
    let mut known = known.lock().unwrap();
    let path = request.uri().path().to_owned();
    let has_asked = known.asked.iter().any(|(asked, ..)| *asked == path);
    let header = |name: header::HeaderName| {
        request.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    let range = header(header::RANGE);
    known.asked.push((path.clone(), range.clone(), header(header::AUTHORIZATION)));
    if let Some((status, code)) = known.refuse {
        let response = Response::builder().status(status).header("x-error-code", code);
        return response.body(Body::empty()).unwrap();
    }
    if path.contains("/revision/") {
        let sha =
            if known.moves && has_asked { COMMIT.replace('0', "f") } else { COMMIT.to_owned() };
        return Response::new(Body::from(json!({"sha": sha}).to_string()));
    }
    if path.ends_with(&format!("/tree/{COMMIT}")) {
        let sum = |content: &[u8]| match known.lies {
            true => Digest::of(b"another file"),
            false => Digest::of(content),
        };
        let item = |(path, content): &(&str, Vec<u8>)| {
            json!({"type": "file", "path": path, "size": 130, "oid": "pointer",
                "lfs": {"oid": sum(content).hex(), "size": content.len() + known.adds}})
        };
        let query = request.uri().query().unwrap_or_default();
        let first = query.split_once("cursor=").map_or(0, |(_, text)| text.parse().unwrap());
        let page = known.files.iter().skip(first).take(known.page.unwrap_or(usize::MAX));
        let items: Vec<_> = page.map(item).collect();
        let mut response = Response::builder();
        let next = first + items.len();
        if next < known.files.len() {
            let host = header(header::HOST).unwrap();
            let link = format!("<http://{host}{path}?recursive=true&cursor={next}>; rel=\"next\"");
            response = response.header(header::LINK, link);
        }
        return response.body(Body::from(json!(items).to_string())).unwrap();
    }
    if let Some(elsewhere) = &known.elsewhere {
        let place = format!("{elsewhere}{path}");
        let response = Response::builder().status(302).header(header::LOCATION, place);
        return response.body(Body::empty()).unwrap();
    }
    let name = path.rsplit_once(&format!("/resolve/{COMMIT}/")).map(|(_, name)| plain(name));
    let file = known.files.iter().find(|(known, _)| Some(*known) == name.as_deref());
    let Some((_, content)) = file else {
        return Response::builder().status(404).body(Body::empty()).unwrap();
    };
    let from = range.as_deref().map_or(0, begin_of);
    let rest = Bytes::from(content[from..].to_vec());
    let status = if from > 0 { 206 } else { 200 };
    let response = Response::builder().status(status).header("content-length", rest.len());
    match known.cut.take_if(|cut| *cut < rest.len()) {
        Some(cut) => response.body(broken(&rest, cut)).unwrap(),
        None => response.body(only(rest, known.send_only)).unwrap(),
    }
}

/// As it was before it became a part of an address.
fn plain(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap().as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(&piece[..2], 16).unwrap());
        bytes.extend(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

/// So much of it, and then the connection is gone.
fn broken(body: &Bytes, count: usize) -> Body {
    let first = stream::iter([Ok(body.slice(..count))]);
    let end = stream::once(async {
        // What was said before is on its way by then.
        tokio::task::yield_now().await;
        Err(std::io::Error::other("cut"))
    });
    Body::from_stream(first.chain(end))
}

/// Of a range without an end, as in `bytes=7-`.
pub(crate) fn begin_of(range: &str) -> usize {
    range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap()
}

/// The whole body, or so much of it, and then nothing more for ever.
pub(crate) fn only(body: Bytes, count: Option<usize>) -> Body {
    let Some(count) = count.filter(|count| *count < body.len()) else { return Body::from(body) };
    let first = stream::iter([Ok::<Bytes, std::io::Error>(body.slice(..count))]);
    Body::from_stream(first.chain(stream::once(std::future::pending())))
}
