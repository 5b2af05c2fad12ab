//! The node as an object: what the machine has, and the lease that says it is alive.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{
            Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeStatus, NodeSystemInfo,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference},
    },
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{addresses::HOST, pod::time};

/// How long others may take the node for alive without hearing from it.
const LEASE_SECONDS: i32 = 40;
const RENEWAL: Duration = Duration::from_secs(10);
const LEASES: &str = "kube-node-lease";
const VERSION: &str = "v1.36.3";
const PODS: &str = "110";
/// The names of the labels that the node was given at its last start.
const LABELS: &str = "windlass.dev/node-labels";

/// What is said of this machine.
#[derive(Clone, Debug)]
pub struct Machine {
    pub name: String,
    pub resources: BTreeMap<String, Quantity>,
    pub labels: BTreeMap<String, String>,
}

impl Machine {
    /// `more` goes over what is found.
    pub fn find(
        name: &str,
        state: &Path,
        more: impl IntoIterator<Item = (String, String)>,
        labels: BTreeMap<String, String>,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut resources = BTreeMap::from([
            ("cpu".to_owned(), cores.to_string()),
            ("pods".to_owned(), PODS.to_owned()),
        ]);
        if let Some(memory) = memory(&text("/proc/meminfo")) {
            resources.insert("memory".to_owned(), format!("{memory}Ki"));
        }
        if let Ok(disk) = rustix::fs::statvfs(state) {
            let room = disk.f_blocks.saturating_mul(disk.f_frsize) / 1024;
            resources.insert("ephemeral-storage".to_owned(), format!("{room}Ki"));
        }
        resources.extend(more);
        let mut all = BTreeMap::new();
        for prefix in ["", "beta."] {
            all.insert(format!("{prefix}kubernetes.io/os"), os().to_owned());
            all.insert(format!("{prefix}kubernetes.io/arch"), architecture().to_owned());
        }
        all.insert("kubernetes.io/hostname".to_owned(), name.to_owned());
        all.extend(labels);
        let quantity = |(name, text)| (name, Quantity(text));
        Self {
            name: name.to_owned(),
            resources: resources.into_iter().map(quantity).collect(),
            labels: all,
        }
    }

    fn node(&self) -> Node {
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(self.labels.clone()),
                annotations: Some([(LABELS.to_owned(), self.label_names())].into()),
                ..ObjectMeta::default()
            },
            ..Node::default()
        }
    }

    /// Those that are to go when they are not given any more.
    fn label_names(&self) -> String {
        self.labels.keys().map(String::as_str).collect::<Vec<_>>().join(",")
    }

    /// What has to change about the labels of an earlier start. Those of others stay.
    fn relabel(&self, node: &Node) -> Option<Value> {
        let names = node.metadata.annotations.as_ref().and_then(|all| all.get(LABELS));
        let wanted = self.label_names();
        if names == Some(&wanted) && self.labels.iter().all(|label| has(node, label)) {
            return None;
        }
        let given = names.map(String::as_str).unwrap_or_default().split(',');
        let old = given.filter(|name| !name.is_empty() && !self.labels.contains_key(*name));
        let mut labels: BTreeMap<&str, Value> = old.map(|name| (name, Value::Null)).collect();
        labels.extend(self.labels.iter().map(|(name, value)| (&**name, json!(value))));
        Some(json!({ "metadata": { "labels": labels, "annotations": { LABELS: wanted } } }))
    }

    /// A merge of the status, after which no resource of an earlier start is left.
    fn restate(&self, before: &NodeStatus, now: Timestamp) -> Value {
        let mut status = json!(self.status(before, now));
        for (field, known) in [("capacity", &before.capacity), ("allocatable", &before.allocatable)]
        {
            for name in known.iter().flat_map(BTreeMap::keys) {
                if !self.resources.contains_key(name) {
                    status[field][name] = Value::Null;
                }
            }
        }
        json!({ "status": status })
    }

    /// Conditions that hold already keep their time.
    fn status(&self, before: &NodeStatus, now: Timestamp) -> NodeStatus {
        let fine = |kind: &str, text: &str| (kind.to_owned(), "False", format!("KubeletHas{text}"));
        let conditions = [
            (fine("MemoryPressure", "SufficientMemory"), "kubelet has sufficient memory available"),
            (fine("DiskPressure", "NoDiskPressure"), "kubelet has no disk pressure"),
            (fine("PIDPressure", "SufficientPID"), "kubelet has sufficient PID available"),
            (
                ("Ready".to_owned(), "True", "KubeletReady".to_owned()),
                "kubelet is posting ready status",
            ),
        ];
        let conditions = conditions.map(|((kind, status, reason), message)| {
            let known = before.conditions.iter().flatten();
            let same =
                known.into_iter().find(|known| known.type_ == kind && known.status == status);
            NodeCondition {
                last_transition_time: same
                    .and_then(|same| same.last_transition_time.clone())
                    .or_else(|| Some(time(now))),
                last_heartbeat_time: Some(time(now)),
                type_: kind,
                status: status.to_owned(),
                reason: Some(reason),
                message: Some(message.to_owned()),
            }
        });
        let address = |type_: &str, address: String| NodeAddress { type_: type_.into(), address };
        NodeStatus {
            capacity: Some(self.resources.clone()),
            allocatable: Some(self.resources.clone()),
            conditions: Some(conditions.into()),
            addresses: Some(vec![
                address("InternalIP", HOST.to_string()),
                address("Hostname", self.name.clone()),
            ]),
            daemon_endpoints: Some(NodeDaemonEndpoints::default()),
            node_info: Some(info()),
            ..NodeStatus::default()
        }
    }

    /// Makes the object, or brings it up to date.
    pub async fn register(&self, client: &Client) -> Result<Node, kube::Error> {
        let api: Api<Node> = Api::all(client.clone());
        let node = match api.get_opt(&self.name).await? {
            None => {
                let params = PostParams { field_manager: manager(), ..PostParams::default() };
                api.create(&params, &self.node()).await?
            }
            Some(node) => match self.relabel(&node) {
                None => node,
                Some(patch) => api.patch(&self.name, &params(), &Patch::Merge(patch)).await?,
            },
        };
        let before = node.status.clone().unwrap_or_default();
        let patch = self.restate(&before, Timestamp::now());
        api.patch_status(&self.name, &params(), &Patch::Merge(patch)).await
    }

    /// Says that the node is alive, for as long as it is.
    pub async fn renew(&self, client: Client, node: &Node) {
        let api: Api<Lease> = Api::namespaced(client, LEASES);
        let owner = OwnerReference {
            api_version: Node::api_version(&()).into(),
            kind: Node::kind(&()).into(),
            name: self.name.clone(),
            uid: node.metadata.uid.clone().unwrap_or_default(),
            ..OwnerReference::default()
        };
        loop {
            if let Err(error) = self.renew_once(&api, &owner).await {
                tracing::debug!(%error, "cannot renew the lease of the node");
            }
            tokio::time::sleep(RENEWAL).await;
        }
    }

    async fn renew_once(
        &self,
        api: &Api<Lease>,
        owner: &OwnerReference,
    ) -> Result<(), kube::Error> {
        let now = MicroTime(Timestamp::now());
        let patch = json!({ "spec": { "renewTime": now } });
        match api.patch(&self.name, &params(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            done => return done.map(|_| ()),
        }
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(LEASES.to_owned()),
                owner_references: Some(vec![owner.clone()]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.name.clone()),
                lease_duration_seconds: Some(LEASE_SECONDS),
                renew_time: Some(now),
                ..LeaseSpec::default()
            }),
        };
        let params = PostParams { field_manager: manager(), ..PostParams::default() };
        api.create(&params, &lease).await.map(|_| ())
    }
}

fn has(node: &Node, (name, value): (&String, &String)) -> bool {
    node.metadata.labels.as_ref().and_then(|labels| labels.get(name)) == Some(value)
}

fn manager() -> Option<String> {
    Some("kubelet".to_owned())
}

fn params() -> PatchParams {
    PatchParams { field_manager: manager(), ..PatchParams::default() }
}

fn info() -> NodeSystemInfo {
    let release = text("/etc/os-release");
    let pretty = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let machine = text("/etc/machine-id");
    NodeSystemInfo {
        architecture: architecture().to_owned(),
        operating_system: os().to_owned(),
        boot_id: text("/proc/sys/kernel/random/boot_id"),
        kernel_version: text("/proc/sys/kernel/osrelease"),
        system_uuid: machine.clone(),
        machine_id: machine,
        os_image: pretty.unwrap_or(os()).trim_matches('"').to_owned(),
        container_runtime_version: concat!("windlass://", env!("CARGO_PKG_VERSION")).to_owned(),
        kubelet_version: VERSION.to_owned(),
        kube_proxy_version: String::new(),
        ..NodeSystemInfo::default()
    }
}

/// Empty where the system has no such file.
fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// In KiB.
fn memory(info: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// In the words of Go, which Kubernetes uses.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_line_that_has_it() {
        let info = "MemTotal:       24681644 kB\nMemFree:        1 kB\n";
        assert_eq!(memory(info), Some(24_681_644));
        assert_eq!(memory(""), None);
        assert_eq!(memory("MemTotal: many kB"), None);
    }

    #[test]
    fn what_an_earlier_start_said_of_the_machine_goes_with_it() {
        let machine = |more: &[(&str, &str)], labels: &[(&str, &str)]| {
            let pairs = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
                all.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
            };
            Machine::find("n", Path::new("/"), pairs(more), pairs(labels))
        };
        let first = machine(&[("nvidia.com/gpu", "4")], &[("zone", "a"), ("gpu", "yes")]);
        let mut node = first.node();
        assert_eq!(first.relabel(&node), None, "nothing is new");
        let now = Timestamp::UNIX_EPOCH;
        node.status = Some(first.status(&NodeStatus::default(), now));
        node.metadata.labels.get_or_insert_default().insert("mine".into(), "x".into());
        let then = machine(&[("amd.com/gpu", "1")], &[("zone", "b")]);
        let mut object = json!(node);
        json_patch::merge(&mut object, &then.relabel(&node).unwrap());
        json_patch::merge(&mut object, &then.restate(&node.status.unwrap(), now));
        let node: Node = serde_json::from_value(object).unwrap();
        assert_eq!(then.relabel(&node), None);
        let labels = node.metadata.labels.unwrap();
        let label = |name: &str| labels.get(name).map(String::as_str);
        assert_eq!((label("zone"), label("gpu"), label("mine")), (Some("b"), None, Some("x")));
        let status = node.status.unwrap();
        for resources in [status.capacity, status.allocatable] {
            assert_eq!(resources.unwrap(), then.resources);
        }
    }

    #[test]
    fn what_the_user_says_of_the_machine_goes_over_what_is_found() {
        let more = [("nvidia.com/gpu".to_owned(), "4".to_owned()), ("cpu".to_owned(), "64".into())];
        let labels = BTreeMap::from([("kubernetes.io/hostname".to_owned(), "other".to_owned())]);
        let machine = Machine::find("n", Path::new("/"), more, labels);
        assert_eq!(machine.resources["cpu"], Quantity("64".into()));
        assert_eq!(machine.resources["nvidia.com/gpu"], Quantity("4".into()));
        assert!(machine.resources.contains_key("pods"));
        assert_eq!(machine.labels["kubernetes.io/hostname"], "other");
        let status = machine.status(&NodeStatus::default(), Timestamp::UNIX_EPOCH);
        let ready = status.conditions.iter().flatten().find(|one| one.type_ == "Ready").unwrap();
        assert_eq!((&*ready.status, ready.reason.as_deref()), ("True", Some("KubeletReady")));
    }
}
