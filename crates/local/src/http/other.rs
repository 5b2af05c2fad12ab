//! Subresources that are not objects of their own.

use axum::{body::Body as Stream, response::Response};
use http::{StatusCode, header};
use serde_json::Value;

use super::{answer, handle::Asked};
use crate::{
    builtin,
    error::{Cause, CauseReason, Error, Subject},
    registry::Target,
    types,
};

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

    /// A pod without a node has said nothing yet.
    async fn log(self, target: Target) -> Result<Response, Error> {
        let pod = self.server.registry.get(&target, None).await?;
        self.check_log(&target.name, pod.value())?;
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

    /// Whether the log asked for could be there.
    fn check_log(&self, pod: &str, object: &Value) -> Result<(), Error> {
        let asked = self.query.get("container");
        let invalid = |field: &str, reason, message: &str| {
            let subject = Subject::new("", "PodLogOptions", pod);
            Error::invalid(subject, Cause { reason, field: field.into(), message: message.into() })
        };
        for field in ["tailLines", "limitBytes", "sinceSeconds"] {
            let text = self.query.get(field);
            let least = i64::from(field != "tailLines");
            match text.parse::<i64>() {
                Ok(number) if number >= least => {}
                Ok(number) => {
                    let rule = match least {
                        0 => "must be greater than or equal to 0",
                        _ => "must be greater than 0",
                    };
                    let message = format!("Invalid value: {number}: {rule}");
                    return Err(invalid(field, CauseReason::Invalid, &message));
                }
                Err(_) if text.is_empty() => {}
                Err(_) => {
                    let text = format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
                    return Err(Error::BadRequest(text));
                }
            }
        }
        if !self.query.get("sinceSeconds").is_empty() && !self.query.get("sinceTime").is_empty() {
            let message =
                "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
            return Err(invalid("", CauseReason::Forbidden, message));
        }
        let names = |field: &str| {
            let list = object.pointer(field).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(|container| container.get("name")?.as_str()).collect::<Vec<_>>()
        };
        let (own, initial) = (names("/spec/containers"), names("/spec/initContainers"));
        match asked {
            "" if own.len() > 1 => Err(Error::BadRequest(format!(
                "a container name must be specified for pod {pod}, choose one of: [{}]",
                own.join(" ")
            ))),
            "" => Ok(()),
            name if own.contains(&name) || initial.contains(&name) => Ok(()),
            name => Err(Error::BadRequest(format!("container {name} is not valid for pod {pod}"))),
        }
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
