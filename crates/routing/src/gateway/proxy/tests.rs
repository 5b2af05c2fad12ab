mod connections;
mod pools;

use std::{collections::HashMap, future::Future};

use futures::{StreamExt, stream as streams};
use http_body_util::{Empty, Full, StreamBody};
use hyper::{body::Frame, client::conn, server::conn::http1, service::service_fn};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::{super::listen, *};
use crate::gateway::{
    backends::{Key, Service},
    route::Route,
};

type Sent = http_body_util::combinators::BoxBody<Bytes, std::io::Error>;

/// A backend that answers with what the function makes of a request.
async fn backend<F, A>(answer: F) -> SocketAddr
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Sent>> + Send + 'static,
{
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = socket.accept().await {
            let answer = answer.clone();
            let service = service_fn(move |request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move {
                let _ = served.with_upgrades().await;
            });
        }
    });
    address
}

fn said(text: impl Into<Bytes>) -> Response<Sent> {
    Response::new(Full::new(text.into()).map_err(|never| match never {}).boxed())
}

/// One that says its own name.
async fn named(name: &'static str) -> SocketAddr {
    backend(move |_| async move { said(name) }).await
}

async fn gateway(rules: Value, services: &[(&str, &[SocketAddr])]) -> SocketAddr {
    let service = |(name, ready): &(&str, &[SocketAddr])| -> (Key, Service) {
        let ports = HashMap::from([(80, ready.to_vec())]);
        (("ns".to_owned(), (*name).to_owned()), Service { ports })
    };
    let services = services.iter().map(service).collect();
    gateway_with(rules, Backends { services, ..Backends::default() }).await
}

async fn gateway_with(rules: Value, backends: Backends) -> SocketAddr {
    let spec = serde_json::from_value(json!({ "rules": rules })).unwrap();
    let route = Route::compile("ns", "r", "", &spec).unwrap();
    let proxy = Arc::new(Proxy::default());
    proxy.set(Routing { table: Table::new(vec![Arc::new(route)]), backends });
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(listen::serve(proxy, socket, None));
    address
}

#[tokio::test]
async fn who_asks_before_the_routes_are_known_is_told_to_come_again() {
    let proxy = Arc::new(Proxy::default());
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = socket.local_addr().unwrap();
    tokio::spawn(listen::serve(proxy.clone(), socket, None));
    let early = ask(gateway, "/").await;
    assert_eq!(early.headers()["retry-after"], "1");
    assert_eq!(text(early).await, (503, "the routes are not known yet".to_owned()));
    proxy.set(Routing::default());
    assert_eq!(text(ask(gateway, "/").await).await, (404, "no route matches".to_owned()));
}

async fn ask(gateway: SocketAddr, path: &str) -> Response<Incoming> {
    let stream = TcpStream::connect(gateway).await.unwrap();
    let (mut sender, connection) = conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(path).header("host", "h").body(Empty::<Bytes>::new()).unwrap();
    sender.send_request(request).await.unwrap()
}

/// A request as it was written.
struct Heard {
    head: String,
    body: String,
    /// How many connections there were before this one.
    connection: usize,
}

impl Heard {
    /// Of each line with this name.
    fn values(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.filter(|(field, _)| *field == name).map(|(_, value)| value).collect()
    }
}

/// Reads a request, or nothing if the other side has gone.
async fn hear(stream: &mut TcpStream) -> Option<Heard> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut heard = Heard { head, body: String::new(), connection: 0 };
    let length = heard.values("content-length").last().map(|length| length.parse().unwrap());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.unwrap();
    if heard.values("transfer-encoding") == ["chunked"] {
        while let Some(mut chunk) = chunk(stream).await {
            body.append(&mut chunk);
        }
    }
    heard.body = String::from_utf8(body).unwrap();
    Some(heard)
}

async fn chunk(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut size = Vec::new();
    while !size.ends_with(b"\r\n") {
        size.push(stream.read_u8().await.unwrap());
    }
    let size = usize::from_str_radix(str::from_utf8(&size).unwrap().trim(), 16).unwrap();
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk).await.unwrap();
    chunk.truncate(size);
    (size > 0).then_some(chunk)
}

const NOTHING: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A backend that tells what it hears, byte by byte.
async fn listener() -> (SocketAddr, mpsc::UnboundedReceiver<Heard>) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for connection in 0.. {
            let Ok((mut stream, _)) = socket.accept().await else { break };
            let tell = tell.clone();
            tokio::spawn(async move {
                while let Some(heard) = hear(&mut stream).await {
                    let _ = tell.send(Heard { connection, ..heard });
                    stream.write_all(NOTHING).await.unwrap();
                }
            });
        }
    });
    (address, told)
}

/// The code, head and body of the answer to what was written as it is.
async fn exchange(gateway: SocketAddr, request: &[u8]) -> (u16, String, String) {
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    // It may answer before it has read all.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let code = head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0);
    (code, head.to_owned(), body.to_owned())
}

async fn text(response: Response<Incoming>) -> (u16, String) {
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

fn to(name: &str) -> Value {
    json!({ "name": name, "port": 80 })
}

#[tokio::test]
async fn requests_are_shared_by_weight() {
    let (a, b) = (named("a").await, named("b").await);
    let backends = json!([{ "name": "a", "port": 80, "weight": 9 },
        { "name": "b", "port": 80, "weight": 1 }]);
    let gateway = gateway(json!([{ "backendRefs": backends }]), &[("a", &[a]), ("b", &[b])]).await;
    let mut counted = HashMap::new();
    for _ in 0..400 {
        *counted.entry(text(ask(gateway, "/").await).await.1).or_insert(0) += 1;
    }
    let canary = counted["b"];
    // Chance would be as near as that in one of four runs.
    assert!((38..=42).contains(&canary), "{counted:?}");
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_in_words() {
    let rules = json!([
        { "matches": [{ "path": { "value": "/none" } }], "backendRefs": [to("none")] },
        { "matches": [{ "path": { "value": "/missing" } }], "backendRefs": [to("missing")] },
        { "matches": [{ "path": { "value": "/zero" } }],
          "backendRefs": [{ "name": "none", "port": 80, "weight": 0 }] },
        { "matches": [{ "path": { "value": "/moved" } }], "filters": [{ "type": "RequestRedirect",
            "requestRedirect": { "path": { "type": "ReplaceFullPath", "replaceFullPath": "/x" },
                "port": 80 } }] },
    ]);
    let gateway = gateway(rules, &[("none", &[])]).await;
    for (path, want) in [
        ("/", (404, "no route matches")),
        ("/none", (503, "no endpoint is ready")),
        ("/missing", (500, "BackendNotFound")),
        ("/zero", (500, "the route has no backend with a weight")),
    ] {
        let (code, said) = text(ask(gateway, path).await).await;
        assert_eq!((code, said.as_str()), want, "{path}");
    }
    let moved = ask(gateway, "/moved?q=1").await;
    assert_eq!(
        (moved.status().as_u16(), &moved.headers()["location"]),
        (302, &"http://h/x?q=1".parse::<HeaderValue>().unwrap())
    );
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_reached_is_passed_over() {
    let gone = {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        socket.local_addr().unwrap()
    };
    let there = named("there").await;
    let both = gateway(json!([{ "backendRefs": [to("a")] }]), &[("a", &[gone, there])]).await;
    for _ in 0..20 {
        assert_eq!(text(ask(both, "/").await).await, (200, "there".to_owned()));
    }
    let none = gateway(json!([{ "backendRefs": [to("a")] }]), &[("a", &[gone])]).await;
    assert_eq!(ask(none, "/").await.status(), 503);
}

#[tokio::test]
async fn the_backend_sees_the_path_and_headers_that_the_rule_makes() {
    let echo = backend(|request| async move {
        let header =
            |name: &str| request.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
        let seen = json!([
            request.uri().to_string(),
            header("host"),
            header("x-forwarded-host"),
            header("x-forwarded-for"),
            header("x-a"),
            header("connection")
        ]);
        said(seen.to_string())
    });
    let echo = echo.await;
    let rule = json!([{ "matches": [{ "path": { "value": "/team/chat" } }],
        "filters": [
            { "type": "URLRewrite", "urlRewrite": { "path": {
                "type": "ReplacePrefixMatch", "replacePrefixMatch": "/" } } },
            { "type": "RequestHeaderModifier", "requestHeaderModifier": {
                "set": [{ "name": "x-a", "value": "1" }] } },
        ],
        "backendRefs": [to("a")] }]);
    let gateway = gateway(rule, &[("a", &[echo])]).await;
    let (_, seen) = text(ask(gateway, "/team/chat/v1/models?all=1").await).await;
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen, json!(["/v1/models?all=1", "h", "h", "127.0.0.1", "1", null]));
}

#[tokio::test]
async fn each_part_of_an_answer_is_passed_on_at_once() {
    let (more, parts) = mpsc::unbounded_channel::<&'static str>();
    let parts = Arc::new(tokio::sync::Mutex::new(Some(parts)));
    let streaming = backend(move |_| {
        let parts = parts.clone();
        async move {
            let parts = parts.lock().await.take().unwrap();
            let frames = streams::unfold(parts, |mut parts| async move {
                let part = parts.recv().await?;
                Some((Ok(Frame::data(Bytes::from_static(part.as_bytes()))), parts))
            });
            Response::new(BodyExt::boxed(StreamBody::new(frames)))
        }
    });
    let gateway =
        gateway(json!([{ "backendRefs": [to("a")] }]), &[("a", &[streaming.await])]).await;
    let mut body = ask(gateway, "/").await.into_body();
    for part in ["data: 1\n\n", "data: 2\n\n"] {
        more.send(part).unwrap();
        // The next part is not there yet, so this one cannot have waited for it.
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), part);
    }
    drop(more);
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn a_backend_that_fails_in_the_middle_is_no_clean_end() {
    let fail = Arc::new(tokio::sync::Notify::new());
    let failing = fail.clone();
    let broken = backend(move |_| {
        let failing = failing.clone();
        async move {
            let half = streams::iter([Ok(Frame::data(Bytes::from_static(b"half")))]);
            let end = streams::once(async move {
                failing.notified().await;
                Err(std::io::Error::other("broken"))
            });
            Response::new(BodyExt::boxed(StreamBody::new(half.chain(end))))
        }
    });
    let gateway = gateway(json!([{ "backendRefs": [to("a")] }]), &[("a", &[broken.await])]).await;
    let mut body = ask(gateway, "/").await.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "half");
    fail.notify_one();
    assert!(body.frame().await.unwrap().is_err());
}

/// Sends when it is dropped.
struct Told(mpsc::UnboundedSender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn who_has_gone_is_not_worked_for() {
    let (gone, mut told) = mpsc::unbounded_channel::<()>();
    let endless = backend(move |_| {
        let kept = Told(gone.clone());
        async move {
            let frames = streams::repeat_with(move || {
                let _kept = &kept;
                Ok(Frame::data(Bytes::from_static(&[0; 4096])))
            });
            Response::new(BodyExt::boxed(StreamBody::new(frames)))
        }
    });
    let address = endless.await;
    let gateway = gateway(json!([{ "backendRefs": [to("a")] }]), &[("a", &[address])]).await;
    let mut body = ask(gateway, "/").await.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(told.recv().await, Some(()), "the backend was told by the end of its connection");
}

#[tokio::test]
async fn time_is_limited_as_the_rule_says() {
    let silent = backend(|_| async { streams::pending::<Response<Sent>>().next().await.unwrap() });
    let slow = backend(|_| async {
        let first = streams::iter([Ok(Frame::data(Bytes::from_static(b"a")))]);
        Response::new(BodyExt::boxed(StreamBody::new(first.chain(streams::pending()))))
    });
    let rules = json!([
        { "matches": [{ "path": { "value": "/silent" } }], "timeouts": { "request": "100ms" },
          "backendRefs": [to("silent")] },
        { "matches": [{ "path": { "value": "/slow" } }], "timeouts": { "backendRequest": "300ms" },
          "backendRefs": [to("slow")] },
    ]);
    let backends: &[(&str, &[SocketAddr])] =
        &[("silent", &[silent.await]), ("slow", &[slow.await])];
    let gateway = gateway(rules, backends).await;
    assert_eq!(ask(gateway, "/silent").await.status(), 504);
    let cut = ask(gateway, "/slow").await;
    assert_eq!(cut.status(), 200);
    assert!(cut.into_body().collect().await.is_err(), "it is cut, not ended");
}

/// The first line of the answer to what was written as it is.
async fn said_to(gateway: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    // It may answer before it has read all.
    let _ = stream.write_all(request).await;
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        match stream.read_u8().await {
            Ok(byte) => line.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused() {
    let there = named("there").await;
    let gateway = gateway(json!([{ "backendRefs": [to("a")] }]), &[("a", &[there])]).await;
    let huge = format!("GET / HTTP/1.1\r\nhost: h\r\nx: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET / HTTP/1.1\r\nhost: h\r\n{}\r\n", "x: y\r\n".repeat(1000));
    for (request, want) in [
        (&b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"[..], "HTTP/1.1 200 OK"),
        (b"GET / HTTP/1.1\r\nhost: h:8080\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET http://h/ HTTP/1.1\r\nhost: other\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET / HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (b"GET / HTTP/1.1\r\nhost: a b\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (b"GET / HTTP/1.1\r\nhost: a@h\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (b"nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (huge.as_bytes(), "HTTP/1.1 431 Request Header Fields Too Large"),
        (many.as_bytes(), "HTTP/1.1 431 Request Header Fields Too Large"),
    ] {
        let shown = String::from_utf8_lossy(&request[..request.len().min(60)]);
        assert_eq!(said_to(gateway, request).await, want, "{shown}");
    }
}

#[tokio::test]
async fn who_is_slow_keeps_nobody_else_waiting() {
    let there = named("there").await;
    let gateway = gateway(json!([{ "backendRefs": [to("a")] }]), &[("a", &[there])]).await;
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(gateway).await.unwrap();
        stream.write_all(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-len").await.unwrap();
        slow.push(stream);
    }
    assert_eq!(text(ask(gateway, "/").await).await, (200, "there".to_owned()));
}

#[tokio::test]
async fn upgrades_are_passed_through() {
    let echo = backend(|mut request| async move {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut stream = TokioIo::new(upgrade.await.unwrap());
            let mut text = [0; 4];
            stream.read_exact(&mut text).await.unwrap();
            stream.write_all(&text).await.unwrap();
        });
        let mut response = said("");
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("echo"));
        response
    });
    let gateway = gateway(json!([{ "backendRefs": [to("a")] }]), &[("a", &[echo.await])]).await;
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream.write_all(b"ping").await.unwrap();
    let mut back = [0; 4];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"ping");
}
