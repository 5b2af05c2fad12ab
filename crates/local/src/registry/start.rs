//! The first start: what a cluster has before anybody asks for anything.

use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};

use super::{Registry, Target, Validation, Write, create::Owners};
use crate::{
    auth::User,
    error::Error,
    store::{Key, Mode, Object, State, Store, Transaction},
};

/// What the registry needs to be told.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The certificate that pods trust, in PEM.
    pub root_certificate: String,
    /// Where the API listens, if it does: the address of the Service `kubernetes`.
    pub port: Option<u16>,
    /// For quick trials: whoever is known may do everything.
    pub allows_everything: bool,
}

pub(super) const NAMESPACES: [&str; 4] =
    ["default", "kube-system", "kube-public", "kube-node-lease"];
/// The address of the API's own Service.
const ADDRESS: &str = "127.96.0.1";
/// Where it listens.
const LISTENS: &str = "127.0.0.1";

impl Registry {
    /// Adds what every cluster has, unless it is there.
    pub async fn start(store: Store, settings: Settings) -> Result<Arc<Self>, Error> {
        let registry = Arc::new(Self {
            store,
            catalog: Mutex::new(None),
            rights: Mutex::new(None),
            settings,
            tokens: OnceLock::new(),
        });
        registry.change(Mode::Store, |registry, tx| registry.furnish_all(tx)).await?;
        Ok(registry)
    }

    fn furnish_all(&self, tx: &mut Transaction<'_>) -> Result<(), Error> {
        self.furnish_cluster(tx)?;
        self.add(tx, "storage.k8s.io", "storageclasses", "", storage_class())?;
        self.furnish_rights(tx)
    }

    /// What a cluster cannot be without.
    pub(super) fn furnish_cluster(&self, tx: &mut Transaction<'_>) -> Result<(), Error> {
        for name in NAMESPACES {
            self.add(tx, "", "namespaces", "", json!({"metadata": {"name": name}}))?;
        }
        self.add(tx, "", "services", "default", self.service())?;
        self.publish(tx)
    }

    /// Says where the API itself answers. From one start to the next that may change.
    fn publish(&self, tx: &mut Transaction<'_>) -> Result<(), Error> {
        let Some(port) = self.settings.port else { return Ok(()) };
        let published = [
            ("", "services", "/spec/ports/0/targetPort", self.service()),
            ("discovery.k8s.io", "endpointslices", "/ports/0/port", slice(port)),
            ("", "endpoints", "/subsets/0/ports/0/port", endpoints(port)),
        ];
        for (group, plural, path, object) in published {
            let key = Key::new(&format!("{group}/{plural}").into(), "default", "kubernetes");
            if let Some(known) = tx.get(&key)
                && known.value().pointer(path) != object.pointer(path)
            {
                match moved(&known, path, object.pointer(path)) {
                    Some(moved) => drop(tx.put(&key, moved)),
                    // Somebody has made something else of it.
                    None => drop(tx.remove(&key)),
                }
            }
            self.add(tx, group, plural, "default", object)?;
        }
        Ok(())
    }

    /// Whether it is told where the API answers, if it does.
    pub(super) fn is_published(&self, state: &State) -> bool {
        let known = |resource: &str| {
            state.get(&Key::new(&resource.into(), "default", "kubernetes")).is_some()
        };
        let all = ["discovery.k8s.io/endpointslices", "/endpoints"];
        self.settings.port.is_none() || all.into_iter().all(known)
    }

    pub(super) fn add(
        &self,
        tx: &mut Transaction<'_>,
        group: &str,
        plural: &str,
        namespace: &str,
        object: Value,
    ) -> Result<(), Error> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let key = Key::new(&format!("{group}/{plural}").into(), namespace, name);
        if tx.get(&key).is_some() {
            return Ok(());
        }
        let Some(served) = self.catalog().stored(&key.resource).cloned() else { return Ok(()) };
        let target = Target {
            served: served.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
        };
        let write = Write {
            mode: Mode::Store,
            manager: "kube-apiserver".into(),
            validation: Validation::Ignore,
            user: system(),
        };
        let mut object = served.decode(super::Body { value: object, ..Default::default() })?.object;
        target.check_names(&mut object)?;
        served.default(&mut object);
        self.create_in(tx, &target, object, &write, Owners::Compare).map(|_| ())
    }

    fn service(&self) -> Value {
        let port = self.settings.port.unwrap_or(443);
        json!({
            "metadata": {
                "name": "kubernetes",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "clusterIP": ADDRESS,
                "clusterIPs": [ADDRESS],
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
            },
        })
    }
}

/// The same object with another port, as API servers write it: who holds on to its uid is not left with
/// one that is gone.
fn moved(known: &Object, path: &str, port: Option<&Value>) -> Option<Value> {
    let mut value = known.value().clone();
    *value.pointer_mut(path)? = port?.clone();
    if let Some(generation) = value.pointer_mut("/metadata/generation") {
        *generation = json!(generation.as_i64().unwrap_or(0) + 1);
    }
    Some(value)
}

/// As API servers publish themselves.
fn slice(port: u16) -> Value {
    json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [LISTENS], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    })
}

fn endpoints(port: u16) -> Value {
    json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{
            "addresses": [{"ip": LISTENS}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }],
    })
}

/// The server itself, which may do everything.
fn system() -> User {
    User { name: "system:apiserver".into(), ..User::admin() }
}

fn storage_class() -> Value {
    json!({
        "metadata": {
            "name": "local",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "windlass.dev/local",
    })
}
