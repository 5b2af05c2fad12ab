//! One pod: how far it is, and why it is no further.

use std::{collections::BTreeMap, fmt::Write};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Event as Told, Pod,
    PodCondition,
};
use kube::runtime::watcher::Event;

use super::view::{State, Word};

/// A container that was restarted has to run for so long before it is believed.
const SETTLED: SignedDuration = SignedDuration::from_secs(10);

const LATE: SignedDuration = SignedDuration::from_secs(60);

/// All that is known, by uid.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) pods: BTreeMap<String, Pod>,
    /// The latest of each pod.
    pub(super) warnings: BTreeMap<String, Warning>,
    /// The last line of failed runs.
    pub(super) lines: BTreeMap<Run, String>,
    /// Those of a list that is not complete yet.
    pub(super) listed: BTreeMap<String, Pod>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Warning {
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) at: Timestamp,
}

/// A run of a container whose log is worth a look.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) uid: String,
    pub(super) namespace: String,
    pub(super) pod: String,
    pub(super) container: String,
    /// Which one, counted from the first.
    pub(super) number: i32,
    /// It is the one before the one that runs now.
    pub(super) is_previous: bool,
}

impl Facts {
    pub(super) fn hear(&mut self, event: Event<Pod>) {
        let uid = |pod: &Pod| pod.metadata.uid.clone().unwrap_or_default();
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => drop(self.listed.insert(uid(&pod), pod)),
            Event::InitDone => self.pods = std::mem::take(&mut self.listed),
            Event::Apply(pod) => drop(self.pods.insert(uid(&pod), pod)),
            Event::Delete(pod) => {
                self.pods.remove(&uid(&pod));
                self.warnings.remove(&uid(&pod));
            }
        }
    }

    /// That an event is forgotten says nothing of the pod.
    pub(super) fn hear_warning(&mut self, event: Event<Told>) {
        let (Event::InitApply(event) | Event::Apply(event)) = event else { return };
        let at = event.last_timestamp.map(|time| time.0);
        let at = at.or(event.event_time.map(|time| time.0));
        let at = at.or(event.metadata.creation_timestamp.map(|time| time.0));
        let (Some(uid), Some(at)) = (event.involved_object.uid, at) else { return };
        let warning = Warning {
            reason: event.reason.unwrap_or_default(),
            message: event.message.unwrap_or_default(),
            at,
        };
        // A container that waits for its restart has said why by its end.
        if warning.reason == "BackOff" {
            return;
        }
        match self.warnings.get(&uid) {
            Some(known) if known.at > warning.at => {}
            _ => drop(self.warnings.insert(uid, warning)),
        }
    }

    /// Forgets what was said of pods that are gone. An event may come a little before its pod.
    pub(super) fn forget(&mut self, now: Timestamp) {
        let is_new = |warning: &Warning| now.duration_since(warning.at) < LATE;
        self.warnings.retain(|uid, warning| self.pods.contains_key(uid) || is_new(warning));
    }

    /// The pods in which something runs, or may do so without having said it yet.
    pub(super) fn running(&self) -> usize {
        let is_over = |pod: &Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            matches!(phase, Some("Succeeded" | "Failed"))
        };
        let may_run = |one: &ContainerStatus| {
            let state = one.state.clone().unwrap_or_default();
            let waits = state.waiting.and_then(|waiting| waiting.reason);
            let is_made = matches!(waits.as_deref(), Some("ContainerCreating" | "PodInitializing"));
            state.running.is_some() || is_made
        };
        let runs = |pod: &Pod| !is_over(pod) && statuses(pod).any(|(_, one)| may_run(one));
        self.pods.values().filter(|pod| runs(pod)).count()
    }

    /// All failed runs that have left no message.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        let all = self.pods.values().flat_map(|pod| statuses(pod).map(move |(_, one)| (pod, one)));
        all.filter_map(|(pod, one)| {
            let (ended, run) = last_end(pod, one)?;
            let is_silent = ended.message.as_deref().unwrap_or_default().trim().is_empty();
            (ended.exit_code != 0 && is_silent && !is_start_error(ended)).then_some(run)
        })
    }
}

/// What is to be said of it.
pub(super) fn judge(pod: &Pod, facts: &Facts, now: Timestamp) -> Word {
    let word = |state, text: String| Word { state, text, paste: Vec::new(), since: since(pod) };
    if let Some(by) = &pod.metadata.deletion_timestamp {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let told = by.0.checked_sub(SignedDuration::from_secs(grace)).unwrap_or(by.0);
        return Word { since: told.min(now), ..word(State::Ending, String::new()) };
    }
    let status = pod.status.clone().unwrap_or_default();
    match status.phase.as_deref() {
        Some("Succeeded") => return word(State::Done, String::new()),
        Some("Failed") => return word(State::Failed, failure(pod, facts)),
        _ => {}
    }
    if let Some(refused) = condition(pod, "PodScheduled").filter(|found| found.status == "False") {
        let text = refused.message.as_deref().or(refused.reason.as_deref()).unwrap_or_default();
        return word(State::Stuck, clean(text));
    }
    let said = statuses(pod).filter_map(|(is_init, one)| container(pod, facts, is_init, one, now));
    if let Some((state, text)) = said.min_by_key(|(state, _)| *state) {
        let mut lines = text.lines().map(clean);
        let text = lines.next().unwrap_or_default();
        let paste = lines.filter(|line| !line.trim().is_empty()).collect();
        return Word { paste, ..word(state, text) };
    }
    if condition(pod, "Ready").is_some_and(|found| found.status == "True") {
        return word(State::Ready, String::new());
    }
    match facts.warnings.get(uid(pod)) {
        // Of a container there is something else to say.
        Some(warning) if warning.reason != "Unhealthy" && !has_started(pod) => {
            word(State::Stuck, clean(&format!("{}: {}", warning.reason, warning.message)))
        }
        _ => word(State::Starting, String::new()),
    }
}

/// What keeps the pod from being ready, as far as it is this container.
fn container(
    pod: &Pod,
    facts: &Facts,
    is_init: bool,
    one: &ContainerStatus,
    now: Timestamp,
) -> Option<(State, String)> {
    let state = one.state.as_ref()?;
    let ended = last_end(pod, one).filter(|(ended, _)| ended.exit_code != 0);
    let crashed = |(ended, run): (&ContainerStateTerminated, Run)| {
        let text = end(ended, facts.lines.get(&run));
        let text = match one.restart_count {
            ..1 => text,
            1 => format!("crash loop, restarted once: {text}"),
            many => format!("crash loop, restarted {many} times: {text}"),
        };
        (State::Stuck, text)
    };
    let said = if let Some(waiting) = &state.waiting {
        match waiting.reason.as_deref() {
            Some("ContainerCreating" | "PodInitializing") | None => None,
            Some("CrashLoopBackOff" | "RunContainerError") if ended.is_some() => ended.map(crashed),
            _ => Some((State::Stuck, refusal(waiting))),
        }
    } else if state.terminated.is_some() {
        ended.map(crashed)
    } else if let Some(running) = &state.running {
        let begun = running.started_at.as_ref().map_or(now, |time| time.0);
        let is_fresh = now.duration_since(begun) < SETTLED;
        match (is_init && one.started != Some(true), one.ready) {
            _ if is_fresh && ended.is_some() => ended.map(crashed),
            (true, _) if probed(pod, facts, begun).is_none() => {
                Some((State::Starting, format!("init container {} runs", one.name)))
            }
            (_, true) => None,
            _ => Some((State::Starting, unready(pod, facts, one, begun))),
        }
    } else {
        None
    };
    let (state, text) = said?;
    // With others beside it, it has to be told which one.
    let named = match statuses(pod).count() {
        ..2 => text,
        _ if text.starts_with("init container ") => text,
        _ => format!("container {}: {text}", one.name),
    };
    Some((state, named))
}

/// Why a container cannot be tried, without the words that are always the same.
fn refusal(waiting: &ContainerStateWaiting) -> String {
    let reason = waiting.reason.as_deref().unwrap_or_default();
    let message = waiting.message.as_deref().unwrap_or_default();
    match reason {
        "ErrImagePull" | "ImagePullBackOff" => {
            let told = message.split_once("ErrImagePull: ").map_or(message, |(_, told)| told);
            if told.is_empty() { reason.to_owned() } else { told.to_owned() }
        }
        _ if message.is_empty() => reason.to_owned(),
        _ => format!("{reason}: {message}"),
    }
}

/// A container that runs and is not ready, with what its probe says.
fn unready(pod: &Pod, facts: &Facts, one: &ContainerStatus, begun: Timestamp) -> String {
    let probe = if one.started == Some(true) { "readiness" } else { "startup" };
    match probed(pod, facts, begun) {
        Some(message) => format!("waits for its {probe} probe: {message}"),
        None => format!("waits for its {probe} probe"),
    }
}

/// What a probe of this run has said last. Times of events are cut to seconds.
fn probed(pod: &Pod, facts: &Facts, begun: Timestamp) -> Option<String> {
    let warning = facts.warnings.get(uid(pod))?;
    let is_of_run = warning.at.as_second() >= begun.as_second();
    (warning.reason == "Unhealthy" && is_of_run).then(|| clean(&warning.message))
}

/// Why a pod that does not go on has failed.
fn failure(pod: &Pod, facts: &Facts) -> String {
    let status = pod.status.clone().unwrap_or_default();
    if let Some(reason) = status.reason {
        let message = status.message.unwrap_or_default();
        return clean(&if message.is_empty() { reason } else { format!("{reason}: {message}") });
    }
    let ended = statuses(pod).filter_map(|(_, one)| last_end(pod, one));
    let failed = ended.filter(|(ended, _)| ended.exit_code != 0);
    let failed = failed.min_by_key(|(ended, _)| ended.finished_at.clone().map(|time| time.0));
    failed.map_or_else(String::new, |(ended, run)| clean(&end(ended, facts.lines.get(&run))))
}

/// How a run has ended, and what it said last.
fn end(ended: &ContainerStateTerminated, line: Option<&String>) -> String {
    let message = ended.message.as_deref().unwrap_or_default();
    if is_start_error(ended) {
        return format!("cannot be started: {message}");
    }
    let mut text = match (ended.exit_code, ended.reason.as_deref()) {
        (code, Some("OOMKilled")) => format!("out of memory, exit code {code}"),
        (code, _) => format!("exit code {code}"),
    };
    let said = [message, line.map_or("", String::as_str)];
    let last = said.into_iter().flat_map(|said| said.lines().rev()).map(clean);
    if let Some(last) = last.into_iter().find(|line| !line.trim().is_empty()) {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {}", last.trim());
    }
    text
}

fn is_start_error(ended: &ContainerStateTerminated) -> bool {
    ended.reason.as_deref() == Some("StartError")
}

/// The latest run that has ended.
fn last_end<'a>(
    pod: &Pod,
    one: &'a ContainerStatus,
) -> Option<(&'a ContainerStateTerminated, Run)> {
    let state = one.state.as_ref()?;
    let before = one.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let (ended, is_previous) = match &state.terminated {
        Some(ended) => (ended, false),
        None => (before?, state.running.is_some()),
    };
    let run = Run {
        uid: uid(pod).to_owned(),
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        pod: pod.metadata.name.clone().unwrap_or_default(),
        container: one.name.clone(),
        number: one.restart_count - i32::from(is_previous),
        is_previous,
    };
    Some((ended, run))
}

/// All containers, those that come first first, and whether they are such.
fn statuses(pod: &Pod) -> impl Iterator<Item = (bool, &ContainerStatus)> {
    let status = pod.status.as_ref();
    let first = status.and_then(|status| status.init_container_statuses.as_ref());
    let main = status.and_then(|status| status.container_statuses.as_ref());
    let first = first.into_iter().flatten().map(|one| (true, one));
    first.chain(main.into_iter().flatten().map(|one| (false, one)))
}

fn has_started(pod: &Pod) -> bool {
    condition(pod, "PodReadyToStartContainers").is_some_and(|found| found.status == "True")
}

/// Since when it is not ready.
fn since(pod: &Pod) -> Timestamp {
    let made = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let turned = condition(pod, "Ready").and_then(|found| found.last_transition_time.as_ref());
    turned.map(|time| time.0).or(made).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let all = pod.status.as_ref()?.conditions.as_ref()?;
    all.iter().find(|condition| condition.type_ == kind)
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// What a pod says must not steer the terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>()
}

#[cfg(test)]
mod tests;
