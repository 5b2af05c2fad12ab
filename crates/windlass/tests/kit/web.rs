//! A small server of files that knows of ranges.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Response, header},
};
use bytes::Bytes;
use tokio::net::TcpListener;

use crate::hub::{begin_of, only};

#[derive(Default)]
pub(crate) struct Known {
    pub(crate) content: Vec<u8>,
    /// Of it only so much is sent, and then nothing more.
    pub(crate) send_only: Option<usize>,
    pub(crate) refuse: Option<u16>,
    /// Ranges, and who asked.
    pub(crate) asked: Vec<(Option<String>, Option<String>)>,
}

pub(crate) struct Web {
    pub(crate) address: String,
    pub(crate) known: Arc<Mutex<Known>>,
}

impl Web {
    pub(crate) async fn start(content: Vec<u8>) -> Self {
        let known = Arc::new(Mutex::new(Known { content, ..Known::default() }));
        let router = Router::new().fallback(answer).with_state(known.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, known }
    }
}

async fn answer(State(known): State<Arc<Mutex<Known>>>, request: Request) -> Response<Body> {
    let mut known = known.lock().unwrap();
    let header = |name: header::HeaderName| {
        request.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    let range = header(header::RANGE);
    known.asked.push((range.clone(), header(header::AUTHORIZATION)));
    if let Some(status) = known.refuse {
        return Response::builder().status(status).body(Body::empty()).unwrap();
    }
    let from = range.as_deref().map_or(0, begin_of);
    let size = known.content.len();
    let rest = Bytes::from(known.content[from..].to_vec());
    let mut response = Response::builder().header("etag", "\"1\"");
    if from > 0 {
        let range = format!("bytes {from}-{}/{size}", size - 1);
        response = response.status(206).header("content-range", range);
    }
    let response = response.header("content-length", rest.len());
    response.body(only(rest, known.send_only)).unwrap()
}
