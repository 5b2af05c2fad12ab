//! The domain as a whole, without a cluster: what it plans, says and reports.

mod children;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::{Value, json};
use windlass_api::foreign::http_route::HttpRoute;
use windlass_engine::conditions::{Status, find};
use windlass_engine::domain::{Domain, Overall};
use windlass_engine::error::Error;
use windlass_engine::fetch::Fetched;
use windlass_engine::plan::{Ownership, Plan, When};
use windlass_engine::state::{Assessment, State, decide, evaluate};

use super::fixture::{
    Pods, base, drained_since, empty_cluster, held_by, live, names, now, service_with,
    stable_service,
};
use super::names::{Reach, Track};
use super::*;

const OLD: &str = "llama3-8b-q4";
const NEW: &str = "llama3-8b-q8";

/// One look at a cluster.
struct Look {
    plan: Plan,
    applies: bool,
    state: State,
    conditions: Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>,
    notices: Vec<String>,
    status: Value,
}

fn look_with(settings: Settings, service: &ZerfooInferenceService, answers: Answers) -> Look {
    let domain = InferenceServiceDomain { settings };
    let observed = domain.compose(service, answers, now());
    let health = domain.health(service, &observed);
    let verdict = evaluate(&Assessment {
        components: &health.components,
        failures: &[],
        extra: &health.conditions,
        stored: &[],
        stored_state: None,
        generation: 1,
        now: now(),
    });
    let conditions = verdict.conditions.commit(&[], 1, now());
    let ready = find(&conditions, "Ready").unwrap();
    let overall = Overall {
        state: verdict.state,
        ready: ready.status == Status::True.as_str(),
        message: ready.message.clone(),
    };
    Look {
        plan: domain.plan(service, &observed),
        applies: decide(&health.components).apply,
        state: verdict.state,
        notices: health.notices.iter().map(|notice| notice.reason.clone()).collect(),
        status: Value::Object(domain.status(service, &observed, &overall)),
        conditions,
    }
}

fn look(service: &ZerfooInferenceService, answers: Answers) -> Look {
    look_with(Settings::default(), service, answers)
}

impl Look {
    /// Names of the objects to apply, with their kinds.
    fn applied(&self) -> Vec<String> {
        let plan = self.plan.apply.iter();
        plan.map(|desired| format!("{} {}", desired.kind, desired.key.name)).collect()
    }

    fn deleted(&self, when: When) -> Vec<String> {
        self.plan.removals(when).map(|gone| format!("{} {}", gone.kind, gone.key.name)).collect()
    }

    fn body(&self, kind: &str, name: &str) -> &Value {
        let found = self.plan.apply.iter().find(|d| d.kind.kind == kind && d.key.name == name);
        &found.unwrap_or_else(|| panic!("{kind} {name} is not planned")).body
    }

    fn primary(&self) -> &Value {
        &self.body("Deployment", "my-llama-primary")["spec"]
    }

    fn canary(&self) -> &Value {
        &self.body("Deployment", "my-llama-canary")["spec"]
    }

    fn backends(&self) -> &Value {
        &self.body("HTTPRoute", "my-llama-route")["spec"]["rules"][0]["backendRefs"]
    }

    /// Status and reason of a condition.
    fn condition(&self, type_: &str) -> Option<(&str, &str)> {
        find(&self.conditions, type_).map(|c| (c.status.as_str(), c.reason.as_str()))
    }

    fn message(&self, type_: &str) -> &str {
        find(&self.conditions, type_).map_or("", |condition| condition.message.as_str())
    }
}

/// A cluster in which everything that `service` asks for runs.
fn settled(service: &ZerfooInferenceService) -> Answers {
    let replicas = service.spec.replicas;
    Answers {
        primary: Fetched::Found(live(Track::Primary, OLD, Pods::all(replicas))),
        service: Fetched::Found(stable_service(Reach::Only(Track::Primary))),
        ..empty_cluster(false)
    }
}

fn autoscaler_found() -> Fetched<HorizontalPodAutoscaler> {
    Fetched::Found(HorizontalPodAutoscaler::default())
}

fn weights(primary: i32, canary: i32) -> Value {
    json!([
        { "name": "my-llama-primary", "port": 80, "weight": primary },
        { "name": "my-llama-canary", "port": 80, "weight": canary },
    ])
}

fn live_route(backends: &Value) -> HttpRoute {
    let mut route =
        HttpRoute { metadata: names().metadata(names().route(), None), ..HttpRoute::default() };
    route.spec = serde_json::from_value(json!({ "rules": [{ "backendRefs": backends }] })).unwrap();
    route
}

fn gateway() -> Value {
    json!({ "parentRefs": [{ "name": "gw", "namespace": "infra" }] })
}

#[test]
fn s01_the_base_in_an_empty_cluster() {
    let look = look(&base(), empty_cluster(false));
    assert_eq!(look.applied(), ["Deployment my-llama-primary", "Service my-llama-svc"]);
    assert_eq!(look.plan.delete, []);
    assert_eq!(look.primary()["replicas"], 2);
    assert!(look.applies);
    assert_eq!(look.state, State::Progressing);
    assert_eq!(look.notices, ["UnauthenticatedEndpoint"]);
}

#[test]
fn s02_more_replicas_change_the_size_and_nothing_else() {
    let before = look(&base(), settled(&base()));
    let after = look(&service_with(json!({ "replicas": 5 })), settled(&base()));
    let mut wanted = before.plan.clone();
    wanted.apply[0].body["spec"]["replicas"] = json!(5);
    assert_eq!(after.plan, wanted);
}

#[test]
fn s03_a_canary_behind_a_gateway() {
    let service = service_with(json!({
        "canary": { "modelRef": NEW, "weight": 20 }, "routing": gateway(),
    }));
    let answers = Answers {
        canary: Fetched::Found(live(Track::Canary, NEW, Pods::all(2))),
        ..empty_cluster(true)
    };
    let look = look(&service, answers);
    assert_eq!(
        look.applied(),
        [
            "Deployment my-llama-primary",
            "Service my-llama-svc",
            "Deployment my-llama-canary",
            "Service my-llama-primary",
            "Service my-llama-canary",
            "HTTPRoute my-llama-route",
        ]
    );
    assert_eq!((&look.primary()["replicas"], &look.canary()["replicas"]), (&json!(2), &json!(2)));
    assert_eq!(look.backends(), &weights(80, 20));
    let args = &look.canary()["template"]["spec"]["containers"][0]["args"];
    assert_eq!(args.as_array().unwrap().last().unwrap(), NEW);
}

#[test]
fn s04_a_canary_that_was_removed_goes_after_its_drain() {
    let long_ago = now() - jiff::SignedDuration::from_secs(31);
    let canary = live(Track::Canary, NEW, Pods::all(1));
    let with = |canary: Deployment| Answers {
        canary: Fetched::Found(canary),
        canary_service: Fetched::Found(stable_service(Reach::Both)),
        ..settled(&base())
    };
    let draining = look(&base(), with(drained_since(canary.clone(), now())));
    assert_eq!(draining.deleted(When::AfterApply), ["Service my-llama-canary"]);
    assert_eq!(draining.plan.requeue_after, Some(Duration::from_secs(30)));
    let drained = look(&base(), with(drained_since(canary, long_ago)));
    assert_eq!(
        drained.deleted(When::AfterApply),
        ["Service my-llama-canary", "Deployment my-llama-canary"]
    );
    assert_eq!(drained.condition("CanaryReady"), None);
    assert_eq!(drained.status.get("canary"), None);
}

#[test]
fn s05_two_bounds_make_an_autoscaler() {
    let service = service_with(json!({ "minReplicas": 2, "maxReplicas": 10 }));
    let look = look(&service, empty_cluster(false));
    let spec = &look.body("HorizontalPodAutoscaler", "my-llama-hpa")["spec"];
    assert_eq!(spec["scaleTargetRef"]["name"], "my-llama-primary");
    assert_eq!((&spec["minReplicas"], &spec["maxReplicas"]), (&json!(2), &json!(10)));
}

#[test]
fn s06_without_bounds_the_autoscaler_goes_first_and_the_size_is_ours_again() {
    let scaled = live(Track::Primary, OLD, Pods::all(7));
    let answers = Answers {
        primary: Fetched::Found(held_by(scaled, "kube-controller-manager")),
        autoscaler: autoscaler_found(),
        ..settled(&base())
    };
    let look = look(&base(), answers);
    assert_eq!(look.deleted(When::BeforeApply), ["HorizontalPodAutoscaler my-llama-hpa"]);
    assert_eq!(look.primary()["replicas"], 2);
    assert_eq!(look.condition("AutoscalerReady"), None);
}

#[test]
fn s07_a_live_primary_of_the_wrong_size_is_applied_again() {
    let answers = Answers {
        primary: Fetched::Found(live(Track::Primary, OLD, Pods::all(1))),
        ..settled(&base())
    };
    let look = look(&base(), answers);
    assert_eq!(look.primary()["replicas"], 2);
    assert_eq!(look.plan.delete, []);
}

#[test]
fn s08_a_changed_health_check_changes_the_pods() {
    let changed = service_with(json!({ "healthCheck": { "path": "/ready" } }));
    let (before, after) = (look(&base(), settled(&base())), look(&changed, settled(&base())));
    assert_ne!(before.primary()["template"], after.primary()["template"]);
}

#[test]
fn s09_every_child_is_owned_and_no_finalizer_is_needed() {
    let service = service_with(json!({
        "minReplicas": 2, "maxReplicas": 4,
        "canary": { "modelRef": NEW, "weight": 20 }, "routing": gateway(),
    }));
    let look = look(&service, empty_cluster(true));
    assert_eq!(look.plan.apply.len(), 7);
    assert!(look.plan.apply.iter().all(|desired| desired.ownership == Ownership::Owned));
    assert_eq!(InferenceServiceDomain::default().identity().finalizer, None);
}

#[test]
fn s10_an_invalid_spec_writes_nothing() {
    let service = service_with(json!({ "replicas": 0 }));
    let answers = Answers {
        canary: Fetched::Found(live(Track::Canary, NEW, Pods::all(1))),
        autoscaler: autoscaler_found(),
        ..settled(&base())
    };
    let look = look(&service, answers);
    assert_eq!((look.plan == Plan::default(), look.applies), (true, false));
    assert_eq!(look.condition("ConfigValid"), Some(("False", "InvalidSpec")));
    assert_eq!(look.condition("Ready"), Some(("False", "InvalidSpec")));
    assert_eq!(look.message("PrimaryReady"), "operator: invalid spec: replicas must be >= 1");
    assert_eq!(look.state, State::Degraded);
    assert_eq!(look.status["ready"], false);
    assert_eq!(look.status["primary"]["readyReplicas"], 2);
}

#[test]
fn k06_the_split_waits_for_the_canary() {
    let service = service_with(json!({
        "canary": { "modelRef": NEW, "weight": 20 }, "routing": gateway(),
    }));
    for (available, backends, condition) in [
        (0, weights(100, 0), ("False", "CanaryNotReady")),
        (1, weights(80, 20), ("True", "Applied")),
    ] {
        let pods = Pods { wanted: 2, updated: 2, available };
        let answers = Answers {
            canary: Fetched::Found(live(Track::Canary, NEW, pods)),
            route: Some(Fetched::Found(live_route(&backends))),
            ..settled(&base())
        };
        let look = look(&service, answers);
        assert_eq!(look.backends(), &backends);
        assert_eq!(look.condition("TrafficSplitApplied"), Some(condition));
        assert_eq!(look.status["canary"]["weight"], 20);
        assert_eq!(look.status["canary"]["effectiveWeight"], backends[1]["weight"]);
        assert_eq!(look.status["trafficMode"], "Gateway");
    }
}

#[test]
fn k07_a_new_weight_changes_only_the_route() {
    let at = |weight: i32| {
        let service = service_with(json!({
            "canary": { "modelRef": NEW, "weight": weight }, "routing": gateway(),
        }));
        let answers = Answers {
            canary: Fetched::Found(live(Track::Canary, NEW, Pods::all(2))),
            route: Some(Fetched::Missing),
            ..settled(&base())
        };
        look(&service, answers).plan
    };
    let (before, after) = (at(20), at(50));
    let changed: Vec<_> = before
        .apply
        .iter()
        .zip(&after.apply)
        .filter(|(before, after)| before != after)
        .map(|(_, after)| after.kind.kind.to_string())
        .collect();
    assert_eq!(changed, ["HTTPRoute"]);
}

#[test]
fn k08_a_split_by_pods_is_reported_as_it_is() {
    for (replicas, weight, effective, reason) in
        [(10, 20, 20, ("True", "Applied")), (3, 50, 67, ("False", "Approximate"))]
    {
        let service = service_with(json!({
            "replicas": replicas, "canary": { "modelRef": NEW, "weight": weight },
        }));
        let answers = Answers {
            canary: Fetched::Found(live(Track::Canary, NEW, Pods::all(2))),
            service: Fetched::Found(stable_service(Reach::Both)),
            ..settled(&base())
        };
        let look = look(&service, answers);
        assert_eq!(look.status["canary"]["effectiveWeight"], effective);
        assert_eq!(look.status["trafficMode"], "Replicas");
        assert_eq!(look.condition("TrafficSplitApplied"), Some(reason));
        let selector = &look.body("Service", "my-llama-svc")["spec"]["selector"];
        assert_eq!(selector, &json!({ "app": "my-llama" }));
    }
}

#[test]
fn a_split_that_the_live_objects_do_not_make_is_not_reported() {
    for (reach, effective, reason) in [
        (Reach::Both, 20, ("True", "Applied")),
        (Reach::Only(Track::Primary), 0, ("False", "SplitPending")),
        (Reach::Only(Track::Canary), 100, ("False", "SplitPending")),
    ] {
        let service = service_with(json!({
            "replicas": 10, "canary": { "modelRef": NEW, "weight": 20 },
        }));
        let answers = Answers {
            canary: Fetched::Found(live(Track::Canary, NEW, Pods::all(2))),
            service: Fetched::Found(stable_service(reach)),
            ..settled(&base())
        };
        let look = look(&service, answers);
        assert_eq!(look.status["canary"]["effectiveWeight"], effective, "{reach:?}");
        assert_eq!(look.condition("TrafficSplitApplied"), Some(reason), "{reach:?}");
    }
}

fn promoting(primary: Deployment) -> Look {
    let service = service_with(json!({ "modelRef": NEW, "resources": { "memory": "32Gi" } }));
    let answers = Answers {
        primary: Fetched::Found(primary),
        canary: Fetched::Found(live(Track::Canary, NEW, Pods::all(1))),
        service: Fetched::Found(stable_service(Reach::Only(Track::Canary))),
        ..settled(&base())
    };
    look(&service, answers)
}

#[test]
fn k10_a_promotion_keeps_the_canary_as_it_is_while_the_primary_rolls() {
    let look = promoting(live(Track::Primary, OLD, Pods::all(2)));
    assert_eq!(look.condition("TrafficSplitApplied"), Some(("False", "Promoting")));
    assert_eq!(look.status["canary"]["phase"], "Promoting");
    assert_eq!(look.status["canary"]["effectiveWeight"], 100);
    assert_eq!(look.canary()["replicas"], 2);
    let memory = |deployment: &Value| {
        deployment["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"].clone()
    };
    assert_eq!((memory(look.primary()), memory(look.canary())), (json!("32Gi"), json!("16Gi")));
    let selector = &look.body("Service", "my-llama-svc")["spec"]["selector"];
    assert_eq!(selector["serving.zerfoo.com/track"], "canary");
}

#[test]
fn k10_a_primary_that_does_not_come_up_stalls_the_promotion() {
    let mut primary = live(Track::Primary, NEW, Pods { wanted: 2, updated: 1, available: 1 });
    primary.status.as_mut().unwrap().conditions = Some(vec![DeploymentCondition {
        type_: "Progressing".to_owned(),
        status: "False".to_owned(),
        reason: Some("ProgressDeadlineExceeded".to_owned()),
        message: Some("ReplicaSet has timed out progressing.".to_owned()),
        ..Default::default()
    }]);
    let look = promoting(primary);
    assert_eq!(look.condition("PrimaryReady"), Some(("False", "PromotionStalled")));
    assert_eq!(look.condition("Ready"), Some(("False", "PromotionStalled")));
    assert_eq!(look.state, State::Degraded);
    assert!(look.applies);
    let selector = &look.body("Service", "my-llama-svc")["spec"]["selector"];
    assert_eq!(selector["serving.zerfoo.com/track"], "canary");
}

#[test]
fn k11_a_rollback_drains_the_canary_and_remembers_since_when() {
    let answers = Answers {
        canary: Fetched::Found(live(Track::Canary, NEW, Pods::all(1))),
        ..settled(&base())
    };
    let look = look(&base(), answers);
    assert_eq!(look.condition("TrafficSplitApplied"), Some(("False", "Draining")));
    assert_eq!(look.status["canary"]["phase"], "Draining");
    assert_eq!(look.status["canary"]["modelRef"], NEW);
    let annotations = &look.body("Deployment", "my-llama-canary")["metadata"]["annotations"];
    assert_eq!(annotations["serving.zerfoo.com/drain-started"], "2026-05-01T12:00:00Z");
    assert_eq!(look.plan.requeue_after, Some(Duration::from_secs(30)));
}

#[test]
fn k12_a_size_held_by_the_autoscaler_is_not_applied() {
    let service = service_with(json!({ "minReplicas": 2, "maxReplicas": 10 }));
    let scaled = held_by(live(Track::Primary, OLD, Pods::all(7)), "kube-controller-manager");
    let answers = Answers { primary: Fetched::Found(scaled), ..settled(&base()) };
    let look = look(&service, answers);
    assert_eq!(look.primary().get("replicas"), None);
}

#[test]
fn k13_a_missing_gateway_api_is_said_and_does_not_hurt() {
    let service = service_with(json!({ "routing": gateway() }));
    let look = look(&service, settled(&base()));
    assert_eq!(look.condition("TrafficSplitApplied"), Some(("False", "GatewayAPIMissing")));
    assert_eq!(look.condition("Ready"), Some(("True", "AllComponentsReady")));
    assert_eq!(look.condition("RouteReady"), None);
    assert_eq!(look.status["trafficMode"], "Replicas");
    assert_eq!(look.applied(), ["Deployment my-llama-primary", "Service my-llama-svc"]);
}

#[test]
fn k14_an_operator_that_requires_auth_applies_nothing() {
    let settings = Settings { require_auth: true, ..Settings::default() };
    let look = look_with(settings, &base(), empty_cluster(false));
    assert_eq!((look.plan == Plan::default(), look.applies), (true, false));
    assert_eq!(look.condition("ConfigValid"), Some(("False", "InvalidSpec")));
    assert_eq!(look.condition("Ready").map(|(status, _)| status), Some("False"));
    assert_eq!(look.state, State::Degraded);
}

#[test]
fn k16_a_settled_service_is_ready_and_asks_for_nothing_more() {
    let (first, second) = (look(&base(), settled(&base())), look(&base(), settled(&base())));
    assert_eq!(first.state, State::Ready);
    assert_eq!(first.condition("Ready"), Some(("True", "AllComponentsReady")));
    assert_eq!((first.plan.requeue_after, &first.plan.delete[..]), (None, &[][..]));
    assert_eq!(first.plan, second.plan);
    assert_eq!(
        first.status,
        json!({
            "ready": true,
            "replicas": 2,
            "message": "All components are ready",
            "selector": "app=my-llama,serving.zerfoo.com/track=primary",
            "endpoint": "http://my-llama-svc.default.svc",
            "primary": {
                "modelRef": OLD, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2,
            },
            "trafficMode": "Replicas",
        })
    );
}

#[test]
fn a_failing_canary_degrades_the_whole_but_not_the_primary() {
    let mut canary = live(Track::Canary, NEW, Pods { wanted: 1, updated: 1, available: 0 });
    canary.status.as_mut().unwrap().conditions = Some(vec![DeploymentCondition {
        type_: "Progressing".to_owned(),
        status: "False".to_owned(),
        reason: Some("ProgressDeadlineExceeded".to_owned()),
        ..Default::default()
    }]);
    let service = service_with(json!({ "canary": { "modelRef": NEW, "weight": 20 } }));
    let answers = Answers { canary: Fetched::Found(canary), ..settled(&base()) };
    let look = look(&service, answers);
    assert_eq!(look.condition("PrimaryReady"), Some(("True", "DeploymentAvailable")));
    assert_eq!(look.condition("CanaryReady"), Some(("False", "RolloutStalled")));
    assert_eq!(look.state, State::Degraded);
}

#[test]
fn a_missing_secret_blocks_and_an_unreadable_one_does_not() {
    let service = service_with(json!({
        "auth": { "apiKeySecretRef": { "name": "keys", "key": "apiKey" } },
    }));
    for (answer, applies, reason) in [
        (Fetched::Missing, false, "SecretNotFound"),
        (Fetched::Found(()), true, "ResourceNotReady"),
        (Fetched::Failed(Error::auth("Forbidden", "no")), true, "ResourceNotReady"),
    ] {
        let answers =
            Answers { secrets: vec![("keys".to_owned(), answer)], ..empty_cluster(false) };
        let look = look(&service, answers);
        assert_eq!(look.applies, applies, "{reason}");
        assert_eq!(look.condition("PrimaryReady"), Some(("False", reason)));
        assert_eq!(look.notices, [""; 0]);
    }
}

#[test]
fn not_knowing_whether_there_is_a_canary_holds_everything_back() {
    let lost = || Error::infrastructure("Timeout", "Request timed out");
    let answers = Answers { canary: Fetched::Failed(lost()), ..settled(&base()) };
    assert!(!look(&base(), answers).applies);
    let answers = Answers { route: Some(Fetched::Failed(lost())), ..settled(&base()) };
    assert!(!look(&base(), answers).applies);
}

#[test]
fn without_parents_the_route_and_its_services_go() {
    let found = || Fetched::Found(stable_service(Reach::Both));
    let route =
        HttpRoute { metadata: names().metadata(names().route(), None), ..HttpRoute::default() };
    let answers = Answers {
        route: Some(Fetched::Found(route)),
        primary_service: found(),
        canary_service: found(),
        ..settled(&base())
    };
    let look = look(&base(), answers);
    assert_eq!(
        look.deleted(When::AfterApply),
        ["HTTPRoute my-llama-route", "Service my-llama-primary", "Service my-llama-canary"]
    );
    assert_eq!(look.condition("RouteReady"), None);
}
