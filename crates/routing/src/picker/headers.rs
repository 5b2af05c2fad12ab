//! Headers of requests.

use std::net::SocketAddr;

use http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_LENGTH};

use super::{Request, schedule::Scheduled};
use crate::random::Random;

pub(super) const DESTINATION: HeaderName =
    HeaderName::from_static("x-gateway-destination-endpoint");
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(super) const PREFILLER: HeaderName = HeaderName::from_static("x-prefiller-host-port");
pub(super) const DATA_PARALLEL: HeaderName = HeaderName::from_static("x-data-parallel-host-port");
pub(super) const SESSION: HeaderName = HeaderName::from_static("x-session-token");
pub(super) const TEST_SELECTION: HeaderName =
    HeaderName::from_static("test-epp-endpoint-selection");
pub(super) const TEST_SERVED: HeaderName =
    HeaderName::from_static("x-conformance-test-served-endpoint");

/// A header under both of its names.
pub(super) type Twins = [HeaderName; 2];

pub(super) static OBJECTIVE: Twins = [
    HeaderName::from_static("x-gateway-inference-objective"),
    HeaderName::from_static("x-llm-d-inference-objective"),
];
static FAIRNESS: Twins = [
    HeaderName::from_static("x-gateway-inference-fairness-id"),
    HeaderName::from_static("x-llm-d-inference-fairness-id"),
];
pub(super) static REWRITE: Twins = [
    HeaderName::from_static("x-gateway-model-name-rewrite"),
    HeaderName::from_static("x-llm-d-model-name-rewrite"),
];

/// What a client must not tell the engine or its proxy.
static OURS: [HeaderName; 7] = [
    DESTINATION,
    HeaderName::from_static("x-gateway-destination-endpoint-subset"),
    HeaderName::from_static("x-gateway-destination-endpoint-served"),
    PREFILLER,
    DATA_PARALLEL,
    HeaderName::from_static("x-encoder-hosts-ports"),
    HeaderName::from_static("x-kv-cache-source-host-port"),
];

/// The last value of a header, if it is readable.
pub(super) fn last<'a>(headers: &'a HeaderMap, names: &Twins) -> Option<&'a str> {
    names.iter().find_map(|name| one(headers, name))
}

pub(super) fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get_all(name).iter().next_back().and_then(|value| value.to_str().ok())
}

/// `length`: of the body, if there is one and all of it was seen.
pub(super) fn set(
    request: &Request<'_>,
    scheduled: &Scheduled,
    length: Option<usize>,
    random: &mut Random,
) -> Vec<(HeaderName, HeaderValue)> {
    let mut set = Vec::new();
    let mut put = |name: HeaderName, text: &str| {
        // All these texts are addresses, numbers and ids, so none is left out.
        set.extend(HeaderValue::from_str(text).ok().map(|value| (name, value)));
    };
    put(DESTINATION, &joined(&scheduled.destinations));
    if let Some(length) = length {
        put(CONTENT_LENGTH, &length.to_string());
    }
    if one(request.headers, &REQUEST_ID).is_none_or(str::is_empty) {
        put(REQUEST_ID, &random.uuid());
    }
    if let Some(prefill) = scheduled.prefill_header {
        put(PREFILLER, &prefill.to_string());
    }
    if let Some(rank) = scheduled.rank_header {
        put(DATA_PARALLEL, &rank.to_string());
    }
    set
}

fn joined(destinations: &[SocketAddr]) -> String {
    let texts: Vec<String> = destinations.iter().map(SocketAddr::to_string).collect();
    texts.join(",")
}

/// All that a client has sent that must not go on, where nothing is set anew.
pub fn withheld(headers: &HeaderMap) -> Vec<HeaderName> {
    let names = [&OBJECTIVE[..], &FAIRNESS, &REWRITE, &OURS].into_iter().flatten();
    names.filter(|name| headers.contains_key(*name)).cloned().collect()
}

/// Those that the client did send and that are not set anew.
pub(super) fn removed(headers: &HeaderMap, scheduled: &Scheduled) -> Vec<HeaderName> {
    let set = |name: &HeaderName| {
        *name == DESTINATION
            || *name == PREFILLER && scheduled.prefill_header.is_some()
            || *name == DATA_PARALLEL && scheduled.rank_header.is_some()
    };
    let mut names = withheld(headers);
    names.retain(|name| !set(name));
    names
}
