use std::sync::Mutex;

use axum::{
    Router,
    http::{HeaderMap, Response, StatusCode},
    routing::get,
};
use serde_json::json;
use tokio::net::TcpListener;

use super::*;

fn target(container: serde_json::Value) -> Target {
    let env = [("PATH".to_owned(), std::env::var("PATH").unwrap())].into();
    Target {
        host: "127.0.0.1".into(),
        container: Arc::new(serde_json::from_value(container).unwrap()),
        launch: Arc::new(Launch { env, dir: "/".into(), ..Launch::default() }),
        token: "probe-test".into(),
        mounts: Arc::default(),
    }
}

async fn ask(probe: serde_json::Value, port: u16) -> Result<(), String> {
    let spec: Spec = serde_json::from_value(probe).unwrap();
    let target = target(json!({"name": "c", "ports": [{"name": "web", "containerPort": port}]}));
    ask::probe(&spec, &target, Duration::from_secs(1)).await
}

async fn server() -> u16 {
    let answers = Router::new()
        .route("/ok", get(|| async { "fine" }))
        .route("/moved", get(|| async { StatusCode::FOUND }))
        .route("/bad", get(|| async { StatusCode::INTERNAL_SERVER_ERROR }))
        .route("/hang", get(std::future::pending::<()>))
        .route(
            "/who",
            get(|headers: HeaderMap| async move {
                let agent = headers["user-agent"] == "kube-probe/1.36" && headers["x"] == "y";
                if agent { StatusCode::OK } else { StatusCode::BAD_REQUEST }
            }),
        );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, answers).await });
    port
}

#[tokio::test]
async fn http_answers_below_400_pass() {
    let port = server().await;
    let get = |path: &str| json!({"httpGet": {"path": path, "port": port}});
    assert_eq!(ask(get("/ok"), port).await, Ok(()));
    assert_eq!(ask(get("/moved"), port).await, Ok(()));
    let failed = ask(get("/bad"), port).await;
    assert_eq!(failed, Err("HTTP probe failed with statuscode: 500".into()));
    let hung = ask(get("/hang"), port).await.unwrap_err();
    assert!(hung.contains("context deadline exceeded"), "{hung}");
    let named = json!({"httpGet": {"path": "who", "port": "web",
        "httpHeaders": [{"name": "X", "value": "y"}]}});
    assert_eq!(ask(named, port).await, Ok(()));
    let nobody = json!({"httpGet": {"path": "/", "port": 1}});
    let text = "Get \"http://127.0.0.1:1/\": dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!(ask(nobody, port).await, Err(text.into()));
    let unknown = ask(json!({"httpGet": {"port": "nope"}}), port).await;
    assert_eq!(unknown, Err("couldn't find port: \"nope\"".into()));
}

#[tokio::test]
async fn a_socket_that_takes_the_connection_passes() {
    let port = server().await;
    assert_eq!(ask(json!({"tcpSocket": {"port": port}}), port).await, Ok(()));
    let refused = ask(json!({"tcpSocket": {"port": 1}}), port).await;
    assert_eq!(refused, Err("dial tcp 127.0.0.1:1: connect: connection refused".into()));
    assert!(ask(json!({}), port).await.is_err());
}

#[tokio::test]
async fn commands_pass_by_their_exit_code_and_are_cut_off() {
    let run = |script: &str| {
        let probe = json!({"exec": {"command": ["sh", "-c", script]}});
        async move { ask(probe, 1).await }
    };
    assert_eq!(run("exit 0").await, Ok(()));
    assert_eq!(run("echo bad; exit 3").await, Err("bad\n".into()));
    let begin = Instant::now();
    let hung = run("sleep 60 & sleep 60").await;
    assert_eq!(
        hung,
        Err("command timed out: \"sh -c sleep 60 & sleep 60\" timed out after 1s".into())
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
    let missing = ask(json!({"exec": {"command": ["/no/such/program"]}}), 1).await.unwrap_err();
    assert!(missing.contains("no such file or directory"), "{missing}");
}

/// A health service of one word.
async fn health(answer: &'static [u8], status: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = hyper::service::service_fn(move |_| async move {
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", status.parse().unwrap());
                let body = http_body_util::Full::new(axum::body::Bytes::from_static(answer));
                let body = http_body_util::BodyExt::with_trailers(body, async move {
                    Some(Ok::<_, std::convert::Infallible>(trailers))
                });
                Ok::<_, std::convert::Infallible>(Response::new(body))
            });
            tokio::spawn(
                hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new())
                    .serve_connection(hyper_util::rt::TokioIo::new(stream), service),
            );
        }
    });
    port
}

#[tokio::test]
async fn grpc_health_is_asked_for() {
    let text = |text: &str| Err(text.to_owned());
    for (answer, status, want) in [
        (&[0, 0, 0, 0, 2, 8, 1][..], "0", Ok(())),
        (&[0, 0, 0, 0, 2, 8, 2], "0", text("service unhealthy (responded with \"NOT_SERVING\")")),
        (
            &[],
            "12",
            text(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ",
            ),
        ),
        (&[9, 9], "0", text("error: health rpc probe failed: the answer cannot be read")),
    ] {
        let port = health(answer, status).await;
        assert_eq!(ask(json!({"grpc": {"port": port, "service": "s"}}), port).await, want);
    }
    let refused = ask(json!({"grpc": {"port": 1}}), 1).await.unwrap_err();
    assert!(
        refused.starts_with("error: failed to connect service at \"127.0.0.1:1\""),
        "{refused}"
    );
}

#[test]
fn it_takes_some_answers_in_a_row_to_make_a_difference() {
    let spec = Spec { failure_threshold: Some(3), success_threshold: Some(2), ..Spec::default() };
    let mut tally = Tally::new(&spec);
    let answers = [
        (true, None),
        (false, None),
        (true, None),
        (true, Some(true)),
        (true, None),
        (false, None),
        (false, None),
        (true, None),
        (false, None),
        (false, None),
        (false, Some(false)),
        (false, None),
        (true, None),
        (true, Some(true)),
    ];
    for (at, (passed, want)) in answers.into_iter().enumerate() {
        assert_eq!(tally.count(passed), want, "answer {at}");
    }
    assert_eq!(Tally::new(&Spec::default()).count(true), Some(true));
}

#[tokio::test]
async fn a_startup_probe_gates_the_others_and_ends() {
    let port = server().await;
    let spec: Spec =
        serde_json::from_value(json!({"httpGet": {"path": "/ok", "port": port}})).unwrap();
    let (gate, started) = watch::channel(false);
    let target = target(json!({"name": "c"}));
    let words = Arc::new(Mutex::new(Vec::new()));
    let said = |words: &Arc<Mutex<Vec<Word>>>| {
        let words = words.clone();
        async move |word| words.lock().unwrap().push(word)
    };
    let liveness =
        watch(Probe::Liveness, spec.clone(), target.clone(), started.clone(), said(&words));
    let mut liveness = std::pin::pin!(liveness);
    assert!(futures::poll!(&mut liveness).is_pending());
    watch(Probe::Startup, spec, target, started, said(&words)).await;
    assert_eq!(*words.lock().unwrap(), [Word::Verdict(true)]);
    assert!(futures::poll!(&mut liveness).is_pending());
    assert_eq!(words.lock().unwrap().len(), 1, "not asked before the start");
    gate.send(true).unwrap();
    let two = async {
        loop {
            if words.lock().unwrap().len() == 2 {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { () = liveness => {}, () = two => {} }
}
