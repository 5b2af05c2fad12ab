//! Which endpoints may serve at all.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::HeaderMap;

use super::headers;
use crate::{
    config::{Dialect, Filter},
    endpoint::{Endpoint, Member},
};

const ROLE: &str = "llm-d.ai/role";

/// The numbers of those that pass, of those that are given.
pub(super) fn pass(
    filter: &Filter,
    dialect: Dialect,
    headers: &HeaderMap,
    candidates: &[Arc<Member>],
    given: Vec<usize>,
) -> Vec<usize> {
    if *filter == Filter::Header {
        return named_by_header(headers, candidates, &given);
    }
    let passes = |endpoint: &Endpoint| match filter {
        Filter::Decode => decodes(endpoint, dialect),
        Filter::Prefill => prefills(endpoint, dialect),
        Filter::Encode => encodes(endpoint),
        Filter::Label { label, values, absent } => match endpoint.labels.get(label) {
            Some(value) => values.contains(value),
            None => *absent,
        },
        Filter::Selector(selector) => selector.matches(&endpoint.labels),
        Filter::Header => false,
    };
    let passes = |number: &usize| candidates.get(*number).is_some_and(|one| passes(&one.endpoint));
    given.into_iter().filter(passes).collect()
}

fn role(endpoint: &Endpoint) -> Option<&str> {
    endpoint.labels.get(ROLE).map(String::as_str)
}

pub(super) fn decodes(endpoint: &Endpoint, dialect: Dialect) -> bool {
    match role(endpoint) {
        None | Some("decode" | "both") => true,
        Some("prefill-decode" | "encode-prefill-decode") => dialect == Dialect::LlmD,
        Some(_) => false,
    }
}

fn prefills(endpoint: &Endpoint, dialect: Dialect) -> bool {
    match role(endpoint) {
        Some("prefill") => true,
        Some("encode-prefill" | "prefill-decode" | "both" | "encode-prefill-decode") => {
            dialect == Dialect::LlmD
        }
        _ => false,
    }
}

fn encodes(endpoint: &Endpoint) -> bool {
    matches!(role(endpoint), Some("encode" | "encode-prefill" | "encode-prefill-decode"))
}

/// In the order of the header, each endpoint once.
fn named_by_header(headers: &HeaderMap, candidates: &[Arc<Member>], given: &[usize]) -> Vec<usize> {
    let mut named = Vec::new();
    let list = headers::one(headers, &headers::TEST_SELECTION).unwrap_or_default();
    for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let fits = |address: SocketAddr| match item.parse::<SocketAddr>() {
            Ok(whole) => whole == address,
            Err(_) => item.trim_matches(['[', ']']).parse() == Ok::<IpAddr, _>(address.ip()),
        };
        for number in given {
            let hit = candidates.get(*number).is_some_and(|one| fits(one.endpoint.address));
            if hit && !named.contains(number) {
                named.push(*number);
            }
        }
    }
    named
}
