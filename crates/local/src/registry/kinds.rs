//! What single built-in kinds need beyond their defaults and checks.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Registry, Target, Write,
    body::meta,
    check::{NAMESPACES, suffix, uid},
    definitions,
};
use crate::{
    builtin,
    error::Error,
    store::{Key, Transaction},
};

const SERVICES: &str = "/services";
const ACCOUNTS: &str = "/serviceaccounts";
const CLASSES: &str = "storage.k8s.io/storageclasses";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// Services get addresses of 127.96.0.0/16, where the node can listen for them, but for the first,
/// which is the API's own.
const ADDRESSES: u32 = 0x7f60_0000;
const FIRST: u32 = 10;
const LAST: u32 = 65_533;

impl Registry {
    /// Before validation.
    pub(super) fn on_create(
        &self,
        tx: &Transaction<'_>,
        target: &Target,
        object: &mut Value,
        write: &Write,
    ) -> Result<(), Error> {
        let served = &target.served;
        if served.resource.custom {
            return Ok(());
        }
        if served.defines() {
            definitions::accept(tx, served, object);
        }
        self.check_rights(target, object, None, write)?;
        let account = served.is("", "pods").then(|| {
            let name = builtin::account_name(object);
            tx.get(&Key::new(&ACCOUNTS.into(), &target.namespace, name))
        });
        let account = account.flatten();
        let address = (served.is("", "services") && builtin::wants_address(object))
            .then(|| free_address(tx))
            .flatten();
        let class = served.is("", "persistentvolumeclaims").then(|| default_class(tx)).flatten();
        let context = builtin::Context {
            account: account.as_ref().map(|account| account.value()),
            address: address.as_deref(),
            storage_class: class.as_deref(),
            suffix: &suffix()?,
            time: &Self::time(tx),
        };
        builtin::on_create(&served.resource, object, &context).map_err(|error| {
            Error::forbidden(served.subject(meta(object, "name")), error.to_string())
        })
    }

    /// Before validation.
    pub(super) fn on_update(
        &self,
        tx: &Transaction<'_>,
        target: &Target,
        old: &Value,
        new: &mut Value,
        write: &Write,
    ) -> Result<(), Error> {
        let served = &target.served;
        if served.resource.custom {
            return Ok(());
        }
        let main = target.subresource.is_empty();
        if main {
            builtin::on_update(&served.resource, new, old);
            self.check_rights(target, new, Some(old), write)?;
        }
        if target.subresource == "status" {
            builtin::on_status_update(&served.resource, new, old, &Self::time(tx));
        }
        if main && served.defines() {
            definitions::accept(tx, served, new);
        }
        Ok(())
    }

    /// What comes into being with an object.
    pub(super) fn after_create(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        key: &Key,
    ) -> Result<(), Error> {
        if target.served.is("", "namespaces") {
            self.furnish(tx, key.name())?;
        }
        Ok(())
    }

    /// Every namespace has an account for its pods and the certificate they trust.
    pub(super) fn furnish(&self, tx: &mut Transaction<'_>, namespace: &str) -> Result<(), Error> {
        let time = Self::time(tx);
        let metadata = |name: &str, uid: String| json!({"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": time});
        let account = json!({"metadata": metadata("default", uid()?)});
        tx.put(&Key::new(&ACCOUNTS.into(), namespace, "default"), account);
        let mut roots = json!({
            "metadata": metadata("kube-root-ca.crt", uid()?),
            "data": {"ca.crt": self.settings.root_certificate},
        });
        roots["metadata"]["annotations"] = json!({
            "kubernetes.io/description": "Contains a CA bundle that can be used to verify the \
                kube-apiserver when using internal endpoints such as the internal service IP or \
                kubernetes.default.svc. No other usage is guaranteed across distributions of \
                Kubernetes clusters.",
        });
        tx.put(&Key::new(&"/configmaps".into(), namespace, "kube-root-ca.crt"), roots);
        Ok(())
    }

    pub(super) fn namespace_key(name: &str) -> Key {
        Key::new(&NAMESPACES.into(), "", name)
    }
}

fn default_class(tx: &Transaction<'_>) -> Option<String> {
    let classes = tx.list(CLASSES, "");
    let marked = classes.iter().find(|(_, class)| {
        let marks = class.metadata().get("annotations");
        marks.and_then(|marks| marks.get(DEFAULT_CLASS)).is_some_and(|mark| mark == "true")
    });
    marked.map(|(_, class)| class.meta("name").to_owned())
}

/// An address that no service has, from anywhere in the range: two servers on one machine, which
/// know nothing of each other, rarely give the same one.
fn free_address(tx: &Transaction<'_>) -> Option<String> {
    let services = tx.list(SERVICES, "");
    let taken = services.iter().flat_map(|(_, service)| {
        let spec = service.value().get("spec");
        let all = spec.and_then(|spec| spec.get("clusterIPs")).and_then(Value::as_array).cloned();
        all.into_iter().flatten()
    });
    let taken: BTreeSet<_> =
        taken.filter_map(|address| address.as_str().map(str::to_owned)).collect();
    let mut seed = [0; 2];
    // Without randomness the first free one has to do.
    let _ = getrandom::fill(&mut seed);
    let start = FIRST + u32::from(u16::from_ne_bytes(seed)) % (LAST - FIRST);
    let mut addresses = (start..LAST)
        .chain(FIRST..start)
        .map(|at| std::net::Ipv4Addr::from(ADDRESSES + at).to_string());
    addresses.find(|address| !taken.contains(address))
}
