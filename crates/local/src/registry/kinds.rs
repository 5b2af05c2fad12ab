//! What single built-in kinds need beyond their defaults and checks.

use std::{collections::BTreeSet, net::Ipv4Addr};

use serde_json::{Value, json};

use super::{
    Registry, Target, Write,
    body::meta,
    check::{NAMESPACES, suffix, uid},
    definitions,
};
use crate::{
    builtin,
    error::{Cause, CauseReason, Error},
    store::{Key, Object, State, Transaction},
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
/// The last of the range is for broadcasts.
const MOST: u32 = 65_534;

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

    /// After validation.
    pub(super) fn check_address(
        &self,
        tx: &Transaction<'_>,
        target: &Target,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Error> {
        let had =
            |old: &Value| old.pointer("/spec/clusterIPs") == object.pointer("/spec/clusterIPs");
        let refused = match target.served.is("", "services") && !old.is_some_and(had) {
            true => refused_address(tx, object),
            false => None,
        };
        let subject = || target.served.subject_kind(meta(object, "name"));
        refused.map_or(Ok(()), |cause| Err(Error::invalid(subject(), cause)))
    }

    /// After validation.
    pub(super) fn check_growth(
        &self,
        tx: &Transaction<'_>,
        target: &Target,
        object: &Value,
        old: &Value,
    ) -> Result<(), Error> {
        let served = &target.served;
        if !served.is("", "persistentvolumeclaims") || !target.subresource.is_empty() {
            return Ok(());
        }
        let class = object.pointer("/spec/storageClassName").and_then(Value::as_str);
        let class = class.and_then(|name| tx.get(&Key::new(&CLASSES.into(), "", name)));
        let class = class.as_ref().map(|class| class.value());
        let refused = builtin::refused_growth(object, old, class);
        let subject = || served.subject(meta(object, "name"));
        refused.map_or(Ok(()), |why| Err(Error::forbidden(subject(), why)))
    }

    /// Before validation.
    pub(super) fn on_update(
        &self,
        target: &Target,
        old: &Value,
        new: &mut Value,
        write: &Write,
        time: &str,
    ) -> Result<(), Error> {
        let served = &target.served;
        if served.resource.custom {
            return Ok(());
        }
        if target.subresource.is_empty() {
            builtin::on_update(&served.resource, new, old);
            self.check_rights(target, new, Some(old), write)?;
        }
        if target.subresource == "status" {
            builtin::on_status_update(&served.resource, new, old, time);
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

    /// Every namespace has an account for its pods and the certificate they trust. What is there
    /// stays, but for another certificate.
    pub(super) fn furnish(&self, tx: &mut Transaction<'_>, namespace: &str) -> Result<(), Error> {
        let time = Self::time(tx);
        let metadata = |name: &str, uid: String| json!({"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": time});
        let account = account_key(namespace);
        if tx.get(&account).is_none() {
            tx.put(&account, json!({"metadata": metadata("default", uid()?)}));
        }
        let roots = roots_key(namespace);
        let old = tx.get(&roots);
        if old.as_ref().is_some_and(|old| self.is_trusted(old)) {
            return Ok(());
        }
        let mut value = match old {
            Some(old) => old.value().clone(),
            None => json!({"metadata": metadata("kube-root-ca.crt", uid()?)}),
        };
        value["data"] = json!({"ca.crt": self.settings.root_certificate});
        value["metadata"]["annotations"] = json!({
            "kubernetes.io/description": "Contains a CA bundle that can be used to verify the \
                kube-apiserver when using internal endpoints such as the internal service IP or \
                kubernetes.default.svc. No other usage is guaranteed across distributions of \
                Kubernetes clusters.",
        });
        tx.put(&roots, value);
        Ok(())
    }

    /// Whether this holds our certificate and nothing else.
    fn is_trusted(&self, roots: &Object) -> bool {
        roots.value().get("data") == Some(&json!({"ca.crt": self.settings.root_certificate}))
    }

    /// Whether [`Self::furnish`] has nothing to do.
    pub(super) fn is_furnished(&self, state: &State, namespace: &str) -> bool {
        let roots = state.get(&roots_key(namespace));
        roots.is_some_and(|roots| self.is_trusted(roots))
            && state.get(&account_key(namespace)).is_some()
    }

    pub(super) fn namespace_key(name: &str) -> Key {
        Key::new(&NAMESPACES.into(), "", name)
    }
}

fn account_key(namespace: &str) -> Key {
    Key::new(&ACCOUNTS.into(), namespace, "default")
}

fn roots_key(namespace: &str) -> Key {
    Key::new(&"/configmaps".into(), namespace, "kube-root-ca.crt")
}

fn default_class(tx: &Transaction<'_>) -> Option<String> {
    let classes = tx.list(CLASSES, "");
    let marked = classes.iter().find(|(_, class)| {
        let marks = class.metadata().get("annotations");
        marks.and_then(|marks| marks.get(DEFAULT_CLASS)).is_some_and(|mark| mark == "true")
    });
    marked.map(|(_, class)| class.meta("name").to_owned())
}

/// The addresses that services have.
fn taken(tx: &Transaction<'_>) -> BTreeSet<Ipv4Addr> {
    let services = tx.list(SERVICES, "");
    let addresses = services.iter().flat_map(|(_, service)| {
        let all = service.value().pointer("/spec/clusterIPs").and_then(Value::as_array).cloned();
        all.into_iter().flatten()
    });
    addresses.filter_map(|address| address.as_str()?.parse().ok()).collect()
}

/// An address that no service has, from anywhere in the range: two servers on one machine, which
/// know nothing of each other, rarely give the same one.
fn free_address(tx: &Transaction<'_>) -> Option<String> {
    let taken = taken(tx);
    let mut seed = [0; 2];
    // Without randomness the first free one has to do.
    let _ = getrandom::fill(&mut seed);
    let start = FIRST + u32::from(u16::from_ne_bytes(seed)) % (LAST - FIRST);
    let mut addresses = (start..LAST).chain(FIRST..start).map(|at| Ipv4Addr::from(ADDRESSES + at));
    let free = addresses.find(|address| !taken.contains(address));
    free.map(|address| address.to_string())
}

/// Why a service cannot have the address that it asks for. It has been validated.
fn refused_address(tx: &Transaction<'_>, service: &Value) -> Option<Cause> {
    let list = service.pointer("/spec/clusterIPs")?;
    let address: Ipv4Addr = list.get(0)?.as_str()?.parse().ok()?;
    let why = match u32::from(address).checked_sub(ADDRESSES) {
        Some(1..=MOST) if taken(tx).contains(&address) => "provided IP is already allocated",
        Some(1..=MOST) => return None,
        _ => "the provided network does not match the current range",
    };
    let message = format!("Invalid value: {list}: failed to allocate IP {address}: {why}");
    Some(Cause { reason: CauseReason::Invalid, field: "spec.clusterIPs".into(), message })
}
