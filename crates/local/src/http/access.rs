//! Who asks, and whether it may.

use http::{HeaderMap, Method, header, request::Parts};

use super::{Server, handle::verb, path::Path, query::Query};
use crate::{
    auth::{self, Attributes, Impersonation, Tokens, User},
    error::{Error, Subject},
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
        let headers = parts.headers.iter();
        let headers =
            headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        match auth::impersonation(&caller, headers, &self.registry.rights()) {
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
        let tokens = self.access.tokens.as_ref()?;
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
        let wish = match path {
            Path::Resource(asked) => {
                let watch = query.is_watch().unwrap_or_default();
                let named = !asked.name.is_empty();
                // A namespace is counted as in itself.
                let inside = asked.plural == "namespaces" && asked.group.is_empty();
                Attributes {
                    verb: verb(&parts.method, named, watch).unwrap_or(&method),
                    target: auth::Target::Resource {
                        group: &asked.group,
                        resource: &asked.plural,
                        subresource: &asked.subresource,
                        namespace: if inside { &asked.name } else { &asked.namespace },
                        name: &asked.name,
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
            Path::Resource(asked) => Some(Subject::new(&asked.group, &asked.plural, &asked.name)),
            _ => None,
        };
        let mut text = auth::denial(user, &wish);
        if let Some(trouble) = self.registry.rights().trouble(user, &wish) {
            text += &format!(": {trouble}");
        }
        Err(Error::Forbidden { subject, text, causes: Vec::new() })
    }
}
