//! Changes and crashes at random. However it went, at rest exactly the wanted processes run.
//!
//! `wanted` has what the objects should be, `step` changes it, `requests` asks those behind the gateway
//! meanwhile, `rest` compares it with the API and the machine. The same seed takes the same steps,
//! though not at the same moments.

mod random;
mod requests;
mod rest;
mod step;
mod wanted;

use std::{
    collections::{BTreeMap, VecDeque},
    env, fs,
    panic::{AssertUnwindSafe, resume_unwind},
    time::{Duration, Instant},
};

use futures::FutureExt;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, api::ListParams};
use random::Random;
use step::Step;
use wanted::{FLAGS, Kind, LASTING, Wanted, Workload};
use windlass_tests::until;

use crate::{
    machine, objects,
    rules::RULES,
    up::{Up, World},
};

/// By these `cargo xtask churn` says what it wants.
const SEED: &str = "WINDLASS_CHURN_SEED";
const SECONDS: &str = "WINDLASS_CHURN_SECONDS";
const USUAL_SEED: u64 = 20;
const USUAL_SECONDS: u64 = 20;
/// So many steps are told when something goes wrong.
const TOLD: usize = 40;

/// A run of it.
struct Churn {
    world: World,
    /// Missing while it is dead.
    up: Option<Up>,
    client: Client,
    random: Random,
    wanted: Wanted,
    taken: BTreeMap<&'static str, usize>,
    /// Requests through the gateway, and why some of them were not.
    answered: usize,
    unanswered: BTreeMap<String, usize>,
    /// For how long one that was not ready has answered.
    longest: Duration,
    last: VecDeque<String>,
    started: Instant,
}

fn number(name: &str, usual: u64) -> u64 {
    env::var(name).ok().map_or(usual, |text| text.parse().unwrap())
}

#[tokio::test]
async fn at_rest_exactly_the_wanted_processes_run() {
    let (seed, seconds) = (number(SEED, USUAL_SEED), number(SECONDS, USUAL_SECONDS));
    let world = World::new(RULES);
    let up = world.up(&FLAGS);
    let client = up.client().await;
    let nodes: Api<Node> = Api::all(client.clone());
    until("a node", || async {
        let found = nodes.list(&ListParams::default()).await.unwrap().items;
        if found.is_empty() { Err("there is none".to_owned()) } else { Ok(()) }
    })
    .await;
    let before = objects::all(&client).await;
    let mut churn = Churn {
        world,
        up: Some(up),
        client,
        random: Random::new(seed),
        wanted: Wanted::default(),
        taken: BTreeMap::new(),
        answered: 0,
        unanswered: BTreeMap::new(),
        longest: Duration::ZERO,
        last: VecDeque::new(),
        started: Instant::now(),
    };
    let run = AssertUnwindSafe(churn.run(Duration::from_secs(seconds), &before)).catch_unwind();
    if let Err(failure) = Box::pin(run).await {
        eprintln!("churn: seed {seed} has failed; the last steps:");
        churn.last.iter().for_each(|step| eprintln!("  {step}"));
        // Of all starts, also where the last of them has failed.
        let log = fs::read_to_string(churn.world.path("log")).unwrap_or_default();
        eprintln!("churn: the log:\n{log}");
        resume_unwind(failure);
    }
    eprintln!("churn: seed {seed}, steps: {:?}", churn.taken);
}

impl Churn {
    async fn run(&mut self, time: Duration, before: &std::collections::BTreeSet<String>) {
        let lasting = Workload { kind: Kind::Pool, replicas: 2, version: 0 };
        self.take(Step::Apply(LASTING.to_owned(), lasting)).await;
        self.ask_all().await;
        self.started = Instant::now();
        while self.started.elapsed() < time {
            let step = Step::choose(&mut self.random, &self.wanted);
            self.note(&step);
            self.take(step).await;
            let pause = self.random.below(400);
            windlass_tests::wait::pass(Duration::from_millis(pause)).await;
            self.ask().await;
        }
        let steps: usize = self.taken.values().sum();
        let stopped = Instant::now();
        let found = self.rest().await;
        let rested = stopped.elapsed().as_secs_f32();
        eprintln!(
            "churn: {steps} steps in {} s; at rest after {rested:.1} s with {} pods and {} processes, \
             exactly those wanted",
            time.as_secs(),
            found.pods.len(),
            found.processes.len(),
        );
        eprintln!(
            "churn: {} requests were answered by pods that were ready, by others for {:?} at most; no \
             answer: {:?}",
            self.answered, self.longest, self.unanswered
        );
        self.delete_everything(before).await;
        eprintln!("churn: after the deletion of everything nothing is left");
    }

    fn note(&mut self, step: &Step) {
        *self.taken.entry(step.name()).or_default() += 1;
        self.last.push_back(format!("{:7.2} s {step:?}", self.started.elapsed().as_secs_f32()));
        if self.last.len() > TOLD {
            self.last.pop_front();
        }
    }

    fn up(&self) -> &Up {
        self.up.as_ref().unwrap()
    }

    fn processes(&self) -> Vec<machine::Process> {
        machine::processes(&self.world.path(""))
    }
}
