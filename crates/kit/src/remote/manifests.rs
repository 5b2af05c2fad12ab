//! Manifests and lists.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;

use super::{
    Error, Remote, Trouble,
    send::{Call, Sent},
};
use crate::{
    Digest, Reference,
    manifest::{Annotations, Descriptor, IMAGE_MANIFEST, LIMIT},
    reference::Version,
};

const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.index.v1+json";
const DIGEST: &str = "docker-content-digest";

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

pub(super) fn pulling(repository: &str) -> String {
    format!("repository:{repository}:pull")
}

pub(super) fn pushing(repository: &str) -> String {
    format!("repository:{repository}:pull,push")
}

impl Remote {
    /// Whether it is there, and may be asked.
    pub async fn ping(&self) -> Result<(), Error> {
        let call = Call {
            method: Method::GET,
            url: self.url("")?,
            scope: "",
            headers: HeaderMap::new(),
            attempt: "ask".to_owned(),
        };
        let response = self.send(&call, &Sent::Nothing).await?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(self.unexpected("ask", response).await),
        }
    }

    fn manifest_call<'a>(
        &self,
        method: Method,
        reference: &Reference,
        scope: &'a str,
        attempt: &str,
    ) -> Result<Call<'a>, Error> {
        let version = match reference.version() {
            Version::Tag(tag) => tag.as_str(),
            Version::Digest(digest) => digest.as_str(),
        };
        let headers = [(header::ACCEPT, HeaderValue::from_static(ACCEPTED))].into_iter().collect();
        let url = self.url(&format!("{}/manifests/{version}", reference.repository()))?;
        Ok(Call { method, url, scope, headers, attempt: format!("{attempt} {reference}") })
    }

    /// The digest under a name, if there is anything.
    pub async fn resolve(&self, reference: &Reference) -> Result<Option<Digest>, Error> {
        self.resolve_by(reference, pulling(reference.repository())).await
    }

    /// The same for whoever is about to push: a repository that is not there yet can only be asked for
    /// with the right to make it.
    pub async fn resolve_to_push(&self, reference: &Reference) -> Result<Option<Digest>, Error> {
        self.resolve_by(reference, pushing(reference.repository())).await
    }

    async fn resolve_by(
        &self,
        reference: &Reference,
        scope: String,
    ) -> Result<Option<Digest>, Error> {
        let call = self.manifest_call(Method::HEAD, reference, &scope, "look for")?;
        let response = self.send(&call, &Sent::Nothing).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            // Not everybody understands this question; the whole of it tells as well.
            StatusCode::METHOD_NOT_ALLOWED => match self.manifest(reference).await {
                Ok((descriptor, _)) => Ok(Some(descriptor.digest)),
                Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            },
            status if status.is_success() => {
                let digest = response.headers().get(DIGEST).and_then(|value| value.to_str().ok());
                match digest.and_then(|text| text.parse().ok()) {
                    Some(digest) => Ok(Some(digest)),
                    None => Ok(Some(self.manifest(reference).await?.0.digest)),
                }
            }
            _ => Err(self.unexpected(&call.attempt, response).await),
        }
    }

    /// Its bytes are what its digest says, if the reference has one.
    pub async fn manifest(&self, reference: &Reference) -> Result<(Descriptor, Bytes), Error> {
        let scope = pulling(reference.repository());
        let call = self.manifest_call(Method::GET, reference, &scope, "read the manifest of")?;
        let response = self.send(&call, &Sent::Nothing).await?;
        if response.status() == StatusCode::NOT_FOUND {
            let (registry, what) = (self.registry().to_owned(), reference.to_string());
            return Err(Error::NotFound { registry, what });
        }
        if !response.status().is_success() {
            return Err(self.unexpected(&call.attempt, response).await);
        }
        let media_type = response.headers().get(header::CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok()).unwrap_or(IMAGE_MANIFEST);
        let media_type = media_type.split(';').next().unwrap_or(media_type).to_owned();
        let bytes = self.read_small(response, &call.attempt).await?;
        let digest = Digest::of(&bytes);
        if let Version::Digest(wanted) = reference.version()
            && *wanted != digest
        {
            let (wanted, is) = (wanted.to_string(), digest.to_string());
            return Err(Error::Mismatch { registry: self.registry().to_owned(), wanted, is });
        }
        let size = bytes.len() as u64;
        let (urls, annotations) = (Vec::new(), Annotations::new());
        Ok((Descriptor { media_type, digest, size, urls, annotations }, bytes))
    }

    /// What is too large to be a manifest is none.
    pub(super) async fn read_small(
        &self,
        mut response: reqwest::Response,
        attempt: &str,
    ) -> Result<Bytes, Error> {
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(piece)) if bytes.len() + piece.len() <= LIMIT => bytes.extend(piece),
                Ok(Some(_)) => {
                    let what = format!("more than {LIMIT} bytes to {attempt}");
                    return Err(Error::Nonsense { registry: self.registry().to_owned(), what });
                }
                Ok(None) => return Ok(bytes.into()),
                Err(error) => {
                    let (registry, attempt) = (self.registry().to_owned(), attempt.to_owned());
                    let source = Some(Trouble::Http(error.without_url()));
                    let told = String::new();
                    return Err(Error::Failed { registry, attempt, attempts: 1, told, source });
                }
            }
        }
    }

    pub async fn put_manifest(
        &self,
        reference: &Reference,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<Digest, Error> {
        let scope = pushing(reference.repository());
        let mut call =
            self.manifest_call(Method::PUT, reference, &scope, "push the manifest of")?;
        if let Ok(media_type) = HeaderValue::from_str(media_type) {
            call.headers.insert(header::CONTENT_TYPE, media_type);
        }
        let digest = Digest::of(&bytes);
        let count = bytes.len() as u64;
        let source = std::sync::Arc::new(bytes);
        let sent = Sent::Part { source, from: 0, count, seen: std::sync::Arc::new(|_| {}) };
        let response = self.send(&call, &sent).await?;
        if !response.status().is_success() {
            return Err(self.unexpected(&call.attempt, response).await);
        }
        let told = response.headers().get(DIGEST).and_then(|value| value.to_str().ok());
        match told.filter(|told| *told != digest.as_str()) {
            Some(is) => Err(Error::Mismatch {
                registry: self.registry().to_owned(),
                wanted: digest.to_string(),
                is: is.to_owned(),
            }),
            None => Ok(digest),
        }
    }

    pub async fn delete_manifest(&self, reference: &Reference) -> Result<(), Error> {
        let scope = format!("repository:{}:delete", reference.repository());
        let call = self.manifest_call(Method::DELETE, reference, &scope, "remove")?;
        let response = self.send(&call, &Sent::Nothing).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND => {
                let (registry, what) = (self.registry().to_owned(), reference.to_string());
                Err(Error::NotFound { registry, what })
            }
            _ => Err(self.unexpected(&call.attempt, response).await),
        }
    }

    /// All of them, page by page.
    pub async fn tags(&self, repository: &str) -> Result<Vec<String>, Error> {
        let scope = pulling(repository);
        let mut url = self.url(&format!("{repository}/tags/list"))?;
        let mut all = Vec::new();
        loop {
            let attempt = format!("list the tags of {repository}");
            let headers = HeaderMap::new();
            let call =
                Call { method: Method::GET, url: url.clone(), scope: &scope, headers, attempt };
            let response = self.send(&call, &Sent::Nothing).await?;
            if response.status() == StatusCode::NOT_FOUND {
                let (registry, what) = (self.registry().to_owned(), repository.to_owned());
                return Err(Error::NotFound { registry, what });
            }
            if !response.status().is_success() {
                return Err(self.unexpected(&call.attempt, response).await);
            }
            let link = response.headers().get(header::LINK).and_then(|value| value.to_str().ok());
            let next = link.and_then(next_page).and_then(|path| url.join(path).ok());
            let bytes = self.read_small(response, &call.attempt).await?;
            let read: Tags = serde_json::from_slice(&bytes).map_err(|error| Error::Nonsense {
                registry: self.registry().to_owned(),
                what: error.to_string(),
            })?;
            let tags = read.tags.unwrap_or_default();
            // A page without anything would be followed by itself for ever.
            let is_last = tags.is_empty();
            all.extend(tags);
            match next.filter(|next| !is_last && *next != url) {
                Some(next) => url = next,
                None => return Ok(all),
            }
        }
    }
}

/// `<path>; rel="next"`.
pub(crate) fn next_page(link: &str) -> Option<&str> {
    link.split(',').find_map(|link| {
        let (path, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next =
            rest.split(';').any(|part| matches!(part.trim(), "rel=\"next\"" | "rel=next"));
        is_next.then_some(path)
    })
}
