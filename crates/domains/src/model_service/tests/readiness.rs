//! What is said of a service.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_engine::conditions::{ConditionUpdate, EventMode, Status};
use windlass_engine::domain::{Domain, Health};
use windlass_engine::error::Error;
use windlass_engine::fetch::Fetched;
use windlass_engine::state::decide_manual;

use crate::model_service::fetch::Answers;
use crate::model_service::fixture::{
    Pods, bare_cluster, base, domain, edited, empty_cluster, fresh, live, live_epp, observe,
    plan_of, pool, ready_of, seen, service_with, settled, split_with, stalled, with_pods,
};
use crate::model_service::names::Role;

fn decode(pods: Pods) -> Answers {
    Answers {
        decode: Fetched::Found(with_pods(live(&base(), Role::Decode), pods)),
        ..settled(&base())
    }
}

fn said(phase: &str, ready: bool, reason: &str, message: &str) -> (String, bool, String, String) {
    (phase.to_owned(), ready, reason.to_owned(), message.to_owned())
}

fn health(service: &ModelService, answers: Answers) -> Health {
    domain().health(service, &observe(service, answers))
}

fn condition(service: &ModelService, answers: Answers, type_: &str) -> Option<ConditionUpdate> {
    health(service, answers).manual.unwrap().conditions.get(type_).cloned()
}

/// Status, reason and message of a condition.
fn told(service: &ModelService, answers: Answers, type_: &str) -> (Status, String, String) {
    let condition = condition(service, answers, type_).unwrap();
    (condition.status, condition.reason, condition.message)
}

#[test]
fn s13_the_status_of_the_base() {
    let waiting = "Waiting for serving pods to become ready";
    for (answers, want) in [
        (
            empty_cluster(),
            said(
                "Pending",
                false,
                "DeploymentNotFound",
                "Decode Deployment has not been created yet",
            ),
        ),
        (decode(Pods::ready(0, 2)), said("Running", false, "PodsStarting", waiting)),
        (decode(Pods::ready(1, 2)), said("Running", false, "PartiallyReady", "1/2 replicas ready")),
        (decode(Pods::all(2)), said("Ready", true, "AllReplicasReady", "All 2 replicas are ready")),
    ] {
        assert_eq!(ready_of(&base(), answers), want);
    }
}

#[test]
fn s13_missing_prefill_pods_are_counted() {
    let split = split_with(json!({}));
    let prefill = with_pods(live(&split, Role::Prefill), Pods::ready(0, 1));
    let cluster = Answers { prefill: Fetched::Found(prefill), ..settled(&split) };
    assert_eq!(
        ready_of(&split, cluster),
        said("Running", false, "PartiallyReady", "2/3 replicas ready")
    );
}

#[test]
fn s13_the_numbers_of_the_status() {
    let split = split_with(json!({}));
    let prefill = with_pods(live(&split, Role::Prefill), Pods::ready(0, 1));
    let observed = observe(&split, Answers { prefill: Fetched::Found(prefill), ..settled(&split) });
    let overall = windlass_engine::domain::Overall {
        state: windlass_engine::state::State::Starting,
        ready: false,
        message: String::new(),
    };
    let status = domain().status(&split, &observed, &overall);
    assert_eq!(
        Value::Object(status),
        json!({
            "phase": "Running", "decodeReady": 2, "decodeReplicas": 2, "prefillReplicas": 1,
        })
    );
    let mut counted = split.clone();
    counted.status = serde_json::from_value(json!({ "prefillReady": 1 })).unwrap();
    let status = domain().status(&counted, &observed, &overall);
    assert_eq!(status["prefillReady"], 0, "or the old number would stay");
}

#[test]
fn m08_surplus_decode_pods_do_not_make_up_for_missing_prefill_pods() {
    let split = split_with(json!({}));
    let cluster = Answers {
        decode: Fetched::Found(with_pods(live(&split, Role::Decode), Pods::all(3))),
        prefill: Fetched::Found(with_pods(live(&split, Role::Prefill), Pods::ready(0, 1))),
        ..settled(&split)
    };
    assert_eq!(ready_of(&split, cluster).3, "2/3 replicas ready");
}

#[test]
fn m08_old_pods_do_not_count_for_a_new_revision() {
    let rolling = decode(Pods { total: 3, updated: 1, ready: 2 });
    let (phase, ready, reason, message) = ready_of(&base(), rolling);
    assert_eq!((phase.as_str(), ready, reason.as_str()), ("Running", false, "RollingOut"));
    assert_eq!(message, "decode: 1 of 2 pods are up to date");
}

#[test]
fn m08_a_change_that_the_controller_has_not_seen_is_not_ready() {
    let mut unseen = decode(Pods::all(2));
    if let Fetched::Found(deployment) = &mut unseen.decode {
        deployment.metadata.generation = Some(2);
    }
    let (_, ready, reason, _) = ready_of(&base(), unseen);
    assert_eq!((ready, reason.as_str()), (false, "RollingOut"));
}

#[test]
fn m08_pods_of_a_deployment_that_is_yet_to_be_changed_do_not_count() {
    for change in
        [json!({ "engine": { "args": ["--other"] } }), json!({ "decode": { "replicas": 3 } })]
    {
        let next = edited(&base(), change.clone());
        let (phase, ready, reason, message) = ready_of(&next, settled(&base()));
        assert_eq!((phase.as_str(), ready, reason.as_str()), ("Running", false, "RollingOut"));
        assert_eq!(message, "decode: The Deployment is yet to be brought up to date", "{change}");
    }
}

#[test]
fn m08_no_pods_at_all_is_not_ready() {
    let zero = service_with(json!({ "decode": { "replicas": 0 } }));
    assert_eq!(
        ready_of(&zero, settled(&zero)),
        said("Pending", false, "ScaledToZero", "Decode is scaled to zero pods, so nothing answers")
    );
    let idle = split_with(json!({ "prefill": { "replicas": 0 } }));
    assert!(ready_of(&idle, settled(&idle)).1, "decode pods answer alone");
    let (status, reason, _) = told(&idle, settled(&idle), "PrefillReady");
    assert_eq!((status, reason.as_str()), (Status::False, "ScaledToZero"));
}

#[test]
fn m08_a_rollout_past_its_deadline_has_failed() {
    let late = stalled(with_pods(live(&base(), Role::Decode), Pods::ready(0, 2)));
    let cluster = Answers { decode: Fetched::Found(late), ..settled(&base()) };
    assert_eq!(
        ready_of(&base(), cluster),
        said(
            "Failed",
            false,
            "ProgressDeadlineExceeded",
            "decode: ReplicaSet has timed out progressing."
        )
    );
}

/// A pod of the base's decode role whose server waits for `reason`.
fn waiting_pod(reason: &str, message: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": "qwen3-32b-decode-1", "namespace": "ml-serving",
            "labels": { "llm-d.ai/model": "qwen3-32b", "llm-d.ai/role": "decode" },
        },
        "spec": { "nodeName": "n1", "containers": [] },
        "status": {
            "phase": "Pending",
            "containerStatuses": [{
                "name": "vllm", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "waiting": { "reason": reason, "message": message } },
            }],
        },
    }))
    .unwrap()
}

#[test]
fn m08_the_cause_that_a_pod_gives_is_the_cause_that_the_service_gives() {
    let pod = waiting_pod("ErrImagePull", "vllm:nope: not found");
    let late = stalled(with_pods(live(&base(), Role::Decode), Pods::ready(0, 2)));
    let cluster = Answers {
        decode: Fetched::Found(late),
        pods: Fetched::Found(vec![pod]),
        ..settled(&base())
    };
    let (phase, ready, reason, message) = ready_of(&base(), cluster);
    assert_eq!((phase.as_str(), ready, reason.as_str()), ("Failed", false, "ImageNotFound"));
    assert!(message.starts_with("decode: "), "{message}");
    assert!(message.contains("not found"), "{message}");
}

#[test]
fn what_keeps_pods_from_starting_is_told_with_the_waiting() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "p", "namespace": "ml-serving",
            "labels": { "llm-d.ai/model": "qwen3-32b", "llm-d.ai/role": "decode" },
        },
        "spec": { "containers": [] },
        "status": { "phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        }] },
    }))
    .unwrap();
    let cluster = Answers { pods: Fetched::Found(vec![pod]), ..decode(Pods::ready(0, 2)) };
    assert_eq!(
        ready_of(&base(), cluster),
        said(
            "Running",
            false,
            "PodsStarting",
            "Waiting for serving pods to become ready: decode: 0/3 nodes are available: 3 \
             Insufficient nvidia.com/gpu."
        )
    );
}

#[test]
fn a_deployment_on_its_way_out_is_as_good_as_gone() {
    let mut leaving = live(&base(), Role::Decode);
    leaving.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-05-01T12:00:00Z")).unwrap();
    let cluster = Answers { decode: Fetched::Found(leaving), ..settled(&base()) };
    assert_eq!(ready_of(&base(), cluster).2, "DeploymentNotFound");
}

#[test]
fn m16_an_invalid_spec_is_told_while_its_pods_run_on() {
    let invalid = edited(&base(), json!({ "prefill": { "replicas": 1 } }));
    assert_eq!(
        ready_of(&invalid, settled(&base())),
        said(
            "Failed",
            false,
            "InvalidSpec",
            "prefill needs routingProxy, which hands prompts over to the prefill pods"
        )
    );
    assert_eq!(told(&invalid, settled(&base()), "DecodeReady").0, Status::True);
}

#[test]
fn while_pods_start_the_status_stays_the_same() {
    let stages = [
        Pods { total: 0, updated: 0, ready: 0 },
        Pods { total: 1, updated: 1, ready: 0 },
        Pods { total: 2, updated: 2, ready: 0 },
    ];
    let said = |pods: Pods| {
        let epp = Pods { total: pods.total.min(1), updated: pods.updated.min(1), ready: 0 };
        let epp = Fetched::Found(with_pods(live_epp(&base()), epp));
        let cluster = Answers { epp, ..decode(pods) };
        let conditions = health(&base(), cluster).manual.unwrap().conditions;
        conditions.iter().map(|c| (c.reason.clone(), c.message.clone())).collect::<Vec<_>>()
    };
    assert_eq!(said(stages[0]), said(stages[1]));
    assert_eq!(said(stages[1]), said(stages[2]));
}

#[test]
fn a_deployment_that_cannot_be_read_is_not_said_to_have_failed() {
    let error = Error::infrastructure("Timeout", "no answer");
    let cluster = Answers { decode: Fetched::Failed(error), ..settled(&base()) };
    assert_eq!(
        ready_of(&base(), cluster),
        said("Running", false, "Unreachable", "The decode Deployment cannot be read: no answer")
    );
}

#[test]
fn m22_waiting_makes_no_event_and_readiness_makes_one() {
    let ready = condition(&base(), decode(Pods::all(2)), "Ready").unwrap().observability;
    assert_eq!(ready.events, EventMode::OnTransition);
    assert_eq!(ready.event_reason.as_deref(), Some("Ready"));
    assert_eq!(ready.event_message.as_deref(), Some("All serving replicas are ready"));
    let all = health(&base(), decode(Pods::ready(0, 2))).manual.unwrap().conditions;
    assert!(all.iter().all(|condition| condition.observability.events == EventMode::Never));
}

#[test]
fn m09_the_picker_has_a_condition_of_its_own() {
    let cluster = |epp: Fetched<Deployment>| Answers { epp, ..settled(&base()) };
    let at = |epp| told(&base(), cluster(epp), "EPPReady");
    assert_eq!(at(Fetched::Found(live_epp(&base()))).0, Status::True);
    assert_eq!(at(Fetched::Missing).0, Status::False);
    let starting = with_pods(live_epp(&base()), Pods::ready(0, 1));
    assert_eq!(at(Fetched::Found(starting)).0, Status::False);
    assert!(ready_of(&base(), cluster(Fetched::Missing)).1, "Ready speaks of the serving pods");
}

/// The cluster while the picker's only pod is in this state.
fn picker_pod(status: Value) -> Answers {
    let pod = serde_json::from_value(json!({
        "metadata": { "name": "p", "namespace": "ml-serving", "uid": "p" },
        "spec": { "nodeName": "n", "containers": [{ "name": "epp" }] },
        "status": status,
    }));
    Answers {
        epp: Fetched::Found(with_pods(live_epp(&base()), Pods::ready(0, 1))),
        epp_pods: Fetched::Found(vec![pod.unwrap()]),
        ..settled(&base())
    }
}

#[test]
fn m09_what_keeps_the_picker_from_running_is_told() {
    let container = |state: Value, restarts: i32| {
        json!({ "phase": "Running", "containerStatuses": [{
            "name": "epp", "image": "i", "imageID": "", "ready": false, "restartCount": restarts,
            "state": { "waiting": state },
            "lastState": { "terminated": { "exitCode": 7, "reason": "Error" } },
        }] })
    };
    for (status, reason, text) in [
        (
            container(json!({ "reason": "ErrImagePull", "message": "epp:1: not found" }), 0),
            "ImageNotFound",
            "not found",
        ),
        (container(json!({ "reason": "CrashLoopBackOff" }), 5), "CrashLoopBackOff", "7"),
        (
            json!({ "phase": "Pending", "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 Insufficient cpu.",
            }] }),
            "RollingOut",
            "Waiting for the endpoint picker to become ready: 0/3 nodes are available: 3 \
             Insufficient cpu.",
        ),
    ] {
        let (status, found, message) = told(&base(), picker_pod(status), "EPPReady");
        assert_eq!((status, found.as_str()), (Status::False, reason), "{message}");
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn m09_events_of_a_picker_that_does_not_start_are_read_again() {
    let stuck = json!({ "phase": "Pending", "conditions": [
        { "type": "PodReadyToStartContainers", "status": "False" },
    ] });
    assert!(plan_of(&base(), picker_pod(stuck)).requeue_after.is_some());
    assert!(plan_of(&base(), picker_pod(json!({ "phase": "Running" }))).requeue_after.is_none());
}

#[test]
fn m09_the_pool_is_accepted_when_a_gateway_says_so() {
    let with = |parents: Value| {
        let mut pool = pool(&fresh(&base()));
        pool.status = serde_json::from_value(json!({ "parents": parents })).unwrap();
        let cluster = Answers { pool: Some(Fetched::Found(pool)), ..settled(&base()) };
        let (status, reason, _) = told(&base(), cluster, "PoolAccepted");
        (status, reason)
    };
    let parent = |name: &str, type_: &str, status: &str, reason: &str, generation: i64| {
        json!({ "parentRef": { "name": name }, "conditions": [{
            "type": type_, "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": "2026-05-01T12:00:00Z", "observedGeneration": generation,
        }] })
    };
    for (parents, status, reason) in [
        (json!([]), Status::False, "AwaitingGateway"),
        (json!([parent("gw", "Accepted", "True", "Accepted", 1)]), Status::True, "Accepted"),
        (
            json!([parent("gw", "Accepted", "True", "Accepted", 0)]),
            Status::False,
            "AwaitingGateway",
        ),
        (
            json!([parent("gw", "Accepted", "False", "HTTPRouteNotAccepted", 1)]),
            Status::False,
            "HTTPRouteNotAccepted",
        ),
        (
            json!([
                parent("a", "ResolvedRefs", "False", "InvalidExtensionRef", 1),
                parent("b", "Accepted", "True", "Accepted", 1),
            ]),
            Status::True,
            "Accepted",
        ),
    ] {
        assert_eq!(with(parents.clone()), (status, reason.to_owned()), "{parents}");
    }
}

#[test]
fn m09_the_route_is_accepted_when_its_gateway_says_so() {
    let service = service_with(json!({ "httpRoute": { "gatewayRef": { "name": "gw" } } }));
    let with = |status: Value| {
        let mut route =
            crate::model_service::fixture::made(&fresh(&service), "HTTPRoute", "qwen3-32b");
        route["status"] = status;
        let route = serde_json::from_value(route).unwrap();
        let cluster = Answers { route: Some(Fetched::Found(route)), ..settled(&service) };
        told(&service, cluster, "RouteAccepted").0
    };
    assert_eq!(with(json!({ "parents": [] })), Status::False);
    assert_eq!(
        with(json!({ "parents": [{
            "parentRef": { "name": "gw" }, "controllerName": "c",
            "conditions": [{
                "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
                "lastTransitionTime": "2026-05-01T12:00:00Z", "observedGeneration": 1,
            }],
        }] })),
        Status::True
    );
}

#[test]
fn m11_each_missing_api_is_named_and_ready_does_not_wait_for_it() {
    let cluster = Answers {
        decode: Fetched::Found(live(&base(), Role::Decode)),
        epp: Fetched::Found(live_epp(&base())),
        ..bare_cluster()
    };
    assert!(ready_of(&base(), cluster.clone()).1);
    for (type_, kind) in [
        ("PoolAccepted", "InferencePool (inference.networking.k8s.io/v1)"),
        ("RouteAccepted", "HTTPRoute (gateway.networking.k8s.io/v1)"),
        ("MeshConfigured", "DestinationRule (networking.istio.io/v1beta1)"),
        ("MonitorsReady", "PodMonitor (monitoring.coreos.com/v1)"),
    ] {
        let (status, reason, message) = told(&base(), cluster.clone(), type_);
        assert_eq!((status, reason.as_str()), (Status::False, "APIMissing"), "{type_}");
        assert!(message.contains(&format!("does not serve {kind}")), "{message}");
    }
}

#[test]
fn decode_pods_that_serve_alone_are_told_of() {
    let split = split_with(json!({}));
    let at = |answers| told(&seen(split.clone()), answers, "RolesPaired");
    assert_eq!(at(settled(&split)).0, Status::True);
    let next = edited(&split, json!({ "engine": { "args": ["--other"] } }));
    let (status, reason, _) = told(&next, settled(&split), "RolesPaired");
    assert_eq!((status, reason.as_str()), (Status::False, "DecodeAlone"));
    assert!(condition(&base(), settled(&base()), "RolesPaired").is_none());
}

#[test]
fn what_cannot_be_read_holds_back_every_write() {
    let error = Error::infrastructure("Timeout", "no answer");
    let cluster = Answers { prefill: Fetched::Failed(error), ..settled(&base()) };
    let health = health(&base(), cluster);
    assert!(!decide_manual(&health.components).apply);
    assert!(decide_manual(&self::health(&base(), settled(&base())).components).apply);
}

#[test]
fn m02_plain_http_is_remarked_upon() {
    let plain = service_with(json!({ "model": { "insecure": true } }));
    let reasons = |service: &ModelService| -> Vec<String> {
        let notices = health(service, empty_cluster()).notices;
        notices.into_iter().map(|notice| notice.reason).collect()
    };
    assert_eq!(reasons(&plain), ["PlainHTTP"]);
    assert_eq!(reasons(&base()), [""; 0]);
}
