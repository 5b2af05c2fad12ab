use std::sync::Arc;

use jiff::Timestamp;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsConnector,
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

/// The status of a request over TLS under this host and token.
async fn ask(port: u16, authority: &[u8], host: &str, token: &str) -> u16 {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority.to_vec())).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let request = format!(
        "GET /api/v1/namespaces HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // The other side may close without saying so in TLS.
    let _ = stream.read_to_string(&mut answer).await;
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("no status")
}

#[tokio::test]
async fn the_listener_asks_for_our_name_and_for_a_token() {
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
    let host = format!("127.0.0.1:{port}");
    assert_eq!(ask(port, &authority, &host, &token).await, 200);
    assert_eq!(ask(port, &authority, &host, "wrong").await, 401);
    let evil = format!("evil.example:{port}");
    assert_eq!(ask(port, &authority, &evil, &token).await, 421);
}
