//! Who asks, and whether it may.

use http::{header, request::Parts};

use super::{Server, path::Path, query::Query};
use crate::{auth::User, error::Error};

/// Says who asks in this process. Requests from the network have none, whatever they carry.
#[derive(Clone)]
pub(super) struct Identity(pub(super) User);

/// How callers over the network are known.
#[derive(Default)]
pub struct Access {
    pub admin_token: String,
}

impl Server {
    pub(super) fn authenticate(&self, parts: &Parts) -> Result<User, Error> {
        if let Some(Identity(user)) = parts.extensions.get() {
            return Ok(user.clone());
        }
        let _ = header::AUTHORIZATION;
        Err(Error::Unauthorized)
    }

    pub(super) fn authorise(
        &self,
        user: &User,
        parts: &Parts,
        path: &Path,
        query: &Query,
    ) -> Result<(), Error> {
        let _ = (user, parts, path, query);
        Ok(())
    }
}
