//! Third-party CRDs, the real ones, copied out of the Go modules that publish them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, bail};

use super::{
    Assets,
    assets::KSERVE_VERSION,
    build,
    control_plane::{hand_over, kubectl},
};
use crate::cache;

struct Set {
    name: &'static str,
    module: &'static str,
    version: &'static str,
    /// A folder of YAML files, or one such file.
    path: &'static str,
}

const SETS: [Set; 5] = [
    Set {
        name: "gateway-api",
        module: "sigs.k8s.io/gateway-api",
        version: "v1.4.1",
        path: "config/crd/standard",
    },
    Set {
        name: "inference-extension",
        module: "sigs.k8s.io/gateway-api-inference-extension",
        version: "v1.3.1",
        path: "config/crd/bases",
    },
    Set {
        name: "kserve",
        module: "github.com/kserve/kserve",
        version: KSERVE_VERSION,
        path: "config/crd/full",
    },
    Set {
        name: "prometheus-operator",
        module: "github.com/prometheus-operator/prometheus-operator",
        version: "v0.85.0",
        path: "example/prometheus-operator-crd",
    },
    Set {
        name: "istio",
        module: "istio.io/istio",
        // Istio's tags are no Go versions, so the module is named by commit.
        version: "v0.0.0-20260827124520-eed52ebb66ad",
        path: "manifests/charts/base/files/crd-all.gen.yaml",
    },
];

/// The names [`apply_crds`] knows.
pub const CRD_SETS: [&str; SETS.len()] = {
    let mut names = [""; SETS.len()];
    let mut index = 0;
    while index < SETS.len() {
        names[index] = SETS[index].name;
        index += 1;
    }
    names
};

/// Puts the named CRDs into the cache and returns a folder of YAML files for each. Needs Go for
/// those that are not there yet.
pub fn ensure_crds(names: &[&str]) -> Result<Vec<PathBuf>> {
    names.iter().map(|name| ensure(set(name)?)).collect()
}

/// Applies the named CRDs and waits until the API server serves them.
pub fn apply_crds(assets: &Assets, kubeconfig: &Path, names: &[&str]) -> Result<()> {
    for (name, folder) in names.iter().zip(ensure_crds(names)?) {
        let steps: [&[&str]; 2] = [
            &["apply", "--server-side", "--force-conflicts", "-f"],
            &["wait", "--for=condition=Established", "--timeout=60s", "-f"],
        ];
        for step in steps {
            let output = kubectl(assets, kubeconfig)
                .args(step)
                .arg(&folder)
                .stdin(Stdio::null())
                .output()
                .with_context(|| format!("cannot run kubectl for the CRDs of {name}"))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                bail!("cannot {} the CRDs of {name}: {}", step[0], said.trim());
            }
        }
    }
    Ok(())
}

/// The same for CRDs that are at hand as text. Only they are waited for: it takes kubectl seconds to
/// see that those of others are still there.
pub fn apply_own_crds(assets: &Assets, kubeconfig: &Path, text: &str) -> Result<()> {
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    hand_over(kubectl(assets, kubeconfig).args(apply), "our CRDs", text)?;
    let wait = ["wait", "--for=condition=Established", "--timeout=60s", "-f", "-"];
    loop {
        match hand_over(kubectl(assets, kubeconfig).args(wait), "our CRDs", text) {
            // One that has no status at all yet is an error to `kubectl wait`.
            Err(error) if format!("{error:#}").contains("accessor error") => {}
            outcome => return outcome,
        }
    }
}

fn set(name: &str) -> Result<&'static Set> {
    match SETS.iter().find(|set| set.name == name) {
        Some(set) => Ok(set),
        None => bail!("cannot find CRDs named {name:?}; there are {}", CRD_SETS.join(", ")),
    }
}

fn ensure(set: &Set) -> Result<PathBuf> {
    let target = cache::dir()?.join("crds").join(set.name).join(set.version);
    if target.is_dir() {
        return Ok(target);
    }
    let _lock = cache::Lock::take("crds")?;
    if target.is_dir() {
        return Ok(target);
    }
    build::require_go(&format!("the CRDs of {}", set.name))?;
    eprintln!("xtask: fetching the CRDs of {} {}", set.name, set.version);
    let source = build::module(set.module, set.version)?.join(set.path);
    let files = if source.is_dir() { build::yaml_files(&source)? } else { vec![source] };
    build::install_folder(&only_crds(files)?, &target)?;
    Ok(target)
}

/// Kustomizations and patches lie beside the CRDs in some modules.
fn only_crds(mut files: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for file in files.drain(..) {
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        if text.lines().any(|line| line.trim_end() == "kind: CustomResourceDefinition") {
            kept.push(file);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_set_is_answered_with_the_known_ones() {
        let error = ensure_crds(&["gateway"]).unwrap_err().to_string();
        assert!(error.contains("gateway-api, inference-extension"), "{error}");
    }
}
