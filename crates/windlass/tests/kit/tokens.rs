//! Tokens of a registry, which last for a moment only.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
    routing::get,
};
use http::{Method, header};
use tokio::net::TcpListener;
use windlass_kit::registry::{Registry, Settings};

use crate::{
    resume::large,
    wait,
    world::{World, said},
};

/// How long a token is good, in seconds.
const LASTS: u64 = 4;
/// What a part of an upload takes.
const SLOW: Duration = Duration::from_millis(250);

#[derive(Default)]
struct Seen {
    /// When each was handed out.
    given: Vec<Instant>,
    /// Requests without a token, and with one that has ended.
    strangers: usize,
    late: usize,
    parts: usize,
}

type Shared = Arc<Mutex<Seen>>;

async fn start(root: &Path) -> (String, Shared) {
    let registry = Registry::open(Settings { root: root.to_owned(), ..Settings::default() });
    let seen = Shared::default();
    let router = registry.unwrap().router().layer(from_fn_with_state(seen.clone(), guard));
    let token = Router::new().route("/token", get(token)).with_state(seen.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router.merge(token)).await });
    (address, seen)
}

async fn token(State(seen): State<Shared>) -> String {
    let mut seen = seen.lock().unwrap();
    seen.given.push(Instant::now());
    format!(r#"{{"token":"{}","expires_in":{LASTS}}}"#, seen.given.len() - 1)
}

async fn guard(State(seen): State<Shared>, request: Request, next: Next) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION);
    let shown = shown.map(|shown| shown.to_str().unwrap().strip_prefix("Bearer ").unwrap());
    let is_let_in = {
        let mut seen = seen.lock().unwrap();
        let given = shown.map(|number| seen.given[number.parse::<usize>().unwrap()]);
        let is_good = given.is_some_and(|given| given.elapsed() < Duration::from_secs(LASTS));
        seen.strangers += usize::from(given.is_none());
        seen.late += usize::from(given.is_some() && !is_good);
        seen.parts += usize::from(is_good && request.method() == Method::PATCH);
        is_good
    };
    if !is_let_in {
        let host = request.headers()[header::HOST].to_str().unwrap();
        let challenge = format!(r#"Bearer realm="http://{host}/token",service="s""#);
        let refused = Response::builder().status(401).header(header::WWW_AUTHENTICATE, challenge);
        return refused.body(Body::empty()).unwrap();
    }
    if request.method() == Method::PATCH {
        wait::pass(SLOW).await;
    }
    next.run(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn k22_a_token_is_renewed_before_it_ends() {
    let world: World = large();
    let (address, seen) = start(&world.path("registry")).await;
    let name = format!("{address}/org/large:v1");
    world.kit(&["pack", "large", "-t", &name]).well();
    let push = ["push", "--plain-http", "--chunk-size=128KiB", "--concurrency=1", &name];
    said(world.command(&push)).well();
    let pushed = std::mem::take(&mut *seen.lock().unwrap());
    assert!(pushed.parts > 30, "{} parts", pushed.parts);
    let lasted = pushed.given.last().unwrap().duration_since(pushed.given[0]);
    assert!(pushed.given.len() > 2 && lasted.as_secs() >= LASTS, "{lasted:?} {:?}", pushed.given);
    assert_eq!(pushed.strangers, 1, "only who is new has no token");
    // On a busy machine one may end on its way; if none were renewed before, all of them would.
    assert!(
        pushed.late * 2 < pushed.given.len(),
        "{} of {:?} came late",
        pushed.late,
        pushed.given
    );
    // By somebody who has never had one.
    world.kit(&["unpack", &name, "--config=else", "--plain-http", "-d", "out"]).well();
    assert!(world.files("out") == world.files("large"));
}
