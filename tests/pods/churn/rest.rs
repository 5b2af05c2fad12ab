//! What is left when nothing is changed any more.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Api, Client, ResourceExt, api::ListParams};
use serde_json::Value;
use windlass_tests::{until, wait};

use super::{
    Churn,
    wanted::{DEVICES, Kind, PROCESSES, VERSION, Workload},
};
use crate::{
    machine::{self, Process},
    objects,
};

/// Long enough for a start that nobody wanted to show.
const STAYS: Duration = Duration::from_secs(3);

/// The pods by their uids, and the processes with the tokens of their runs: none is mistaken for another
/// one that has taken its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) pods: BTreeSet<String>,
    pub(super) processes: BTreeSet<Process>,
}

impl Churn {
    /// Waits until everything is as wanted, and sees that it stays so.
    pub(super) async fn rest(&self) -> Found {
        let found = until("exactly what is wanted", || self.compare()).await;
        wait::pass(STAYS).await;
        let pods = self.pods().await.iter().filter_map(ResourceExt::uid).collect();
        let still = Found { pods, processes: self.processes().into_iter().collect() };
        assert_eq!(still, found, "it did not stay at rest");
        // A busy machine may leave probes without an answer for a moment: that is neither a start nor
        // an end.
        until("all of it to be ready still", || self.compare()).await;
        self.ask_all().await;
        found
    }

    async fn compare(&self) -> Result<Found, String> {
        let pods = self.pods().await;
        self.compare_workloads(&pods)?;
        self.compare_jobs(&jobs(&self.client).await)?;
        let processes = self.processes();
        let wanted = wanted_processes(&pods);
        let found = machine::by_pod(&processes);
        if found != wanted {
            return Err(format!("processes: {found:?}, wanted: {wanted:?}"));
        }
        let state = self.world.state();
        let uids: BTreeSet<String> = pods.iter().filter_map(ResourceExt::uid).collect();
        for dir in ["pods", "run/pods"] {
            let left: Vec<_> =
                machine::names(&state.join(dir)).difference(&uids).cloned().collect();
            if !left.is_empty() {
                return Err(format!("directories in {dir} of pods that are gone: {left:?}"));
            }
        }
        let known: String = uids
            .iter()
            .filter_map(|uid| {
                fs::read_to_string(state.join("pods").join(uid).join("run.json")).ok()
            })
            .collect();
        // Nothing is contained everywhere.
        if let Some(stray) = processes.iter().find(|process| !known.contains(&process.token)) {
            return Err(format!("no record names {stray:?}"));
        }
        Ok(Found { pods: uids, processes: processes.into_iter().collect() })
    }

    /// Each has its number of pods, all of the newest version and ready, and there are no others.
    fn compare_workloads(&self, pods: &[Pod]) -> Result<(), String> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for pod in pods {
            let labels = pod.labels();
            let of_job = labels.get("batch.kubernetes.io/job-name");
            let app = of_job.or_else(|| labels.get("app")).cloned().unwrap_or_default();
            let workload = self.wanted.workloads.get(&app);
            let workload = workload.ok_or_else(|| format!("nobody wants {}", pod.name_any()))?;
            check(pod, workload).map_err(|why| format!("{}: {why}", pod.name_any()))?;
            *found.entry(app).or_default() += 1;
        }
        for (name, workload) in &self.wanted.workloads {
            let count = found.get(name).copied().unwrap_or(0);
            if !workload.kind.is_job() && count != workload.replicas {
                return Err(format!("{name} has {count} pods: {workload:?}"));
            }
        }
        self.compare_devices(pods)
    }

    /// As many have theirs as there are, whoever it is; the others wait for them.
    fn compare_devices(&self, pods: &[Pod]) -> Result<(), String> {
        let asking = self.wanted.workloads.iter().filter(|(_, one)| one.kind == Kind::Device);
        let asking: BTreeMap<&String, u64> =
            asking.map(|(name, workload)| (name, workload.replicas)).collect();
        let has = |pod: &&Pod| pod.labels().get("app").is_some_and(|app| asking.contains_key(app));
        let statuses =
            pods.iter().filter(has).map(|pod| serde_json::to_value(&pod.status).unwrap());
        let count = statuses.filter(is_ready).count() as u64;
        let wanted = asking.values().sum::<u64>().min(DEVICES);
        match count == wanted {
            true => Ok(()),
            false => Err(format!("{count} pods have devices, not {wanted}: {asking:?}")),
        }
    }

    fn compare_jobs(&self, jobs: &[Job]) -> Result<(), String> {
        let names: BTreeSet<String> = jobs.iter().map(ResourceExt::name_any).collect();
        let wanted = self.wanted.workloads.iter().filter(|(_, workload)| workload.kind.is_job());
        let wanted: BTreeSet<String> = wanted.map(|(name, _)| name.clone()).collect();
        if names != wanted {
            return Err(format!("Jobs {names:?}, wanted {wanted:?}"));
        }
        let is_over = |job: &&Job| {
            let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
            let mut conditions = conditions.into_iter().flatten();
            conditions
                .any(|one| matches!(&*one.type_, "Complete" | "Failed") && one.status == "True")
        };
        match jobs.iter().find(|job| !is_over(job)) {
            Some(job) => Err(format!("{} is not over: {:?}", job.name_any(), job.status)),
            None => Ok(()),
        }
    }

    /// And nothing is left of it.
    pub(super) async fn delete_everything(&mut self, before: &BTreeSet<String>) {
        let names: Vec<String> = self.wanted.workloads.keys().cloned().collect();
        for name in names {
            self.delete(&name).await;
        }
        until("nothing to be left", || async {
            let processes = self.processes();
            let objects = objects::all(&self.client).await;
            let objects: Vec<_> = objects.difference(before).collect();
            let files = machine::files_of_pods(&self.world.path(""));
            // The API, and the gateway.
            let listeners = machine::listeners([self.up().id()]);
            let open = listeners.iter().filter(|address| !address.starts_with("0100007F:"));
            let open: Vec<_> = open.collect();
            match processes.is_empty() && objects.is_empty() && files.is_empty() && open.is_empty()
            {
                true => Ok(()),
                false => Err(format!("{processes:?} {objects:?} {files:?} {open:?}")),
            }
        })
        .await;
    }
}

fn check(pod: &Pod, workload: &Workload) -> Result<(), String> {
    if pod.metadata.deletion_timestamp.is_some() {
        return Err("it is being deleted".to_owned());
    }
    let status = serde_json::to_value(&pod.status).unwrap();
    let has = |phase: &str| status["phase"] == phase;
    let fine = match workload.kind {
        kind if kind.is_job() => return told(has("Succeeded") || has("Failed"), &status),
        kind if kind.is_hopeless() => (has("Pending") || has("Running")) && !is_ready(&status),
        Kind::Device if has("Pending") => {
            let said = status["conditions"].to_string();
            said.contains("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
        }
        _ => has("Running") && is_ready(&status),
    };
    told(fine, &status)?;
    let version = pod.labels().get(VERSION).cloned().or_else(|| {
        // Our operator passes it on in the arguments.
        let args = pod.spec.as_ref()?.containers.first()?.args.as_ref()?;
        let at = args.iter().position(|word| word == "--version")?;
        args.get(at + 1).cloned()
    });
    told(version == Some(workload.version.to_string()), &Value::from(version))
}

fn told(fine: bool, seen: &Value) -> Result<(), String> {
    if fine { Ok(()) } else { Err(seen.to_string()) }
}

pub(super) fn is_ready(status: &Value) -> bool {
    let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// By what the API says of the pods.
fn wanted_processes(pods: &[Pod]) -> BTreeMap<String, usize> {
    let running = pods.iter().filter(|pod| {
        let status = serde_json::to_value(&pod.status).unwrap();
        is_ready(&status)
    });
    let count = |pod: &Pod| {
        let label = pod.labels().get(PROCESSES);
        label.map_or(1, |count| count.parse().unwrap())
    };
    running.map(|pod| (pod.name_any(), count(pod))).collect()
}

async fn jobs(client: &Client) -> Vec<Job> {
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let everything = ListParams::default();
    objects::answer(|| jobs.list(&everything)).await.unwrap().items
}
