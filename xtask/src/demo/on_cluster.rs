//! `cargo xtask demo --cluster`: the operator at work on a real control plane, from a fresh clone.
//!
//! Only the windlass program and kubectl talk to the cluster, as they would for a user. The operator
//! runs with exactly the rights it is installed with.

mod gateway;
mod report;
/// As `windlass demo` has it.
#[path = "../../../crates/windlass/src/demo/tree.rs"]
mod tree;

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{
    cluster::{
        Assets, ControlPlane, Lifetime, NodeAssets, Nodes, Options, Process, ensure_crds,
        wait_until,
    },
    interrupt::Interrupted,
    program::{self, Profile},
    scratch::Folder,
    workspace::project_root,
};

/// One of each way to split traffic: none at all, and by a route.
const EXAMPLES: [&str; 2] = ["examples/zerfoo-simple.yaml", "examples/zerfoo-canary.yaml"];
const CRDS: [&str; 1] = ["gateway-api"];
const NAMESPACE: &str = "demo";
const READY_WITHIN: Duration = Duration::from_secs(120);

/// True if all went well and the examples became ready.
pub(super) fn run(once: bool) -> Result<bool> {
    say("control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok");
    let (assets, node_assets) = (Assets::ensure()?, NodeAssets::ensure()?);
    ensure_crds(&CRDS)?;
    say("program: building windlass");
    let windlass = program::build(Profile::Debug)?;

    let interrupted = Interrupted::listen()?;
    let folder = Folder::new("demo")?;
    let outcome = play(once, &assets, &node_assets, &windlass, folder.path(), &interrupted);
    drop(folder);
    say("ended; nothing is left behind");
    match outcome {
        Err(_) if interrupted.is_set() => Ok(false),
        outcome => outcome,
    }
}

fn play(
    once: bool,
    assets: &Assets,
    node_assets: &NodeAssets,
    windlass: &Path,
    dir: &Path,
    interrupted: &Interrupted,
) -> Result<bool> {
    say("cluster: starting it, with two fake nodes of eight GPUs");
    let plane = ControlPlane::start(assets, Options::in_dir(dir))?;
    let nodes = Nodes::add_to(&plane, node_assets)?;
    plane.apply_crds(&CRDS)?;
    interrupted.check()?;

    say("install: namespace, CRDs, account and rights, as `windlass manifests` prints them");
    let cluster = Cluster { plane: &plane };
    cluster.install(windlass)?;
    interrupted.check()?;

    say("operator: starting it as a process, with those rights");
    let mut operator = cluster.start_operator(windlass, dir)?;
    for example in EXAMPLES {
        say(&format!("example: kubectl apply -f {example}"));
        let text = fs::read_to_string(project_root().join(example))
            .with_context(|| format!("cannot read {example}"))?;
        cluster.apply(&text, &["--namespace", NAMESPACE])?;
    }
    let started = Instant::now();
    let ready = wait_until("the examples become ready", READY_WITHIN, || {
        interrupted.check()?;
        operator.check_running()?;
        gateway::answer(&cluster)?;
        let services = cluster.get("zerfooinferenceservices")?;
        Ok((!services.is_empty() && services.iter().all(is_settled)).then_some(()))
    });
    interrupted.check()?;
    println!("\n{}", cluster.report()?);
    match &ready {
        Ok(()) => say(&format!("ready after {:.1} s", started.elapsed().as_secs_f32())),
        Err(error) => say(&format!(
            "NOT READY: {error:#}; the end of the operator's log:\n{}",
            operator.log_tail()
        )),
    }
    if !once {
        say_how_to_go_on(&plane, assets, dir, &cluster.get("zerfooinferenceservices")?);
        keep_running(&mut operator, &cluster, interrupted)?;
    }
    // Clients before servers, so that none spends its last second failing.
    drop((operator, nodes));
    plane.stop();
    Ok(ready.is_ok())
}

/// Until Ctrl-C, which reaches a kubectl that runs just then as well and makes it fail.
fn keep_running(
    operator: &mut Process,
    cluster: &Cluster<'_>,
    interrupted: &Interrupted,
) -> Result<()> {
    while !interrupted.is_set() {
        operator.check_running()?;
        match gateway::answer(cluster) {
            Err(error) if !interrupted.is_set() => return Err(error),
            _ => thread::sleep(Duration::from_millis(500)),
        }
    }
    Ok(())
}

fn say(text: &str) {
    println!("demo: {text}");
}

fn say_how_to_go_on(plane: &ControlPlane, assets: &Assets, dir: &Path, services: &[Value]) {
    let tools = assets.kubectl.parent().unwrap_or(dir);
    let name = services.first().and_then(|service| service["metadata"]["name"].as_str());
    let name = name.unwrap_or("NAME");
    say(&format!(
        "it runs until Ctrl-C; in another terminal:

  export KUBECONFIG={} PATH={}:$PATH
  kubectl config set-context --current --namespace={NAMESPACE}
  kubectl get zis
  kubectl delete deployment {name}-primary   # it comes back
  kubectl scale zis/{name} --replicas=3
  kubectl edit zis/{name}
  tail -f {}
",
        plane.kubeconfig().display(),
        tools.display(),
        dir.join("windlass.log").display(),
    ));
}

/// Ready as of its newest generation, and with nothing left to do. `Approximate` is as good as a
/// split by pod count gets.
fn is_settled(service: &Value) -> bool {
    let status = &service["status"];
    let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let fine =
        |condition: &Value| condition["status"] == "True" || condition["reason"] == "Approximate";
    status["observedGeneration"] == service["metadata"]["generation"]
        && conditions.iter().any(|condition| condition["type"] == "Ready")
        && conditions.iter().all(fine)
}

/// The demo's cluster, seen through kubectl.
struct Cluster<'a> {
    plane: &'a ControlPlane,
}

impl Cluster<'_> {
    fn install(&self, windlass: &Path) -> Result<()> {
        program::install(self.plane, windlass)?;
        self.kubectl(&["create", "namespace", NAMESPACE])?;
        Ok(())
    }

    fn start_operator(&self, windlass: &Path, dir: &Path) -> Result<Process> {
        let kubeconfig = program::kubeconfig(self.plane)?;
        let arguments = [
            "operator".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-elect".to_owned(),
            format!("--lease-namespace={}", program::NAMESPACE),
            "--health-probe-bind-address=0".to_owned(),
            "--log-format=text".to_owned(),
        ];
        let arguments = arguments.into_iter().map(Into::into).collect();
        Process::start("windlass", windlass, arguments, dir, Lifetime::Bound)
    }

    fn apply(&self, objects: &str, flags: &[&str]) -> Result<()> {
        program::apply(self.plane, objects, flags)
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        program::kubectl(self.plane, arguments)
    }

    /// Objects of these kinds, a list with commas, in the demo's namespace.
    fn get(&self, kinds: &str) -> Result<Vec<Value>> {
        let text = self.kubectl(&["get", kinds, "--namespace", NAMESPACE, "-o", "json"])?;
        let mut list: Value =
            serde_json::from_str(&text).context("cannot read kubectl's answer")?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("cannot read kubectl's answer: it is no list"),
        }
    }

    fn report(&self) -> Result<String> {
        let objects = self.get(report::KINDS)?;
        let events = self.get("events.v1.")?;
        Ok(report::render(&objects, &events))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_example_is_settled_when_its_newest_generation_is_ready() {
        let service = |generation: i64, split: &str, reason: &str| {
            json!({
                "metadata": {"generation": generation},
                "status": {"observedGeneration": 2, "conditions": [
                    {"type": "Ready", "status": "True", "reason": "AllComponentsReady"},
                    {"type": "TrafficSplitApplied", "status": split, "reason": reason},
                ]},
            })
        };
        for (service, want) in [
            (service(2, "True", "Applied"), true),
            (service(2, "False", "Approximate"), true),
            (service(2, "False", "CanaryNotReady"), false),
            (service(3, "True", "Applied"), false),
            (json!({"metadata": {"generation": 1}}), false),
        ] {
            assert_eq!(is_settled(&service), want, "{service}");
        }
    }
}
