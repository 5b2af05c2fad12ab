use std::{future::poll_fn, sync::Arc, time::Duration};

use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{self, Instant, timeout},
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName},
    },
};
use windlass_local::{
    auth::{Certificates, Tokens},
    http::{Access, Listener, Server, serve},
    registry::{Registry, Settings},
    store::Store,
};

struct Served {
    port: u16,
    authority: Vec<u8>,
    token: String,
    _dir: tempfile::TempDir,
}

impl Served {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let certificates = Certificates::load_or_create(dir.path(), Timestamp::now()).unwrap();
        let tokens = Tokens::load_or_create(dir.path()).unwrap();
        let token = tokens.admin().to_owned();
        let authority = certificates.chain[1].clone();
        let store = Store::in_memory(Arc::new(Timestamp::now)).unwrap();
        let registry = Registry::start(store, Settings::default()).await.unwrap();
        let server = Server::new(registry, Access { tokens: Some(tokens) });
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let listener = Listener::new(socket, &certificates).unwrap();
        tokio::spawn(serve(server, listener));
        Self { port, authority, token, _dir: dir }
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        self.connect_as(&[]).await
    }

    async fn connect_as(&self, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.authority.clone())).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    /// The status of the answer to what is sent.
    async fn send(&self, request: &str) -> u16 {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // The other side may close without saying so in TLS.
        let _ = stream.read_to_string(&mut answer).await;
        answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("no status")
    }

    async fn ask(&self, host: &str, token: &str) -> u16 {
        self.send(&format!(
            "GET /api/v1/namespaces HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\n\r\n"
        ))
        .await
    }

    /// The beginning of a request over HTTP/1.1.
    fn head(&self, request: &str, token: &str) -> String {
        let host = self.host();
        format!("{request} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n")
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

#[tokio::test]
async fn the_listener_asks_for_our_name_and_for_a_token() {
    let served = Served::start().await;
    let (host, token) = (served.host(), &served.token);
    assert_eq!(served.ask(&host, token).await, 200);
    for wrong in ["wrong", "", &token[1..], &format!("{token}x"), &token.to_uppercase()] {
        assert_eq!(served.ask(&host, wrong).await, 401, "{wrong}");
    }
    let evil = format!("evil.example:{}", served.port);
    assert_eq!(served.ask(&evil, token).await, 421);
}

#[tokio::test]
async fn clients_that_say_nothing_keep_nobody_waiting() {
    let served = Served::start().await;
    let (host, token) = (served.host(), &served.token);
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(("127.0.0.1", served.port)).await.unwrap());
    }
    let mut halves = Vec::new();
    let head = format!(
        "POST /api/v1/namespaces HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    for part in [&head[..20], &head[..head.len() - 4], &head] {
        for _ in 0..20 {
            let mut stream = served.connect().await;
            stream.write_all(part.as_bytes()).await.unwrap();
            halves.push(stream);
        }
    }
    assert_eq!(served.ask(&host, token).await, 200);
}

/// After how many seconds the other side hangs up, if nothing more is sent. Time passes only while
/// everybody waits.
async fn hangs_up_after(mut stream: impl AsyncRead + Unpin) -> Option<u64> {
    time::pause();
    let started = Instant::now();
    // It may say something first, and may close without saying so in TLS.
    let ended = timeout(Duration::from_secs(1000), async {
        while stream.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {}
    });
    let ended = ended.await.ok().map(|()| started.elapsed().as_secs());
    time::resume();
    ended
}

#[tokio::test]
async fn connections_of_those_who_say_nothing_are_closed() {
    let served = Served::start().await;
    let silent = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    assert_eq!(hangs_up_after(silent).await, Some(10));

    let mut greeting = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    // The beginning of a handshake.
    greeting.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1]).await.unwrap();
    assert_eq!(hangs_up_after(greeting).await, Some(10));

    let head = format!("GET /version HTTP/1.1\r\nHost: {}\r\n", served.host());
    for part in ["", "GET", &head] {
        let mut half = served.connect().await;
        half.write_all(part.as_bytes()).await.unwrap();
        assert_eq!(hangs_up_after(half).await, Some(32), "{part:?}");
    }

    // HTTP/2 begins with a preface and with settings.
    for part in ["", "PRI * HTTP/2.0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut half = served.connect_as(&[b"h2"]).await;
        half.write_all(part.as_bytes()).await.unwrap();
        assert_eq!(hangs_up_after(half).await, Some(32), "{part:?}");
    }
    assert_eq!(served.ask(&served.host(), &served.token).await, 200);
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    let served = Served::start().await;
    let host = served.host();
    let many: String = (0..200).map(|at| format!("X-{at}: y\r\n")).collect();
    let crowded = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{many}\r\n");
    for request in ["nonsense\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", &crowded] {
        let code = served.send(request).await;
        assert!(matches!(code, 400 | 431), "{request:.40}: {code}");
    }
    assert_eq!(served.ask(&host, &served.token).await, 200);
}

/// Code and body of the next answer over HTTP/1.1.
async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> Option<(u16, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let code = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    Some((code, body))
}

const BLANKS: &[u8] = &[b' '; 1 << 16];

/// Sends this many blanks over HTTP/1.1 without a look at what comes back, unless that was ended early,
/// and only then reads the answer.
async fn send_blanks_first(
    stream: &mut TlsStream<TcpStream>,
    head: &str,
    size: usize,
) -> Option<(u16, Vec<u8>)> {
    let head = format!("{head}Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut left = size;
    while left > 0 {
        let some = left.min(BLANKS.len());
        stream.write_all(&BLANKS[..some]).await.ok()?;
        left -= some;
    }
    answer(stream).await
}

/// Sends this many blanks over HTTP/2; the answer, unless sending was ended early.
async fn send_blanks(
    served: &Served,
    path: &str,
    token: &str,
    size: usize,
) -> Option<(u16, Vec<u8>)> {
    let stream = served.connect_as(&[b"h2"]).await;
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(format!("https://{}{path}", served.host()))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(())
        .unwrap();
    let (answer, mut body) = sender.ready().await.unwrap().send_request(request, false).unwrap();
    let mut left = size;
    while left > 0 {
        body.reserve_capacity(left);
        let room = poll_fn(|context| body.poll_capacity(context)).await?.ok()?;
        left -= room;
        body.send_data(vec![b' '; room].into(), left == 0).ok()?;
    }
    let (head, mut body) = answer.await.unwrap().into_parts();
    let mut said = Vec::new();
    while let Some(bytes) = body.data().await {
        said.extend_from_slice(&bytes.unwrap());
    }
    Some((head.status.as_u16(), said))
}

/// What is said to those who send more than is taken, or what they may not.
fn refusals(served: &Served) -> [(&'static str, String, u16, Vec<u8>); 3] {
    let status = |code: u16, reason: &str, message: &str| {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        })
        .to_string()
        .into_bytes()
    };
    let (admin, namespaces) = (served.token.clone(), "/api/v1/namespaces");
    let large = "Request entity too large: limit is 3145728";
    [
        (namespaces, admin.clone(), 413, status(413, "RequestEntityTooLarge", large)),
        (namespaces, "wrong".into(), 401, status(401, "Unauthorized", "Unauthorized")),
        ("/nothing", admin, 404, b"404 page not found\n".to_vec()),
    ]
}

fn same(found: &[u8], want: &[u8]) -> bool {
    let value = |bytes| serde_json::from_slice::<Value>(bytes).ok();
    found == want || (value(found).is_some() && value(found) == value(want))
}

#[tokio::test]
async fn whoever_still_sends_over_http2_gets_the_answer() {
    let served = Served::start().await;
    for (path, token, want, body) in refusals(&served) {
        let (code, said) = send_blanks(&served, path, &token, 10 << 20).await.unwrap();
        assert_eq!(code, want, "{path}");
        assert!(same(&said, &body), "{}", String::from_utf8_lossy(&said));
    }
    // There is an end to patience.
    let endless = send_blanks(&served, "/nothing", &served.token, 100 << 20).await;
    assert_eq!(endless, None);
}

#[tokio::test]
async fn whoever_still_sends_over_http1_gets_the_answer() {
    let served = Served::start().await;
    let mut stream = served.connect().await;
    for (path, token, want, body) in refusals(&served) {
        let head = served.head(&format!("POST {path}"), &token);
        let answered = send_blanks_first(&mut stream, &head, 10 << 20).await;
        let (code, said) = answered.unwrap_or_else(|| panic!("{path}: no answer"));
        assert_eq!(code, want, "{path}");
        assert!(same(&said, &body), "{}", String::from_utf8_lossy(&said));
    }
    // The connection is as good as before.
    let head = served.head("GET /version", &served.token);
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    assert_eq!(answer(&mut stream).await.unwrap().0, 200);
    // There is an end to patience.
    let head = served.head("POST /nothing", &served.token);
    assert_eq!(send_blanks_first(&mut stream, &head, 100 << 20).await, None);
}

/// As many answers as do not fit into the buffers of a connection.
const UNREAD: usize = 200;

#[tokio::test]
async fn connections_of_those_who_do_not_read_are_closed() {
    let served = Served::start().await;
    let head = served.head("GET /openapi/v3/apis/apps/v1", &served.token);
    let mut reading = served.connect().await;
    let mut idle = served.connect().await;
    for stream in [&mut reading, &mut idle] {
        stream.write_all(format!("{head}\r\n").repeat(UNREAD).as_bytes()).await.unwrap();
    }
    for at in 0..UNREAD {
        let (code, body) = answer(&mut reading).await.unwrap();
        assert!(code == 200 && body.len() > 100_000, "{at}: {} bytes", body.len());
    }
    time::pause();
    // Which passes only while everybody waits.
    let waited = timeout(Duration::from_secs(600), std::future::pending::<()>()).await;
    assert!(waited.is_err());
    time::resume();
    let mut read = 0;
    while answer(&mut idle).await.is_some() {
        read += 1;
    }
    assert!(read < UNREAD, "it was still there after {read} answers");
    assert_eq!(served.ask(&served.host(), &served.token).await, 200);
}

#[tokio::test]
async fn who_does_without_tls_is_told_so() {
    let served = Served::start().await;
    for request in ["GET /version HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let want =
            "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
        assert_eq!(answer, want);
    }
}
