//! Secrets that ask for a token of an account: they get one and go with the account, and when one
//! goes the account does not go on naming it.

use std::sync::Arc;

use serde_json::Value;

use super::super::{
    DeleteOptions, Registry, Target, Validation, Write,
    create::Owners,
    update::{Before, From},
};
use crate::{
    auth::User,
    error::Error,
    store::{Change, Key, Mode, Object, Transaction},
};

const SECRETS: &str = "/secrets";
const ACCOUNTS: &str = "/serviceaccounts";
const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

/// A Secret with a token that has gone. Another of its name may be there already.
pub(super) struct Gone {
    secret: String,
    account: Key,
    /// Empty if the Secret had not been looked at yet.
    uid: String,
}

impl Gone {
    pub(super) fn of(change: &Change) -> Option<Self> {
        let Some(old) = &change.old else { return None };
        if *change.key.resource != *SECRETS || change.new.is_some() || !asks(old) {
            return None;
        }
        Some(Self {
            secret: change.key.name().to_owned(),
            account: Key::new(&ACCOUNTS.into(), change.key.namespace(), mark(old, NAME)),
            uid: mark(old, UID).to_owned(),
        })
    }

    /// The account without the Secret; `None` if it is another one or does not name it.
    fn struck_off(&self, account: &Object) -> Option<Value> {
        if !self.uid.is_empty() && self.uid != account.uid() {
            return None;
        }
        let mut left = account.value().get("secrets")?.as_array()?.clone();
        let named = left.len();
        left.retain(|one| one.get("name").and_then(Value::as_str) != Some(&*self.secret));
        (left.len() < named).then_some(Value::Array(left))
    }
}

impl Registry {
    /// An account does not go on naming a Secret that has gone.
    pub(super) async fn strike_off(self: &Arc<Self>, gone: Gone) {
        let due = |account: &Arc<Object>| gone.struck_off(account).is_some();
        if !self.store.read().get(&gone.account).is_some_and(due) {
            return;
        }
        let Some(target) = self.target_of(&gone.account) else { return };
        self.quietly(move |registry, tx| {
            let Some(account) = tx.get(&gone.account) else { return Ok(()) };
            let Some(left) = gone.struck_off(&account) else { return Ok(()) };
            let before = Before::of(&target.served, &account);
            let mut new = before.shown.clone();
            if let Some(fields) = new.as_object_mut() {
                match left.as_array() {
                    Some(left) if left.is_empty() => fields.remove("secrets"),
                    _ => fields.insert("secrets".to_owned(), left),
                };
            }
            registry.write_as_controller(tx, &target, before, new)
        })
        .await;
    }

    /// Looks at a Secret, or at those of an account that has gone.
    pub(super) async fn tend_tokens(self: &Arc<Self>, key: &Key) {
        match &*key.resource {
            SECRETS => self.tend_secret(key.clone()).await,
            ACCOUNTS if self.store.read().get(key).is_none() => {
                for secret in self.secrets_of(key) {
                    self.tend_secret(secret).await;
                }
            }
            _ => {}
        }
    }

    fn secrets_of(&self, account: &Key) -> Vec<Key> {
        let state = self.store.read();
        let prefix = format!("{}/", account.namespace());
        let all = state.list(SECRETS, &prefix);
        let named = all.filter(|(_, secret)| mark(secret, NAME) == account.name());
        named.map(|(name, _)| Key { resource: SECRETS.into(), name: name.clone() }).collect()
    }

    async fn tend_secret(self: &Arc<Self>, key: Key) {
        let due = |secret: &Arc<Object>| asks(secret) && !secret.is_deleting();
        // Most Secrets ask for nothing, and then the writer is left alone.
        if self.tokens.get().is_none() || !self.store.read().get(&key).is_some_and(due) {
            return;
        }
        let Some(target) = self.target_of(&key) else { return };
        self.quietly(move |registry, tx| match tx.get(&key).filter(due) {
            Some(secret) => registry.settle_secret(tx, &target, &secret),
            None => Ok(()),
        })
        .await;
    }

    fn settle_secret(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        secret: &Arc<Object>,
    ) -> Result<(), Error> {
        let Some(tokens) = self.tokens.get() else { return Ok(()) };
        let account = Key::new(&ACCOUNTS.into(), &target.namespace, mark(secret, NAME));
        let uid = mark(secret, UID);
        let account = tx.get(&account).filter(|found| uid.is_empty() || uid == found.uid());
        let Some(account) = account else {
            return self.delete_in(tx, target, &DeleteOptions::default()).map(|_| ());
        };
        let before = Before::of(&target.served, secret);
        let mut new = before.shown.clone();
        let authority = &self.settings.root_certificate;
        let lacked = tokens
            .fill_secret(&mut new, account.value(), authority, tx.now())
            .map_err(|_| Error::Internal)?;
        if lacked { self.write_as_controller(tx, target, before, new) } else { Ok(()) }
    }

    fn write_as_controller(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        before: Before,
        new: Value,
    ) -> Result<(), Error> {
        let write = Write {
            mode: Mode::Store,
            manager: "kube-controller-manager".into(),
            validation: Validation::Ignore,
            user: User::admin(),
        };
        self.update_in(tx, target, before, new, &write, Owners::Compare, From::Put).map(|_| ())
    }
}

fn mark<'a>(secret: &'a Object, name: &str) -> &'a str {
    let marks = secret.metadata().get("annotations");
    marks.and_then(|marks| marks.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// Whether it asks for a token.
fn asks(secret: &Object) -> bool {
    let is_of_type = secret.value().get("type").is_some_and(|kind| kind == TYPE);
    is_of_type && !mark(secret, NAME).is_empty()
}
