//! Who asks, and whether it may.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header, request::Parts};

use super::{
    Server,
    handle::verb,
    path::{Path, decode},
    query::Query,
};
use crate::{
    auth::{self, Attributes, Impersonation, Tokens, User},
    error::{Error, Subject},
    selector::Fields,
};

/// Says who asks in this process. Requests from the network have none, whatever they carry.
#[derive(Clone)]
pub(super) struct Identity(pub(super) User);

/// How callers over the network are known.
#[derive(Default)]
pub struct Access {
    /// Without them nobody is let in from the network.
    pub tokens: Option<Tokens>,
}

impl Server {
    pub(super) fn authenticate(&self, parts: &Parts) -> Result<User, Error> {
        let caller = match parts.extensions.get() {
            Some(Identity(user)) => user.clone(),
            None => self.bearer(&parts.headers).ok_or(Error::Unauthorized)?,
        };
        match auth::impersonation(&caller, impersonated(parts)?, &self.registry.rights()) {
            Impersonation::None => Ok(caller),
            Impersonation::As(user) => Ok(user),
            Impersonation::Forbidden { resource, name, text } => {
                Err(Error::forbidden(Subject::new("", resource, &name), text))
            }
            Impersonation::Incomplete => {
                Err(Error::BadRequest("requested impersonation of no user".into()))
            }
        }
    }

    fn bearer(&self, headers: &HeaderMap) -> Option<User> {
        let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = given.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let tokens = self.tokens.as_deref()?;
        self.registry.bearer(tokens, token.trim(), &[]).map(|(user, _)| user)
    }

    pub(super) fn authorise(
        &self,
        user: &User,
        parts: &Parts,
        path: &Path,
        query: &Query,
    ) -> Result<(), Error> {
        if self.registry.settings().allows_everything {
            return Ok(());
        }
        let method = parts.method.as_str().to_ascii_lowercase();
        let name = asked_name(parts, path, query);
        let wish = match path {
            Path::Resource(asked) => {
                let watch = query.is_watch().unwrap_or_default();
                // A namespace is counted as in itself.
                let inside = asked.plural == "namespaces" && asked.group.is_empty();
                Attributes {
                    verb: verb(&parts.method, !asked.name.is_empty(), watch).unwrap_or(&method),
                    target: auth::Target::Resource {
                        group: &asked.group,
                        resource: &asked.plural,
                        subresource: &asked.subresource,
                        namespace: if inside { &asked.name } else { &asked.namespace },
                        name: &name,
                    },
                }
            }
            _ => Attributes {
                verb: if parts.method == Method::HEAD { "get" } else { &method },
                target: auth::Target::Path(parts.uri.path()),
            },
        };
        if self.registry.rights().allows(user, &wish) {
            return Ok(());
        }
        let subject = match path {
            Path::Resource(asked) => Some(Subject::new(&asked.group, &asked.plural, &name)),
            _ => None,
        };
        let mut text = auth::denial(user, &wish);
        if let Some(trouble) = self.registry.rights().trouble(user, &wish) {
            text += &format!(": {trouble}");
        }
        Err(Error::Forbidden { subject, text, causes: Vec::new() })
    }
}

/// The name in the path, or the one that a list or watch is narrowed to: whoever has a right to one
/// object may list and watch that one.
fn asked_name(parts: &Parts, path: &Path, query: &Query) -> String {
    let Path::Resource(asked) = path else { return String::new() };
    let selects = asked.name.is_empty() && parts.method == Method::GET;
    let selected = selects.then(|| Fields::exact_name(query.get("fieldSelector"))).flatten();
    selected.unwrap_or_else(|| asked.name.clone())
}

/// The headers that ask to stand for somebody. One that cannot be read must not be passed over: the
/// request would run with the rights of the caller.
fn impersonated(parts: &Parts) -> Result<Vec<(String, String)>, Error> {
    let headers = parts.headers.iter();
    let headers = headers.filter(|(name, _)| name.as_str().starts_with("impersonate-"));
    let read = |(name, value): (&HeaderName, &HeaderValue)| {
        let name = name.as_str();
        // The keys of extra values may be written with escapes.
        let plain = name.starts_with("impersonate-extra-").then(|| decode(name, false)).flatten();
        let plain = String::from_utf8(plain.unwrap_or_else(|| name.into())).ok();
        let value = String::from_utf8(value.as_bytes().to_vec()).ok();
        let unreadable = || Error::BadRequest(format!("the header {name} is not UTF-8"));
        plain.zip(value).ok_or_else(unreadable)
    };
    headers.map(read).collect()
}
