use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

#[tokio::test]
async fn a_connection_is_kept_only_to_who_is_still_there() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = socket.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = socket.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            // Until the other side ends it.
            let _ = stream.read_u8().await;
        }
    });
    for (is_there, want) in [(true, 1), (false, 0)] {
        let upstream = Arc::new(Upstream::default());
        upstream.serve_only(HashSet::from([endpoint]));
        let request = http::Request::get("/").header("host", "h").body(stream::text("")).unwrap();
        let (_, mut lease) = upstream.send(endpoint, request, None).await.unwrap();
        lease.sender.ready().await.unwrap();
        if !is_there {
            upstream.serve_only(HashSet::new());
        }
        upstream.give_back(lease);
        let kept = upstream.kept().idle.values().map(Vec::len).sum::<usize>();
        assert_eq!(kept, want);
    }
}
