//! How the server is probed. It opens its port only when the model is loaded.

use k8s_openapi::api::core::v1::{HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Pods;
use crate::model_service::validate::server_port;

const PATH: &str = "/health";
const PERIOD_SECONDS: i32 = 10;
const TIMEOUT_SECONDS: i32 = 5;
/// An hour: large models come over the network and are compiled before they answer.
const STARTUP_FAILURES: i32 = 360;
const READINESS_FAILURES: i32 = 3;
/// A server under load may miss some; one that hangs misses all.
const LIVENESS_FAILURES: i32 = 6;

/// Time on top of what the startup probe allows, for scheduling and fetching.
const ROLLOUT_SLACK_SECONDS: i32 = 600;

#[derive(Default)]
pub(super) struct ServerProbes {
    pub(super) startup: Option<Probe>,
    pub(super) readiness: Option<Probe>,
    pub(super) liveness: Option<Probe>,
}

pub(super) fn server_probes(pods: Pods<'_>) -> ServerProbes {
    let asked = pods.spec.probes.clone().unwrap_or_default();
    if asked.disabled == Some(true) {
        return ServerProbes::default();
    }
    let probe = |own, failures| Some(merge(own, ours(pods, failures)));
    ServerProbes {
        startup: probe(asked.startup, STARTUP_FAILURES),
        readiness: probe(asked.readiness, READINESS_FAILURES),
        liveness: probe(asked.liveness, LIVENESS_FAILURES),
    }
}

/// A rollout is stuck only after the slowest start that the probe allows. Without a probe a server is
/// ready at once, but its model has to be unpacked before it starts, so it gets the time of ours.
pub(super) fn progress_deadline_seconds(startup: Option<&Probe>) -> i32 {
    let allowed = startup.map_or(STARTUP_FAILURES * PERIOD_SECONDS, |startup| {
        let attempts = startup.failure_threshold.unwrap_or(3);
        let allowed = attempts.saturating_mul(startup.period_seconds.unwrap_or(PERIOD_SECONDS));
        allowed.saturating_add(startup.initial_delay_seconds.unwrap_or_default())
    });
    allowed.saturating_add(ROLLOUT_SLACK_SECONDS)
}

fn ours(pods: Pods<'_>, failures: i32) -> Probe {
    let spec = pods.blueprint.spec;
    let speaks_tls = spec.engine.args.iter().any(|arg| arg.starts_with("--ssl-certfile"));
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(PATH.to_owned()),
            port: IntOrString::Int(server_port(spec, pods.role)),
            scheme: speaks_tls.then(|| "HTTPS".to_owned()),
            ..Default::default()
        }),
        period_seconds: Some(PERIOD_SECONDS),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        failure_threshold: Some(failures),
        ..Default::default()
    }
}

/// The user's word stands; what is left open is ours.
fn merge(own: Option<Probe>, ours: Probe) -> Probe {
    let Some(own) = own else { return ours };
    let acts = own.http_get.is_some()
        || own.exec.is_some()
        || own.tcp_socket.is_some()
        || own.grpc.is_some();
    Probe {
        http_get: if acts { own.http_get } else { ours.http_get },
        period_seconds: own.period_seconds.or(ours.period_seconds),
        timeout_seconds: own.timeout_seconds.or(ours.timeout_seconds),
        failure_threshold: own.failure_threshold.or(ours.failure_threshold),
        ..own
    }
}
