//! What tests start from: a service, the objects around it, and one look at them.

use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass_api::aim::service::{AimService, ServiceStatus};
use windlass_engine::conditions::{ConditionSet, ConditionUpdate, Status};
use windlass_engine::domain::{Domain, Overall};
use windlass_engine::error::Error;
use windlass_engine::fetch::{Documents, Reader, Selector, Serves};
use windlass_engine::health::pods::LogKey;
use windlass_engine::kind::{Kind, ObjectKey};
use windlass_engine::object::Object;
use windlass_engine::pipeline::look;
use windlass_engine::plan::Plan;
use windlass_engine::state::{Assessment, Failure, Retry, decide_manual, evaluate_manual};

use super::ServiceDomain;

pub(super) const UID: &str = "0f8fad5b-d9cb";
pub(super) const TEMPLATE: &str = "tiny-lm-latency";

const GROUP: &str = "aim.silogen.ai/v1alpha1";

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

pub(super) fn with(mut object: Value, change: Value) -> Value {
    merge(&mut object, change);
    object
}

/// The base with `change` merged into its spec.
pub(super) fn service_with(change: Value) -> AimService {
    let object = json!({
        "apiVersion": GROUP, "kind": "AIMService",
        "metadata": { "name": "chat", "namespace": "research", "uid": UID, "generation": 3 },
        "spec": { "aimImageName": "tiny-lm", "templateRef": TEMPLATE, "replicas": 1 },
    });
    serde_json::from_value(with(object, json!({ "spec": change }))).unwrap()
}

pub(super) fn base() -> AimService {
    service_with(json!({}))
}

/// The base with these overrides and nothing else.
pub(super) fn overriding(overrides: Value) -> AimService {
    service_with(json!({ "overrides": overrides }))
}

fn own(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": GROUP, "kind": kind, "spec": spec,
        "metadata": { "name": name, "namespace": "research", "uid": format!("{kind}/{name}") } })
}

fn of_cluster(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": GROUP, "kind": kind, "spec": spec,
        "metadata": { "name": name, "uid": format!("{kind}/{name}") } })
}

pub(super) fn template(name: &str, spec: Value) -> Value {
    let spec = with(json!({ "aimImageName": "tiny-lm", "runtimeConfigName": "default" }), spec);
    own("AIMServiceTemplate", name, spec)
}

pub(super) fn cluster_template(name: &str, spec: Value) -> Value {
    let spec = with(json!({ "aimImageName": "tiny-lm", "runtimeConfigName": "default" }), spec);
    of_cluster("AIMClusterServiceTemplate", name, spec)
}

/// A template whose image has said how it serves.
pub(super) fn available(template: Value) -> Value {
    let status = json!({
        "status": "Available",
        "modelSources": [{ "name": "acme/tiny-lm-7b-fp8",
            "sourceUri": "hf://acme/tiny-lm-7b-fp8", "size": "13475459891" }],
        "profile": { "metadata": { "engine": "vllm", "gpu": "MI300X", "precision": "fp8",
            "gpu_count": 2, "metric": "latency" } },
    });
    with(template, json!({ "status": status }))
}

fn image_spec(template: &str) -> Value {
    json!({ "image": "registry.example.com/aim/tiny-lm:1.4.0", "defaultServiceTemplate": template,
        "resources": { "requests": { "cpu": "4", "memory": "16Gi" },
            "limits": { "memory": "24Gi" } } })
}

pub(super) fn image(template: &str) -> Value {
    own("AIMImage", "tiny-lm", image_spec(template))
}

pub(super) fn cluster_image(template: &str) -> Value {
    of_cluster("AIMClusterImage", "tiny-lm", image_spec(template))
}

pub(super) fn config(name: &str, spec: Value) -> Value {
    own("AIMRuntimeConfig", name, spec)
}

pub(super) fn cluster_config(name: &str, spec: Value) -> Value {
    of_cluster("AIMClusterRuntimeConfig", name, spec)
}

/// Image and template as the base needs them.
pub(super) fn catalogue() -> Vec<Value> {
    vec![cluster_image(""), available(cluster_template(TEMPLATE, json!({})))]
}

fn owned(owner: &str) -> Value {
    json!({ "name": "chat", "namespace": "research", "uid": "child", "generation": 2,
        "ownerReferences": [{ "apiVersion": GROUP, "kind": "AIMService", "name": "chat",
            "uid": owner, "controller": true, "blockOwnerDeletion": true }] })
}

/// The base's InferenceService with this status.
pub(super) fn inference_service(status: Value) -> Value {
    json!({ "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
        "metadata": owned(UID), "spec": { "predictor": {} }, "status": status })
}

pub(super) fn ready_inference_service() -> Value {
    inference_service(json!({ "conditions": [{ "type": "Ready", "status": "True" }] }))
}

/// The base's route, of which these parents have spoken.
pub(super) fn route(parents: Value) -> Value {
    json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": owned(UID), "spec": {}, "status": { "parents": parents } })
}

/// What the gateway `edge` says of the second version of a route.
pub(super) fn said(conditions: &[(&str, &str, &str, &str)]) -> Value {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(type_, status, reason, message)| {
            json!({ "type": type_, "status": status, "reason": reason, "message": message,
                "observedGeneration": 2, "lastTransitionTime": "2026-01-01T00:00:00Z" })
        })
        .collect();
    json!([{ "parentRef": { "name": "edge" }, "controllerName": "c", "conditions": conditions }])
}

pub(super) fn of_another(child: Value) -> Value {
    with(child, json!({ "metadata": owned("another") }))
}

/// A service with routing through the gateway `edge`.
pub(super) fn routed() -> AimService {
    service_with(json!({ "routing": { "enabled": true, "gatewayRef": { "name": "edge" } } }))
}

/// Objects, kinds that cannot be read, and kinds that the API does not know.
pub(super) struct Cluster {
    pub(super) documents: Documents,
    pub(super) failing: Vec<&'static str>,
    pub(super) unserved: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl Cluster {
    pub(super) fn of(objects: Vec<Value>) -> Self {
        let documents = Documents { objects, serves: Serves::Everything };
        let (failing, unserved) = (Vec::new(), Vec::new());
        Self { documents, failing, unserved, asked: Mutex::default() }
    }

    pub(super) fn failing(mut self, kind: &'static str) -> Self {
        self.failing.push(kind);
        self
    }

    pub(super) fn without(mut self, kind: &'static str) -> Self {
        self.unserved.push(kind);
        self
    }

    /// What was asked for, as `Kind name`, or `Kind *` for all of a kind.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn note(&self, kind: &Kind, name: &str) -> Result<(), Error> {
        self.asked.lock().unwrap().push(format!("{kind} {name}"));
        match self.failing.contains(&kind.kind.as_ref()) {
            true => Err(Error::infrastructure("Timeout", format!("{kind} gives no answer"))),
            false => Ok(()),
        }
    }
}

impl Reader for Cluster {
    fn get<'a>(
        &'a self,
        kind: &'a Kind,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, Error>> {
        Box::pin(async move {
            self.note(kind, &key.name)?;
            self.documents.get(kind, key).await
        })
    }

    fn list<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        Box::pin(async move {
            self.note(kind, "*")?;
            self.documents.list(kind, namespace, selector).await
        })
    }

    fn list_now<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        self.list(kind, namespace, selector)
    }

    fn log<'a>(&'a self, key: &'a LogKey) -> BoxFuture<'a, Result<String, Error>> {
        self.documents.log(key)
    }

    fn output<'a>(&'a self, key: &'a LogKey) -> BoxFuture<'a, Result<Vec<u8>, Error>> {
        self.documents.output(key)
    }

    fn serves(&self, kind: &Kind) -> bool {
        !self.unserved.contains(&kind.kind.as_ref())
    }
}

/// All that comes of one pass, had it not written anything.
pub(super) struct Seen {
    pub(super) plan: Plan,
    /// Whether the plan would be carried out.
    pub(super) applies: bool,
    pub(super) retries: bool,
    /// The domain's own fields.
    pub(super) status: Map<String, Value>,
    /// As `Type=Status Reason "message"`, in order.
    pub(super) conditions: Vec<String>,
    verdict: ConditionSet,
}

impl Seen {
    pub(super) fn state(&self) -> &str {
        self.status["status"].as_str().unwrap()
    }

    /// The conditions of these types.
    pub(super) fn told(&self, types: &[&str]) -> Vec<&str> {
        let of = |line: &&str| types.iter().any(|type_| line.starts_with(&format!("{type_}=")));
        self.conditions.iter().map(String::as_str).filter(of).collect()
    }

    pub(super) fn template(&self) -> Value {
        self.status["resolvedTemplate"].clone()
    }

    /// The service with these conditions in its status.
    pub(super) fn stored(&self, mut service: AimService) -> AimService {
        let conditions = self.verdict.commit(&[], 3, Timestamp::UNIX_EPOCH);
        service.status = Some(ServiceStatus { conditions, ..Default::default() });
        service
    }
}

pub(super) fn see(service: &AimService, objects: Vec<Value>) -> Seen {
    see_in(service, &Cluster::of(objects))
}

pub(super) fn see_in(service: &AimService, cluster: &Cluster) -> Seen {
    see_after(service, cluster, &[])
}

/// After writes have failed.
pub(super) fn see_after(service: &AimService, cluster: &Cluster, failures: &[Failure]) -> Seen {
    let domain = ServiceDomain::default();
    let looked = block_on(look(&domain, cluster, service, Timestamp::UNIX_EPOCH));
    let assessment = Assessment {
        components: &looked.health.components,
        failures,
        extra: &looked.health.conditions,
        stored: service.status.as_ref().map_or(&[], |status| &status.conditions),
        stored_state: None,
        generation: 3,
        now: Timestamp::UNIX_EPOCH,
    };
    let applies = decide_manual(&looked.health.components).apply;
    let verdict = evaluate_manual(looked.health.manual.clone().unwrap(), &assessment);
    let ready = verdict.conditions.get("Ready").unwrap();
    let overall = Overall {
        state: verdict.state,
        ready: ready.status == Status::True,
        message: ready.message.clone(),
    };
    let told = |condition: &ConditionUpdate| {
        let ConditionUpdate { type_, status, reason, message, .. } = condition;
        format!("{type_}={status} {reason} \"{message}\"")
    };
    Seen {
        conditions: verdict.conditions.iter().map(told).collect(),
        status: domain.status(service, &looked.observed, &overall),
        retries: matches!(verdict.retry, Retry::Backoff(_)),
        plan: looked.plan,
        verdict: verdict.conditions,
        applies,
    }
}

/// The objects of a plan as `Kind name`, in the order in which they are written.
pub(super) fn written(plan: &Plan) -> Vec<String> {
    let tiers = plan.tiers().concat();
    tiers.into_iter().map(|desired| format!("{} {}", desired.kind, desired.key.name)).collect()
}

pub(super) fn deleted(plan: &Plan) -> Vec<String> {
    plan.delete.iter().map(|gone| format!("{} {}", gone.kind, gone.key.name)).collect()
}

/// The object of this kind in a plan.
pub(super) fn body<'a>(plan: &'a Plan, kind: &str) -> &'a Value {
    let found = plan.apply.iter().find(|desired| desired.kind.kind == kind);
    &found.unwrap_or_else(|| panic!("no {kind} in {:?}", written(plan))).body
}

/// The objects of a plan as they would be in the cluster.
pub(super) fn made(plan: &Plan) -> Vec<Value> {
    let made = plan.apply.iter().map(|desired| match desired.kind.kind.as_ref() {
        "AIMServiceTemplate" => with(desired.body.clone(), json!({ "metadata": { "uid": "t" } })),
        _ => with(desired.body.clone(), json!({ "metadata": owned(UID) })),
    });
    made.collect()
}
