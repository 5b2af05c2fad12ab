//! A cluster in a process, for kubectl: `cargo run -p windlass-local --example serve -- <directory>`.
//!
//! It writes `kubeconfig` into the directory and serves until it is stopped.

use std::{error::Error, path::PathBuf, sync::Arc};

use jiff::Timestamp;
use tokio::net::TcpListener;
use windlass_local::{
    auth::{Certificates, Tokens, kubeconfig, private_dir},
    http::{Access, Listener, Server, serve},
    registry::{Registry, Settings, tend},
    store::Store,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).ok_or("which directory?")?;
    let dir = PathBuf::from(dir);
    private_dir(&dir)?;
    let certificates = Certificates::load_or_create(&dir, Timestamp::now())?;
    let tokens = Tokens::load_or_create(&dir)?;
    let socket = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = socket.local_addr()?.port();
    let server = format!("https://127.0.0.1:{port}");
    kubeconfig::write(&dir.join("kubeconfig"), &server, &certificates.authority, tokens.admin())?;
    let store = Store::open(&dir.join("store.redb"), Arc::new(Timestamp::now))?;
    let settings = Settings {
        root_certificate: certificates.authority.clone(),
        port: Some(port),
        ..Settings::default()
    };
    let registry = Registry::start(store, settings).await?;
    let server = Server::new(registry.clone(), Access { tokens: Some(tokens) });
    tokio::spawn(tend(registry));
    let listener = Listener::new(socket, &certificates)?;
    Ok(serve(server, listener).await?)
}
