//! What there is: repositories, tags, and what refers to something.

use std::collections::BTreeMap;

use axum::{body::Body, response::Response};
use http::StatusCode;
use serde::Serialize;
use serde_json::json;

use super::{
    disk::{Disk, Kept},
    empty,
    error::Refused,
    manifests::Links,
    route::{Name, Query},
    set,
};
use crate::Digest;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

pub(super) async fn catalog(disk: &Disk, query: &Query) -> Result<Response, Refused> {
    let names = disk.all().await?;
    let page = page(names.iter().map(Name::as_str), query);
    let body = json!({"repositories": page.shown});
    Ok(answer("application/json", &body, page.link("/v2/_catalog")))
}

pub(super) async fn tags(disk: &Disk, name: &Name, query: &Query) -> Result<Response, Refused> {
    let tags = disk.tags(name).await?;
    if tags.is_empty() && disk.digests(disk.manifests(name)).await?.is_empty() {
        return Err(Refused::unknown_name(name.as_str()));
    }
    let page = page(tags.iter().map(crate::reference::Tag::as_str), query);
    let body = json!({"name": name.as_str(), "tags": page.shown});
    Ok(answer("application/json", &body, page.link(&format!("/v2/{}/tags/list", name.as_str()))))
}

struct Page {
    shown: Vec<String>,
    count: usize,
    has_more: bool,
}

impl Page {
    fn link(&self, path: &str) -> Option<String> {
        let last = self.shown.last().filter(|_| self.has_more)?;
        Some(format!("<{path}?n={}&last={last}>; rel=\"next\"", self.count))
    }
}

/// What comes after `last`, and no more than `n`.
fn page<'a>(sorted: impl Iterator<Item = &'a str>, query: &Query) -> Page {
    let count = query.get("n").and_then(|n| n.parse().ok()).unwrap_or(1000);
    let last = query.get("last");
    let mut rest = sorted.filter(|name| last.is_none_or(|last| *name > last)).map(str::to_owned);
    let shown: Vec<String> = rest.by_ref().take(count).collect();
    Page { shown, count, has_more: rest.next().is_some() }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Referrer {
    media_type: String,
    digest: Digest,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

pub(super) async fn referrers(
    disk: &Disk,
    name: &Name,
    subject: &Digest,
    query: &Query,
) -> Result<Response, Refused> {
    let wanted = query.get("artifactType");
    let mut found = Vec::new();
    for digest in disk.digests(disk.referrers(name, subject)).await? {
        let Some(kept) = disk.kept(name, &digest).await? else { continue };
        let bytes = tokio::fs::read(disk.blob(&digest)).await?;
        let links = Links::parse(&bytes).unwrap_or_default();
        // An artifact without a type of its own is of its config's.
        let config = links.config.map(|config| config.media_type);
        let artifact_type = links.artifact_type.or(config);
        if wanted.is_none_or(|wanted| artifact_type.as_deref() == Some(wanted)) {
            let annotations = links.annotations.unwrap_or_default();
            let Kept { media_type, size } = kept;
            found.push(Referrer { media_type, digest, size, artifact_type, annotations });
        }
    }
    let body = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": found});
    let mut response = answer(INDEX, &body, None);
    if wanted.is_some() {
        set(response.headers_mut(), "oci-filters-applied", "artifactType");
    }
    Ok(response)
}

fn answer(media_type: &str, body: &serde_json::Value, link: Option<String>) -> Response {
    let text = body.to_string();
    let mut response = empty(StatusCode::OK);
    let headers = response.headers_mut();
    set(headers, "content-type", media_type);
    set(headers, "content-length", &text.len().to_string());
    if let Some(link) = link {
        set(headers, "link", &link);
    }
    *response.body_mut() = Body::from(text);
    response
}
