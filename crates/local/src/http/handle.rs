//! Requests about resources: which verb, on what, with what.

use std::sync::Arc;

use axum::{
    body::{Body as Stream, Bytes},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, StatusCode, request::Parts};

use super::{
    Server,
    answer::{self, Shape},
    body::{self, Format},
    negotiate, path,
    query::Query,
    stream,
};
use crate::{
    auth::User,
    builtin::{Resource, Storage},
    error::{Error, MediaType},
    registry::{Body, PatchKind, Served, Source, Target, Write},
    show::Include,
};

/// A request whose sender is known and may ask this.
pub(super) struct Asked<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) parts: &'a Parts,
    pub(super) query: Query,
    pub(super) user: User,
}

/// The verb as rights name it.
pub(super) fn verb(method: &Method, named: bool, watch: bool) -> Option<&'static str> {
    Some(match (method, named) {
        (&Method::GET, true) => "get",
        (&Method::GET, false) if watch => "watch",
        (&Method::GET, false) => "list",
        (&Method::POST, _) => "create",
        (&Method::PUT, true) => "update",
        (&Method::PATCH, true) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => return None,
    })
}

pub(super) async fn resource(
    asked: Asked<'_>,
    path: path::Resource,
    stream: Stream,
) -> Result<Response, Error> {
    let catalog = asked.server.registry.catalog();
    let served = catalog.find(&path.group, &path.version, &path.plural)?;
    let watch = asked.query.is_watch()?;
    let Some(verb) = verb(&asked.parts.method, !path.name.is_empty(), watch) else {
        return Err(Error::MethodNotAllowed);
    };
    check_scope(&served, &path, verb)?;
    // Objects are made by asking their collection.
    if verb == "create" && !path.name.is_empty() && path.subresource.is_empty() {
        return Err(Error::MethodNotAllowed);
    }
    check_verb(&served, &path, verb)?;
    if served.resource.storage == Storage::Unmade && matches!(verb, "create" | "update" | "patch") {
        let kind = &served.resource.kind;
        return Err(Error::BadRequest(format!(
            "{kind} is not supported by a local cluster: nothing in it would act on one"
        )));
    }
    let deprecation = match &served.source {
        Source::Custom(custom) => custom.version().deprecation.clone(),
        Source::Builtin(_) => served.resource.deprecation().map(str::to_owned),
    };
    let target = Target {
        served,
        namespace: path.namespace,
        name: path.name,
        subresource: path.subresource,
    };
    let answered = asked.answer(target, verb, stream).await;
    if deprecation.is_none() {
        return answered;
    }
    // Whoever is refused hears of it as well.
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    answer::warn(&mut response, deprecation.as_slice());
    Ok(response)
}

/// Objects of namespaces are named with theirs, others without.
fn check_scope(served: &Served, path: &path::Resource, verb: &str) -> Result<(), Error> {
    let unknown = match served.source {
        Source::Builtin(_) => Error::NoSuchResource,
        Source::Custom(_) => Error::NoSuchPath,
    };
    match (served.resource.namespaced, path.namespace.is_empty()) {
        (true, false) | (false, true) => Ok(()),
        (false, false) => Err(unknown),
        (true, true) if !path.name.is_empty() => Err(unknown),
        (true, true) if matches!(verb, "list" | "watch") => Ok(()),
        (true, true) if served.resource.custom => Err(Error::NoSuchPath),
        // Questions about the asker are asked of the cluster.
        (true, true) => Err(Error::MethodNotAllowed),
    }
}

fn check_verb(served: &Served, path: &path::Resource, verb: &str) -> Result<(), Error> {
    let verbs = if path.subresource.is_empty() {
        served.resource.verbs
    } else {
        match served.resource.subresource(&path.subresource) {
            Some(found) => found.verbs,
            None if served.resource.custom => {
                return Err(Error::NotFound(served.subject(&path.name)));
            }
            None => return Err(unknown(&served.resource, &path.subresource)),
        }
    };
    match verbs.contains(&verb) {
        true => Ok(()),
        false => Err(Error::MethodNotAllowed),
    }
}

/// Those that clients have commands for are told of in words.
fn unknown(resource: &Resource, subresource: &str) -> Error {
    match (&*resource.plural, subresource) {
        ("pods", "exec" | "attach" | "portforward") | ("pods" | "services" | "nodes", "proxy") => {
            let plural = &resource.plural;
            Error::BadRequest(format!(
                "{subresource} of {plural} is not supported by a local cluster"
            ))
        }
        _ => Error::NoSuchResource,
    }
}

impl Asked<'_> {
    fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    pub(super) fn shape(&self) -> Result<Shape, Error> {
        Ok(Shape {
            form: negotiate::form(self.headers())?,
            include: self.include()?,
            now: self.server.registry.store().now(),
        })
    }

    fn include(&self) -> Result<Include, Error> {
        let asked = self.query.get("includeObject");
        let unknown = || Error::BadRequest(format!("unrecognized includeObject value: {asked:?}"));
        Include::parse(asked).ok_or_else(unknown)
    }

    pub(super) fn write(&self, options: &str) -> Result<Write, Error> {
        Ok(Write {
            mode: self.query.mode(options)?,
            manager: self.query.manager(options, self.headers())?,
            validation: self.query.validation(options)?,
            user: self.user.clone(),
        })
    }

    /// The object in the body of a POST or PUT.
    pub(super) async fn body(&self, served: &Served, stream: Stream) -> Result<Body, Error> {
        let format = body::format(self.headers())?;
        if format == Format::Protobuf && served.resource.custom {
            return Err(Error::MediaType(MediaType::Object));
        }
        let bytes = body::read(stream).await?;
        body::parse(format, &bytes).map_err(|text| served.unreadable(&text))
    }

    async fn answer(self, target: Target, verb: &str, stream: Stream) -> Result<Response, Error> {
        if target.served.resource.storage == Storage::Nothing {
            return self.review(target, stream).await;
        }
        match &*target.subresource {
            "" | "status" => self.object(target, verb, stream).await,
            "scale" => self.scale(target, verb, stream).await,
            _ => self.other(target, verb, stream).await,
        }
    }

    async fn object(self, target: Target, verb: &str, stream: Stream) -> Result<Response, Error> {
        let (registry, served) = (&self.server.registry, target.served.clone());
        let shape = self.shape()?;
        let answer = match verb {
            "get" => {
                let version = self.query.read_version()?;
                let found = registry.get(&target, version).await?;
                return Ok(answer::object(&served, &found, shape));
            }
            "list" => {
                let options = self.query.list(&served)?;
                let listed = registry.list(&target, &options).await?;
                return Ok(answer::list(&served, &listed, shape));
            }
            "watch" => {
                let options = self.query.watch(&served)?;
                let guard = self.server.watches.enter(&self.user.name)?;
                let watch = registry.watch(target, options).await?;
                return Ok(stream::watch(watch, shape, guard));
            }
            "deletecollection" => {
                let options = self.query.list(&served)?;
                let (delete, mode) = self.delete_options(stream).await?;
                let listed = registry.delete_all(target, options, delete, mode).await?;
                return Ok(answer::list(&served, &listed, shape));
            }
            "create" => {
                let write = self.write("CreateOptions")?;
                let body = self.body(&served, stream).await?;
                registry.create(target, body, write).await?
            }
            "update" => {
                let write = self.write("UpdateOptions")?;
                let body = self.body(&served, stream).await?;
                registry.update(target, body, write).await?
            }
            "patch" => {
                let (kind, body) = self.patch(&served, stream).await?;
                let write = self.write("PatchOptions")?;
                registry.patch(target, kind, body, write).await?
            }
            "delete" => {
                let (options, mode) = self.delete_options(stream).await?;
                registry.delete(target, options, mode).await?
            }
            _ => return Err(Error::MethodNotAllowed),
        };
        Ok(answer::written(&served, answer, shape))
    }

    /// A question that is answered and forgotten.
    async fn review(self, target: Target, stream: Stream) -> Result<Response, Error> {
        let write = self.write("CreateOptions")?;
        let body = self.body(&target.served, stream).await?;
        let tokens = self.server.tokens.as_deref();
        let (answered, warnings) = self.server.registry.review(&target, body, &write, tokens)?;
        let mut response = answer::json(StatusCode::CREATED, &answered);
        answer::warn(&mut response, &warnings);
        Ok(response)
    }

    async fn scale(self, target: Target, verb: &str, stream: Stream) -> Result<Response, Error> {
        let (registry, served) = (&self.server.registry, target.served.clone());
        let shape = self.shape()?;
        let answer = match verb {
            "get" => {
                let scale = registry.get_scale(&target).await?;
                return Ok(answer::json(StatusCode::OK, &scale));
            }
            "update" => {
                let write = self.write("UpdateOptions")?;
                let body = self.body(&served, stream).await?;
                registry.update_scale(target, body, write).await?
            }
            _ => {
                let (kind, body) = self.patch(&served, stream).await?;
                let write = self.write("PatchOptions")?;
                registry.patch(target, kind, body, write).await?
            }
        };
        Ok(answer::written(&served, answer, shape))
    }

    async fn patch(&self, served: &Served, stream: Stream) -> Result<(PatchKind, Body), Error> {
        let media = body::media_type(self.headers());
        let apply = media == "application/apply-patch+yaml";
        let kind = match &*media {
            "application/json-patch+json" => PatchKind::Json,
            "application/merge-patch+json" => PatchKind::Merge,
            "application/strategic-merge-patch+json" => PatchKind::Strategic,
            "application/apply-patch+yaml" => PatchKind::Apply { force: self.query.force(true)? },
            _ if served.resource.custom => return Err(Error::MediaType(MediaType::CustomPatch)),
            _ => return Err(Error::MediaType(MediaType::Patch)),
        };
        if !apply {
            self.query.force(false)?;
        }
        let bytes = body::read(stream).await?;
        let parsed = if apply { body::yaml(&bytes) } else { body::json(&bytes) };
        let what = if apply { "YAML" } else { "patch" };
        let body =
            parsed.map_err(|text| Error::BadRequest(format!("error decoding {what}: {text}")))?;
        Ok((kind, body))
    }

    async fn delete_options(
        &self,
        stream: Stream,
    ) -> Result<(crate::registry::DeleteOptions, crate::store::Mode), Error> {
        let bytes: Bytes = body::read(stream).await?;
        if bytes.is_empty() {
            return self.query.delete(None);
        }
        let format = body::format(self.headers())?;
        let body = body::parse(format, &bytes);
        let body = body.map_err(|text| {
            let text = format!("couldn't get version/kind; json parse error: {text}");
            Error::BadRequest(text)
        })?;
        self.query.delete(Some(body.value))
    }
}
