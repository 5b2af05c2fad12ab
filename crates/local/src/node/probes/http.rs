//! `httpGet`: any status from 200 to 399 will do. Certificates are not checked, as nobody could.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use http::{HeaderName, HeaderValue, Request, header};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPGetAction;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, ClientConfig, DigitallySignedStruct, SignatureScheme,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, ServerName, UnixTime},
    },
};

use super::ask::connect;

pub(super) const AGENT: &str = "kube-probe/1.36";

pub(super) async fn get(
    get: &HTTPGetAction,
    host: &str,
    port: u16,
    limit: Duration,
) -> Result<(), String> {
    let host = get.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(host);
    let secure = get.scheme.as_deref() == Some("HTTPS");
    let path = get.path.as_deref().unwrap_or("/");
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let scheme = if secure { "https" } else { "http" };
    let url = format!("{scheme}://{host}:{port}{path}");
    let request = request(get, host, port, &path).map_err(|text| format!("Get {url:?}: {text}"))?;
    let asked = timeout(limit, async {
        let stream = connect(host, port).await?;
        if !secure {
            return ask(stream, request).await;
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = connector().map_err(|error| error.to_string())?.connect(name, stream).await;
        ask(stream.map_err(|error| error.to_string())?, request).await
    });
    match asked.await {
        Ok(Ok(200..400)) => Ok(()),
        Ok(Ok(code)) => Err(format!("HTTP probe failed with statuscode: {code}")),
        Ok(Err(text)) => Err(format!("Get {url:?}: {text}")),
        Err(_) => Err(format!(
            "Get {url:?}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        )),
    }
}

fn request(
    get: &HTTPGetAction,
    host: &str,
    port: u16,
    path: &str,
) -> Result<Request<Body>, String> {
    let mut request = Request::get(path)
        .header(header::HOST, format!("{host}:{port}"))
        .header(header::USER_AGENT, AGENT)
        .header(header::ACCEPT, "*/*")
        .header(header::CONNECTION, "close")
        .body(Body::empty())
        .map_err(|error| error.to_string())?;
    for own in get.http_headers.iter().flatten() {
        let name = HeaderName::try_from(&own.name).map_err(|error| error.to_string())?;
        let value = HeaderValue::try_from(&own.value).map_err(|error| error.to_string())?;
        request.headers_mut().insert(name, value);
    }
    Ok(request)
}

/// The status of the answer. The rest of it is not waited for.
async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Body>,
) -> Result<u16, String> {
    let made = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = made.map_err(|error| error.to_string())?;
    let mut answer = std::pin::pin!(sender.send_request(request));
    let answer = tokio::select! {
        answer = &mut answer => answer,
        // What it has brought before it ended counts.
        _ = connection => answer.await,
    };
    answer.map(|answer| answer.status().as_u16()).map_err(|error| error.to_string())
}

fn connector() -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Takes any certificate, as probes of a cluster do.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
