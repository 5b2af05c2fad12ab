//! The rows of a pod's life, one by one, with a clock of our own.

mod ends;
mod restored;
mod rows;
mod waits;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodCondition, PodStatus};
use serde_json::{Value, json};

use super::*;

/// A pod, what is known of it, and the time.
struct Life {
    pod: Pod,
    known: Known,
    now: Timestamp,
    notes: Vec<Note>,
    wake: Option<Timestamp>,
    runs: u32,
}

impl Life {
    fn new(spec: Value) -> Self {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "generation": 1},
            "spec": spec,
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let known = Known::new(&pod, now);
        Self { pod, known, now, notes: Vec::new(), wake: None, runs: 0 }
    }

    /// One step, and the status after it, which the API then has.
    fn step(&mut self) -> Vec<Action> {
        let step = step(&self.pod, &mut self.known, self.now);
        self.notes.extend(step.notes);
        self.wake = step.wake;
        self.pod.status = Some(self.status());
        step.actions
    }

    fn status(&self) -> PodStatus {
        status(&self.pod, &self.known, "127.0.0.1", self.now)
    }

    /// Steps until nothing is left to do at this time. Everything that is started runs.
    fn settle(&mut self) -> Vec<Action> {
        let mut all = Vec::new();
        for _ in 0..20 {
            let actions = self.step();
            if actions.is_empty() || actions == [Action::Remove] {
                all.extend(actions);
                return all;
            }
            for action in &actions {
                match action {
                    Action::Prepare => self.known.prepared("127.64.0.1"),
                    Action::Start(name) => self.start(name),
                    Action::Stop { .. } | Action::Release | Action::Remove => {}
                }
            }
            all.extend(actions);
        }
        panic!("it goes on for ever: {all:?}");
    }

    fn start(&mut self, name: &str) {
        self.runs += 1;
        let (id, image_id) = (format!("run-{}", self.runs), "sha256:1".to_owned());
        let started = Started { id, image_id, at: self.now, failed: None };
        let notes = self.known.started(&self.pod, name, started);
        self.notes.extend(notes);
    }

    fn fail_to_start(&mut self, name: &str, text: &str) {
        self.runs += 1;
        let (id, image_id) = (format!("run-{}", self.runs), "sha256:1".to_owned());
        let started = Started { id, image_id, at: self.now, failed: Some(text.into()) };
        let notes = self.known.started(&self.pod, name, started);
        self.notes.extend(notes);
    }

    fn end(&mut self, name: &str, exit_code: i32) {
        let State::Running(run) = &self.known.containers[name].state else {
            panic!("{name} does not run");
        };
        let ended = Ended {
            id: run.id.clone(),
            exit_code,
            reason: Reason::of(exit_code),
            message: String::new(),
            started: run.since,
            finished: self.now,
        };
        self.known.ended(name, ended);
    }

    fn probe(&mut self, name: &str, probe: Probe, passed: bool) {
        let notes = self.known.probed(&self.pod, name, probe, passed, self.now);
        self.notes.extend(notes);
    }

    fn after(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn delete(&mut self, grace: i64) {
        self.pod.metadata.deletion_grace_period_seconds = Some(grace);
        self.pod.metadata.deletion_timestamp = Some(time(self.now));
    }

    fn phase(&self) -> String {
        self.status().phase.unwrap()
    }

    fn container(&self, name: &str) -> ContainerStatus {
        let status = self.status();
        let all = status.init_container_statuses.into_iter().chain(status.container_statuses);
        all.flatten().find(|status| status.name == name).unwrap()
    }

    /// The state of a container in short: its kind, its reason and its message.
    fn state(&self, name: &str) -> String {
        short(&self.container(name).state.unwrap())
    }

    fn last(&self, name: &str) -> String {
        short(&self.container(name).last_state.unwrap())
    }

    fn condition(&self, kind: &str) -> PodCondition {
        self.status().conditions.unwrap().into_iter().find(|one| one.type_ == kind).unwrap()
    }

    /// `True`, or `False` with its reason and message.
    fn says(&self, kind: &str) -> String {
        let condition = self.condition(kind);
        let parts = [Some(condition.status), condition.reason, condition.message];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// What was told since the last time, in short.
    fn told(&mut self) -> Vec<String> {
        let notes = std::mem::take(&mut self.notes);
        notes.into_iter().map(|note| format!("{} {}", note.reason, note.message)).collect()
    }
}

fn short(state: &ContainerState) -> String {
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.clone().unwrap_or_default();
        return match &waiting.message {
            Some(message) => format!("waiting {reason}: {message}"),
            None => format!("waiting {reason}"),
        };
    }
    if let Some(ended) = &state.terminated {
        return format!("{} {}", ended.reason.as_deref().unwrap_or_default(), ended.exit_code);
    }
    if state.running.is_some() { "running".into() } else { String::new() }
}

fn one(policy: &str) -> Value {
    json!({"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]})
}

fn start_of(name: &str) -> Action {
    Action::Start(name.into())
}
