//! Templates and clusters for tests.

use futures::executor::block_on;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use windlass_api::aim::template::{AimClusterServiceTemplate, AimServiceTemplate, TemplateKind};
use windlass_engine::conditions::Status;
use windlass_engine::domain::{Domain, Health, Overall};
use windlass_engine::error::Error;
use windlass_engine::events::EventNote;
use windlass_engine::fetch::{Documents, Fetched, Serves};
use windlass_engine::kind::TypedScope;
use windlass_engine::plan::{Plan, Strategy};

use super::compose::Observed;
use super::fetch::fetch;
use super::{Settings, TemplateDomain};

pub(super) const UID: &str = "template-uid";
pub(super) const IMAGE: &str = "registry.example.com/aim/tiny-lm:1.4.0";
pub(super) const JOB: &str = "discover-tiny-lm-latency-4b2c0414";

pub(super) const OUTPUT: &str = r#"[{"filename": "tiny-lm-mi300x-latency.yaml",
  "profile": {"model": "acme/tiny-lm-7b", "quantized_model": "acme/tiny-lm-7b-fp8",
    "metadata": {"engine": "vllm", "gpu": "MI300X", "precision": "fp8", "gpu_count": 2, "metric": "latency"},
    "engine_args": {"tensor-parallel-size": 2, "max-model-len": 8192},
    "env_vars": {"VLLM_USE_V1": "1"}},
  "models": [{"name": "acme/tiny-lm-7b-fp8", "source": "hf://acme/tiny-lm-7b-fp8", "size_gb": 12.55}]}]"#;

pub(super) fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

pub(super) fn later(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

fn metadata(namespace: Option<&str>) -> Value {
    json!({ "name": "tiny-lm-latency", "namespace": namespace, "uid": UID, "generation": 1,
        "creationTimestamp": "2026-01-01T10:00:00Z" })
}

/// A template with the fields of the given spec.
pub(super) fn template_with(spec: Value) -> AimServiceTemplate {
    let mut wanted = json!({ "aimImageName": "tiny-lm" });
    wanted.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let object = json!({ "apiVersion": "aim.silogen.ai/v1alpha1", "kind": "AIMServiceTemplate",
        "metadata": metadata(Some("research")), "spec": wanted });
    serde_json::from_value(object).unwrap()
}

pub(super) fn template() -> AimServiceTemplate {
    template_with(json!({}))
}

pub(super) fn cluster_template_with(spec: Value) -> AimClusterServiceTemplate {
    let mut wanted = json!({ "aimImageName": "tiny-lm" });
    wanted.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let object = json!({ "apiVersion": "aim.silogen.ai/v1alpha1",
        "kind": "AIMClusterServiceTemplate", "metadata": metadata(None), "spec": wanted });
    serde_json::from_value(object).unwrap()
}

pub(super) fn image_of(reference: &str) -> Value {
    json!({ "apiVersion": "aim.silogen.ai/v1alpha1", "kind": "AIMClusterImage",
        "metadata": { "name": "tiny-lm", "uid": "image-uid" },
        "spec": { "image": reference, "defaultServiceTemplate": "", "resources": {} } })
}

pub(super) fn image() -> Value {
    image_of(IMAGE)
}

pub(super) fn config(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "aim.silogen.ai/v1alpha1", "kind": "AIMRuntimeConfig",
        "metadata": { "name": name, "namespace": "research", "uid": "config-uid" }, "spec": spec })
}

/// A Job as a plan has it, in the cluster under this uid.
pub(super) fn made(plan: &Plan, uid: &str) -> Value {
    let mut job = plan.apply.iter().find(|d| d.kind.kind == "Job").unwrap().body.clone();
    job["metadata"]["uid"] = uid.into();
    job["metadata"]["creationTimestamp"] = "2026-01-01T11:59:00Z".into();
    job["status"] = json!({ "active": 1 });
    job["metadata"]["ownerReferences"] = json!([owner()]);
    job
}

/// The Job that this template makes.
pub(super) fn job_of(template: &AimServiceTemplate, uid: &str) -> Value {
    made(&look(template, &Cluster::of([image()])).plan, uid)
}

/// The Job with a condition, such as `Complete`.
pub(super) fn ended(mut job: Value, condition: &str) -> Value {
    job["status"] = json!({ "conditions": [{ "type": condition, "status": "True" }] });
    job
}

pub(super) fn pod(phase: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "discover-pod", "namespace": "research", "uid": "pod",
            "labels": { "job-name": JOB } },
        "status": { "phase": phase } })
}

/// A cluster, and what the pod has printed.
#[derive(Clone, Default)]
pub(super) struct Cluster {
    pub(super) objects: Vec<Value>,
    pub(super) output: Option<Result<Vec<u8>, Error>>,
    pub(super) without_kserve: bool,
    /// A kind that cannot be read by name.
    pub(super) unread: Option<&'static str>,
}

impl Cluster {
    pub(super) fn of(objects: impl Into<Vec<Value>>) -> Self {
        Self { objects: objects.into(), ..Self::default() }
    }

    pub(super) fn printing(mut self, output: &str) -> Self {
        self.output = Some(Ok(output.as_bytes().to_vec()));
        self
    }
}

impl Cluster {
    pub(super) fn find(&self, kind: &str) -> Option<&Value> {
        self.objects.iter().find(|object| object["kind"] == kind)
    }

    /// Ends the Job that is there, and its pod if it ends well.
    pub(super) fn end(&mut self, condition: &str) {
        let at = self.objects.iter().position(|object| object["kind"] == "Job").unwrap();
        let job = ended(self.objects.remove(at), condition);
        if condition == "Complete" {
            let mut pod = pod("Succeeded");
            pod["metadata"]["labels"]["job-name"] = job["metadata"]["name"].clone();
            self.objects.push(pod);
        }
        self.objects.push(job);
    }

    /// Whether anything had to be done.
    fn carry_out(&mut self, plan: &Plan, at: Timestamp) -> bool {
        let before = self.objects.clone();
        let is = |object: &Value, kind: &str, name: &str| {
            object["kind"] == kind && object["metadata"]["name"] == name
        };
        for gone in &plan.delete {
            self.objects.retain(|object| !is(object, &gone.kind.kind, &gone.key.name));
        }
        for wanted in &plan.apply {
            let (kind, name) = (&wanted.kind.kind, &wanted.key.name);
            let known = self.objects.iter().position(|object| is(object, kind, name));
            if known.is_some() && wanted.strategy == Strategy::CreateOnce {
                continue;
            }
            let mut object = wanted.body.clone();
            object["metadata"]["uid"] = format!("{kind}-{at}").into();
            object["metadata"]["creationTimestamp"] = at.to_string().into();
            object["metadata"]["ownerReferences"] = json!([owner()]);
            match known {
                Some(known) if self.objects[known]["spec"] == object["spec"] => {}
                Some(known) => self.objects[known] = object,
                None => self.objects.push(object),
            }
        }
        self.objects != before
    }
}

fn owner() -> Value {
    json!({ "apiVersion": "aim.silogen.ai/v1alpha1", "kind": "AIMServiceTemplate",
        "name": "tiny-lm-latency", "uid": UID, "controller": true })
}

/// A whole pass: what a look asks for is done, and then the same template is looked at again.
pub(super) fn pass(template: &AimServiceTemplate, cluster: &mut Cluster, at: Timestamp) -> Seen {
    let mut seen = look_at(template, cluster, at);
    for _ in 0..3 {
        if !cluster.carry_out(&seen.plan, at) {
            break;
        }
        seen = look_at(template, cluster, at);
    }
    seen
}

/// One look at a cluster.
pub(super) struct Seen {
    pub(super) plan: Plan,
    pub(super) health: Health,
    pub(super) status: Map<String, Value>,
}

pub(super) fn domain<K: TemplateKind>() -> TemplateDomain<K> {
    TemplateDomain::new(Settings::default())
}

pub(super) fn observe<K>(template: &K, cluster: &Cluster, at: Timestamp) -> Observed
where
    K: TemplateKind<Scope: TypedScope>,
{
    let serves = if cluster.without_kserve { Serves::Definitions } else { Serves::Everything };
    let documents = Documents { objects: cluster.objects.clone(), serves };
    let mut answers = block_on(fetch(&Settings::default(), &documents, template));
    if answers.output.is_some() {
        answers.output.clone_from(&cluster.output);
    }
    let error = || Error::infrastructure("Timeout", "no answer");
    match cluster.unread {
        Some("AIMImage") => answers.images.namespaced = Fetched::Failed(error()),
        Some("AIMClusterImage") => answers.images.cluster = Fetched::Failed(error()),
        Some("ServingRuntime") => answers.served = Fetched::Failed(error()),
        _ => {}
    }
    domain::<K>().compose(template, answers, at)
}

pub(super) fn look_at<K>(template: &K, cluster: &Cluster, at: Timestamp) -> Seen
where
    K: TemplateKind<Scope: TypedScope>,
{
    let observed = observe(template, cluster, at);
    let health = domain::<K>().health(template, &observed);
    let manual = health.manual.clone().unwrap();
    let overall = Overall { state: manual.state, ready: false, message: String::new() };
    let mut status = domain::<K>().status(template, &observed, &overall);
    let conditions = manual.conditions.commit(stored(template), 1, at);
    status.insert("conditions".to_owned(), json!(conditions));
    status.insert("observedGeneration".to_owned(), 1.into());
    Seen { plan: domain::<K>().plan(template, &observed), health, status }
}

fn stored<K: TemplateKind>(
    template: &K,
) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
    template.status().map_or(&[], |status| &status.conditions)
}

pub(super) fn look<K: TemplateKind<Scope: TypedScope>>(template: &K, cluster: &Cluster) -> Seen {
    look_at(template, cluster, now())
}

/// The template with the status of a look.
pub(super) fn after(template: &AimServiceTemplate, seen: &Seen) -> AimServiceTemplate {
    let status = serde_json::from_value(Value::Object(seen.status.clone())).unwrap();
    AimServiceTemplate { status: Some(status), ..template.clone() }
}

/// The same where the definition of the kind is one of before, which drops what it does not know.
pub(super) fn pruned(template: &AimServiceTemplate, seen: &Seen) -> AimServiceTemplate {
    let mut template = after(template, seen);
    template.status.as_mut().unwrap().discovery = None;
    template
}

/// A template whose image has answered.
pub(super) fn answered(template: &AimServiceTemplate) -> AimServiceTemplate {
    let first = look(template, &Cluster::of([image()]));
    let job = ended(made(&first.plan, "job"), "Complete");
    let cluster = Cluster::of([image(), job, pod("Succeeded")]).printing(OUTPUT);
    after(template, &look(template, &cluster))
}

pub(super) fn is_available(seen: &Seen) -> bool {
    let ready = seen.condition("Ready").unwrap();
    seen.phase() == "Available" && ready.2 == "Template is ready"
}

impl Seen {
    pub(super) fn phase(&self) -> &str {
        self.status["status"].as_str().unwrap()
    }

    /// `type=status reason "message"`, in their order.
    pub(super) fn conditions(&self) -> Vec<String> {
        let manual = self.health.manual.as_ref().unwrap();
        let one = |c: &windlass_engine::conditions::ConditionUpdate| {
            format!("{}={} {} {:?}", c.type_, c.status, c.reason, c.message)
        };
        manual.conditions.iter().map(one).collect()
    }

    pub(super) fn condition(&self, type_: &str) -> Option<(Status, String, String)> {
        let manual = self.health.manual.as_ref().unwrap();
        let found = manual.conditions.get(type_)?;
        Some((found.status, found.reason.clone(), found.message.clone()))
    }

    pub(super) fn events(&self) -> Vec<String> {
        let one = |note: &EventNote| format!("{:?} {}: {}", note.type_, note.reason, note.message);
        self.health.news.iter().map(one).collect()
    }

    pub(super) fn applied(&self) -> Vec<String> {
        let name = |d: &windlass_engine::plan::Desired| format!("{} {}", d.kind.kind, d.key.name);
        self.plan.apply.iter().map(name).collect()
    }

    pub(super) fn deleted(&self) -> Vec<String> {
        self.plan
            .delete
            .iter()
            .map(|gone| format!("{} {}", gone.kind.kind, gone.key.name))
            .collect()
    }

    pub(super) fn body(&self, kind: &str) -> &Value {
        &self.plan.apply.iter().find(|d| d.kind.kind == kind).unwrap().body
    }
}
