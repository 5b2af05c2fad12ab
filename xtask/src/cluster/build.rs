//! Builds the programs of a cluster from public Go modules into the cache.
//!
//! A build happens under a name of its own and is renamed when whole, so an interrupted one leaves
//! nothing that looks finished.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{
    assets::{
        ETCD_VERSION, HELM_VERSION, KSERVE_VERSION, KUBERNETES_VERSION, KWOK_VERSION, Program,
    },
    process::tail,
    wait,
};
use crate::cache;

/// A line between the start and the end of a long build, so that it is not taken for hung.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);

/// Builds those of the programs that are not found.
pub(super) fn programs(wanted: &[Program]) -> Result<()> {
    if missing(wanted)?.is_empty() {
        return Ok(());
    }
    let _lock = cache::Lock::take("build")?;
    // Asked again under the lock: the command we waited for may have built them.
    let (mut kubernetes, mut others) = (Vec::new(), Vec::new());
    for program in missing(wanted)? {
        match program {
            Program::Etcd | Program::Kwok | Program::Helm | Program::Kserve => others.push(program),
            _ => kubernetes.push(program),
        }
    }
    for program in others {
        match program {
            Program::Etcd => etcd()?,
            Program::Kwok => published(program, "sigs.k8s.io/kwok", KWOK_VERSION)?,
            Program::Kserve => kserve()?,
            _ => published(program, "helm.sh/helm/v3", HELM_VERSION)?,
        }
    }
    if kubernetes.is_empty() { Ok(()) } else { self::kubernetes(&kubernetes) }
}

fn missing(wanted: &[Program]) -> Result<Vec<Program>> {
    let mut missing = Vec::new();
    for program in wanted {
        if program.find()?.is_none() {
            missing.push(*program);
        }
    }
    Ok(missing)
}

/// One `go build` for all of them, so that the packages they share compile once.
fn kubernetes(programs: &[Program]) -> Result<()> {
    require_go(&names(programs))?;
    let scratch = Scratch::new("kubernetes")?;
    let source = module("k8s.io/kubernetes", KUBERNETES_VERSION)?;
    let manifest = source.join("go.mod");
    let manifest = fs::read_to_string(&manifest)
        .with_context(|| format!("cannot read {}", manifest.display()))?;
    scratch.write("go.mod", &kubernetes_manifest(&manifest)?)?;
    let [major, minor] = version_parts(KUBERNETES_VERSION)?;
    // Without these the server gives a version that its own kubectl cannot parse.
    let version = "-X k8s.io/component-base/version";
    let flags = format!(
        "-s -w {version}.gitVersion={KUBERNETES_VERSION} {version}.gitMajor={major} {version}.gitMinor={minor}"
    );
    let packages: Vec<String> = programs
        .iter()
        .map(|program| format!("k8s.io/kubernetes/cmd/{}", program.name()))
        .collect();
    scratch.build(&names(programs), &flags, &packages)?;
    scratch.install(programs)
}

/// Kubernetes is published with its libraries as paths beside it; the module system needs versions.
fn kubernetes_manifest(published: &str) -> Result<String> {
    let libraries: Vec<&str> = published
        .lines()
        .filter_map(|line| line.trim().split_once(" => ./staging/"))
        .map(|(name, _)| name)
        .collect();
    if libraries.is_empty() {
        bail!(
            "cannot find the replaced libraries in the go.mod of Kubernetes {KUBERNETES_VERSION}"
        );
    }
    let library_version = KUBERNETES_VERSION.replacen("v1.", "v0.", 1);
    let replaced: String =
        libraries.iter().map(|name| format!("\t{name} => {name} {library_version}\n")).collect();
    let go = published.lines().find(|line| line.starts_with("go ")).unwrap_or("go 1.26");
    Ok(format!(
        "module windlass.dev/kubernetes\n\n{go}\n\nrequire k8s.io/kubernetes {KUBERNETES_VERSION}\n\nreplace (\n{replaced})\n"
    ))
}

fn version_parts(version: &str) -> Result<[&str; 2]> {
    let mut parts = version.trim_start_matches('v').split('.');
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => Ok([major, minor]),
        _ => bail!("cannot read the version {version:?}"),
    }
}

/// etcd's own main package is no importable module; its entry point is.
fn etcd() -> Result<()> {
    require_go("etcd")?;
    let scratch = Scratch::new("etcd")?;
    let server = "go.etcd.io/etcd/server/v3";
    scratch.write(
        "go.mod",
        &format!("module windlass.dev/etcd\n\ngo 1.24\n\nrequire {server} {ETCD_VERSION}\n"),
    )?;
    scratch.write(
        "main.go",
        &format!(
            "package main\n\nimport (\n\t\"os\"\n\n\t\"{server}/etcdmain\"\n)\n\nfunc main() {{ etcdmain.Main(os.Args) }}\n"
        ),
    )?;
    scratch.build("etcd", "-s -w", &[".".into()])?;
    scratch.install(&[Program::Etcd])
}

/// A program that its module publishes as `cmd/<name>`.
fn published(program: Program, module: &str, version: &str) -> Result<()> {
    let name = program.name();
    require_go(name)?;
    let scratch = Scratch::new(name)?;
    scratch.write(
        "go.mod",
        &format!("module windlass.dev/{name}\n\ngo 1.26\n\nrequire {module} {version}\n"),
    )?;
    scratch.build(name, "-s -w", &[format!("{module}/cmd/{name}")])?;
    scratch.install(&[program])
}

/// Its manager, which is published as `cmd/manager` and built with what its own go.mod puts in place of
/// other modules: that counts only in the module that says it.
fn kserve() -> Result<()> {
    let (name, module_path) = (Program::Kserve.name(), "github.com/kserve/kserve");
    require_go(name)?;
    let scratch = Scratch::new(name)?;
    let manifest = module(module_path, KSERVE_VERSION)?.join("go.mod");
    let manifest = fs::read_to_string(&manifest)
        .with_context(|| format!("cannot read {}", manifest.display()))?;
    let replaced = replacements(&manifest);
    scratch.write(
        "go.mod",
        &format!(
            "module windlass.dev/{name}\n\ngo 1.26\n\nrequire {module_path} {KSERVE_VERSION}\n\n{replaced}"
        ),
    )?;
    scratch.build(name, "-s -w", &[format!("{module_path}/cmd/manager")])?;
    let out = scratch.folder.join("out");
    fs::rename(out.join("manager"), out.join(name))
        .with_context(|| format!("cannot find {name} where it was built"))?;
    scratch.install(&[Program::Kserve])
}

/// The lines of a go.mod that put one module in place of another.
fn replacements(manifest: &str) -> String {
    let is_replacement = |line: &&str| line.starts_with("replace ") && line.contains(" => ");
    manifest.lines().filter(is_replacement).map(|line| format!("{line}\n")).collect()
}

pub(super) fn stages_folder() -> Result<PathBuf> {
    let beside = Program::Kwok.cached(&cache::dir()?);
    Ok(beside.with_file_name("stages"))
}

/// Copies the stage files of kwok: nodes and pods that are ready at once.
pub(super) fn stages() -> Result<()> {
    let target = stages_folder()?;
    if target.is_dir() {
        return Ok(());
    }
    require_go("the stage files of kwok")?;
    let _lock = cache::Lock::take("build")?;
    let source = module("sigs.k8s.io/kwok", KWOK_VERSION)?.join("kustomize/stage");
    let folders = ["node/fast", "node/heartbeat-with-lease", "pod/fast"];
    let mut files = Vec::new();
    for folder in folders {
        files.extend(yaml_files(&source.join(folder))?);
    }
    files.retain(|file| !file.ends_with("kustomization.yaml"));
    install_folder(&files, &target)
}

/// The YAML files directly in the folder, in order.
pub(super) fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Copies the files into a new folder that appears with all of them or not at all.
pub(super) fn install_folder(files: &[PathBuf], target: &Path) -> Result<()> {
    if files.is_empty() {
        bail!("cannot fill {}: there are no files for it", target.display());
    }
    let partial = target.with_extension("partial");
    remove_if_there(&partial)?;
    fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    for file in files {
        let name = file.file_name().context("cannot copy a file without a name")?;
        // Read and written instead of copied: files in the module cache are read-only.
        let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let copy = partial.join(name);
        fs::write(&copy, text).with_context(|| format!("cannot write {}", copy.display()))?;
    }
    remove_if_there(target)?;
    fs::rename(&partial, target).with_context(|| format!("cannot create {}", target.display()))
}

fn remove_if_there(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// The folder of a Go module's source, downloaded if needed.
pub(super) fn module(path: &str, version: &str) -> Result<PathBuf> {
    let name = format!("{path}@{version}");
    let output = go()
        .args(["mod", "download", "-json", &name])
        .current_dir(env::temp_dir())
        .output()
        .with_context(|| format!("cannot run `go mod download {name}`"))?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match answer["Dir"].as_str() {
        Some(folder) if output.status.success() => Ok(folder.into()),
        _ => {
            let said = answer["Error"].as_str().map(str::to_owned);
            let said = said.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned());
            bail!("cannot download the Go module {name}: {}", said.trim())
        }
    }
}

fn go() -> Command {
    let mut go = Command::new("go");
    // The user's own modules and vendoring must not reach into ours.
    go.env("GOWORK", "off").env("CGO_ENABLED", "0").stdin(Stdio::null());
    go
}

/// Fails with what to do when Go is missing.
pub(super) fn require_go(what: &str) -> Result<()> {
    let found = go().arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    bail!(
        "cannot get {what}: not in the cache, and there is no `go` to fetch or build it with; install \
         Go 1.26 or newer (programs may also lie ready in the folder KUBEBUILDER_ASSETS)"
    )
}

fn names(programs: &[Program]) -> String {
    programs.iter().map(|program| program.name()).collect::<Vec<_>>().join(", ")
}

/// A throw-away Go module in the cache.
struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    fn new(name: &str) -> Result<Scratch> {
        let folder = cache::dir()?.join("build").join(name);
        let out = folder.join("out");
        remove_if_there(&out)?;
        fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
        Ok(Scratch { folder })
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn build(&self, what: &str, linker_flags: &str, packages: &[String]) -> Result<()> {
        let log_path = self.folder.join("build.log");
        let log = File::create(&log_path)
            .with_context(|| format!("cannot create {}", log_path.display()))?;
        let started = Instant::now();
        eprintln!("xtask: building {what} with Go; the first time takes minutes");
        let mut child = go()
            .args(["build", "-mod=mod", "-trimpath", "-ldflags", linker_flags, "-o", "out/"])
            .args(packages)
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start `go build` for {what}"))?;
        let status = wait::child(&mut child, SIGN_OF_LIFE, || {
            eprintln!("xtask: still building {what} ({} s)", started.elapsed().as_secs());
        })
        .with_context(|| format!("cannot wait for `go build` of {what}"))?;
        if !status.success() {
            bail!("cannot build {what} with Go ({status}):\n{}", tail(&log_path));
        }
        eprintln!("xtask: built {what} in {} s", started.elapsed().as_secs());
        Ok(())
    }

    /// Moves what was built to where programs are looked for.
    fn install(&self, programs: &[Program]) -> Result<()> {
        let cache = cache::dir()?;
        for program in programs {
            let target = program.cached(&cache);
            let folder = target.parent().unwrap_or(&cache);
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
            fs::rename(self.folder.join("out").join(program.name()), &target)
                .with_context(|| format!("cannot install {}", target.display()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_beside_kubernetes_get_their_published_version() {
        let published = "module k8s.io/kubernetes\n\ngo 1.26.0\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n";
        let manifest = kubernetes_manifest(published).unwrap();
        assert!(manifest.contains("\tk8s.io/api => k8s.io/api v0.36.3\n"), "{manifest}");
        assert!(manifest.contains("\ngo 1.26.0\n"), "{manifest}");
    }

    #[test]
    fn what_a_manifest_replaces_is_taken_over() {
        let published = "module m\n\nrequire a v1\n\nreplace a => b v2\n";
        assert_eq!(replacements(published), "replace a => b v2\n");
    }

    #[test]
    fn a_manifest_without_libraries_is_refused() {
        assert!(kubernetes_manifest("module k8s.io/kubernetes\n").is_err());
    }
}
