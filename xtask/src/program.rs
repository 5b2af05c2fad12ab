//! The windlass program as a user gets it: built, installed by what it prints itself, and run under
//! exactly the rights of that install.

use std::{
    env,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    cluster::ControlPlane,
    generate::documents,
    workspace::{cargo, project_root, target_folder},
};

/// Where `windlass manifests` puts the operator.
pub(crate) const NAMESPACE: &str = "windlass-system";
const ACCOUNT: &str = "windlass";

/// How cargo builds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
}

/// The program alone: a fresh clone need not wait for the tests to compile. Tests bring theirs.
pub(crate) fn build(profile: Profile) -> Result<PathBuf> {
    if let Some(path) = env::var_os("WINDLASS_BIN") {
        return Ok(path.into());
    }
    let (folder, flags): (_, &[&str]) = match profile {
        Profile::Debug => ("debug", &[]),
        Profile::Release => ("release", &["--release"]),
    };
    let status = cargo()
        .args(["build", "--locked", "--package", "windlass"])
        .args(flags)
        .current_dir(project_root())
        .status()
        .context("cannot run `cargo build`")?;
    if !status.success() {
        bail!("cannot build windlass ({status})");
    }
    Ok(target_folder()?.join(folder).join("windlass"))
}

/// Namespace, CRDs, account and rights, as `windlass manifests` prints them.
pub(crate) fn install(plane: &ControlPlane, windlass: &Path) -> Result<()> {
    let manifests = run_to_end(Command::new(windlass).arg("manifests"), "windlass manifests")?;
    // The operator runs as a process: an image of it is not at hand, and a fake node would not
    // run it anyway.
    let mut objects = documents(&manifests);
    objects.retain(|text| !text.contains("\nkind: Deployment\n"));
    apply(plane, &objects.join("---\n"), &[])?;
    kubectl(plane, &["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"])?;
    Ok(())
}

/// The path of a kubeconfig for the operator's account, once it is installed.
pub(crate) fn kubeconfig(plane: &ControlPlane) -> Result<PathBuf> {
    let token = kubectl(plane, &["create", "token", ACCOUNT, "--namespace", NAMESPACE])?;
    plane.kubeconfig_for("operator", token.trim())
}

/// The operator's name at the API server.
#[cfg(feature = "bench")]
pub(crate) fn user() -> String {
    format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}")
}

/// Lets the operator's account do everything, for operators that are not ours.
#[cfg(feature = "bench")]
pub(crate) fn grant_everything(plane: &ControlPlane) -> Result<()> {
    let account = format!("--serviceaccount={NAMESPACE}:{ACCOUNT}");
    let binding = ["create", "clusterrolebinding", "everything", "--clusterrole=cluster-admin"];
    kubectl(plane, &[&binding[..], &[&account]].concat())?;
    Ok(())
}

/// Lets the operator's account apply Secrets, for a writer that applies all there is; the operator
/// only creates them.
#[cfg(feature = "bench")]
pub(crate) fn grant_secrets(plane: &ControlPlane) -> Result<()> {
    let account = format!("--serviceaccount={NAMESPACE}:{ACCOUNT}");
    let role = ["create", "clusterrole", "secrets", "--verb=create,patch", "--resource=secrets"];
    kubectl(plane, &role)?;
    let binding = ["create", "clusterrolebinding", "secrets", "--clusterrole=secrets"];
    kubectl(plane, &[&binding[..], &[&account]].concat())?;
    Ok(())
}

pub(crate) fn apply(plane: &ControlPlane, objects: &str, flags: &[&str]) -> Result<()> {
    let mut child = plane
        .kubectl()
        .args(["apply", "--server-side", "-f", "-"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run kubectl")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(objects.as_bytes()).context("cannot hand objects to kubectl")?;
    }
    let output = child.wait_with_output().context("cannot wait for kubectl")?;
    if !output.status.success() {
        bail!("cannot apply: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

pub(crate) fn kubectl(plane: &ControlPlane, arguments: &[&str]) -> Result<String> {
    let what = format!("kubectl {}", arguments.join(" "));
    run_to_end(plane.kubectl().args(arguments), &what)
}

pub(crate) fn run_to_end(command: &mut Command, what: &str) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run `{what}`"))?;
    if !output.status.success() {
        bail!("`{what}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("cannot read what `{what}` printed"))
}
