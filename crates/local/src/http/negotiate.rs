//! In which form an answer is wanted.

use http::{HeaderMap, header};

use crate::error::Error;

/// How objects are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Table,
    Metadata,
}

/// One entry of `Accept`.
struct Range<'a> {
    media: &'a str,
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

fn ranges(accept: &str) -> impl Iterator<Item = Range<'_>> {
    accept.split(',').map(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let mut range =
            Range { media: parts.next().unwrap_or_default(), group: "", version: "", kind: "" };
        for part in parts {
            match part.split_once('=') {
                Some(("g", value)) => range.group = value,
                Some(("v", value)) => range.version = value,
                Some(("as", value)) => range.kind = value,
                _ => {}
            }
        }
        range
    })
}

fn is_json(media: &str) -> bool {
    matches!(media, "application/json" | "*/*" | "application/*" | "")
}

fn accept(headers: &HeaderMap) -> String {
    let all = headers.get_all(header::ACCEPT).iter();
    all.map(|value| String::from_utf8_lossy(value.as_bytes())).collect::<Vec<_>>().join(",")
}

/// The first form in the list that we have.
pub(super) fn form(headers: &HeaderMap) -> Result<Form, Error> {
    let accept = accept(headers);
    let known = ranges(&accept).find_map(|range| {
        let meta = range.group == "meta.k8s.io" && range.version == "v1";
        match (is_json(range.media), range.kind) {
            (true, "") => Some(Form::Whole),
            (true, "Table") if meta => Some(Form::Table),
            (true, "PartialObjectMetadata" | "PartialObjectMetadataList") if meta => {
                Some(Form::Metadata)
            }
            _ => None,
        }
    });
    known.ok_or(Error::NotAcceptable)
}

/// Which discovery is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discovery {
    /// All groups at once, of the version `v2`.
    Aggregated,
    Legacy,
}

pub(super) fn discovery(headers: &HeaderMap) -> Result<Discovery, Error> {
    let accept = accept(headers);
    let known = ranges(&accept).find_map(|range| match (is_json(range.media), range.kind) {
        (true, "APIGroupDiscoveryList")
            if range.group == "apidiscovery.k8s.io" && range.version == "v2" =>
        {
            Some(Discovery::Aggregated)
        }
        (true, "") => Some(Discovery::Legacy),
        _ => None,
    });
    known.ok_or(Error::NotAcceptable)
}

/// Whether a document of OpenAPI v2 is wanted in protobuf, as kubectl does, rather than in JSON.
pub(super) fn openapi_in_protobuf(headers: &HeaderMap) -> Result<bool, Error> {
    let accept = accept(headers);
    let known = ranges(&accept).find_map(|range| match range.media {
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        | "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" => Some(true),
        media => is_json(media).then_some(false),
    });
    known.ok_or(Error::NotAcceptable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_usable_entry_counts() {
        const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
        for (accept, want) in [
            (None, Ok(Form::Whole)),
            (Some("*/*"), Ok(Form::Whole)),
            (Some(TABLE), Ok(Form::Table)),
            (
                Some("application/json, application/json;as=Table;v=v1;g=meta.k8s.io"),
                Ok(Form::Whole),
            ),
            (
                Some("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"),
                Ok(Form::Whole),
            ),
            (
                Some("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
                Ok(Form::Metadata),
            ),
            (Some("application/vnd.kubernetes.protobuf,application/json"), Ok(Form::Whole)),
            (Some("application/vnd.kubernetes.protobuf"), Err(Error::NotAcceptable)),
            (Some("text/html"), Err(Error::NotAcceptable)),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(header::ACCEPT, accept.parse().unwrap());
            }
            assert_eq!(form(&headers), want, "{accept:?}");
        }
    }
}
