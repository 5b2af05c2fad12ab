//! What refers to an artifact.

use http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;

use super::{
    Error, Remote,
    manifests::pulling,
    send::{Call, Sent},
};
use crate::{
    Digest, Reference,
    manifest::Descriptor,
    reference::{Tag, Version},
};

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Referrer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Referrer {
    #[serde(default)]
    artifact_type: Option<String>,
    #[serde(flatten)]
    descriptor: Descriptor,
}

impl Remote {
    /// Those of one type. A registry that cannot list them may have an index of them under a tag.
    pub async fn referrers(
        &self,
        repository: &str,
        digest: &Digest,
        artifact_type: &str,
    ) -> Result<Vec<Descriptor>, Error> {
        let mut url = self.url(&format!("{repository}/referrers/{digest}"))?;
        url.query_pairs_mut().append_pair("artifactType", artifact_type);
        let scope = pulling(repository);
        let call = Call {
            method: Method::GET,
            url,
            scope: &scope,
            headers: HeaderMap::new(),
            attempt: format!("list what refers to {digest}"),
        };
        let response = self.send(&call, &Sent::Nothing).await?;
        let bytes = match response.status() {
            StatusCode::NOT_FOUND => match self.tagged_index(repository, digest).await? {
                Some(bytes) => bytes,
                None => return Ok(Vec::new()),
            },
            status if status.is_success() => self.read_small(response, &call.attempt).await?,
            _ => return Err(self.unexpected(&call.attempt, response).await),
        };
        let index: Index = serde_json::from_slice(&bytes).map_err(|error| Error::Nonsense {
            registry: self.registry().to_owned(),
            what: error.to_string(),
        })?;
        // Not every registry chooses by itself.
        let fits = |referrer: &Referrer| referrer.artifact_type.as_deref() == Some(artifact_type);
        let found = index.manifests.into_iter().filter(fits);
        Ok(found.map(|referrer| referrer.descriptor).collect())
    }

    async fn tagged_index(
        &self,
        repository: &str,
        digest: &Digest,
    ) -> Result<Option<bytes::Bytes>, Error> {
        let nonsense =
            |what: String| Error::Nonsense { registry: self.registry().to_owned(), what };
        let name = format!("{}/{repository}", self.registry());
        let reference = Reference::parse(&name).map_err(|error| nonsense(error.to_string()))?;
        let tag = Tag::parse(&format!("sha256-{}", digest.hex()))
            .map_err(|error| nonsense(error.to_string()))?;
        match self.manifest(&reference.with(Version::Tag(tag))).await {
            Ok((_, bytes)) => Ok(Some(bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
