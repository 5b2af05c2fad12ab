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

/// Starts it with the CRDs, the operator's account and rights, and an empty namespace.
///
/// There is no controller manager: what it makes of Deployments would load the machine during the
/// measurement, and would keep the statuses changing after it.
pub(super) fn start(
    assets: &Assets,
    windlass: &Path,
    dir: &Path,
    crds: &[&str],
    namespace: &str,
) -> Result<ControlPlane> {
    let options = Options { controller_manager: false, audit_log: true, ..Options::in_dir(dir) };
    let plane = ControlPlane::start(assets, options)?;
    plane.apply_crds(crds)?;
    program::install(&plane, windlass)?;
    program::kubectl(&plane, &["create", "namespace", namespace])?;
    Ok(plane)
}

pub(super) async fn connect(kubeconfig: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig).context("cannot read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .context("cannot use the kubeconfig")?;
    Client::try_from(config).context("cannot set up a client")
}

/// Processor time of the whole control plane so far.
pub(super) fn used(plane: &ControlPlane) -> Duration {
    plane.processes().into_iter().filter_map(|(_, process)| cpu_of(process)).sum()
}

/// After new CRDs the API server rebuilds its schemas for seconds, with pauses, which would be
/// measured too. False if it does not come to rest.
pub(super) fn wait_for_rest(plane: &ControlPlane, interrupted: &Interrupted) -> Result<bool> {
    const PERIOD: Duration = Duration::from_millis(500);
    const LONGEST: Duration = Duration::from_secs(60);
    const WANTED: u32 = 4;
    let started = Instant::now();
    let mut quiet = 0;
    while quiet < WANTED && started.elapsed() < LONGEST {
        let before = used(plane);
        thread::sleep(PERIOD);
        interrupted.check()?;
        // At rest they take a few hundredths.
        let at_rest = used(plane).saturating_sub(before) < PERIOD / 10;
        quiet = if at_rest { quiet + 1 } else { 0 };
    }
    Ok(quiet >= WANTED)
}
