//! What is known of a pod after the node has started anew: what the API was told, and what the node
//! wrote down for itself. No process of before is left by then.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};

use super::{Container, Ended, Known, Reason, State, containers, status::bare_id};
use crate::node::record::Record;

const UNSEEN: i32 = 255;

/// `records` are newer than the status, which may have been written before a run began or ended.
pub fn restore(pod: &Pod, records: &BTreeMap<String, Record>, now: Timestamp) -> Known {
    let mut known = Known::new(pod, now);
    let Some(status) = &pod.status else { return known };
    known.since = status.start_time.as_ref().map_or(now, |time| time.0);
    known.address = status.pod_ip.clone().filter(|address| !address.is_empty());
    known.over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    known.restored = true;
    let statuses = status.init_container_statuses.iter().chain(&status.container_statuses);
    let statuses: BTreeMap<_, _> =
        statuses.flatten().map(|status| (&*status.name, status)).collect();
    for (_, spec) in containers(pod) {
        let status = statuses.get(&*spec.name).copied();
        let own = container(status, records.get(&spec.name), now);
        known.containers.insert(spec.name.clone(), own);
    }
    known
}

fn container(
    status: Option<&ContainerStatus>,
    record: Option<&Record>,
    now: Timestamp,
) -> Container {
    let mut own = status.map(|status| told(status, now)).unwrap_or_default();
    let Some(record) = record else { return own };
    let ended = record.ended.clone().unwrap_or_else(|| Ended {
        id: record.id.clone(),
        exit_code: UNSEEN,
        reason: Reason::Unknown,
        message: String::new(),
        started: record.started,
        finished: now,
    });
    match &own.state {
        // The API may know how it ended although the record could not be written.
        State::Ended(known) if known.id == record.id && record.ended.is_none() => {}
        State::Ended(known) if known.id != record.id => {
            own.last = Some(known.clone());
            own.state = State::Ended(ended);
        }
        _ => own.state = State::Ended(ended),
    }
    own.restarts = own.restarts.max(record.restarts);
    own.image_id.clone_from(&record.image_id);
    own
}

/// As the API was told. A run of which it says that it goes on has ended unseen.
fn told(status: &ContainerStatus, now: Timestamp) -> Container {
    let id = status.container_id.as_deref().map(bare_id).unwrap_or_default();
    let present = status.state.as_ref();
    let before = status.last_state.as_ref().and_then(ended);
    let running = present.and_then(|state| state.running.as_ref());
    let unseen = running.map(|running| Ended {
        id: id.to_owned(),
        exit_code: UNSEEN,
        reason: Reason::Unknown,
        message: String::new(),
        started: running.started_at.as_ref().map_or(now, |time| time.0),
        finished: now,
    });
    let (state, last) = match present.and_then(ended).or(unseen) {
        Some(ended) => (State::Ended(ended), before),
        // A container that waits has ended before, or has never run.
        None => (before.map_or(State::Fresh, State::Ended), None),
    };
    Container {
        state,
        last,
        restarts: status.restart_count,
        image_id: status.image_id.clone(),
        ..Container::default()
    }
}

fn ended(state: &ContainerState) -> Option<Ended> {
    let ended = state.terminated.as_ref()?;
    let time = |time: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
    };
    Some(Ended {
        id: ended.container_id.as_deref().map(bare_id).unwrap_or_default().to_owned(),
        exit_code: ended.exit_code,
        reason: match ended.reason.as_deref() {
            Some("Completed") => Reason::Completed,
            Some("OOMKilled") => Reason::OOMKilled,
            Some("StartError") => Reason::StartError,
            Some("Unknown") => Reason::Unknown,
            _ => Reason::of(ended.exit_code),
        },
        message: ended.message.clone().unwrap_or_default(),
        started: time(&ended.started_at),
        finished: time(&ended.finished_at),
    })
}
