//! A fresh API server to measure on, with everything installed and nothing going on.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::operator::cpu_of;
use crate::{
    cluster::{Assets, ControlPlane, Options},
    interrupt::Interrupted,
    program,
};

/// What our kinds make children of.
pub(super) const CRDS: [&str; 4] =
    ["gateway-api", "inference-extension", "istio", "prometheus-operator"];

/// Starts it with the CRDs, the operator's account and rights, and an empty namespace.
///
/// There is no controller manager: what it makes of Deployments would load the machine during the
/// measurement, and would keep the statuses changing after it.
pub(super) fn start(
    assets: &Assets,
    windlass: &Path,
    dir: &Path,
    namespace: &str,
    interrupted: &Interrupted,
) -> Result<ControlPlane> {
    let options = Options { controller_manager: false, audit_log: true, ..Options::in_dir(dir) };
    let plane = ControlPlane::start(assets, options)?;
    interrupted.check()?;
    plane.apply_crds(&CRDS)?;
    interrupted.check()?;
    program::install(&plane, windlass)?;
    program::kubectl(&plane, &["create", "namespace", namespace])?;
    wait_for_rest(&plane, interrupted)?;
    Ok(plane)
}

pub(super) async fn connect(plane: &ControlPlane) -> Result<Client> {
    let file = Kubeconfig::read_from(plane.kubeconfig()).context("cannot read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .context("cannot use the kubeconfig")?;
    Client::try_from(config).context("cannot set up a client")
}

/// After new CRDs the API server rebuilds its schemas for seconds, which would be measured too.
fn wait_for_rest(plane: &ControlPlane, interrupted: &Interrupted) -> Result<()> {
    const PERIOD: Duration = Duration::from_millis(500);
    const LONGEST: Duration = Duration::from_secs(60);
    let used = || -> Duration {
        plane.processes().into_iter().filter_map(|(_, process)| cpu_of(process)).sum()
    };
    let started = Instant::now();
    let mut before = used();
    loop {
        thread::sleep(PERIOD);
        interrupted.check()?;
        let now = used();
        // At rest they take a few hundredths.
        if now.saturating_sub(before) < PERIOD / 10 {
            return Ok(());
        }
        if started.elapsed() > LONGEST {
            eprintln!("bench: the API server does not come to rest; measuring anyway");
            return Ok(());
        }
        before = now;
    }
}
