//! Subresources that are not objects of their own.

use axum::{body::Body as Stream, response::Response};
use http::{StatusCode, header};
use serde_json::Value;

use super::{answer, handle::Asked};
use crate::{error::Error, registry::Target};

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
                let options = body.value.get("deleteOptions");
                let (options, mode) = self.query.delete(options)?;
                registry.evict(target, options, mode).await?
            }
            ("finalize", "update") => {
                let write = self.write("UpdateOptions")?;
                let body = self.body(&served, stream).await?;
                registry.finalize(target, body, write).await?
            }
            ("token", "create") => {
                let body = self.body(&served, stream).await?;
                let tokens = self.server.access.tokens.as_ref().ok_or(Error::NoSuchResource)?;
                let answer = registry.issue(&target, body, tokens).await?;
                return Ok(answer::json(StatusCode::CREATED, &answer.body));
            }
            _ => return Err(Error::NoSuchResource),
        };
        Ok(answer::written(&served, answer, shape))
    }

    /// A pod without a node has said nothing yet.
    async fn log(self, target: Target) -> Result<Response, Error> {
        let pod = self.server.registry.get(&target, None).await?;
        let bound = pod.value().pointer("/spec/nodeName").and_then(Value::as_str);
        if bound.is_none_or(str::is_empty) {
            let mut response = Response::new(Stream::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            let text = http::HeaderValue::from_static("text/plain");
            response.headers_mut().insert(header::CONTENT_TYPE, text);
            return Ok(response);
        }
        Err(Error::BadRequest(format!("no node of this server has logs of pod {:?}", target.name)))
    }
}
