//! Many objects, whole or page by page, now or as they were.

use std::sync::Arc;

use super::{Registry, Target, read::Selection, token::Token};
use crate::{
    error::{Cause, CauseReason, Error, Subject},
    store::Object,
};

#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    pub selection: Selection,
    /// Zero for no limit.
    pub limit: usize,
    pub go_on: String,
    pub version: Option<u64>,
    pub version_match: Option<Match>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Exact,
    NotOlderThan,
}

#[derive(Debug)]
pub struct Listed {
    pub objects: Vec<Arc<Object>>,
    pub version: u64,
    /// Where the next page begins.
    pub go_on: Option<String>,
    pub remaining: Option<usize>,
}

/// Which state is listed.
enum At {
    Newest,
    Exactly(u64),
}

const OLD_TOKEN: &str = "The provided continue parameter is too old to display a consistent list \
    result. You can start a new list without the continue parameter, or use the continue token in \
    this response to retrieve the remainder of the results. Continuing with the provided token \
    results in an inconsistent list - objects that were created, modified, or deleted between the \
    time the first chunk was returned and now may show up in the list.";
const OLD_VERSION: &str = "The resourceVersion for the provided list is too old.";

impl Registry {
    pub async fn list(&self, target: &Target, options: &ListOptions) -> Result<Listed, Error> {
        let token = match &*options.go_on {
            "" => None,
            text => Some(Token::parse(text)?),
        };
        check(options, token.is_some())?;
        // A token may be of another store, which has come further than this one.
        let told = token.as_ref().and_then(Token::version);
        if let Some(version) = told.or(options.version) {
            self.wait_for(version).await?;
        }
        let (limit, at) = match &token {
            Some(_) => (options.limit, told.map_or(At::Newest, At::Exactly)),
            None => start(options),
        };
        let after = token.map(|token| token.key(&target.prefix())).unwrap_or_default();
        self.page(target, options, limit, at, &after)
    }

    fn page(
        &self,
        target: &Target,
        options: &ListOptions,
        limit: usize,
        at: At,
        after: &str,
    ) -> Result<Listed, Error> {
        let (resource, prefix) = (&target.served.stored_as, target.prefix());
        let state = self.store.read();
        let (version, all) = match at {
            At::Newest => {
                let all = state.list(resource, &prefix);
                let all = all.map(|(key, object)| (key.clone(), object.clone()));
                (state.version(), all.collect::<Vec<_>>())
            }
            At::Exactly(version) => {
                let all = state.list_at(resource, &prefix, version);
                (version, all.map_err(|_| expired(after.strip_prefix(&*prefix).unwrap_or(after)))?)
            }
        };
        drop(state);
        let wanted = all.into_iter().filter(|(key, object)| {
            **key >= *after && options.selection.matches(&target.served, object)
        });
        let mut wanted: Vec<_> = wanted.collect();
        if limit == 0 || wanted.len() <= limit {
            let objects = wanted.into_iter().map(|(_, object)| object).collect();
            return Ok(Listed { objects, version, go_on: None, remaining: None });
        }
        let rest = wanted.split_off(limit);
        // The least key that is greater than the last one's.
        let next = wanted.last().map(|(key, _)| format!("{key}\0")).unwrap_or_default();
        let next = next.strip_prefix(&*prefix).unwrap_or(&next).to_owned();
        let rv = i64::try_from(version).unwrap_or(i64::MAX);
        Ok(Listed {
            objects: wanted.into_iter().map(|(_, object)| object).collect(),
            version,
            go_on: Some(Token::new(rv, next).print()),
            remaining: options.selection.is_all().then_some(rest.len()),
        })
    }
}

/// The limit that counts and the state that is meant.
fn start(options: &ListOptions) -> (usize, At) {
    match (options.version, options.version_match) {
        (Some(version), Some(Match::Exact)) => (options.limit, At::Exactly(version)),
        (Some(0), _) => (0, At::Newest),
        (Some(version), None) if options.limit > 0 => (options.limit, At::Exactly(version)),
        _ => (options.limit, At::Newest),
    }
}

fn expired(after: &str) -> Error {
    match after {
        "" => Error::Expired { text: OLD_VERSION.into(), go_on: None },
        after => Error::Expired {
            text: OLD_TOKEN.into(),
            go_on: Some(Token::new(-1, after.to_owned()).print()),
        },
    }
}

fn check(options: &ListOptions, goes_on: bool) -> Result<(), Error> {
    if goes_on && options.version.is_some_and(|version| version != 0) {
        let text = "specifying resource version is not allowed when using continue";
        return Err(Error::BadRequest(text.into()));
    }
    let Some(wanted) = options.version_match else { return Ok(()) };
    let mut texts = Vec::new();
    if options.version.is_none() {
        texts.push("resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if goes_on {
        texts.push("resourceVersionMatch is forbidden when continue is provided");
    }
    if wanted == Match::Exact && options.version == Some(0) {
        texts.push("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if texts.is_empty() { Ok(()) } else { Err(all_forbidden(&texts)) }
}

/// A list option that does not go with the others.
pub(crate) fn forbidden(text: &str) -> Error {
    all_forbidden(&[text])
}

fn all_forbidden(texts: &[&str]) -> Error {
    let cause = |text: &&str| {
        let field = match text.starts_with("sendInitialEvents is") {
            true => "sendInitialEvents",
            false => "resourceVersionMatch",
        };
        Cause {
            reason: CauseReason::Forbidden,
            field: field.into(),
            message: format!("Forbidden: {text}"),
        }
    };
    Error::Invalid {
        subject: Subject::new("meta.k8s.io", "ListOptions", ""),
        causes: texts.iter().map(cause).collect(),
    }
}
