//! One request through the gateway: find its rule, choose who answers, pass everything on.

mod choose;

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Instant};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri};
use http_body_util::BodyExt;
use hyper::{body::Incoming, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::{io::copy_bidirectional, time::timeout_at};

use super::{
    backends::Backends,
    rewrite::{self, Entrance},
    route::Rule,
    stream::{self, Answer, Body},
    table::{Asked, Met, Table},
    upstream::{Failed, Lease, Upstream},
};
use crate::picker::Open;
use choose::choose;

/// What requests go by; replaced as a whole.
#[derive(Clone, Default)]
pub struct Routing {
    pub table: Table,
    pub backends: Backends,
}

#[derive(Default)]
pub struct Proxy {
    /// Nothing until it is known.
    routing: ArcSwapOption<Routing>,
    upstream: Arc<Upstream>,
}

/// Who asks, and where.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub address: SocketAddr,
    pub scheme: &'static str,
    /// Of the listener.
    pub port: u16,
}

impl Proxy {
    /// Connections to endpoints that no longer serve are closed as soon as nothing runs over them.
    pub fn set(&self, routing: Routing) {
        let routing = Arc::new(routing);
        self.routing.store(Some(routing.clone()));
        self.upstream.serve_only(routing.backends.endpoints());
    }

    pub fn routing(&self) -> Arc<Routing> {
        self.routing.load_full().unwrap_or_default()
    }

    pub async fn answer(
        &self,
        client: Client,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        Ok(self.route(client, request).await.unwrap_or_else(|refused| *refused))
    }

    async fn route(
        &self,
        client: Client,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Box<Response<Body>>> {
        if request.method() == Method::CONNECT {
            return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, "this is no proxy of yours"));
        }
        let routing = self.routing.load_full().ok_or_else(not_yet)?;
        let host = host(&request)
            .ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "the header Host makes no sense"))?
            .to_owned();
        let met = routing.table.find(&Asked {
            host: &host,
            method: request.method(),
            path: request.uri().path(),
            query: request.uri().query().unwrap_or_default(),
            headers: request.headers(),
        });
        let Some(met) = met else { return Err(refuse(StatusCode::NOT_FOUND, "no route matches")) };
        let Some(rule) = met.rule() else {
            return Err(refuse(StatusCode::NOT_FOUND, "no route matches"));
        };
        let entrance = Entrance { scheme: client.scheme, host: &host, port: client.port };
        let asked = (request.uri().path(), request.uri().query().unwrap_or_default());
        if let Some(elsewhere) = rewrite::redirect(&rule.filters, met.prefix(), entrance, asked) {
            return redirect(elsewhere);
        }
        let deadline = stream::after(Instant::now(), rule.request_timeout);
        let sending = self.forward(client, &routing, &met, rule, request);
        let answered = match deadline {
            None => sending.await,
            Some(at) => match timeout_at(at.into(), sending).await {
                Ok(answered) => answered,
                Err(_) => Err(too_late()),
            },
        };
        answered.map(|(response, answer)| match answer {
            Some(answer) => response.map(|_| answer.until(deadline).boxed_unsync()),
            None => response,
        })
    }

    async fn forward(
        &self,
        client: Client,
        routing: &Routing,
        met: &Met,
        rule: &Rule,
        request: Request<Incoming>,
    ) -> Result<(Response<Body>, Option<Answer>), Box<Response<Body>>> {
        let (mut parts, body) = request.into_parts();
        let path = rewrite::path(&rule.filters, met.prefix(), parts.uri.path());
        let choice = choose(routing, met, rule, &parts.headers, &path, body).await?;
        let upgrade =
            parts.extensions.remove::<OnUpgrade>().filter(|_| wants_upgrade(&parts.headers));
        let protocol = parts.headers.get(header::UPGRADE).cloned().filter(|_| upgrade.is_some());
        // In HTTP/2 it is part of the address.
        if let Some(authority) = parts.uri.authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            parts.headers.insert(header::HOST, host);
        }
        rewrite::drop_hop_by_hop(&mut parts.headers);
        rewrite::join_cookies(&mut parts.headers);
        rewrite::forward(&mut parts.headers, &client.address.ip().to_string(), client.scheme);
        rewrite::request(&rule.filters, &mut parts.headers);
        for name in choice.remove {
            parts.headers.remove(name);
        }
        for (name, value) in choice.set {
            parts.headers.insert(name, value);
        }
        if let Some(protocol) = protocol {
            parts.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            parts.headers.insert(header::UPGRADE, protocol);
        }
        parts.uri = origin_form(&path, parts.uri.query())
            .ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "the path makes no sense"))?;
        parts.version = http::Version::HTTP_11;
        let request = Request::from_parts(parts, choice.body);
        self.send(choice.endpoints, choice.open, request, rule, upgrade).await
    }

    /// To the best endpoint, and to one more if that one cannot be reached at all.
    async fn send(
        &self,
        endpoints: Vec<SocketAddr>,
        mut open: Option<Open>,
        mut request: Request<Body>,
        rule: &Rule,
        upgrade: Option<OnUpgrade>,
    ) -> Result<(Response<Body>, Option<Answer>), Box<Response<Body>>> {
        let names_host = request.headers().contains_key(header::HOST);
        let mut tries = endpoints.into_iter().take(2).peekable();
        while let Some(endpoint) = tries.next() {
            // It is asked for by the endpoint's version of HTTP, if not by the client's.
            if !names_host && let Ok(host) = HeaderValue::from_str(&endpoint.to_string()) {
                request.headers_mut().insert(header::HOST, host);
            }
            let deadline = stream::after(Instant::now(), rule.backend_timeout);
            match self.upstream.send(endpoint, request, deadline).await {
                Ok((response, lease)) => {
                    if let Some(open) = &mut open {
                        open.served_by(endpoint);
                    }
                    let answered = (response, (self.upstream.clone(), lease));
                    let (response, answer) = pass_back(answered, open, rule, upgrade);
                    return Ok((response, answer.map(|answer| answer.until(deadline))));
                }
                Err(Failed::Connect { request: unsent, source, .. }) => {
                    tracing::debug!(error = %source, %endpoint, "cannot connect");
                    if tries.peek().is_none() {
                        let is_late = deadline.is_some_and(|at| at <= Instant::now());
                        return Err(if is_late { too_late() } else { unreachable() });
                    }
                    request = *unsent;
                }
                Err(Failed::TooLate { .. }) => return Err(too_late()),
                Err(error @ Failed::Send { .. }) => {
                    tracing::debug!(%error, "cannot pass on a request");
                    return Err(refuse(StatusCode::BAD_GATEWAY, "the backend has not answered"));
                }
            }
        }
        Err(unreachable())
    }
}

type Answered = (Response<Incoming>, (Arc<Upstream>, Lease));

fn pass_back(
    (response, lease): Answered,
    mut open: Option<Open>,
    rule: &Rule,
    upgrade: Option<OnUpgrade>,
) -> (Response<Body>, Option<Answer>) {
    let (mut parts, body) = response.into_parts();
    if parts.status == StatusCode::SWITCHING_PROTOCOLS
        && let (Some(client), Some(backend)) = (upgrade, parts.extensions.remove::<OnUpgrade>())
    {
        tokio::spawn(join(client, backend, open));
        return (Response::from_parts(parts, stream::text("")), None);
    }
    // That of the backend is no business of the client.
    parts.version = http::Version::HTTP_11;
    rewrite::drop_hop_by_hop(&mut parts.headers);
    if let Some(open) = &mut open {
        for (name, value) in open.on_headers(parts.status, &parts.headers, Instant::now()) {
            parts.headers.insert(name, value);
        }
    }
    rewrite::response(&rule.filters, &mut parts.headers);
    let answer = Answer::new(body, lease, open);
    (Response::from_parts(parts, stream::text("")), Some(answer))
}

/// After an upgrade bytes go both ways until one side ends.
async fn join(client: OnUpgrade, backend: OnUpgrade, open: Option<Open>) {
    let joined = async {
        let (client, backend) = tokio::try_join!(client, backend)?;
        let (mut client, mut backend) = (TokioIo::new(client), TokioIo::new(backend));
        if let Err(error) = copy_bidirectional(&mut client, &mut backend).await {
            tracing::debug!(%error, "an upgraded connection ended early");
        }
        Ok::<_, hyper::Error>(())
    };
    if let Err(error) = joined.await {
        tracing::debug!(%error, "cannot upgrade a connection");
    }
    drop(open);
}

fn wants_upgrade(headers: &HeaderMap) -> bool {
    let listed = headers.get_all(header::CONNECTION).iter();
    let listed = listed.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let is_listed = listed.into_iter().any(|name| name.trim().eq_ignore_ascii_case("upgrade"));
    // HTTP/2 is spoken on a connection of its own, or not at all.
    let protocol = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    is_listed && protocol.is_some_and(|name| !name.trim().eq_ignore_ascii_case("h2c"))
}

/// Of several, nobody could tell which one another server on the way would go by.
fn host(request: &Request<Incoming>) -> Option<&str> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.as_str());
    }
    let mut named = request.headers().get_all(header::HOST).iter();
    match (named.next(), named.next()) {
        (None, _) => (request.version() == http::Version::HTTP_10).then_some(""),
        (Some(host), None) if host.is_empty() => Some(""),
        (Some(host), None) => {
            let host = host.to_str().ok()?;
            let is_plain = host.parse::<uri::Authority>().is_ok() && !host.contains('@');
            is_plain.then_some(host)
        }
        (Some(_), Some(_)) => None,
    }
}

fn origin_form(path: &str, query: Option<&str>) -> Option<Uri> {
    let target = match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    Uri::builder().path_and_query(target).build().ok()
}

/// That no route is known is no reason to say that there is none.
fn not_yet() -> Box<Response<Body>> {
    let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, "the routes are not known yet");
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn unreachable() -> Box<Response<Body>> {
    refuse(StatusCode::SERVICE_UNAVAILABLE, "no endpoint can be reached")
}

fn too_late() -> Box<Response<Body>> {
    refuse(StatusCode::GATEWAY_TIMEOUT, "no answer in the time allowed")
}

fn refuse(status: StatusCode, text: impl Into<Bytes>) -> Box<Response<Body>> {
    let mut response = Response::new(stream::text(text));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    Box::new(response)
}

fn redirect(elsewhere: rewrite::Elsewhere) -> Result<Response<Body>, Box<Response<Body>>> {
    let location = HeaderValue::from_str(&elsewhere.location)
        .map_err(|_| refuse(StatusCode::BAD_REQUEST, "the path makes no sense"))?;
    let mut response = Response::new(stream::text(""));
    *response.status_mut() = elsewhere.status;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

#[cfg(test)]
mod tests;
