//! A real API server, shared by the run or a test's own, and a namespace in it for each test.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use xtask::cluster::{Assets, ControlPlane, Kserve, Options, find_kserve};

/// The definitions of others that the shared cluster has.
pub const FOREIGN: [&str; 5] =
    ["gateway-api", "inference-extension", "istio", "kserve", "prometheus-operator"];

/// An API server and what is needed to talk to it.
pub struct Cluster {
    pub client: Client,
    pub kubeconfig: PathBuf,
    pub audit_log: PathBuf,
    assets: Assets,
    private: Option<(ControlPlane, tempfile::TempDir)>,
}

impl Cluster {
    /// The one of this run if there is one, else a new one. `None`, said aloud, where none can be had.
    pub async fn shared() -> Option<Self> {
        let assets = assets()?;
        match (std::env::var("WINDLASS_TEST_KUBECONFIG"), std::env::var("WINDLASS_TEST_AUDIT_LOG"))
        {
            (Ok(kubeconfig), Ok(audit_log)) => {
                let kubeconfig = PathBuf::from(kubeconfig);
                let client = connect(&kubeconfig).await;
                let cluster =
                    Self { client, kubeconfig, audit_log: audit_log.into(), assets, private: None };
                cluster.install_crds();
                Some(cluster)
            }
            _ => Self::start(assets, &FOREIGN).await,
        }
    }

    /// One that the test may break, with the given third-party CRDs.
    pub async fn private(crds: &[&str]) -> Option<Self> {
        Self::start(assets()?, crds).await
    }

    async fn start(assets: Assets, crds: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { audit_log: true, ..Options::in_dir(folder.path().join("plane")) };
        let plane = ControlPlane::start(&assets, options).unwrap();
        plane.apply_crds(crds).unwrap();
        let kubeconfig = plane.kubeconfig();
        let cluster = Self {
            client: connect(&kubeconfig).await,
            kubeconfig,
            audit_log: plane.audit_log(),
            assets,
            private: Some((plane, folder)),
        };
        cluster.install_crds();
        Some(cluster)
    }

    /// Our own definitions.
    pub fn install_crds(&self) {
        let crds = run(Command::new(binary()).arg("crds"));
        self.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", "-"], &crds);
        let wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"];
        // A definition that has no status at all yet is an error to `kubectl wait`.
        while let Err(error) = self.try_kubectl(&wait, "") {
            assert!(error.contains("accessor error"), "{error}");
        }
    }

    /// The control plane of a private cluster.
    pub fn plane(&mut self) -> &mut ControlPlane {
        &mut self.private.as_mut().expect("only a private cluster may be broken").0
    }

    /// KServe's own controller, for a private cluster with its definitions.
    pub fn add_kserve(&mut self) -> Option<Kserve> {
        let program = found(find_kserve())?;
        Some(Kserve::add_to(self.plane(), &program).unwrap())
    }

    pub fn apply_crds(&self, names: &[&str]) {
        xtask::cluster::apply_crds(&self.assets, &self.kubeconfig, names).unwrap();
    }

    /// Runs the real kubectl and returns what it prints; fails the test if it fails.
    pub fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        self.try_kubectl(arguments, input)
            .unwrap_or_else(|error| panic!("kubectl {arguments:?}: {error}"))
    }

    pub fn try_kubectl(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut command = Command::new(&self.assets.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        run_with_input(&mut command, input)
    }

    /// A new namespace of a name that no other test has. It stays until the cluster goes.
    pub async fn space(&self, name: &str) -> Space {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{count}", name.replace('_', "-"), std::process::id());
        let namespace = Namespace {
            metadata: kube::api::ObjectMeta { name: Some(name.clone()), ..Default::default() },
            ..Default::default()
        };
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        Space { client: self.client.clone(), name }
    }
}

/// A kind whose objects can be read in a namespace.
pub trait Namespaced:
    kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
    + Clone
    + DeserializeOwned
    + std::fmt::Debug
{
}

impl<K> Namespaced for K where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
{
}

/// A namespace of one test, with short ways to its objects.
#[derive(Clone)]
pub struct Space {
    pub client: Client,
    pub name: String,
}

impl Space {
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    pub async fn get<K: Namespaced>(&self, name: &str) -> Option<K> {
        self.api().get_opt(name).await.unwrap()
    }

    pub async fn names<K: Namespaced>(&self) -> Vec<String> {
        let found = self.api::<K>().list(&ListParams::default()).await.unwrap();
        found.items.iter().map(kube::ResourceExt::name_any).collect()
    }

    pub async fn create<K: Namespaced + Serialize>(&self, object: &K) -> K {
        self.api().create(&PostParams::default(), object).await.unwrap()
    }

    /// A merge patch, as a user's edit is.
    pub async fn edit<K: Namespaced>(&self, name: &str, patch: Value) -> K {
        let params = PatchParams { field_manager: Some("somebody".into()), ..Default::default() };
        self.api().patch(name, &params, &Patch::Merge(&patch)).await.unwrap()
    }

    pub async fn edit_status<K: Namespaced>(&self, name: &str, patch: Value) -> K {
        let params = PatchParams::default();
        let patch = serde_json::json!({ "status": patch });
        self.api().patch_status(name, &params, &Patch::Merge(&patch)).await.unwrap()
    }

    pub async fn delete<K: Namespaced>(&self, name: &str) {
        let params = DeleteParams::background();
        drop(self.api::<K>().delete(name, &params).await.unwrap());
    }
}

/// The program under test.
pub fn binary() -> PathBuf {
    if let Ok(path) = std::env::var("WINDLASS_BIN") {
        return path.into();
    }
    // Beside the test's own executable, where cargo puts it.
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("windlass");
    assert!(path.exists(), "build the program first: cargo build -p windlass");
    path
}

fn assets() -> Option<Assets> {
    found(Assets::find())
}

/// `None`, said aloud, where something cannot be had and need not be.
fn found<T, E: std::fmt::Display>(answer: Result<T, E>) -> Option<T> {
    match answer {
        Ok(found) => Some(found),
        Err(reason) if xtask::test::required("real-api") => panic!("{reason:#}"),
        Err(reason) => {
            eprintln!("skipped: {reason:#}");
            None
        }
    }
}

pub async fn connect(kubeconfig: &std::path::Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

pub(crate) fn run(command: &mut Command) -> String {
    run_with_input(command, "").unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

pub fn run_with_input(command: &mut Command, input: &str) -> Result<String, String> {
    use std::io::Write;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    child.stdin.take().unwrap().write_all(input.as_bytes()).map_err(|error| error.to_string())?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
