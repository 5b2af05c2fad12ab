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
    workspace::{project_root, target_folder},
};

/// Where `windlass manifests` puts the operator.
pub(crate) const NAMESPACE: &str = "windlass-system";
const ACCOUNT: &str = "windlass";

/// The program alone: a fresh clone need not wait for the tests to compile. Tests bring theirs.
pub(crate) fn build() -> Result<PathBuf> {
    if let Some(path) = env::var_os("WINDLASS_BIN") {
        return Ok(path.into());
    }
    let status = Command::new("cargo")
        .args(["build", "--locked", "--package", "windlass"])
        .current_dir(project_root())
        .status()
        .context("cannot run `cargo build`")?;
    if !status.success() {
        bail!("cannot build windlass ({status})");
    }
    Ok(target_folder()?.join("debug/windlass"))
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

fn run_to_end(command: &mut Command, what: &str) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run `{what}`"))?;
    if !output.status.success() {
        bail!("`{what}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("cannot read what `{what}` printed"))
}
