//! Requests through the gateway while everything changes.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use kube::ResourceExt;
use windlass_tests::{until, wait};

use super::{
    Churn,
    rest::is_ready,
    wanted::{Kind, Workload},
};
use crate::traffic::{Client, Target};

/// The gateway hears of a change after the API, and on a busy machine some time after it.
const HEARS: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(300);

impl Churn {
    /// Asks one of the workloads behind routes. It may be that nobody can answer; whoever does is one
    /// of its pods, and ready.
    pub(super) async fn ask(&mut self) {
        // A server goes on while its sidecar starts anew, and the pod is not ready for that moment.
        let asked = self.routed().filter(|(_, workload)| workload.kind != Kind::Sidecar);
        let asked: Vec<String> = asked.map(|(name, _)| name.clone()).collect();
        let Some(name) = self.random.one(&asked).cloned() else { return };
        let asked = Instant::now();
        let mut seen = Vec::new();
        while asked.elapsed() < HEARS {
            let before = self.ready(&name).await;
            let pod = match self.answering(&name).await {
                Ok((pod, _)) => pod,
                Err(why) => {
                    let why = format!("{:?}: {why}", self.wanted.workloads[&name]);
                    return *self.unanswered.entry(why).or_default() += 1;
                }
            };
            let after = self.ready(&name).await;
            if before.contains(&pod) || after.contains(&pod) {
                self.answered += 1;
                if !seen.is_empty() {
                    self.longest = self.longest.max(asked.elapsed());
                }
                return;
            }
            seen.push((pod, before, after));
            wait::pass(PAUSE).await;
        }
        panic!("those who have answered for {name}, and who was ready: {seen:?}");
    }

    /// At rest whoever should answer does, with the newest version.
    pub(super) async fn ask_all(&self) {
        for (name, workload) in self.routed() {
            until("answers of those that are ready", || async {
                let ready = self.ready(name).await;
                let version = workload.version.to_string();
                match self.answering(name).await {
                    Ok((pod, of)) if ready.contains(&pod) && of == version => Ok(()),
                    Err(why) if workload.replicas == 0 && why.starts_with("503") => Ok(()),
                    other => Err(format!("{name}: {other:?}, ready: {ready:?}, {workload:?}")),
                }
            })
            .await;
        }
    }

    fn routed(&self) -> impl Iterator<Item = (&String, &Workload)> {
        self.wanted.workloads.iter().filter(|(_, workload)| workload.kind.is_routed())
    }

    /// The pod and the version that have answered.
    async fn answering(&self, name: &str) -> Result<(String, String), String> {
        let gateway = self.up().gateway();
        let target = Target { gateway, host: format!("{name}.example"), base: "", model: "" };
        let answer = Client::new(&target).get("/").await?;
        // Whoever does not say who it is is none of them.
        let said = |what| answer.is_said(what).unwrap_or_default().to_owned();
        Ok((said("pod"), said("version")))
    }

    async fn ready(&self, name: &str) -> BTreeSet<String> {
        let mut pods = self.pods().await;
        pods.retain(|pod| pod.labels().get("app").is_some_and(|app| app == name));
        pods.retain(|pod| is_ready(&serde_json::to_value(&pod.status).unwrap()));
        pods.iter().map(ResourceExt::name_any).collect()
    }
}
