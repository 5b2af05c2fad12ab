//! Accounts do not go on naming Secrets with their token that are gone.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::{ObjectReference, Secret, ServiceAccount};
use kube::{ResourceExt, api::Patch};
use serde_json::json;

use super::{Context, Controller, Error, Key, Queue, cache::version_of, patching};

const ACCOUNT: &str = "kubernetes.io/service-account.name";

pub(super) struct AccountTokens {
    context: Context,
    /// Whose the Secrets are that have been seen.
    accounts: Mutex<BTreeMap<Key, String>>,
}

impl Controller for AccountTokens {
    const NAME: &'static str = "tokens";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        context.caches.tokens.feed(queue, |secret| [Key::of(secret)]);
        Self { context, accounts: Mutex::default() }
    }

    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        match self.context.caches.tokens.get(key) {
            Some(secret) => self.remember(key, &secret),
            None => self.strike_out(key).await?,
        }
        Ok(None)
    }
}

/// The Secrets that it names but this one; `None` if it does not name this one.
fn without(account: &ServiceAccount, secret: &Key) -> Option<Vec<ObjectReference>> {
    let named = account.secrets.as_deref().unwrap_or_default();
    let is_other = |one: &&ObjectReference| one.name.as_ref() != Some(&secret.name);
    let left: Vec<_> = named.iter().filter(is_other).cloned().collect();
    (left.len() < named.len()).then_some(left)
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
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;

    #[test]
    fn an_account_keeps_the_other_secrets_that_it_names() {
        let account: ServiceAccount =
            from_value(json!({"secrets": [{"name": "a"}, {"name": "b"}]})).unwrap();
        let left = without(&account, &Key::new("ns", "a")).unwrap();
        assert_eq!(json!(left), json!([{"name": "b"}]));
        assert_eq!(without(&account, &Key::new("ns", "c")), None);
    }
}
