//! What a rule makes of a request before it goes on, and of an answer before it comes back.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::route::{Filter, Modifier, PathChange, Redirect};

/// A redirect instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    pub status: StatusCode,
    pub location: String,
}

/// Where a request came in.
#[derive(Clone, Copy, Debug)]
pub struct Entrance<'a> {
    pub scheme: &'a str,
    /// As the client wrote it.
    pub host: &'a str,
    pub port: u16,
}

/// The path after all rewrites of a rule; `prefix` is what the request was matched by.
pub fn path(filters: &[Filter], prefix: &str, path: &str) -> String {
    let mut path = path.to_owned();
    for filter in filters {
        if let Filter::Rewrite { path: Some(change), .. } = filter {
            path = changed(change, prefix, &path);
        }
    }
    path
}

fn changed(change: &PathChange, prefix: &str, path: &str) -> String {
    let changed = match change {
        PathChange::Full(full) => full.clone(),
        PathChange::Prefix(new) => {
            let rest = path.strip_prefix(prefix).unwrap_or(path);
            format!("{}{rest}", new.trim_end_matches('/'))
        }
    };
    match changed.starts_with('/') {
        true => changed,
        false => format!("/{changed}"),
    }
}

/// Changes the headers of a request, with its host among them.
pub fn request(filters: &[Filter], headers: &mut HeaderMap) {
    for filter in filters {
        match filter {
            Filter::Rewrite { hostname: Some(hostname), .. } => {
                headers.insert(header::HOST, hostname.clone());
            }
            Filter::RequestHeaders(modifier) => modify(modifier, headers),
            Filter::Rewrite { hostname: None, .. }
            | Filter::ResponseHeaders(_)
            | Filter::Redirect(_) => {}
        }
    }
}

/// Changes the headers of an answer.
pub fn response(filters: &[Filter], headers: &mut HeaderMap) {
    for filter in filters {
        if let Filter::ResponseHeaders(modifier) = filter {
            modify(modifier, headers);
        }
    }
}

fn modify(modifier: &Modifier, headers: &mut HeaderMap) {
    for (name, value) in &modifier.set {
        headers.insert(name.clone(), value.clone());
    }
    for (name, value) in &modifier.add {
        headers.append(name.clone(), value.clone());
    }
    for name in &modifier.remove {
        headers.remove(name);
    }
}

/// The redirect that a rule asks for, if it does.
pub fn redirect(
    filters: &[Filter],
    prefix: &str,
    entrance: Entrance<'_>,
    path_and_query: (&str, &str),
) -> Option<Elsewhere> {
    let redirect = filters.iter().find_map(|filter| match filter {
        Filter::Redirect(redirect) => Some(redirect),
        _ => None,
    })?;
    let (path, query) = path_and_query;
    let path = match &redirect.path {
        Some(change) => changed(change, prefix, path),
        None => path.to_owned(),
    };
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    let location = format!("{}{path}{query}", origin(redirect, entrance));
    Some(Elsewhere { status: redirect.status, location })
}

/// Scheme, host and port, the last only where the scheme does not imply it.
fn origin(redirect: &Redirect, entrance: Entrance<'_>) -> String {
    let scheme = redirect.scheme.as_deref().unwrap_or(entrance.scheme);
    let named = match entrance.host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => entrance.host,
    };
    let host = redirect.hostname.as_deref().unwrap_or(named);
    let usual = match scheme {
        "https" => 443,
        _ => 80,
    };
    // Another scheme is served on its own port unless one is named.
    let port = redirect.port.unwrap_or(match redirect.scheme {
        Some(_) => usual,
        None => entrance.port,
    });
    match port == usual {
        true => format!("{scheme}://{host}"),
        false => format!("{scheme}://{host}:{port}"),
    }
}

/// Removes what concerns only the connection that the message came by. The host is no such thing,
/// whatever the client says.
pub fn drop_hop_by_hop(headers: &mut HeaderMap) {
    const FIXED: [HeaderName; 7] = [
        header::CONNECTION,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ];
    let listed: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .filter(|name| *name != header::HOST)
        .collect();
    let more = ["keep-alive", "proxy-connection"].map(HeaderName::from_static);
    for name in listed.iter().chain(&FIXED).chain(&more) {
        headers.remove(name);
    }
}

/// In HTTP/2 they may come one by one; in HTTP/1.1 there is only one such header.
pub fn join_cookies(headers: &mut HeaderMap) {
    let all: Vec<&[u8]> =
        headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if all.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&all.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, joined);
    }
}

/// Tells the backend who asked, and how. What a client says of itself there is kept only in the list of
/// addresses.
pub fn forward(headers: &mut HeaderMap, client: &str, scheme: &'static str) {
    let known = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let all: Vec<&str> = known.chain([client]).collect();
    if let Ok(all) = HeaderValue::from_str(&all.join(", ")) {
        headers.insert("x-forwarded-for", all);
    }
    headers.insert("x-forwarded-proto", HeaderValue::from_static(scheme));
    if let Some(host) = headers.get(header::HOST).cloned() {
        headers.insert("x-forwarded-host", host);
    }
}

#[cfg(test)]
mod tests;
