//! Keeps the figures of the endpoints fresh.
//!
//! One task for each endpoint asks it for its metrics over one kept connection. While no requests
//! come, it asks less often.

mod connection;
#[cfg(test)]
mod tests;
mod text;

use std::{sync::Arc, time::Duration};

use futures::future::{Either, select};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

pub use text::{Metric, Names};

use crate::{
    endpoint::Member,
    picker::{Picker, RESTS_AFTER},
};
use connection::Connection;
use text::{Figures, Reader};

#[derive(Clone, Debug)]
pub struct Settings {
    pub path: String,
    /// The period while requests flow.
    pub interval: Duration,
    /// The period when none has come for a while; the first request wakes the scraper.
    pub idle: Duration,
    pub timeout: Duration,
    pub names: Names,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            path: "/metrics".into(),
            interval: Duration::from_millis(50),
            idle: Duration::from_secs(1),
            timeout: Duration::from_secs(5),
            names: Names::default(),
        }
    }
}

impl Settings {
    /// The Go picker's rhythm: always the same.
    pub fn fixed(self) -> Self {
        Self { idle: self.interval, ..self }
    }
}

/// An endpoint that does not answer is asked this often, unless all are asked more rarely.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Reads the metrics of all endpoints of the picker until it is dropped.
pub async fn run(picker: Picker, settings: Settings) {
    let settings = Arc::new(settings);
    let mut tasks = JoinSet::new();
    let mut known: Vec<Arc<Member>> = Vec::new();
    let mut busy = false;
    loop {
        let changed = picker.woken();
        let rests = picker.rests(Instant::now().into_std());
        // Right after a rest the figures are as old as the rest made them: that is no hiccup.
        let settled = busy && !rests;
        picker.set_rhythm(if settled { settings.interval } else { settings.idle });
        busy = !rests;
        let members = picker.members();
        // Labels may change, the state stays: then it is already being read.
        let same = |one: &Member, other: &Member| Arc::ptr_eq(&one.state, &other.state);
        for member in &members {
            if !known.iter().any(|other| same(other, member)) {
                tasks.spawn(tend(picker.clone(), member.clone(), settings.clone()));
            }
        }
        known = members;
        while tasks.try_join_next().is_some() {}
        if rests {
            changed.await;
        } else {
            let again = if settled { RESTS_AFTER } else { BACK_OFF };
            select(Box::pin(changed), Box::pin(sleep(again))).await;
        }
    }
}

/// Reads one endpoint until it is no longer in the pool.
async fn tend(picker: Picker, member: Arc<Member>, settings: Arc<Settings>) {
    let mut connection = Connection::new(member.endpoint.metrics, settings.path.clone());
    let mut failures = 0_u32;
    loop {
        // Made before looking, so that no request is missed in between.
        let woken = picker.woken();
        if member.state.is_gone() {
            return;
        }
        let mut reader = Reader::new(&settings.names);
        let read = timeout(settings.timeout, connection.read(&mut reader)).await;
        if matches!(read, Ok(Ok(()))) {
            apply(&member, &reader.figures(), picker.since(Instant::now().into_std()));
            failures = 0;
        } else {
            connection.close();
            failures = failures.saturating_add(1);
        }
        let rests = picker.rests(Instant::now().into_std());
        let pause = pause(&settings, rests, failures);
        let waking = select(Box::pin(sleep(pause)), Box::pin(woken)).await;
        if let Either::Right(((), rest)) = waking
            && !rests
        {
            // Something else has changed: the rhythm stays.
            rest.await;
        }
    }
}

/// How long an endpoint is left alone.
fn pause(settings: &Settings, rests: bool, failures: u32) -> Duration {
    let regular = if rests { settings.idle } else { settings.interval };
    let backed_off = settings.interval.saturating_mul(1 << failures.min(16)).min(BACK_OFF);
    if failures == 0 { regular } else { regular.max(backed_off) }
}

/// What was found replaces what was known; the rest stays.
fn apply(member: &Member, figures: &Figures, at: Duration) {
    let state = &member.state;
    let mut load = state.load();
    load.waiting = figures.waiting.unwrap_or(load.waiting);
    load.running = figures.running.unwrap_or(load.running);
    load.kv = figures.kv.unwrap_or(load.kv);
    state.set_load(load);
    if let Some(cache) = figures.cache {
        state.set_cache(cache);
    }
    if let Some(lora) = figures.lora.clone()
        && state.lora().as_deref() != Some(&lora)
    {
        state.set_lora(lora);
    }
    state.set_updated(at);
}
