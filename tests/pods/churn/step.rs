//! One change at random.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use rustix::process::{Pid, Signal, kill_process};
use windlass_tests::wait;

use super::{
    Churn,
    random::Random,
    wanted::{FLAGS, Kind, LASTING, Wanted, Workload},
};
use crate::{
    machine::{self, Process},
    objects,
};

/// So many workloads at a time.
const MOST: usize = 8;
/// A container that has failed more often waits long before its next start.
const MOST_RESTARTS: i32 = 2;

#[derive(Debug)]
pub(super) enum Step {
    Apply(String, Workload),
    Scale(String, u64),
    Change(String),
    Delete(String),
    /// As many as given, at once.
    KillProcesses(u64),
    DeletePod(Option<u32>),
    /// With so many of its pods' processes.
    KillUp(u64),
    RestartUp,
}

impl Step {
    pub(super) fn choose(random: &mut Random, wanted: &Wanted) -> Self {
        let names: Vec<&String> = wanted.workloads.keys().collect();
        let passing: Vec<&String> =
            names.iter().filter(|name| **name != LASTING).copied().collect();
        let any = |random: &mut Random| random.one(&passing).map(|name| (*name).clone());
        let running: Vec<&String> =
            names.iter().filter(|name| !wanted.workloads[**name].kind.is_job()).copied().collect();
        let lasting = |random: &mut Random| random.one(&running).map(|name| (*name).clone());
        let number = random.below(100);
        let step = match number {
            0..30 if names.len() < MOST => None,
            0..42 => any(random).map(Self::Delete),
            42..58 => lasting(random).map(|name| Self::Scale(name, random.below(4))),
            58..72 => lasting(random).map(Self::Change),
            72..84 => Some(Self::KillProcesses(1 + random.below(3))),
            84..92 => {
                let grace = random.one(&[None, None, Some(0), Some(1)]).copied().flatten();
                Some(Self::DeletePod(grace))
            }
            92..97 => Some(Self::KillUp(random.below(3))),
            _ => Some(Self::RestartUp),
        };
        step.unwrap_or_else(|| {
            let kind = random.one(&Kind::ALL).copied().unwrap_or(Kind::Plain);
            let workload = Workload { kind, replicas: 1 + random.below(3), version: 0 };
            Self::Apply(format!("w{}", wanted.names), workload)
        })
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Apply(..) => "apply",
            Self::Scale(..) => "scale",
            Self::Change(_) => "change",
            Self::Delete(_) => "delete",
            Self::KillProcesses(_) => "kill processes",
            Self::DeletePod(_) => "delete pod",
            Self::KillUp(_) => "kill up",
            Self::RestartUp => "restart up",
        }
    }
}

impl Churn {
    pub(super) async fn take(&mut self, step: Step) {
        match step {
            Step::Apply(name, workload) => {
                self.wanted.names += 1;
                self.wanted.workloads.insert(name.clone(), workload);
                self.apply(&name).await;
            }
            Step::Scale(name, replicas) => {
                let workload = self.wanted.workloads.get_mut(&name).unwrap();
                let fewest = if name == LASTING { 1 } else { workload.kind.fewest() };
                workload.replicas = replicas.max(fewest);
                self.apply(&name).await;
            }
            Step::Change(name) => {
                self.wanted.workloads.get_mut(&name).unwrap().version += 1;
                self.apply(&name).await;
            }
            Step::Delete(name) => self.delete(&name).await,
            Step::KillProcesses(count) => self.kill_processes(count).await,
            Step::DeletePod(grace) => self.delete_pod(grace).await,
            Step::KillUp(count) => {
                let victims = self.victims(count).await;
                self.up.take().unwrap().kill();
                self.kill(&victims);
                self.start().await;
            }
            Step::RestartUp => {
                self.up.take().unwrap().terminate();
                assert_eq!(self.processes(), [], "nothing runs without it");
                self.start().await;
            }
        }
    }

    /// Somebody else may have taken its port meanwhile, and then it has another.
    async fn start(&mut self) {
        let up = self.world.up(&FLAGS);
        self.client = up.client().await;
        self.up = Some(up);
    }

    async fn apply(&self, name: &str) {
        for object in self.wanted.workloads[name].objects(name) {
            objects::apply(&self.client, &object).await;
        }
    }

    pub(super) async fn delete(&mut self, name: &str) {
        let workload = self.wanted.workloads.remove(name).unwrap();
        for object in workload.objects(name) {
            objects::delete(&self.client, &object).await;
        }
    }

    pub(super) async fn pods(&self) -> Vec<Pod> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let everything = ListParams::default();
        objects::answer(|| pods.list(&everything)).await.unwrap().items
    }

    async fn delete_pod(&mut self, grace: Option<u32>) {
        let pods = self.pods().await;
        let Some(pod) = self.random.one(&pods) else { return };
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let params = DeleteParams { grace_period_seconds: grace, ..DeleteParams::default() };
        let name = pod.name_any();
        match objects::answer(|| pods.delete(&name, &params)).await {
            // It was on its way out.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted.unwrap()),
        }
    }

    async fn kill_processes(&mut self, count: u64) {
        let victims = self.victims(count).await;
        self.kill(&victims);
    }

    /// Comes back when they are gone: who is about to die still counts as one that runs.
    fn kill(&self, victims: &[Process]) {
        for victim in victims {
            if let Some(pid) = Pid::from_raw(victim.pid) {
                // It may have ended meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        wait::blocking("end of those that were killed", || {
            let mut left = self.processes();
            left.retain(|process| victims.contains(process));
            if left.is_empty() { Ok(()) } else { Err(left) }
        });
    }

    /// Processes that containers consist of, of pods that have not failed often.
    async fn victims(&mut self, count: u64) -> Vec<Process> {
        let fine = |pod: &&Pod| {
            let status = pod.status.as_ref();
            let containers = status.into_iter().flat_map(|status| {
                let init = status.init_container_statuses.iter().flatten();
                status.container_statuses.iter().flatten().chain(init)
            });
            containers.map(|container| container.restart_count).max() <= Some(MOST_RESTARTS)
        };
        let pods = self.pods().await;
        let pods: BTreeSet<String> = pods.iter().filter(fine).map(ResourceExt::name_any).collect();
        let mut processes = self.processes();
        processes.retain(|process| pods.contains(&process.pod) && is_first(process));
        processes.sort();
        let mut victims = Vec::new();
        for _ in 0..count {
            victims.extend(self.random.one(&processes).cloned());
        }
        victims
    }
}

/// The node leads each container with a group of its own.
fn is_first(process: &Process) -> bool {
    // Those that left have a session of their own as well.
    machine::group_and_session(process.pid)
        .is_some_and(|(group, session)| group == process.pid && session != process.pid)
}
