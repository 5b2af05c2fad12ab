//! Secrets that ask for a token of an account: they get one, and go with the account.

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
    store::{Key, Mode, Object, Transaction},
};

const SECRETS: &str = "/secrets";
const ACCOUNTS: &str = "/serviceaccounts";
const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

impl Registry {
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
        let due = |secret: &Arc<Object>| !mark(secret, NAME).is_empty() && !secret.is_deleting();
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
        if secret.value().get("type").is_none_or(|kind| kind != TYPE) {
            return Ok(());
        }
        let account = Key::new(&ACCOUNTS.into(), &target.namespace, mark(secret, NAME));
        let uid = mark(secret, UID);
        let account = tx.get(&account).filter(|found| uid.is_empty() || uid == found.uid());
        let Some(account) = account else {
            return self.delete_in(tx, target, &DeleteOptions::default()).map(|_| ());
        };
        if !uid.is_empty() && is_filled(secret.value()) {
            return Ok(());
        }
        let before = Before::of(&target.served, secret);
        let mut new = before.shown.clone();
        let authority = &self.settings.root_certificate;
        tokens
            .fill_secret(&mut new, account.value(), authority, tx.now())
            .map_err(|_| Error::Internal)?;
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

fn is_filled(secret: &Value) -> bool {
    let has = |name: &str| secret.get("data").is_some_and(|data| data.get(name).is_some());
    has("token") && has("ca.crt") && has("namespace")
}
