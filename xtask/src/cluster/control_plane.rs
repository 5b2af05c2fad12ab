//! A private control plane: etcd, kube-apiserver and kube-controller-manager on loopback.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs::{self, OpenOptions},
    io::Write,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::{
    Assets, apply_crds, keys,
    process::{Lifetime, Process},
    wait_until,
};

const READY_WITHIN: Duration = Duration::from_secs(90);
/// A port is free when it is picked and may be taken when it is used.
const ATTEMPTS: u32 = 4;

/// What kind of control plane to start, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// Data, keys, kubeconfig and logs go here. The caller owns the folder and removes it.
    pub dir: PathBuf,
    /// Without it nothing is collected, no Deployment gets pods, no namespace goes away.
    pub controller_manager: bool,
    /// One JSON line per answered request in [`ControlPlane::audit_log`].
    pub audit_log: bool,
    /// Whether an answered write is on the disk, as etcd has it by default. Without, the data may
    /// be lost with the machine, which most runs do not care about.
    pub fsync: bool,
    pub lifetime: Lifetime,
}

impl Options {
    /// A whole control plane that ends with its handle.
    pub fn in_dir(dir: impl Into<PathBuf>) -> Options {
        Options {
            dir: dir.into(),
            controller_manager: true,
            audit_log: false,
            fsync: false,
            lifetime: Lifetime::Bound,
        }
    }
}

/// A running control plane. Dropping it kills its processes.
pub struct ControlPlane {
    assets: Assets,
    options: Options,
    ports: Ports,
    token: String,
    // In the order they are to be ended: clients before servers.
    controller_manager: Option<Process>,
    apiserver: Option<Process>,
    etcd: Process,
}

#[derive(Clone, Copy)]
struct Ports {
    etcd: u16,
    etcd_peer: u16,
    apiserver: u16,
}

impl ControlPlane {
    /// Starts it with an empty store and returns once it serves and, with a controller manager,
    /// once the default service account exists, so that pods can be created.
    pub fn start(assets: &Assets, options: Options) -> Result<ControlPlane> {
        let mut attempt = 1;
        loop {
            match ControlPlane::try_start(assets, &options) {
                Err(error) if attempt < ATTEMPTS && is_port_clash(&error) => attempt += 1,
                result => {
                    let place = options.dir.display();
                    return result
                        .with_context(|| format!("cannot start a control plane in {place}"));
                }
            }
        }
    }

    fn try_start(assets: &Assets, options: &Options) -> Result<ControlPlane> {
        let token = keys::token()?;
        let options = prepare_folder(options, &token)?;
        let ports = Ports::pick()?;
        let etcd = start_etcd(assets, &options, ports)?;
        let mut plane = ControlPlane {
            assets: assets.clone(),
            options,
            ports,
            token,
            controller_manager: None,
            apiserver: None,
            etcd,
        };
        plane.start_apiserver()?;
        if plane.options.controller_manager {
            plane.start_controller_manager()?;
        }
        Ok(plane)
    }

    /// The path of an admin's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.options.dir.join("kubeconfig")
    }

    /// Where data, keys, kubeconfig and logs are.
    pub fn dir(&self) -> &Path {
        &self.options.dir
    }

    /// Writes a kubeconfig for the bearer of a token, and returns its path.
    pub fn kubeconfig_for(&self, name: &str, token: &str) -> Result<PathBuf> {
        let path = self.options.dir.join(format!("{name}.kubeconfig"));
        let text = kubeconfig_text(&self.url(), self.ca_pem()?.as_bytes(), token);
        write_secret(&path, &text)?;
        Ok(path)
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.apiserver)
    }

    /// A bearer token in the group `system:masters`.
    pub fn admin_token(&self) -> &str {
        &self.token
    }

    /// What to trust when talking to the API server.
    pub fn ca_pem(&self) -> Result<String> {
        let path = ca_file(&self.options.dir);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Where requests are recorded if [`Options::audit_log`] is set: level Metadata, written before
    /// the answer is sent.
    pub fn audit_log(&self) -> PathBuf {
        self.options.dir.join("audit.log")
    }

    /// A kubectl for this control plane.
    pub fn kubectl(&self) -> Command {
        kubectl(&self.assets, &self.kubeconfig())
    }

    /// Applies third-party CRDs by the names in [`super::CRD_SETS`].
    pub fn apply_crds(&self, names: &[&str]) -> Result<()> {
        apply_crds(&self.assets, &self.kubeconfig(), names)
    }

    /// Ends the API server by SIGKILL: a graceful stop takes a minute and keeps the port.
    pub fn kill_apiserver(&mut self) {
        if let Some(mut apiserver) = self.apiserver.take() {
            apiserver.kill();
        }
    }

    /// Starts the API server, if it does not run, on the same port and data as before, and waits
    /// until it serves.
    pub fn start_apiserver(&mut self) -> Result<()> {
        if self.apiserver.is_some() {
            return Ok(());
        }
        let client = self.client();
        let ControlPlane { assets, options, ports, etcd, .. } = self;
        let arguments = apiserver_arguments(options, *ports);
        let (program, dir, lifetime) = (&assets.kube_apiserver, &options.dir, options.lifetime);
        let mut apiserver = Process::start("kube-apiserver", program, arguments, dir, lifetime)?;
        let ready = wait_until("kube-apiserver becomes ready", READY_WITHIN, || {
            etcd.check_running()?;
            apiserver.check_running()?;
            client.finds_it_ready()
        });
        ready.with_context(|| format!("the end of its log:\n{}", apiserver.log_tail()))?;
        self.apiserver = Some(apiserver);
        Ok(())
    }

    /// Returns only when one of the processes has ended by itself, with the end of its log.
    pub fn wait(&mut self) -> Result<Infallible> {
        loop {
            let processes = [self.apiserver.as_mut(), self.controller_manager.as_mut()];
            for process in processes.into_iter().flatten().chain([&mut self.etcd]) {
                process.check_running()?;
            }
            thread::sleep(Duration::from_secs(1));
        }
    }

    /// Ends all processes. Dropping does the same.
    pub fn stop(self) {}

    /// Names and process ids of what runs, servers before their clients.
    pub fn processes(&self) -> Vec<(&'static str, u32)> {
        let processes =
            [Some(&self.etcd), self.apiserver.as_ref(), self.controller_manager.as_ref()];
        processes.into_iter().flatten().map(|process| (process.name(), process.pid())).collect()
    }

    /// Lets detached processes live on.
    pub(super) fn release(self) {
        let ControlPlane { controller_manager, apiserver, etcd, .. } = self;
        for process in [controller_manager, apiserver, Some(etcd)].into_iter().flatten() {
            process.release();
        }
    }

    fn client(&self) -> Client {
        Client {
            assets: self.assets.clone(),
            url: self.url(),
            token: self.token.clone(),
            ca: ca_file(&self.options.dir),
            kubeconfig: self.kubeconfig(),
        }
    }

    fn start_controller_manager(&mut self) -> Result<()> {
        let dir = &self.options.dir;
        let arguments = controller_manager_arguments(dir);
        let program = &self.assets.kube_controller_manager;
        let name = "kube-controller-manager";
        let mut process = Process::start(name, program, arguments, dir, self.options.lifetime)?;
        let client = self.client();
        let account = "/api/v1/namespaces/default/serviceaccounts/default";
        let made = wait_until("the default service account appears", READY_WITHIN, || {
            process.check_running()?;
            Ok(client.gets(account).then_some(()))
        });
        made.with_context(|| format!("the end of the log of {name}:\n{}", process.log_tail()))?;
        self.controller_manager = Some(process);
        Ok(())
    }
}

/// An admin's view of the API server from outside.
struct Client {
    assets: Assets,
    url: String,
    token: String,
    ca: PathBuf,
    kubeconfig: PathBuf,
}

impl Client {
    /// `Some` once the API server says so and has made the default namespace.
    fn finds_it_ready(&self) -> Result<Option<()>> {
        // The server makes its certificate when it first starts, and clients must trust it.
        let Ok(ca) = fs::read(&self.ca) else {
            return Ok(None);
        };
        write_secret(&self.kubeconfig, &kubeconfig_text(&self.url, &ca, &self.token))?;
        let ready = self.gets("/readyz") && self.gets("/api/v1/namespaces/default");
        Ok(ready.then_some(()))
    }

    fn gets(&self, path: &str) -> bool {
        let status = kubectl(&self.assets, &self.kubeconfig)
            .args(["get", "--request-timeout=5s", "--raw", path])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    }
}

/// A kubectl that reads this kubeconfig and nothing of the user's own.
pub(super) fn kubectl(assets: &Assets, kubeconfig: &Path) -> Command {
    let mut command = Command::new(&assets.kubectl);
    command.arg("--kubeconfig").arg(kubeconfig);
    // kubectl remembers per address what kinds a server has; addresses are used again here.
    command.env("KUBECACHEDIR", kubeconfig.with_file_name("kubectl-cache"));
    command.env_remove("KUBECONFIG");
    command
}

/// Hands the text to `kubectl apply`.
pub(super) fn apply_text(mut kubectl: Command, what: &str, text: &str) -> Result<()> {
    hand_over(kubectl.args(["apply", "--server-side", "-f", "-"]), what, text)
}

/// Runs kubectl with the text as its input.
pub(super) fn hand_over(kubectl: &mut Command, what: &str, text: &str) -> Result<()> {
    let mut child = kubectl
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run kubectl to add {what}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        let handed = stdin.write_all(text.as_bytes());
        handed.with_context(|| format!("cannot hand {what} to kubectl"))?;
    }
    let output = child
        .wait_with_output()
        .with_context(|| format!("cannot wait for kubectl to add {what}"))?;
    if !output.status.success() {
        bail!("cannot add {what}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn is_port_clash(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}

impl Ports {
    fn pick() -> Result<Ports> {
        Ok(Ports { etcd: free_port()?, etcd_peer: free_port()?, apiserver: free_port()? })
    }
}

/// A port that is free now, below the range from which the system gives ports to outgoing
/// connections: one of those could take the API server's port while it is down for a restart.
pub(crate) fn free_port() -> Result<u16> {
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 8_000;
    for _ in 0..100 {
        let port = FIRST + u16::from_le_bytes(keys::random()?) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("cannot find a free port on 127.0.0.1")
}

/// Its certificate is good for 127.0.0.1 and for itself.
pub(super) fn ca_file(dir: &Path) -> PathBuf {
    dir.join("certs/apiserver.crt")
}

/// Removes what an earlier control plane left and writes keys, tokens and the audit policy.
fn prepare_folder(options: &Options, token: &str) -> Result<Options> {
    fs::create_dir_all(&options.dir)
        .with_context(|| format!("cannot create {}", options.dir.display()))?;
    // Absolute, because the processes are told their files by name.
    let dir = options
        .dir
        .canonicalize()
        .with_context(|| format!("cannot resolve {}", options.dir.display()))?;
    for folder in ["etcd", "certs", "kubectl-cache"] {
        let folder = dir.join(folder);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot empty {}", folder.display()))?;
        }
    }
    for file in ["audit.log", "etcd.log", "kube-apiserver.log", "kube-controller-manager.log"] {
        let _ = fs::remove_file(dir.join(file));
    }
    write_secret(&dir.join("service-account.key"), &keys::signing_key()?)?;
    let tokens = format!("{token},admin,admin,\"system:masters\"\n");
    write_secret(&dir.join("tokens.csv"), &tokens)?;
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";
    write_secret(&dir.join("audit-policy.yaml"), policy)?;
    Ok(Options { dir, ..options.clone() })
}

/// Writes a file that only its owner may read, from its first moment on.
fn write_secret(path: &Path, text: &str) -> Result<()> {
    let attempt = || {
        let mut file =
            OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())
    };
    attempt().with_context(|| format!("cannot write {}", path.display()))
}

fn kubeconfig_text(url: &str, ca: &[u8], token: &str) -> String {
    let ca = keys::base64(ca);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: windlass\n\
         contexts: [{{name: windlass, context: {{cluster: windlass, user: admin, namespace: default}}}}]\n\
         clusters: [{{name: windlass, cluster: {{server: \"{url}\", certificate-authority-data: {ca}}}}}]\n\
         users: [{{name: admin, user: {{token: \"{token}\"}}}}]\n"
    )
}

fn start_etcd(assets: &Assets, options: &Options, ports: Ports) -> Result<Process> {
    let dir = &options.dir;
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    let mut arguments = Arguments::default();
    arguments
        .path("--data-dir", &dir.join("etcd"))
        .text("--name", "windlass")
        .text("--listen-client-urls", &client)
        .text("--advertise-client-urls", &client)
        .text("--listen-peer-urls", &peer)
        .text("--initial-advertise-peer-urls", &peer)
        .text("--initial-cluster", &format!("windlass={peer}"))
        .text("--log-level", "error");
    if !options.fsync {
        arguments.text("--unsafe-no-fsync", "true");
    }
    Process::start("etcd", &assets.etcd, arguments.0, dir, options.lifetime)
}

fn apiserver_arguments(options: &Options, ports: Ports) -> Vec<OsString> {
    let dir = &options.dir;
    let key = dir.join("service-account.key");
    let mut arguments = Arguments::default();
    arguments
        .text("--etcd-servers", &format!("http://127.0.0.1:{}", ports.etcd))
        .text("--secure-port", &ports.apiserver.to_string())
        .text("--bind-address", "127.0.0.1")
        .text("--advertise-address", "127.0.0.1")
        // An address on loopback is not a legal endpoint, and trying to publish it fills the log.
        .text("--endpoint-reconciler-type", "none")
        .path("--cert-dir", &dir.join("certs"))
        .path("--service-account-key-file", &key)
        .path("--service-account-signing-key-file", &key)
        .text("--service-account-issuer", "https://kubernetes.default.svc")
        .path("--token-auth-file", &dir.join("tokens.csv"))
        .text("--authorization-mode", "RBAC")
        .text("--service-cluster-ip-range", "10.96.0.0/16")
        .text("--allow-privileged", "true")
        .text("--kubelet-preferred-address-types", "InternalIP")
        .text("--profiling", "false");
    if options.audit_log {
        arguments
            .path("--audit-policy-file", &dir.join("audit-policy.yaml"))
            .path("--audit-log-path", &dir.join("audit.log"))
            .text("--audit-log-mode", "blocking")
            // In megabytes; a log that is rotated away cannot be counted.
            .text("--audit-log-maxsize", "100000");
    }
    arguments.0
}

fn controller_manager_arguments(dir: &Path) -> Vec<OsString> {
    let mut arguments = Arguments::default();
    arguments
        .path("--kubeconfig", &dir.join("kubeconfig"))
        .path("--service-account-private-key-file", &dir.join("service-account.key"))
        .path("--root-ca-file", &ca_file(dir))
        .text("--use-service-account-credentials", "true")
        .text("--leader-elect", "false")
        // It serves nothing we need, and the default port can be had only once.
        .text("--secure-port", "0")
        // The default of 20 requests a second is for clusters that share their API server.
        .text("--kube-api-qps", "300")
        .text("--kube-api-burst", "600")
        .text("--profiling", "false");
    arguments.0
}

/// Arguments of the form `--name=value`.
#[derive(Default)]
pub(super) struct Arguments(pub(super) Vec<OsString>);

impl Arguments {
    pub(super) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.path(name, Path::new(value))
    }

    pub(super) fn path(&mut self, name: &str, value: &Path) -> &mut Self {
        let mut argument = OsString::from(name);
        argument.push("=");
        argument.push(value);
        self.0.push(argument);
        self
    }
}
