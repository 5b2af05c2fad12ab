//! HTTPS: a certificate from files that may change, or one made at the start.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    },
};
use windlass_engine::error::chain;

/// For the handshake. Whoever says nothing must not hold a connection for ever.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// For the head of a request, and so between two of them, as the Go originals have it.
const HEAD: Duration = Duration::from_secs(32);
/// How often files are looked at. A kubelet takes longer to bring a changed Secret.
const LOOK: Duration = Duration::from_secs(10);

pub(super) struct Files {
    pub(super) chain: PathBuf,
    pub(super) key: PathBuf,
}

/// What connections are given that begin now.
#[derive(Debug)]
pub(super) struct Certificate(watch::Sender<Arc<CertifiedKey>>);

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.borrow().clone())
    }
}

impl Certificate {
    /// For the loopback names only: nobody can check it, but the traffic is not readable.
    pub(super) fn self_signed() -> anyhow::Result<Arc<Self>> {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let made =
            rcgen::generate_simple_self_signed(names).context("cannot make a certificate")?;
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let certified =
            CertifiedKey::from_der(vec![made.cert.der().clone()], key, &ring::default_provider());
        let certified = certified.context("cannot use the certificate just made")?;
        Ok(Arc::new(Self(watch::Sender::new(Arc::new(certified)))))
    }

    pub(super) fn read(files: &Files) -> anyhow::Result<Arc<Self>> {
        let certified = load(files)?;
        Ok(Arc::new(Self(watch::Sender::new(Arc::new(certified)))))
    }

    /// Takes up what the files are changed to, for ever; what cannot be used changes nothing.
    pub(super) async fn follow(self: Arc<Self>, files: Files) {
        loop {
            sleep(LOOK).await;
            self.look(&files);
        }
    }

    fn look(&self, files: &Files) {
        match load(files) {
            Ok(found) if found.cert == self.0.borrow().cert => {}
            Ok(found) => {
                self.0.send_replace(Arc::new(found));
                tracing::info!(path = %files.chain.display(), "certificate has changed");
            }
            Err(error) => {
                tracing::warn!(error = chain(error.as_ref()), "keeping the certificate in use");
            }
        }
    }
}

/// A key that does not belong to the certificate, as between two writes, is an error too.
fn load(files: &Files) -> anyhow::Result<CertifiedKey> {
    let read =
        |path: &PathBuf| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let (certificates, key) = (read(&files.chain)?, read(&files.key)?);
    let cannot = |path: &PathBuf| format!("cannot use {}", path.display());
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&certificates)
        .collect::<Result<_, _>>()
        .with_context(|| cannot(&files.chain))?;
    anyhow::ensure!(!certificates.is_empty(), "{} holds no certificate", files.chain.display());
    let key = PrivateKeyDer::from_pem_slice(&key).with_context(|| cannot(&files.key))?;
    CertifiedKey::from_der(certificates, key, &ring::default_provider())
        .with_context(|| cannot(&files.key))
}

pub(super) fn config(certificate: Arc<Certificate>, http2: bool) -> anyhow::Result<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("cannot set up TLS")?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    let offered: &[&[u8]] = if http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

pub(super) async fn serve(listener: TcpListener, config: ServerConfig, router: Router) {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(converse(acceptor.clone(), stream, router.clone()));
            }
            // Too many open files, as a rule: others have to end first.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn converse(acceptor: TlsAcceptor, stream: TcpStream, router: Router) {
    let stream = match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "handshake failed"),
        Err(_) => return tracing::debug!("handshake took too long"),
    };
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let (stream, service) = (TokioIo::new(stream), TowerToHyperService::new(router));
    let ended = if http2 {
        let mut server = http2::Builder::new(TokioExecutor::new());
        server.timer(TokioTimer::new()).keep_alive_interval(HEAD);
        server.serve_connection(stream, service).await
    } else {
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(HEAD);
        server.serve_connection(stream, service).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

#[cfg(test)]
mod tests;
