//! One case: read, looked at, and written down.

use std::fs;
use std::path::Path;

use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use windlass_api::aim::template::{AimClusterServiceTemplate, AimServiceTemplate};
use windlass_api::model::artifact::{Artifact, ModelArtifact};
use windlass_domains::aim::service::ServiceDomain;
use windlass_domains::aim::template::TemplateDomain;
use windlass_domains::artifact::{ArtifactDomain, Settings};
use windlass_domains::inference_service::InferenceServiceDomain;
use windlass_domains::model_service::ModelServiceDomain;
use windlass_engine::conditions::{Status, find};
use windlass_engine::domain::{Domain, Overall};
use windlass_engine::fetch::{Documents, Serves};
use windlass_engine::pipeline::{Look, look};
use windlass_engine::plan::{Plan, When};
use windlass_engine::state::{Assessment, decide, decide_manual, evaluate, evaluate_manual};

/// What follows from a case, as text.
pub(crate) struct Case {
    pub(crate) planned: Plan,
    pub(crate) plan: String,
    pub(crate) status: String,
}

impl Case {
    /// In a cluster that serves what the documents define.
    pub(crate) fn load(path: &Path) -> Self {
        Self::load_from(path, Serves::Definitions)
    }

    /// In a cluster that serves everything.
    pub(crate) fn load_example(path: &Path) -> Self {
        Self::load_from(path, Serves::Everything)
    }

    fn load_from(path: &Path, serves: Serves) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        if serves == Serves::Everything {
            // Examples leave it to whoever applies them.
            for object in &mut objects {
                object["metadata"]["namespace"] = "default".into();
            }
        }
        // What others refer to has nothing to ask for.
        let referred = |object: &Value| {
            let kind = object["kind"].as_str().unwrap();
            kind.starts_with("AIM") && (kind.ends_with("Image") || kind.ends_with("RuntimeConfig"))
        };
        let first = objects.iter().position(|object| !referred(object)).unwrap();
        let given = objects.remove(first);
        let cluster = Documents { objects, serves };
        match given["kind"].as_str().unwrap() {
            "ZerfooInferenceService" => {
                Self::of(&InferenceServiceDomain::default(), given, &cluster)
            }
            "ModelArtifact" => {
                let domain = ArtifactDomain::<ModelArtifact>::new(artifact_settings());
                Self::of(&domain, given, &cluster)
            }
            "Artifact" => {
                let domain = ArtifactDomain::<Artifact>::new(artifact_settings());
                Self::of(&domain, given, &cluster)
            }
            "ModelService" => Self::of(&ModelServiceDomain::default(), given, &cluster),
            "AIMService" => Self::of(&ServiceDomain { settings: aim() }, given, &cluster),
            "AIMServiceTemplate" => {
                Self::of(&TemplateDomain::<AimServiceTemplate>::new(aim()), given, &cluster)
            }
            "AIMClusterServiceTemplate" => {
                let domain = TemplateDomain::<AimClusterServiceTemplate>::new(aim());
                Self::of(&domain, given, &cluster)
            }
            kind => panic!("no domain of ours has the kind {kind}"),
        }
    }

    fn of<D: Domain>(domain: &D, given: Value, cluster: &Documents) -> Self {
        let object: D::Object = serde_json::from_value(given.clone()).unwrap();
        let now = "2026-05-01T12:00:00Z".parse().unwrap();
        // A cluster made of text never keeps one waiting.
        let look = look(domain, cluster, &object, now).now_or_never().unwrap();
        Self {
            plan: plan(&look),
            status: status(domain, &given, &object, &look, now),
            planned: look.plan,
        }
    }
}

fn aim() -> windlass_domains::aim::Settings {
    windlass_domains::aim::Settings::default()
}

fn artifact_settings() -> Settings {
    Settings { version: "test".to_owned(), ..Settings::default() }
}

/// What would be written, in order, and whether it would be written at all.
fn plan<O>(look: &Look<O>) -> String {
    let Look { plan, health, .. } = look;
    let removals = |when| -> Vec<String> {
        plan.removals(when).map(|gone| format!("{} {}", gone.kind, gone.key)).collect()
    };
    let applied: Vec<&Value> =
        plan.tiers().concat().into_iter().map(|desired| &desired.body).collect();
    let decision = match &health.manual {
        Some(_) => decide_manual(&health.components),
        None => decide(&health.components),
    };
    let mut said = json!({
        "written": decision.apply,
        "deletedFirst": removals(When::BeforeApply),
        "applied": applied,
        "deletedAfterwards": removals(When::AfterApply),
        "lookAgainAfter": plan.requeue_after.map(|delay| format!("{}s", delay.as_secs())),
    });
    let released = plan.release.iter().map(|held| format!("{} {}", held.kind, held.key));
    add_some(&mut said, "released", released.collect());
    yaml(&said)
}

/// The status and the events that go with it.
fn status<D: Domain>(
    domain: &D,
    given: &Value,
    object: &D::Object,
    look: &Look<D::Observed>,
    now: Timestamp,
) -> String {
    let Look { health, observed, .. } = look;
    let stored: Vec<Condition> = match &given["status"]["conditions"] {
        Value::Null => Vec::new(),
        conditions => serde_json::from_value(conditions.clone()).unwrap(),
    };
    let generation = given["metadata"]["generation"].as_i64().unwrap_or_default();
    let assessment = Assessment {
        components: &health.components,
        failures: &[],
        extra: &health.conditions,
        stored: &stored,
        stored_state: given["status"]["status"].as_str().and_then(|state| state.parse().ok()),
        generation,
        now,
    };
    let verdict = match &health.manual {
        Some(manual) => evaluate_manual(manual.clone(), &assessment),
        None => evaluate(&assessment),
    };
    let conditions = verdict.conditions.commit(&stored, generation, now);
    let ready = find(&conditions, "Ready").unwrap();
    let overall = Overall {
        state: verdict.state,
        ready: ready.status == Status::True.as_str(),
        message: ready.message.clone(),
    };
    let mut status = domain.status(object, observed, &overall);
    if domain.identity().state_word {
        status.insert("status".to_owned(), verdict.state.as_str().into());
    }
    status.insert("conditions".to_owned(), json!(conditions));
    let notices: Vec<_> = health.notices.iter().map(|notice| &notice.reason).collect();
    let mut said = json!({ "status": status, "notices": notices });
    let news = health.news.iter().map(|note| format!("{}: {}", note.reason, note.message));
    add_some(&mut said, "news", news.collect());
    yaml(&said)
}

/// Most cases have none, and need no line that says so.
fn add_some(said: &mut Value, key: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        said[key] = lines.into();
    }
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap()
}
