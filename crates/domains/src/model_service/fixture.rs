//! What tests start from.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    FieldsV1, ManagedFieldsEntry, OwnerReference,
};
use serde_json::{Value, json};
use windlass_api::foreign::inference_pool::InferencePool;
use windlass_api::model::model_service::{ModelService, ModelServiceStatus};
use windlass_engine::domain::Domain;
use windlass_engine::fetch::Fetched;
use windlass_engine::plan::Plan;

use super::compose::{Observed, compose};
use super::fetch::Answers;
use super::names::{Names, Role};
use super::{CONTROLLER, ModelServiceDomain, Settings, plan, replicas};

/// The uid of the base.
pub(super) const UID: &str = "5a6f2a0e-0000-4000-8000-000000000001";

pub(super) fn settings() -> Settings {
    Settings { version: "test".to_owned(), ..Settings::default() }
}

fn merge(target: &mut Value, change: Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (key, value) in change {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, change) => *target = change,
    }
}

/// The base with `change` merged into its spec.
pub(super) fn service_with(change: Value) -> ModelService {
    let mut object = json!({
        "apiVersion": "model.otterscale.io/v1alpha1",
        "kind": "ModelService",
        "metadata": {
            "name": "qwen3-32b", "namespace": "ml-serving", "generation": 1, "uid": UID,
        },
        "spec": {
            "model": {
                "name": "qwen/Qwen3-32B",
                "image": "registry.example.com/models/qwen3-32b:v1",
            },
            "engine": {
                "image": "vllm/vllm-openai:v0.8.0",
                "args": ["--max-model-len=8192"],
                "port": 8000,
            },
            "accelerator": { "type": "nvidia" },
            "decode": { "replicas": 2, "parallelism": { "tensor": 4 } },
        },
    });
    merge(&mut object["spec"], change);
    serde_json::from_value(object).unwrap()
}

pub(super) fn base() -> ModelService {
    service_with(json!({}))
}

/// The base with separate prefill pods, with `change` merged into its spec.
pub(super) fn split_with(change: Value) -> ModelService {
    let mut spec = json!({ "routingProxy": {}, "prefill": { "replicas": 1 } });
    merge(&mut spec, change);
    service_with(spec)
}

pub(super) fn named(name: &str, namespace: &str) -> ModelService {
    let mut service = base();
    service.metadata.name = Some(name.to_owned());
    service.metadata.namespace = Some(namespace.to_owned());
    service
}

pub(super) fn names() -> Names {
    Names::of(&base(), "test")
}

/// The next edition of a service, whose former one was observed.
pub(super) fn edited(service: &ModelService, change: Value) -> ModelService {
    let mut value = serde_json::to_value(service).unwrap();
    merge(&mut value["spec"], change);
    let mut next: ModelService = serde_json::from_value(value).unwrap();
    next.status = Some(ModelServiceStatus {
        observed_generation: service.metadata.generation,
        ..Default::default()
    });
    next.metadata.generation = service.metadata.generation.map(|generation| generation + 1);
    next
}

/// A service that an operator has seen.
pub(super) fn seen(mut service: ModelService) -> ModelService {
    service.status = Some(ModelServiceStatus {
        observed_generation: service.metadata.generation,
        ..Default::default()
    });
    service
}

/// A cluster with none of our objects that knows all kinds.
pub(super) fn empty_cluster() -> Answers {
    Answers {
        decode: Fetched::Missing,
        prefill: Fetched::Missing,
        epp: Fetched::Missing,
        epp_account: Fetched::Missing,
        epp_service: Fetched::Missing,
        pool: Some(Fetched::Missing),
        legacy_pool: Some(Fetched::Missing),
        route: Some(Fetched::Missing),
        rule: Some(Fetched::Missing),
        decode_monitor: Some(Fetched::Missing),
        prefill_monitor: Some(Fetched::Missing),
        service_monitor: Some(Fetched::Missing),
        cluster_role: Fetched::Missing,
        cluster_role_binding: Fetched::Missing,
        pods: Fetched::Found(Vec::new()),
        epp_pods: Fetched::Found(Vec::new()),
        events: Vec::new(),
        logs: BTreeMap::new(),
    }
}

/// A cluster that knows no kind but those of Kubernetes itself.
pub(super) fn bare_cluster() -> Answers {
    Answers {
        pool: None,
        legacy_pool: None,
        route: None,
        rule: None,
        decode_monitor: None,
        prefill_monitor: None,
        service_monitor: None,
        ..empty_cluster()
    }
}

/// When every look takes place.
pub(super) fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

pub(super) fn observe(service: &ModelService, answers: Answers) -> Observed {
    observe_as(&settings(), service, answers)
}

pub(super) fn observe_as(
    settings: &Settings,
    service: &ModelService,
    answers: Answers,
) -> Observed {
    compose(settings, service, answers, now())
}

pub(super) fn plan_of(service: &ModelService, answers: Answers) -> Plan {
    plan_as(&settings(), service, answers)
}

pub(super) fn plan_as(settings: &Settings, service: &ModelService, answers: Answers) -> Plan {
    let observed = observe_as(settings, service, answers);
    plan::plan(settings, service, &observed)
}

/// The plan in an empty cluster.
pub(super) fn fresh(service: &ModelService) -> Plan {
    plan_of(service, empty_cluster())
}

/// The objects of a plan as `Kind name`, in the order in which they are written.
pub(super) fn written(plan: &Plan) -> Vec<String> {
    let tiers = plan.tiers().concat();
    tiers.into_iter().map(|desired| format!("{} {}", desired.kind, desired.key.name)).collect()
}

pub(super) fn deleted(plan: &Plan) -> Vec<String> {
    plan.delete.iter().map(|gone| format!("{} {}", gone.kind, gone.key.name)).collect()
}

/// One object of a plan.
pub(super) fn body<'a>(plan: &'a Plan, kind: &str, name: &str) -> &'a Value {
    let found = plan.apply.iter().find(|d| d.kind.kind == kind && d.key.name == name);
    &found.unwrap_or_else(|| panic!("no {kind} {name} in {:?}", written(plan))).body
}

pub(super) fn has(plan: &Plan, kind: &str, name: &str) -> bool {
    plan.apply.iter().any(|desired| desired.kind.kind == kind && desired.key.name == name)
}

/// The object of a plan as it would be in the cluster, owned by the base.
pub(super) fn made(plan: &Plan, kind: &str, name: &str) -> Value {
    let mut value = body(plan, kind, name).clone();
    value["metadata"]["generation"] = 1.into();
    value["metadata"]["ownerReferences"] = json!([owner("qwen3-32b", UID)]);
    value
}

fn deployment(plan: &Plan, name: &str) -> Deployment {
    serde_json::from_value(made(plan, "Deployment", name)).unwrap()
}

/// The pool of a plan as it would be in the cluster.
pub(super) fn pool(plan: &Plan) -> InferencePool {
    serde_json::from_value(made(plan, "InferencePool", names().name())).unwrap()
}

pub(super) fn owner(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "model.otterscale.io/v1alpha1".to_owned(),
        kind: "ModelService".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// What a Deployment reports.
#[derive(Clone, Copy)]
pub(super) struct Pods {
    pub(super) total: i32,
    pub(super) updated: i32,
    pub(super) ready: i32,
}

impl Pods {
    pub(super) fn all(count: i32) -> Self {
        Self { total: count, updated: count, ready: count }
    }

    pub(super) fn ready(ready: i32, of: i32) -> Self {
        Self { total: of, updated: of, ready }
    }
}

pub(super) fn with_pods(mut deployment: Deployment, pods: Pods) -> Deployment {
    deployment.status = Some(DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: Some(pods.total),
        updated_replicas: Some(pods.updated),
        ready_replicas: Some(pods.ready),
        available_replicas: Some(pods.ready),
        ..Default::default()
    });
    deployment
}

/// A Deployment whose rollout has taken too long.
pub(super) fn stalled(mut deployment: Deployment) -> Deployment {
    deployment.status.get_or_insert_default().conditions = Some(vec![DeploymentCondition {
        type_: "Progressing".to_owned(),
        status: "False".to_owned(),
        reason: Some("ProgressDeadlineExceeded".to_owned()),
        message: Some("ReplicaSet has timed out progressing.".to_owned()),
        ..Default::default()
    }]);
    deployment
}

/// Adds to who holds the Deployment's size; `subresource` is `scale` for autoscalers.
pub(super) fn held_by(mut deployment: Deployment, manager: &str, subresource: &str) -> Deployment {
    let entry = ManagedFieldsEntry {
        manager: Some(manager.to_owned()),
        subresource: Some(subresource.to_owned()).filter(|text| !text.is_empty()),
        fields_v1: Some(FieldsV1(json!({ "f:spec": { "f:replicas": {} } }))),
        ..Default::default()
    };
    deployment.metadata.managed_fields.get_or_insert_default().push(entry);
    deployment
}

/// The Deployment of a role as we make it for a service, all pods ready.
pub(super) fn live(service: &ModelService, role: Role) -> Deployment {
    let deployment = deployment(&fresh(service), &names().role(role));
    let size = replicas::size(&deployment);
    with_pods(held_by(deployment, CONTROLLER, ""), Pods::all(size))
}

pub(super) fn live_epp(service: &ModelService) -> Deployment {
    let deployment = deployment(&fresh(service), names().epp());
    let size = replicas::size(&deployment);
    with_pods(held_by(deployment, CONTROLLER, ""), Pods::all(size))
}

/// The picker's account as a plan has it.
pub(super) fn account(plan: &Plan) -> Option<ServiceAccount> {
    let made = plan.apply.iter().find(|desired| desired.kind.kind == "ServiceAccount")?;
    let mut account: ServiceAccount = serde_json::from_value(made.body.clone()).unwrap();
    account.metadata.uid = Some("account".to_owned());
    account.metadata.owner_references = Some(vec![owner("qwen3-32b", UID)]);
    Some(account)
}

/// The cluster in which a service has all that it wants.
pub(super) fn settled(service: &ModelService) -> Answers {
    let prefill = service.spec.prefill.as_ref();
    let found = |there: bool, deployment: &dyn Fn() -> Deployment| {
        if there { Fetched::Found(deployment()) } else { Fetched::Missing }
    };
    Answers {
        decode: Fetched::Found(live(service, Role::Decode)),
        prefill: found(prefill.is_some(), &|| live(service, Role::Prefill)),
        epp: Fetched::Found(live_epp(service)),
        epp_account: account(&fresh(service)).map_or(Fetched::Missing, Fetched::Found),
        pool: Some(Fetched::Found(pool(&fresh(service)))),
        ..empty_cluster()
    }
}

pub(super) fn domain() -> ModelServiceDomain {
    ModelServiceDomain { settings: settings() }
}

/// All that the domain says of a service, as a pass would store it.
pub(super) fn ready_of(service: &ModelService, answers: Answers) -> (String, bool, String, String) {
    let domain = domain();
    let observed = observe(service, answers);
    let health = domain.health(service, &observed);
    let manual = health.manual.unwrap();
    let ready = manual.conditions.get("Ready").unwrap();
    let holds = ready.status == windlass_engine::conditions::Status::True;
    let overall = windlass_engine::domain::Overall {
        state: manual.state,
        ready: holds,
        message: ready.message.clone(),
    };
    let status = domain.status(service, &observed, &overall);
    let phase = status["phase"].as_str().unwrap().to_owned();
    (phase, holds, ready.reason.clone(), ready.message.clone())
}
