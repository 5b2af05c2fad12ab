//! Secrets that ask for the token of an account get it, and go with the account.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::{ObjectReference, Secret, ServiceAccount};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, Preconditions},
};
use serde_json::json;

use super::{Caches, Context, Controller, Error, Key, Queue, cache::version_of, patching};
use crate::auth::Tokens;

const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

pub(super) struct AccountTokens {
    context: Context,
    /// Whose the Secrets are that have been seen.
    accounts: Mutex<BTreeMap<Key, String>>,
}

impl Controller for AccountTokens {
    const NAME: &'static str = "tokens";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        context.caches.tokens.feed(queue, |secret| [Key::of(secret)]);
        let caches = Arc::downgrade(&context.caches);
        context.caches.accounts.feed(queue, move |account| {
            caches.upgrade().map(|caches| secrets_of(&caches, account)).unwrap_or_default()
        });
        Self { context, accounts: Mutex::default() }
    }

    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let caches = &self.context.caches;
        let Some(tokens) = self.context.server.tokens() else { return Ok(None) };
        let Some(secret) = caches.tokens.get(key) else {
            return self.strike_out(key).await.map(|()| None);
        };
        self.remember(key, &secret);
        if secret.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        match self.account(&secret).await? {
            None => self.delete(&secret).await?,
            Some(account) => self.fill(tokens, &secret, &account).await?,
        }
        Ok(None)
    }
}

fn secrets_of(caches: &Caches, account: &ServiceAccount) -> Vec<Key> {
    let all = caches.tokens.within(account.metadata.namespace.as_deref().unwrap_or_default());
    let of =
        |secret: &&Arc<Secret>| secret.annotations().get(ACCOUNT) == account.metadata.name.as_ref();
    all.iter().filter(of).map(|secret| Key::of(&**secret)).collect()
}

/// Whether this account is the one that the Secret means: one of the same name may be another.
fn is_meant(secret: &Secret, account: &ServiceAccount) -> bool {
    let uid = secret.annotations().get(ACCOUNT_UID).filter(|uid| !uid.is_empty());
    uid.is_none() || uid == account.metadata.uid.as_ref()
}

/// The Secrets that it names but this one; `None` if it does not name this one.
fn without(account: &ServiceAccount, secret: &Key) -> Option<Vec<ObjectReference>> {
    let named = account.secrets.as_deref().unwrap_or_default();
    let is_other = |one: &&ObjectReference| one.name.as_ref() != Some(&secret.name);
    let left: Vec<_> = named.iter().filter(is_other).cloned().collect();
    (left.len() < named.len()).then_some(left)
}

fn is_filled(secret: &Secret, authority: &str) -> bool {
    let value = |key: &str| secret.data.as_ref().and_then(|data| data.get(key));
    let is_there = |key: &str| value(key).is_some_and(|value| !value.0.is_empty());
    is_there("token")
        && is_there("namespace")
        && (authority.is_empty() || value("ca.crt").is_some_and(|ca| ca.0 == authority.as_bytes()))
}

impl AccountTokens {
    fn remember(&self, key: &Key, secret: &Secret) {
        let account = secret.annotations().get(ACCOUNT).cloned().unwrap_or_default();
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.insert(key.clone(), account);
    }

    fn forget(&self, key: &Key) {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// An account does not go on naming a Secret that is gone.
    async fn strike_out(&self, key: &Key) -> Result<(), Error> {
        let name = {
            let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
            accounts.get(key).cloned()
        };
        let Some(name) = name else { return Ok(()) };
        let cache = &self.context.caches.accounts;
        let account = cache.get(&Key::new(&key.namespace, &name));
        if let Some((account, left)) = account.and_then(|it| Some((it.clone(), without(&it, key)?)))
        {
            let patch = json!({
                "metadata": {"resourceVersion": version_of(&*account)},
                "secrets": left,
            });
            let api = self.context.api::<ServiceAccount>(&key.namespace);
            match api.patch(&name, &patching(), &Patch::Merge(patch)).await {
                Ok(changed) => cache.note(changed),
                Err(kube::Error::Api(status)) if status.code == 404 => cache.forget(&account),
                Err(error) => return Err(Error::on("change ServiceAccount", &name)(error)),
            }
        }
        self.forget(key);
        Ok(())
    }

    /// The API is asked before the Secret goes, as the cache may not know the account yet.
    async fn account(&self, secret: &Secret) -> Result<Option<ServiceAccount>, Error> {
        let namespace = secret.namespace().unwrap_or_default();
        let name = secret.annotations().get(ACCOUNT).cloned().unwrap_or_default();
        let known = self.context.caches.accounts.get(&Key::new(&namespace, &name));
        if let Some(account) = known.filter(|account| is_meant(secret, account)) {
            return Ok(Some((*account).clone()));
        }
        let found = self.context.api::<ServiceAccount>(&namespace).get_opt(&name).await;
        let found = found.map_err(Error::on("read ServiceAccount", &name))?;
        Ok(found.filter(|account| is_meant(secret, account)))
    }

    async fn delete(&self, secret: &Secret) -> Result<(), Error> {
        let name = secret.name_any();
        let only = Preconditions { uid: secret.metadata.uid.clone(), resource_version: None };
        let api = self.context.api::<Secret>(&secret.namespace().unwrap_or_default());
        match api.delete(&name, &DeleteParams::default().preconditions(only)).await {
            Ok(answer) => self.context.caches.tokens.note_deletion(secret, answer),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.context.caches.tokens.forget(secret);
            }
            Err(error) => return Err(Error::on("delete Secret", &name)(error)),
        }
        Ok(())
    }

    async fn fill(
        &self,
        tokens: &Tokens,
        secret: &Secret,
        account: &ServiceAccount,
    ) -> Result<(), Error> {
        let authority = &self.context.server.registry().settings().root_certificate;
        if is_filled(secret, authority) {
            return Ok(());
        }
        let mut filled = json!(secret);
        let given = filled.pointer("/data/token").filter(|token| *token != "").cloned();
        let account = json!(account);
        if tokens.fill_secret(&mut filled, &account, authority, self.context.now()).is_err() {
            tracing::error!(secret = %Key::of(secret), "cannot sign a token");
            return Ok(());
        }
        if let Some(given) = given {
            filled["data"]["token"] = given;
        }
        let patch = json!({
            "metadata": {
                "resourceVersion": version_of(secret),
                "annotations": filled["metadata"]["annotations"],
            },
            "data": filled["data"],
        });
        let name = secret.name_any();
        let api = self.context.api::<Secret>(&secret.namespace().unwrap_or_default());
        let written = api.patch(&name, &patching(), &Patch::Merge(patch)).await;
        let written = written.map_err(Error::on("fill Secret", &name))?;
        self.context.caches.tokens.note(written);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value};

    use super::*;

    fn secret(uid: Value, data: Value) -> Secret {
        let annotations = json!({ACCOUNT: "a", ACCOUNT_UID: uid});
        from_value(json!({"metadata": {"annotations": annotations}, "data": data})).unwrap()
    }

    #[test]
    fn a_secret_means_one_account() {
        let account: ServiceAccount =
            from_value(json!({"metadata": {"name": "a", "uid": "u"}})).unwrap();
        for (uid, want) in [("", true), ("u", true), ("other", false)] {
            assert_eq!(is_meant(&secret(json!(uid), json!({})), &account), want, "{uid}");
        }
    }

    #[test]
    fn an_account_keeps_the_other_secrets_that_it_names() {
        let account: ServiceAccount =
            from_value(json!({"secrets": [{"name": "a"}, {"name": "b"}]})).unwrap();
        let left = without(&account, &Key::new("ns", "a")).unwrap();
        assert_eq!(json!(left), json!([{"name": "b"}]));
        assert_eq!(without(&account, &Key::new("ns", "c")), None);
    }

    #[test]
    fn a_secret_is_filled_with_all_three() {
        let full = json!({"token": "dA==", "namespace": "bg==", "ca.crt": "Q0E="});
        let without = |key: &str| {
            let mut data = full.clone();
            data[key] = json!("");
            data
        };
        assert!(is_filled(&secret(json!(""), full.clone()), "CA"));
        assert!(!is_filled(&secret(json!(""), full.clone()), "another CA"));
        for key in ["token", "namespace", "ca.crt"] {
            assert!(!is_filled(&secret(json!(""), without(key)), "CA"), "{key}");
        }
    }
}
