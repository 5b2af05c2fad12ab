mod files;
mod payloads;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::node::sources::{Claim, Token, TokenKey};

/// A node with nothing on it.
struct Node {
    dir: TempDir,
    places: Places,
    sources: Sources,
}

const UID: &str = "0b9c6d1e-8f0e-4a56-b3c0-1f5b8b1c7a10";

impl Node {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let places = Places { state: dir.path().join("state"), runtime: dir.path().join("run") };
        Self { dir, places, sources: Sources::default() }
    }

    fn with_map(mut self, name: &str, data: Value) -> Self {
        let map = serde_json::from_value(json!({"data": data})).unwrap();
        self.sources.config_maps.insert(name.into(), Ok(Some(std::sync::Arc::new(map))));
        self
    }

    fn with_secret(mut self, name: &str, data: &[(&str, &[u8])]) -> Self {
        use k8s_openapi::ByteString;
        let data = data.iter().map(|(key, value)| ((*key).into(), ByteString(value.to_vec())));
        let secret =
            k8s_openapi::api::core::v1::Secret { data: Some(data.collect()), ..Default::default() };
        self.sources.secrets.insert(name.into(), Ok(Some(secret.into())));
        self
    }

    fn with_token(mut self, text: &str) -> Self {
        let key = TokenKey { audience: String::new(), seconds: 3607 };
        let token =
            Token { text: text.into(), issued: Timestamp::UNIX_EPOCH, expires: Timestamp::MAX };
        self.sources.tokens.insert(key, Ok(token));
        self
    }

    /// Bound to the volume, if there is one.
    fn with_claim(self, name: &str, volume: Option<Value>) -> Self {
        let reference = json!({"namespace": "ns", "name": name, "uid": "u"});
        let volume = volume.map(|mut volume| {
            volume["spec"]["claimRef"] = reference;
            volume
        });
        let phase = if volume.is_some() { "Bound" } else { "Pending" };
        self.with_claim_in(phase, name, volume)
    }

    fn with_claim_in(mut self, phase: &str, name: &str, volume: Option<Value>) -> Self {
        let volume = volume.map(|volume| serde_json::from_value(volume).unwrap());
        let claim = json!({"metadata": {"namespace": "ns", "name": name, "uid": "u"},
            "status": {"phase": phase}});
        let claim = Claim {
            claim: Ok(Some(serde_json::from_value::<PersistentVolumeClaim>(claim).unwrap().into())),
            volume: Ok(volume.map(std::sync::Arc::new)),
        };
        self.sources.claims.insert(name.into(), claim);
        self
    }

    fn set_up_at(&self, pod: &Pod, now: Timestamp) -> Result<Directories, String> {
        let allocatable = BTreeMap::new();
        let facts = Facts {
            node_name: "laptop",
            host_ip: "127.0.0.1",
            pod_ip: "127.64.0.9",
            allocatable: &allocatable,
            api: "127.0.0.1:6443".parse().unwrap(),
        };
        set_up(pod, &self.places, &self.sources, facts, now).map_err(|error| error.to_string())
    }

    fn set_up(&self, pod: &Pod) -> Result<Directories, String> {
        self.set_up_at(pod, "2026-11-15T10:20:30.5Z".parse().unwrap())
    }

    /// The directory of the pod's only volume.
    fn only(&self, pod: &Pod) -> Result<PathBuf, String> {
        self.set_up(pod).map(|all| all.into_values().next().unwrap())
    }
}

fn pod_with(volumes: Value, mounts: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": UID, "labels": {"a": "1", "b": "x\"y"}},
        "spec": {
            "volumes": volumes,
            "containers": [{"name": "c", "volumeMounts": mounts}],
        },
    }))
    .unwrap()
}

/// One volume `v`, mounted at `/v`.
fn pod(source: Value) -> Pod {
    let mut volume = source;
    volume["name"] = "v".into();
    pod_with(json!([volume]), json!([{"name": "v", "mountPath": "/v"}]))
}

fn container(pod: &Pod) -> &Container {
    &pod.spec.as_ref().unwrap().containers[0]
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).unwrap().mode() & 0o777
}

/// Names in a directory, with where links lead; times are left out.
fn listing(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            match fs::read_link(entry.path()) {
                Ok(to) if name == "..data" => {
                    assert!(dir.join(&to).is_dir(), "{to:?}");
                    "..data -> (time)".to_owned()
                }
                Ok(to) => format!("{name} -> {}", to.display()),
                Err(_) if name.starts_with("..") => "(time)".to_owned(),
                Err(_) => name,
            }
        })
        .collect();
    names.sort();
    names
}
