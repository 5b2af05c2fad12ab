use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time,
};

use super::*;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n";

async fn gateway(at_once: usize) -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(serve_some(Arc::default(), socket, None, at_once));
    address
}

#[tokio::test]
async fn who_says_nothing_does_not_stay_for_ever() {
    let gateway = gateway(9).await;
    for said in ["", "P", "PRI * HTTP/2.0", "GET /"] {
        let mut stream = TcpStream::connect(gateway).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        // Who comes later is answered, so this one is known too.
        let mut later = TcpStream::connect(gateway).await.unwrap();
        later.write_all(REQUEST).await.unwrap();
        later.read_u8().await.unwrap();
        time::pause();
        let ended = time::timeout(4 * HEAD, stream.read_u8()).await;
        assert!(ended.is_ok(), "{said:?}");
        time::resume();
    }
}

#[tokio::test]
async fn who_comes_when_all_places_are_taken_waits_for_one() {
    let gateway = gateway(1).await;
    let mut first = TcpStream::connect(gateway).await.unwrap();
    let mut second = TcpStream::connect(gateway).await.unwrap();
    second.write_all(REQUEST).await.unwrap();
    first.write_all(REQUEST).await.unwrap();
    first.read_u8().await.unwrap();
    assert!(second.try_read(&mut [0]).is_err(), "it is not its turn");
    drop(first);
    second.read_u8().await.unwrap();
}
