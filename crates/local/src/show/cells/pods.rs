//! Pods, nodes and events.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Object;
use crate::show::age;

pub(super) fn pod(object: &Object<'_>) -> Vec<Value> {
    let summary = Summary::of(object);
    let restarts = match (summary.restarts, &summary.last_restart) {
        (0, _) | (_, None) => summary.restarts.to_string(),
        (restarts, Some(time)) => {
            let time = json!(time);
            format!("{restarts} ({} ago)", age::since(Some(&time), object.now))
        }
    };
    let none = |path| json!(object.text_or(path, "<none>"));
    let ip = object.list("status.podIPs").first().and_then(|ip| ip["ip"].as_str());
    vec![
        object.name(),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.status),
        json!(restarts),
        object.age(),
        json!(ip.unwrap_or("<none>")),
        none("spec.nodeName"),
        none("status.nominatedNodeName"),
        json!(readiness_gates(object)),
    ]
}

fn readiness_gates(object: &Object<'_>) -> String {
    let gates = object.list("spec.readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open =
        gates.iter().filter(|gate| object.is(gate["conditionType"].as_str().unwrap_or_default()));
    format!("{}/{}", open.count(), gates.len())
}

/// What the many states of containers come down to.
struct Summary {
    status: String,
    ready: usize,
    total: usize,
    restarts: i64,
    /// Times of one format compare as texts.
    last_restart: Option<String>,
}

impl Summary {
    fn of(object: &Object<'_>) -> Self {
        let mut summary = Self {
            status: object.text_or("status.reason", object.text("status.phase")).to_owned(),
            ready: 0,
            total: object.list("spec.containers").len(),
            restarts: 0,
            last_restart: None,
        };
        let gated = |c: &Value| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated";
        if object.list("status.conditions").iter().any(gated) {
            summary.status = "SchedulingGated".to_owned();
        }
        let beside: BTreeSet<&str> = object
            .list("spec.initContainers")
            .iter()
            .filter(|container| container["restartPolicy"] == "Always")
            .filter_map(|container| container["name"].as_str())
            .collect();
        summary.total += beside.len();
        let initializing = summary.count_init(object, &beside);
        if !initializing || object.is("Initialized") {
            summary.count_main(object, &beside);
        }
        let ended = ["Succeeded", "Failed"].contains(&object.text("status.phase"));
        if object.is_deleting() && object.text("status.reason") == "NodeLost" {
            summary.status = "Unknown".to_owned();
        } else if object.is_deleting() && !ended {
            summary.status = "Terminating".to_owned();
        }
        summary
    }

    fn restarted(&mut self, container: &Value) {
        self.restarts += container["restartCount"].as_i64().unwrap_or_default();
        let last = container["lastState"]["terminated"]["finishedAt"].as_str().map(str::to_owned);
        self.last_restart = self.last_restart.take().max(last);
    }

    /// Whether the pod is still on its way through the first containers.
    fn count_init(&mut self, object: &Object<'_>, beside: &BTreeSet<&str>) -> bool {
        for (index, container) in object.list("status.initContainerStatuses").iter().enumerate() {
            self.restarted(container);
            let is_beside = container["name"].as_str().is_some_and(|name| beside.contains(name));
            let (terminated, waiting) =
                (&container["state"]["terminated"], &container["state"]["waiting"]);
            if terminated["exitCode"] == 0 {
                continue;
            }
            if is_beside && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            let waits_for = waiting["reason"].as_str().unwrap_or_default();
            self.status = if terminated.is_object() {
                format!("Init:{}", end_of(terminated))
            } else if !waits_for.is_empty() && waits_for != "PodInitializing" {
                format!("Init:{waits_for}")
            } else {
                format!("Init:{index}/{}", object.list("spec.initContainers").len())
            };
            return true;
        }
        false
    }

    fn count_main(&mut self, object: &Object<'_>, beside: &BTreeSet<&str>) {
        // From here on only containers that live with the pod count.
        (self.restarts, self.last_restart) = (0, None);
        for container in object.list("status.initContainerStatuses") {
            if container["name"].as_str().is_some_and(|name| beside.contains(name)) {
                self.restarted(container);
            }
        }
        let mut running = false;
        let mut failure = None;
        for container in object.list("status.containerStatuses").iter().rev() {
            self.restarted(container);
            let state = &container["state"];
            let waits_for = state["waiting"]["reason"].as_str().unwrap_or_default();
            if !waits_for.is_empty() {
                self.status = waits_for.to_owned();
            } else if state["terminated"].is_object() {
                self.status = end_of(&state["terminated"]);
                if state["terminated"]["exitCode"].as_i64().unwrap_or_default() != 0 {
                    failure = Some(self.status.clone());
                }
            } else if container["ready"] == true && state["running"].is_object() {
                running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" {
            if running && object.is("Ready") {
                self.status = "Running".to_owned();
            } else if let Some(failure) = failure {
                self.status = failure;
            } else if running {
                self.status = "NotReady".to_owned();
            }
        }
    }
}

fn end_of(terminated: &Value) -> String {
    let reason = terminated["reason"].as_str().unwrap_or_default();
    let signal = terminated["signal"].as_i64().unwrap_or_default();
    match (reason, signal) {
        ("", 0) => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or_default()),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

pub(super) fn node(object: &Object<'_>) -> Vec<Value> {
    let has_ready = object.list("status.conditions").iter().any(|c| c["type"] == "Ready");
    let mut status = match (has_ready, object.is("Ready")) {
        (false, _) => "Unknown",
        (true, true) => "Ready",
        (true, false) => "NotReady",
    }
    .to_owned();
    if object.flag("spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let mut addresses = object.list("status.addresses").iter();
        let found = addresses.find(|address| address["type"] == kind);
        json!(found.and_then(|address| address["address"].as_str()).unwrap_or("<none>"))
    };
    let info = |name: &str| object.text_or(name, "<unknown>").to_owned();
    let mut kernel = info("status.nodeInfo.kernelVersion");
    let architecture = object.text("status.nodeInfo.architecture");
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        object.name(),
        json!(status),
        json!(roles(object)),
        object.age(),
        json!(object.text("status.nodeInfo.kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        json!(info("status.nodeInfo.osImage")),
        json!(kernel),
        json!(info("status.nodeInfo.containerRuntimeVersion")),
    ]
}

fn roles(object: &Object<'_>) -> String {
    let labels = object.find("metadata.labels").and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    match roles.is_empty() {
        true => "<none>".to_owned(),
        false => roles.into_iter().collect::<Vec<_>>().join(","),
    }
}

/// In either of the two forms that events have.
pub(super) fn event(object: &Object<'_>) -> Vec<Value> {
    let either = |a: &str, b: &str| match object.find(a) {
        Some(value) if !value.is_null() => Some(value),
        _ => object.find(b),
    };
    let text = |a: &str, b: &str| either(a, b).and_then(Value::as_str).unwrap_or_default();
    let time = |value: Option<&Value>| age::since(value, object.now);
    let is_set = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    let first = either("firstTimestamp", "deprecatedFirstTimestamp");
    let first = if is_set(first) { time(first) } else { time(object.find("eventTime")) };
    let last = either("lastTimestamp", "deprecatedLastTimestamp");
    let mut last = if is_set(last) { time(last) } else { first.clone() };
    let mut count =
        either("count", "deprecatedCount").and_then(Value::as_i64).unwrap_or_default().max(1);
    if is_set(object.find("series")) {
        last = time(object.find("series.lastObservedTime"));
        count = object.int("series.count");
    }
    let kind = text("involvedObject.kind", "regarding.kind").to_lowercase();
    let target = match text("involvedObject.name", "regarding.name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        json!(last),
        json!(object.text("type")),
        json!(object.text("reason")),
        json!(target),
        json!(text("involvedObject.fieldPath", "regarding.fieldPath")),
        json!(event_source(object)),
        json!(text("message", "note").trim()),
        json!(first),
        json!(count),
        object.name(),
    ]
}

fn event_source(object: &Object<'_>) -> String {
    let first = |paths: &[&str]| {
        let texts = paths.iter().map(|path| object.text(path));
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    };
    let component = first(&[
        "source.component",
        "deprecatedSource.component",
        "reportingComponent",
        "reportingController",
    ]);
    let host = first(&["source.host", "deprecatedSource.host", "reportingInstance"]);
    match host {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}
