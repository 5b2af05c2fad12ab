//! Changes and crashes at random. However it went, at rest exactly the wanted processes run.
//!
//! `wanted` has what the objects should be, `step` changes it, `rest` compares it with the API and the
//! machine. The same seed takes the same steps, though not at the same moments.

mod random;
mod rest;
mod step;
mod wanted;

use std::{
    collections::{BTreeMap, VecDeque},
    env,
    panic::{AssertUnwindSafe, resume_unwind},
    time::{Duration, Instant},
};

use futures::FutureExt;
use kube::Client;
use random::Random;
use step::Step;
use wanted::Wanted;

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
    let up = world.up::<&str>(&[]);
    let client = up.client().await;
    let before = objects::all(&client).await;
    let mut churn = Churn {
        world,
        up: Some(up),
        client,
        random: Random::new(seed),
        wanted: Wanted::default(),
        taken: BTreeMap::new(),
        last: VecDeque::new(),
        started: Instant::now(),
    };
    let run = AssertUnwindSafe(churn.run(Duration::from_secs(seconds), &before)).catch_unwind();
    if let Err(failure) = Box::pin(run).await {
        eprintln!("churn: seed {seed} has failed; the last steps:");
        churn.last.iter().for_each(|step| eprintln!("  {step}"));
        if let Some(up) = &churn.up {
            eprintln!("churn: the log:\n{}", up.log());
        }
        resume_unwind(failure);
    }
    eprintln!("churn: seed {seed}, steps: {:?}", churn.taken);
}

impl Churn {
    async fn run(&mut self, time: Duration, before: &std::collections::BTreeSet<String>) {
        while self.started.elapsed() < time {
            let step = Step::choose(&mut self.random, &self.wanted);
            self.note(&step);
            self.take(step).await;
            let pause = self.random.below(400);
            windlass_tests::wait::pass(Duration::from_millis(pause)).await;
        }
        let steps: usize = self.taken.values().sum();
        let stopped = Instant::now();
        let found = self.rest().await;
        let rested = stopped.elapsed().as_secs_f32();
        eprintln!(
            "churn: {steps} steps in {} s; at rest after {rested:.1} s with {} pods and {} processes, \
             exactly those wanted",
            time.as_secs(),
            found.pods,
            found.processes,
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
