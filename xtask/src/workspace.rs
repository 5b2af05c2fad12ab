//! The checkout as Cargo sees it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::Value;
use xshell::{Shell, cmd};

/// The root of the checkout this tool was built from.
pub fn project_root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// A cargo that builds as one started by hand does. Build scripts see what the outer cargo told us
/// of our own package, and the one of `ring` runs anew when that differs, and with it every crate
/// that does TLS is compiled anew.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        command.env_remove(name);
    }
    command
}

/// Builds everything once and returns the windlass binary. All targets at once, so that the
/// features of shared dependencies come out as for the tests and nothing is compiled twice.
pub(crate) fn build() -> Result<PathBuf> {
    let shell = shell_in(&project_root())?;
    cmd!(shell, "cargo build --quiet --locked --workspace --all-targets")
        .quiet()
        .run()
        .context("cannot build the workspace")?;
    Ok(target_folder()?.join("debug/windlass"))
}

/// The windlass binary under test, `WINDLASS_BIN`, or else one that is built now.
pub fn binary() -> Result<PathBuf> {
    match env::var_os("WINDLASS_BIN") {
        Some(path) => Ok(path.into()),
        None => build(),
    }
}

pub fn target_folder() -> Result<PathBuf> {
    let metadata = metadata(&project_root())?;
    let folder = metadata["target_directory"].as_str();
    Ok(folder.context("cannot find the target folder in `cargo metadata`")?.into())
}

/// What `cargo metadata` says of our own packages.
pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let shell = shell_in(root)?;
    let text = cmd!(shell, "cargo metadata --no-deps --format-version 1")
        .quiet()
        .read()
        .context("cannot read the manifests with `cargo metadata`")?;
    serde_json::from_str(&text).context("cannot parse the answer of `cargo metadata`")
}

pub(crate) fn shell_in(root: &Path) -> Result<Shell> {
    let shell = Shell::new().context("cannot find the current folder")?;
    shell.change_dir(root);
    Ok(shell)
}
