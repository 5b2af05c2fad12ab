//! The verbs.
//!
//! A request names a [`Target`]; the registry reads the newest state or runs one change in the
//! store's writer. What a kind is like comes from the [`Catalog`], built in or by definition.

mod body;
mod catalog;
mod check;
mod create;
mod definitions;
mod delete;
mod documents;
mod events;
mod janitor;
mod kinds;
mod list;
mod patch;
mod read;
mod rights;
mod scale;
mod start;
mod subresource;
mod token;
mod update;
mod watch;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use serde_json::Value;

pub use body::{Body, Duplicates};
pub use catalog::{Catalog, Served, Source};
pub use delete::{DeleteOptions, Policy};
pub use documents::{Document, Documents};
pub use janitor::tend;
pub(crate) use list::forbidden as forbidden_option;
pub use list::{ListOptions, Listed, Match};
pub use patch::PatchKind;
pub use read::Selection;
pub use start::Settings;
pub(crate) use token::reread_token;
pub use watch::{Event, Watch, WatchOptions};

use crate::{
    auth::{self, Tokens},
    error::{Error, Subject},
    store::{self, Key, Mode, Object, Store, Transaction},
};

pub struct Registry {
    store: Store,
    catalog: Mutex<Option<Arc<Catalog>>>,
    rights: Mutex<Option<(rights::At, Arc<auth::Rbac>)>>,
    settings: Settings,
    /// Once they are known, Secrets that ask for a token get one.
    tokens: OnceLock<Arc<Tokens>>,
}

/// What a request is about.
#[derive(Clone)]
pub struct Target {
    pub served: Arc<Served>,
    /// Empty for objects of the cluster, and for lists over all namespaces.
    pub namespace: String,
    /// Empty for the collection.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
}

impl Target {
    fn key(&self) -> Key {
        self.key_of(&self.name)
    }

    fn key_of(&self, name: &str) -> Key {
        Key::new(&self.served.stored_as, &self.namespace, name)
    }

    /// As errors about objects name it.
    fn subject(&self) -> Subject {
        self.served.subject(&self.name)
    }

    /// Where its objects are in the store.
    fn prefix(&self) -> String {
        if self.namespace.is_empty() { String::new() } else { format!("{}/", self.namespace) }
    }
}

/// How a write is meant, apart from its body.
#[derive(Clone, Debug)]
pub struct Write {
    pub mode: Mode,
    pub manager: String,
    pub validation: Validation,
    pub user: auth::User,
}

/// What is done about fields that nobody knows and fields that are there twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The outcome of a write.
#[derive(Debug)]
pub struct Answer {
    pub created: bool,
    pub body: Content,
    pub warnings: Vec<String>,
}

/// What a write is answered with.
#[derive(Debug)]
pub enum Content {
    /// The object of the request, as it is stored now.
    Stored(Arc<Object>),
    /// Anything else, as it is shown.
    Shown(Value),
}

impl Answer {
    fn of(body: Value) -> Self {
        Self { created: false, body: Content::Shown(body), warnings: Vec::new() }
    }
}

impl Registry {
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// From now on with these. The first to be told stay.
    pub(crate) fn issue_with(&self, tokens: Arc<Tokens>) {
        let _ = self.tokens.set(tokens);
    }

    /// What is served now. It is made anew when a definition has changed.
    ///
    /// Must not be called while the state is held for reading.
    pub fn catalog(&self) -> Arc<Catalog> {
        let mut cached = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let at = self.store.read().changed(catalog::DEFINITIONS);
        match &*cached {
            Some(catalog) if catalog.at() == at => catalog.clone(),
            old => {
                let (at, definitions) = {
                    let state = self.store.read();
                    let all = state.list(catalog::DEFINITIONS, "");
                    let all = all.map(|(_, object)| object.clone()).collect::<Vec<_>>();
                    (state.changed(catalog::DEFINITIONS), all)
                };
                let fresh = Arc::new(Catalog::new(at, &definitions, old.as_deref()));
                *cached = Some(fresh.clone());
                fresh
            }
        }
    }

    /// Runs one change, alone.
    async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        mode: Mode,
        change: impl FnOnce(&Arc<Self>, &mut Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let registry = self.clone();
        let done = self.store.write(mode, move |tx| change(&registry, tx)).await;
        done.unwrap_or_else(|error| {
            Err(match error {
                store::Error::Panicked => Error::Internal,
                store::Error::Full { why } => Error::Full(why),
                _ => Error::Store,
            })
        })
    }
}

/// As Kubernetes writes times: in UTC and whole seconds, never later than it is.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
