//! An API server, shared by the run or a test's own, and a namespace in it for each test.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use xtask::cluster::{
    Assets, ControlPlane, Kserve, Options, apply_own_crds, find_kserve, find_kubectl,
};

use crate::{
    definitions,
    embedded::Embedded,
    needs::{self, Need, Tier},
};

/// The definitions of others that the shared cluster has.
pub const FOREIGN: [&str; 5] =
    ["gateway-api", "inference-extension", "istio", "kserve", "prometheus-operator"];

/// An API server and what is needed to talk to it.
pub struct Cluster {
    pub client: Client,
    pub kubeconfig: PathBuf,
    pub audit_log: PathBuf,
    server: Server,
}

/// Whose it is, and what keeps it running.
enum Server {
    /// The real one of this run.
    Shared(Assets),
    Private(
        Box<ControlPlane>,
        Assets,
        #[expect(dead_code, reason = "goes with it")] tempfile::TempDir,
    ),
    Embedded(Arc<Embedded>),
}

impl Cluster {
    /// The one of this run if there is one, else a new one. `None`, said aloud, where none can be had
    /// or where it lacks what the scenario needs.
    pub async fn shared(tier: Tier, needs: &[Need]) -> Option<Self> {
        if !needs::met(tier, needs) {
            return None;
        }
        if tier == Tier::Embedded {
            return Some(Self::embedded(found(Embedded::shared(&FOREIGN).await)?).await);
        }
        let assets = found(Assets::find())?;
        match (std::env::var("WINDLASS_TEST_KUBECONFIG"), std::env::var("WINDLASS_TEST_AUDIT_LOG"))
        {
            (Ok(kubeconfig), Ok(audit_log)) => {
                let kubeconfig = PathBuf::from(kubeconfig);
                let client = connect(&kubeconfig).await;
                let server = Server::Shared(assets);
                Some(Self { client, kubeconfig, audit_log: audit_log.into(), server })
            }
            _ => Some(Self::start(assets, &FOREIGN).await),
        }
    }

    /// The same for scenarios that use no definition but those they bring along.
    pub async fn bare(tier: Tier, needs: &[Need]) -> Option<Self> {
        match tier {
            Tier::RealApi => Self::shared(tier, needs).await,
            Tier::Embedded if !needs::met(tier, needs) => None,
            Tier::Embedded => Some(Self::embedded(Arc::new(Embedded::bare().await)).await),
        }
    }

    /// One that the test may break, with the given third-party CRDs.
    pub async fn private(tier: Tier, crds: &[&str], needs: &[Need]) -> Option<Self> {
        if !needs::met(tier, needs) {
            return None;
        }
        match tier {
            Tier::RealApi => Some(Self::start(found(Assets::find())?, crds).await),
            Tier::Embedded => {
                let embedded = Arc::new(found(Embedded::start(crds).await)?);
                Some(Self::embedded(embedded).await)
            }
        }
    }

    async fn embedded(embedded: Arc<Embedded>) -> Self {
        let kubeconfig = embedded.kubeconfig();
        Self {
            client: connect(&kubeconfig).await,
            kubeconfig,
            audit_log: embedded.audit_log(),
            server: Server::Embedded(embedded),
        }
    }

    async fn start(assets: Assets, crds: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { audit_log: true, ..Options::in_dir(folder.path().join("plane")) };
        let plane = ControlPlane::start(&assets, options).unwrap();
        plane.apply_crds(crds).unwrap();
        let kubeconfig = plane.kubeconfig();
        let cluster = Self {
            client: connect(&kubeconfig).await,
            kubeconfig,
            audit_log: plane.audit_log(),
            server: Server::Private(Box::new(plane), assets, folder),
        };
        cluster.install_crds().await;
        cluster
    }

    /// Our own definitions. The real one of this run has them.
    pub async fn install_crds(&self) {
        match &self.server {
            Server::Embedded(_) => {
                definitions::apply(&self.client, &definitions::ours()).await;
            }
            Server::Shared(assets) | Server::Private(_, assets, _) => {
                let crds = run(Command::new(binary()).arg("crds"));
                apply_own_crds(assets, &self.kubeconfig, &crds).unwrap();
            }
        }
    }

    /// Ends the API server of a private cluster at once, as a power cut would.
    pub fn kill_api(&mut self) {
        match &mut self.server {
            Server::Private(plane, ..) => plane.kill_apiserver(),
            Server::Embedded(embedded) => only(embedded).kill(),
            Server::Shared(_) => panic!("{PRIVATE}"),
        }
    }

    /// Starts it again on the same data, after [`Cluster::kill_api`].
    pub async fn start_api(&mut self) {
        match &mut self.server {
            Server::Private(plane, ..) => plane.start_apiserver().unwrap(),
            Server::Embedded(embedded) => only(embedded).open().await,
            Server::Shared(_) => panic!("{PRIVATE}"),
        }
    }

    /// KServe's own controller, for a private real cluster with its definitions.
    pub fn add_kserve(&mut self) -> Option<Kserve> {
        let Server::Private(plane, ..) = &mut self.server else { panic!("{PRIVATE}") };
        let program = found(find_kserve())?;
        Some(Kserve::add_to(plane, &program).unwrap())
    }

    pub async fn apply_crds(&self, names: &[&str]) {
        match &self.server {
            Server::Shared(assets) | Server::Private(_, assets, _) => {
                xtask::cluster::apply_crds(assets, &self.kubeconfig, names).unwrap();
            }
            Server::Embedded(_) => {
                let definitions = definitions::of_others(names).unwrap();
                definitions::apply(&self.client, &definitions).await;
            }
        }
    }

    /// Runs the real kubectl and returns what it prints; fails the test if it fails.
    pub fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        self.try_kubectl(arguments, input)
            .unwrap_or_else(|error| panic!("kubectl {arguments:?}: {error}"))
    }

    pub fn try_kubectl(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let kubectl = match &self.server {
            Server::Shared(assets) | Server::Private(_, assets, _) => assets.kubectl.clone(),
            Server::Embedded(_) => find_kubectl().map_err(|error| format!("{error:#}"))?,
        };
        let mut command = Command::new(kubectl);
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

const PRIVATE: &str = "only a private cluster may be broken";

fn only(embedded: &mut Arc<Embedded>) -> &mut Embedded {
    Arc::get_mut(embedded).expect(PRIVATE)
}

/// `None`, said aloud, where something cannot be had and need not be.
fn found<T, E: std::fmt::Display>(answer: Result<T, E>) -> Option<T> {
    match answer {
        Ok(found) => Some(found),
        Err(reason) if xtask::test::required("real-api") => panic!("{reason:#}"),
        Err(reason) => {
            needs::note(&format!("{reason:#}"));
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
