//! The operator as users run it: a process, with a token bound to exactly the rights it ships with.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{Cluster, Space, cluster, http, until};

pub struct Operator {
    child: Child,
    folder: tempfile::TempDir,
    /// Where in the log the present process begins.
    log_start: usize,
    /// The operator's own user at the API server, for counting its requests.
    pub user: String,
}

/// Serves the metrics somewhere: in plain text to anyone, unless `--metrics-secure` is added.
pub const METRICS: &str = "--metrics-bind-address=127.0.0.1:0";

/// How to run it.
#[derive(Clone, Default)]
pub struct Setup {
    pub flags: Vec<String>,
    /// Talk to this address instead of the API server's own: a proxy of the test.
    pub server: Option<String>,
    /// All namespaces; only for private clusters.
    pub everywhere: bool,
}

impl Setup {
    pub fn with(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }
}

impl Operator {
    /// Watches the given namespace only, so that tests do not meet.
    pub async fn start(cluster: &Cluster, space: &Space) -> Self {
        Self::start_with(cluster, space, &Setup::default()).await
    }

    pub async fn start_with(cluster: &Cluster, space: &Space, setup: &Setup) -> Self {
        let token = install_rights(space, setup.everywhere).await;
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        write_kubeconfig(cluster, &kubeconfig, &token, setup.server.as_deref());
        let child = Self::spawn(&kubeconfig, space, setup, &folder.path().join("log"));
        let user = format!("system:serviceaccount:{}:windlass", space.name);
        Self { child, folder, log_start: 0, user }
    }

    fn spawn(kubeconfig: &Path, space: &Space, setup: &Setup, log: &Path) -> Child {
        let log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(cluster::binary());
        command
            .args(["operator", "--health-probe-bind-address=0", "--log-format=text"])
            .args(["--log-level=info,windlass_engine=debug", "--metrics-secure=false"])
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--lease-namespace={}", space.name))
            .args(&setup.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if !setup.everywhere {
            command.arg(format!("--watch-namespaces={}", space.name));
        }
        command.spawn().unwrap()
    }

    /// At once, as the kernel does it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; returns whether it ended in good order.
    pub fn terminate(&mut self) -> bool {
        // The shell's own `kill`: a machine need not have a program of that name.
        let kill = format!("kill {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        self.child.wait().unwrap().success()
    }

    /// Again with the same rights, after [`Operator::kill`].
    pub fn restart(&mut self, space: &Space, setup: &Setup) {
        let log = self.folder.path().join("log");
        self.log_start = self.log().len();
        self.child = Self::spawn(&self.folder.path().join("kubeconfig"), space, setup, &log);
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Where the present process serves `what`: `metrics` or `probes`.
    pub async fn address(&self, what: &str) -> String {
        let sign = format!("serving {what} address=");
        until(&sign, || async {
            let log = self.log();
            let said = log[self.log_start..].split(&sign).nth(1);
            let address = said.and_then(|text| text.split_whitespace().next());
            address.map(str::to_owned).ok_or_else(|| tail(&log))
        })
        .await
    }

    /// Sum of a metric of the present process over all series that have these labels. Needs the
    /// flag [`METRICS`].
    pub async fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let text = http::get(&self.address("metrics").await, "/metrics").unwrap();
        let series = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        series.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// Passes of the present process, however they ended.
    pub async fn passes(&self) -> f64 {
        self.metric("windlass_reconciles_total", &[]).await
    }

    /// Waits until the present process has ended a pass over each of so many objects, and none of them
    /// waits for another.
    pub async fn wait_for_passes(&self, objects: usize) {
        until(&format!("a pass over each of {objects} objects"), || async {
            let waiting = self.metric("windlass_queue_depth", &[]).await;
            let log = self.log();
            let seen = looked_at(&log[self.log_start..]).len();
            let state = || format!("{seen} objects, {waiting} wait\n{}", tail(&log));
            if seen >= objects && waiting == 0.0 { Ok(()) } else { Err(state()) }
        })
        .await;
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("log of the operator:\n{}", tail(&self.log()));
        }
    }
}

/// Kind, namespace and name of the objects over which a pass has ended.
fn looked_at(log: &str) -> HashSet<&str> {
    let ended = log.lines().filter(|line| line.contains("pass ended"));
    let spans = ended.filter_map(|line| line.split("reconcile{").nth(1));
    spans.filter_map(|span| span.split('}').next()?.split(" generation=").next()).collect()
}

fn tail(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// Applies what `windlass manifests` prints, except the Deployment, and returns a token of its account.
async fn install_rights(space: &Space, everywhere: bool) -> String {
    let mut command = Command::new(cluster::binary());
    command.args(["manifests", "--namespace", &space.name]);
    if !everywhere {
        command.args(["--watch-namespaces", &space.name]);
    }
    let text = cluster::run(&mut command);
    for document in text.split("\n---\n") {
        let document = document.trim_start_matches("---\n");
        let object: Value = serde_saphyr::from_str(document).unwrap();
        apply_right(&space.client, space, object).await;
    }
    let accounts: Api<ServiceAccount> = space.api();
    let request = TokenRequest::default();
    let answer =
        accounts.create_token_request("windlass", &PostParams::default(), &request).await.unwrap();
    answer.status.unwrap().token
}

async fn apply_right(client: &Client, space: &Space, mut object: Value) {
    let params = PatchParams::apply("test").force();
    // What belongs to no namespace is named after this one, as tests share the cluster.
    let cluster_name = format!("windlass-{}", space.name);
    match object["kind"].as_str().unwrap() {
        // The other roles are for people.
        "ClusterRole" if object["metadata"]["name"] == "windlass" => {
            object["metadata"]["name"] = json!(cluster_name);
            let api: Api<ClusterRole> = Api::all(client.clone());
            api.patch(&cluster_name, &params, &Patch::Apply(&object)).await.unwrap();
        }
        "ClusterRoleBinding" => {
            object["metadata"]["name"] = json!(cluster_name);
            object["roleRef"]["name"] = json!(cluster_name);
            let api: Api<ClusterRoleBinding> = Api::all(client.clone());
            api.patch(&cluster_name, &params, &Patch::Apply(&object)).await.unwrap();
        }
        kind @ ("ServiceAccount" | "Role" | "RoleBinding") => {
            let group = if kind == "ServiceAccount" { "" } else { "rbac.authorization.k8s.io" };
            let gvk = kube::core::GroupVersionKind::gvk(group, "v1", kind);
            let resource = kube::core::ApiResource::from_gvk(&gvk);
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            let api: Api<kube::core::DynamicObject> =
                Api::namespaced_with(client.clone(), &space.name, &resource);
            api.patch(&name, &params, &Patch::Apply(&object)).await.unwrap();
        }
        _ => {}
    }
}

fn write_kubeconfig(cluster: &Cluster, path: &Path, token: &str, server: Option<&str>) {
    let admin = fs::read_to_string(&cluster.kubeconfig).unwrap();
    let mut config: Value = serde_saphyr::from_str(&admin).unwrap();
    config["users"][0]["user"] = json!({ "token": token });
    if let Some(server) = server {
        config["clusters"][0]["cluster"] = json!({ "server": server });
    }
    fs::write(path, config.to_string()).unwrap();
}
