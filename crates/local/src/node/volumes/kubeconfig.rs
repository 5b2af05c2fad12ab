//! The file by which clients in a pod find the API: the usual paths of a token do not exist for a
//! plain process.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    net::SocketAddr,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::make_dir;
use crate::node::{places::Places, translate::Mounts, users::User};

/// Where every pod has its token unless it wants none.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Writes it if a container has a token; the path. The token is read from its file each time, so
/// that new ones count.
pub fn write(
    pod: &Pod,
    user: Option<User>,
    mounts: &Mounts,
    places: &Places,
    api: SocketAddr,
) -> io::Result<Option<PathBuf>> {
    let Some(account) = mounts.real(ACCOUNT).filter(|dir| dir.join("token").exists()) else {
        return Ok(None);
    };
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let path = places.kubeconfig(uid).map_err(io::Error::other)?;
    if let Some(dir) = path.parent() {
        make_dir(dir)?;
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let text = config(&account, namespace, api).to_string();
    // Another container may be reading it.
    if !fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
        let mut open = OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o600);
        open.open(&path)?.write_all(text.as_bytes())?;
    }
    if user.is_some() {
        // There is no secret in it, and the pod may have several users.
        fs::set_permissions(&path, Permissions::from_mode(0o644))?;
    }
    Ok(Some(path))
}

fn config(account: &Path, namespace: &str, api: SocketAddr) -> Value {
    let file = |name: &str| account.join(name).to_string_lossy().into_owned();
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "local",
            "cluster": {
                "server": format!("https://{api}"),
                "certificate-authority": file("ca.crt"),
            },
        }],
        "users": [{"name": "pod", "user": {"tokenFile": file("token")}}],
        "contexts": [{
            "name": "local",
            "context": {"cluster": "local", "user": "pod", "namespace": namespace},
        }],
        "current-context": "local",
    })
}
