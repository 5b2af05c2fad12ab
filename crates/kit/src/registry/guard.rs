//! Who asks a registry that is for its own machine alone.
//!
//! Pages in a browser are on this machine too. One may have its own name lead to us, or send us what a
//! browser sends without asking; neither is a client of a registry.

use std::net::IpAddr;

use http::{HeaderMap, Uri, header};

use super::error::Refused;

pub(super) fn check(uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
    let header = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    // HTTP/2 has it in the address.
    let host = uri.authority().map(|authority| authority.as_str()).or(header);
    match host.is_some_and(is_of_this_machine) && !headers.contains_key(header::ORIGIN) {
        true => Ok(()),
        false => Err(Refused::stranger()),
    }
}

fn is_of_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(host: Option<&str>, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        let given = [(header::HOST, host), (header::ORIGIN, origin)];
        for (name, value) in given {
            headers.extend(value.map(|value| (name, value.parse().unwrap())));
        }
        check(&Uri::from_static("/v2/"), &headers).is_ok()
    }

    #[test]
    fn only_names_of_this_machine_are_answered_to() {
        for host in ["localhost:5000", "LOCALHOST", "127.0.0.1:5000", "127.64.0.3", "[::1]:5000"] {
            assert!(answers(Some(host), None), "{host}");
        }
        for host in ["evil.example:5000", "localhost.evil.example", "192.168.0.7:5000", "[::2]", ""]
        {
            assert!(!answers(Some(host), None), "{host}");
        }
        assert!(!answers(None, None));
    }

    #[test]
    fn no_page_of_a_browser_is_answered() {
        for origin in ["null", "http://localhost:5000", "https://evil.example"] {
            assert!(!answers(Some("localhost:5000"), Some(origin)), "{origin}");
        }
    }
}
