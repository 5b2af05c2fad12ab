use std::{net::SocketAddr, path::Path};

use axum::routing::get;
use rcgen::generate_simple_self_signed;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, RootCertStore},
};

use super::*;

async fn start(certificate: Arc<Certificate>, http2: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/x", get(async || "hello"));
    tokio::spawn(serve(listener, config(certificate, http2).unwrap(), router));
    address
}

/// A client that trusts this certificate and no other.
async fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

fn write(folder: &Path) -> CertificateDer<'static> {
    let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.join("tls.crt"), pem("CERTIFICATE", made.cert.der())).unwrap();
    let key = made.signing_key.serialize_der();
    fs::write(folder.join("tls.key"), pem("PRIVATE KEY", &key)).unwrap();
    made.cert.der().clone()
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = k8s_openapi::ByteString(der.to_vec());
    let body = serde_json::to_value(body).unwrap();
    let body: Vec<_> = body.as_str().unwrap().as_bytes().chunks(64).collect();
    let body = String::from_utf8(body.join(&b'\n')).unwrap();
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

#[tokio::test]
async fn without_files_it_serves_with_a_certificate_of_its_own() {
    let certificate = Certificate::self_signed().unwrap();
    let trusted = certificate.0.borrow().cert[0].clone();
    let address = start(certificate, false).await;
    let mut stream = connect(address, &trusted).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    stream.write_all(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn http2_is_spoken_where_it_is_enabled() {
    let certificate = Certificate::self_signed().unwrap();
    let trusted = certificate.0.borrow().cert[0].clone();
    let address = start(certificate, true).await;
    let mut stream = connect(address, &trusted).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    // The preface and empty settings; the server answers with its own, a frame of type 4.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4);
}

#[tokio::test]
async fn changed_files_are_served_to_new_connections() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let files = Files { chain: path("tls.crt"), key: path("tls.key") };
    assert!(Certificate::read(&files).is_err(), "nothing there yet");
    let first = write(folder.path());
    let certificate = Certificate::read(&files).unwrap();
    let address = start(certificate.clone(), false).await;
    connect(address, &first).await.unwrap();

    fs::write(path("tls.crt"), "half of a certificate").unwrap();
    certificate.look(&files);
    connect(address, &first).await.unwrap();

    let second = write(folder.path());
    certificate.look(&files);
    connect(address, &second).await.unwrap();
    assert!(connect(address, &first).await.is_err());
}
