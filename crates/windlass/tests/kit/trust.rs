//! Whose certificates count: what is said of a registry is not said of the hub.

use std::{fs, net::SocketAddr, path::Path, sync::Arc};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer},
};

use crate::{
    debian::pem,
    hub::Hub,
    server::Server,
    world::{World, said},
};

/// Before a server without TLS. Its certificate, which nobody knows, is left in the file.
async fn tls_before(server: SocketAddr, certificate: &Path) -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    fs::write(certificate, pem("CERTIFICATE", made.cert.der())).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(client).await else { return };
                let mut server = TcpStream::connect(server).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    address
}

fn address(hub: &Hub) -> SocketAddr {
    hub.address.trim_start_matches("http://").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_a_registry_does_not_open_the_hub_to_anybody() {
    let world = World::new();
    let files = || vec![("model.gguf", b"weights".to_vec())];
    let (hub, elsewhere) = (Hub::start(files()).await, Hub::start(files()).await);
    let known = world.path("hub.crt");
    let guarded = format!("https://{}", tls_before(address(&hub), &known).await);
    let server = Server::start(&world.path("registry"), &[], "");
    let name = format!("{}/org/tiny:v1", server.address);
    let import = |flags: &[&str]| {
        let common = ["import", "org/tiny", "--retries=0", "--push", "--plain-http", "-t", &name];
        let mut command = world.command(&[&common[..], flags].concat());
        command.env("HF_ENDPOINT", &guarded).env("HF_TOKEN", "hf_secret");
        said(command)
    };
    for flags in [&[][..], &["--tls-verify=false"]] {
        import(flags).refused(6, "org/tiny");
    }
    assert!(hub.known.lock().unwrap().asked.is_empty(), "nobody learns the token");
    // An authority that is trusted is so for both.
    let trusting = ["--ca-file", known.to_str().unwrap()];
    import(&trusting).well();
    let asked = std::mem::take(&mut hub.known.lock().unwrap().asked);
    assert!(asked.iter().all(|(_, _, who)| who.as_deref() == Some("Bearer hf_secret")));
    // Only the registry is without TLS.
    hub.known.lock().unwrap().elsewhere = Some(elsewhere.address.clone());
    import(&trusting).refused(6, "model.gguf");
    assert!(elsewhere.known.lock().unwrap().asked.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_ours_is_shown_to_the_registry_alone() {
    let world = World::new();
    let hub = Hub::start(vec![("model.gguf", b"weights".to_vec())]).await;
    let known = world.path("hub.crt");
    let guarded = format!("https://{}", tls_before(address(&hub), &known).await);
    // Nobody could show this one: whoever tried would say so.
    let import =
        ["import", "org/tiny", "--ca-file", "hub.crt", "--cert", "no.crt", "--key", "no.key"];
    let mut command = world.command(&import);
    command.env("HF_ENDPOINT", &guarded);
    said(command).well();
    assert_eq!(world.kit(&["list"]).well().lines().count(), 2);
}
