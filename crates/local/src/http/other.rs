//! Subresources that are not objects of their own.

use axum::{body::Body as Stream, response::Response};
use http::StatusCode;
use serde_json::Value;

use super::{answer, handle::Asked};
use crate::{builtin, error::Error, registry::Target, types};

impl Asked<'_> {
    pub(super) async fn other(
        self,
        target: Target,
        verb: &str,
        stream: Stream,
    ) -> Result<Response, Error> {
        let (registry, served) = (&self.server.registry, target.served.clone());
        let shape = self.shape()?;
        let answer = match (&*target.subresource, verb) {
            ("log", "get") => return self.log(target).await,
            ("binding", "create") => {
                let write = self.write("CreateOptions")?;
                let body = self.body(&served, stream).await?;
                registry.bind(target, body, write).await?
            }
            ("eviction", "create") => {
                let body = self.body(&served, stream).await?;
                let (options, mode) = self.query.delete(eviction_options(body.value)?)?;
                registry.evict(target, options, mode).await?
            }
            ("finalize", "update") => {
                let write = self.write("UpdateOptions")?;
                let body = self.body(&served, stream).await?;
                registry.finalize(target, body, write).await?
            }
            ("token", "create") => {
                let body = self.body(&served, stream).await?;
                let tokens = self.server.tokens.as_deref().ok_or(Error::NoSuchResource)?;
                let issued = registry.issue(&target, body, tokens).await?;
                return Ok(answer::json(StatusCode::CREATED, &issued));
            }
            _ => return Err(Error::NoSuchResource),
        };
        Ok(answer::written(&served, answer, shape))
    }
}

/// The options of the deletion that an eviction asks for.
fn eviction_options(body: Value) -> Result<Option<Value>, Error> {
    const KIND: &str = "Eviction";
    let unreadable = |text| {
        Error::BadRequest(format!("{KIND} in version \"v1\" cannot be handled as a {KIND}: {text}"))
    };
    let typed = types::builtin().kind("policy/v1", KIND).ok_or(Error::NoSuchResource)?;
    let decoded = builtin::decode_kind("policy/v1", KIND, body, typed).map_err(unreadable)?;
    Ok(decoded.object.get("deleteOptions").cloned())
}
