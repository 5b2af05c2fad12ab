//! Manifests, by tag and by digest.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;

use super::{
    disk::{Disk, Kept},
    empty,
    error::Refused,
    route::Name,
    set,
};
use crate::{Digest, manifest::LIMIT, reference::Version};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// What is looked at in a manifest or an index of any kind.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Links {
    schema_version: Option<u32>,
    media_type: Option<String>,
    pub(super) artifact_type: Option<String>,
    pub(super) config: Option<Link>,
    layers: Vec<Link>,
    manifests: Vec<Link>,
    pub(super) subject: Option<Link>,
    pub(super) annotations: Option<crate::manifest::Annotations>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Link {
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) digest: Digest,
}

impl Links {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    pub(super) fn blobs(&self) -> impl Iterator<Item = &Digest> {
        self.config.iter().chain(&self.layers).map(|link| &link.digest)
    }

    pub(super) fn children(&self) -> impl Iterator<Item = &Digest> {
        self.manifests.iter().map(|link| &link.digest)
    }
}

pub(super) async fn get(
    disk: &Disk,
    method: &Method,
    name: &Name,
    reference: &Version,
) -> Result<Response, Refused> {
    let digest = find(disk, name, reference).await?;
    let kept = disk.kept(name, &digest).await?.ok_or_else(|| Refused::manifest(&digest))?;
    let mut response = empty(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(kept.size));
    set(headers, "content-type", &kept.media_type);
    set(headers, "docker-content-digest", digest.as_str());
    set(headers, "etag", &format!("\"{digest}\""));
    if method == Method::GET {
        // As long as it is: who asks compares it with its digest, and a wrong length would cut it.
        let bytes = tokio::fs::read(disk.blob(&digest)).await?;
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        *response.body_mut() = Body::from(bytes);
    }
    Ok(response)
}

async fn find(disk: &Disk, name: &Name, reference: &Version) -> Result<Digest, Refused> {
    match reference {
        Version::Digest(digest) => Ok(digest.clone()),
        Version::Tag(tag) => disk.tagged(name, tag).await?.ok_or_else(|| Refused::manifest(tag)),
    }
}

pub(super) async fn put(
    disk: &Arc<Disk>,
    name: &Name,
    reference: &Version,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let bytes = Limited::new(body, LIMIT).collect().await.map_err(|error| {
        match error.is::<http_body_util::LengthLimitError>() {
            true => Refused::large_manifest(),
            false => Refused::invalid_manifest("the connection broke"),
        }
    })?;
    let bytes = bytes.to_bytes();
    let digest = Digest::of(&bytes);
    if let Version::Digest(wanted) = reference
        && *wanted != digest
    {
        return Err(Refused::digest(format!("{wanted} was announced, and {digest} has come")));
    }
    let links = Links::parse(&bytes).map_err(|error| {
        Refused::invalid_manifest(format!("the manifest cannot be read: {error}"))
    })?;
    let kept = Kept { media_type: media_type(&links, headers)?, size: bytes.len() as u64 };
    let subject = links.subject.as_ref().map(|subject| subject.digest.clone());
    // Once begun it goes to its end, even if the client does not wait for it.
    let storing = {
        let (disk, name, reference) = (disk.clone(), name.clone(), reference.clone());
        let (digest, subject) = (digest.clone(), subject.clone());
        tokio::spawn(async move {
            // From here on no sweep may take away what the manifest names.
            let _storing = disk.storing.read().await;
            check(&disk, &name, &links).await?;
            disk.write_blob(&digest, bytes.to_vec()).await?;
            disk.keep_manifest(&name, &digest, &kept, subject.as_ref()).await?;
            if let Version::Tag(tag) = reference {
                disk.set_tag(&name, &tag, &digest).await?;
            }
            Ok::<(), Refused>(())
        })
    };
    storing.await.map_err(std::io::Error::other)??;
    let mut response = empty(StatusCode::CREATED);
    let told = response.headers_mut();
    set(told, "location", &format!("/v2/{}/manifests/{digest}", name.as_str()));
    set(told, "docker-content-digest", digest.as_str());
    if let Some(subject) = subject {
        set(told, "oci-subject", subject.as_str());
    }
    Ok(response)
}

/// As it was pushed; without it as the manifest says itself.
fn media_type(links: &Links, headers: &HeaderMap) -> Result<String, Refused> {
    if links.schema_version != Some(2) {
        return Err(Refused::invalid_manifest("schemaVersion must be 2"));
    }
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let sent = sent.map(|sent| sent.split(';').next().unwrap_or(sent).trim().to_owned());
    match (sent, &links.media_type) {
        (Some(sent), Some(own)) if sent != *own => Err(Refused::invalid_manifest(format!(
            "the Content-Type is {sent}, and the manifest says {own}"
        ))),
        (Some(sent), _) => Ok(sent),
        (None, Some(own)) => Ok(own.clone()),
        (None, None) => Err(Refused::invalid_manifest("there is no Content-Type")),
    }
}

/// Everything that it needs must be there.
async fn check(disk: &Disk, name: &Name, links: &Links) -> Result<(), Refused> {
    let is_index =
        links.media_type.as_deref().is_some_and(|own| own == INDEX || own == DOCKER_LIST);
    if !is_index && links.config.is_none() && links.manifests.is_empty() {
        return Err(Refused::invalid_manifest("it has neither a config nor manifests"));
    }
    for digest in links.blobs() {
        if disk.size(digest).await?.is_none() {
            return Err(Refused::missing_blob(digest));
        }
    }
    for digest in links.children() {
        if disk.kept(name, digest).await?.is_none() {
            return Err(Refused::missing_blob(digest));
        }
    }
    Ok(())
}

pub(super) async fn delete(
    disk: &Disk,
    name: &Name,
    reference: &Version,
) -> Result<Response, Refused> {
    let is_removed = match reference {
        Version::Tag(tag) => disk.remove_tag(name, tag).await?,
        Version::Digest(digest) => {
            // A layer is no manifest, and may be too large to be looked at.
            disk.kept(name, digest).await?.ok_or_else(|| Refused::manifest(digest))?;
            let bytes = tokio::fs::read(disk.blob(digest)).await?;
            let links = Links::parse(&bytes).unwrap_or_default();
            let subject = links.subject.as_ref().map(|subject| &subject.digest);
            disk.remove_manifest(name, digest, subject).await?
        }
    };
    match (is_removed, reference) {
        (true, _) => Ok(empty(StatusCode::ACCEPTED)),
        (false, Version::Tag(tag)) => Err(Refused::manifest(tag)),
        (false, Version::Digest(digest)) => Err(Refused::manifest(digest)),
    }
}
