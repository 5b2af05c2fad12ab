//! The first start: what a cluster has before anybody asks for anything.

use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};

use super::{Registry, Target, Validation, Write, create::Owners};
use crate::{
    auth::User,
    error::Error,
    store::{Key, Mode, Store, Transaction},
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
        self.add(tx, "", "services", "default", self.service())
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
