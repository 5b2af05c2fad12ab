//! What concerns connections: which are kept, which break, and what is said only for one of them.

use std::time::Duration;

use tokio::{net::TcpSocket, time};

use super::*;

const SOMETHING: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

async fn to_one(backend: SocketAddr) -> SocketAddr {
    gateway(json!([{ "backendRefs": [to("a")] }]), &[("a", &[backend])]).await
}

#[tokio::test]
async fn an_answer_without_body_leaves_its_connection_to_the_next() {
    let (backend, mut heard) = listener().await;
    let gateway = to_one(backend).await;
    for method in ["GET", "HEAD", "DELETE", "GET"] {
        let request = format!("{method} / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
        assert_eq!(exchange(gateway, request.as_bytes()).await.0, 200);
        assert_eq!(heard.recv().await.unwrap().connection, 0, "{method}");
    }
}

/// The first connection breaks off at its second request, the others serve.
async fn fickle() -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut first, _) = socket.accept().await.unwrap();
        hear(&mut first).await;
        first.write_all(SOMETHING).await.unwrap();
        hear(&mut first).await;
        drop(first);
        while let Ok((mut stream, _)) = socket.accept().await {
            hear(&mut stream).await;
            stream.write_all(NOTHING).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn a_kept_connection_that_breaks_is_made_good_where_nothing_is_done_twice() {
    let get = "GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let post = "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx";
    let empty = "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    for (second, want) in [(get, 200), (post, 502), (empty, 502)] {
        let gateway = to_one(fickle().await).await;
        assert_eq!(exchange(gateway, get.as_bytes()).await.0, 200);
        assert_eq!(exchange(gateway, second.as_bytes()).await.0, want, "{second}");
    }
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = to_one(socket.local_addr().unwrap()).await;
    let get = b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let asking = tokio::spawn(exchange(gateway, get));
    let (mut stream, _) = socket.accept().await.unwrap();
    hear(&mut stream).await;
    stream.write_all(SOMETHING).await.unwrap();
    assert_eq!(asking.await.unwrap().0, 200);
    time::pause();
    let ended = time::timeout(Duration::from_secs(60), stream.read_u8()).await;
    assert!(ended.is_ok_and(|read| read.is_err()), "it is closed");
}

/// One that takes no more connections, with those that fill it.
async fn full() -> (SocketAddr, Vec<TcpStream>, TcpListener) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) =
        time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await
    {
        filling.push(stream.unwrap());
    }
    (address, filling, listener)
}

#[tokio::test]
async fn each_try_has_the_time_that_the_rule_gives_a_backend() {
    let (full, _filling, _listener) = full().await;
    let there = named("there").await;
    let rules = json!([{ "timeouts": { "backendRequest": "300ms" }, "backendRefs": [to("a")] }]);
    let gateway = gateway(rules, &[("a", &[full, there])]).await;
    for _ in 0..10 {
        assert_eq!(text(ask(gateway, "/").await).await, (200, "there".to_owned()));
    }
}

#[tokio::test]
async fn who_cannot_be_reached_in_the_time_that_the_rule_gives_is_too_late() {
    let (full, _filling, _listener) = full().await;
    let rules = json!([{ "timeouts": { "backendRequest": "300ms" }, "backendRefs": [to("a")] }]);
    let gateway = gateway(rules, &[("a", &[full])]).await;
    let late = (504, "no answer in the time allowed".to_owned());
    assert_eq!(text(ask(gateway, "/").await).await, late);
}

#[tokio::test]
async fn what_concerns_the_clients_connection_is_not_passed_on() {
    let (backend, mut heard) = listener().await;
    let gateway = to_one(backend).await;
    let address = backend.to_string();
    for (request, name, want) in [
        ("GET / HTTP/1.1\r\nhost: h\r\nconnection: Host, close\r\n\r\n", "host", vec!["h"]),
        ("GET / HTTP/1.0\r\n\r\n", "host", vec![address.as_str()]),
        (
            "GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade, http2-settings, close\r\nupgrade: \
             h2c\r\nhttp2-settings: x\r\n\r\n",
            "upgrade",
            vec![],
        ),
        (
            "GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\nx-forwarded-for: 1.1.1.1\r\n\
             x-forwarded-for: 2.2.2.2, 3.3.3.3\r\n\r\n",
            "x-forwarded-for",
            vec!["1.1.1.1, 2.2.2.2, 3.3.3.3, 127.0.0.1"],
        ),
        (
            "GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncookie: a=1\r\ncookie: b=2\r\n\r\n",
            "cookie",
            vec!["a=1; b=2"],
        ),
    ] {
        assert_eq!(exchange(gateway, request.as_bytes()).await.0, 200, "{request}");
        assert_eq!(heard.recv().await.unwrap().values(name), want, "{request}");
    }
    let tunnel = b"CONNECT h:443 HTTP/1.1\r\nhost: h:443\r\nconnection: close\r\n\r\n";
    assert_eq!(exchange(gateway, tunnel).await.0, 405);
}
