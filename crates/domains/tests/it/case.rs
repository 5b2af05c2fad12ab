//! One case: read, looked at, and written down.

use std::fs;
use std::path::Path;

use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use windlass_domains::inference_service::InferenceServiceDomain;
use windlass_domains::model_service::ModelServiceDomain;
use windlass_engine::conditions::{Status, find};
use windlass_engine::domain::{Domain, Health, Overall};
use windlass_engine::fetch::{Documents, Serves};
use windlass_engine::pipeline::{Look, look};
use windlass_engine::plan::{Plan, When};
use windlass_engine::state::{
    Assessment, Manual, Verdict, decide, decide_manual, evaluate, evaluate_manual,
};

pub(crate) struct Case {
    pub(crate) plan: Plan,
    health: Health,
    status: Value,
}

impl Case {
    /// The first document is the object, and its kind tells which domain it is for.
    pub(crate) fn load(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        match documents[0]["kind"].as_str() {
            Some("ZerfooInferenceService") => {
                Self::of(&InferenceServiceDomain::default(), documents)
            }
            Some("ModelService") => Self::of(&ModelServiceDomain::default(), documents),
            kind => panic!("{} begins with an object of kind {kind:?}", path.display()),
        }
    }

    fn of<D: Domain>(domain: &D, mut documents: Vec<Value>) -> Self {
        let stored = documents.remove(0);
        let object: D::Object = serde_json::from_value(stored.clone()).unwrap();
        let cluster = Documents { objects: documents, serves: Serves::Definitions };
        let now = "2026-05-01T12:00:00Z".parse().unwrap();
        // A cluster made of text never keeps one waiting.
        let look = look(domain, &cluster, &object, now).now_or_never().unwrap();
        let status = status(domain, &object, &stored, &look, now);
        Self { plan: look.plan, health: look.health, status }
    }

    /// What would be written, in order, and whether it would be written at all.
    pub(crate) fn plan_yaml(&self) -> String {
        let plan = &self.plan;
        let removals = |when| -> Vec<String> {
            plan.removals(when).map(|gone| format!("{} {}", gone.kind, gone.key)).collect()
        };
        let applied: Vec<&Value> =
            plan.tiers().concat().into_iter().map(|desired| &desired.body).collect();
        let decision = match &self.health.manual {
            Some(_) => decide_manual(&self.health.components),
            None => decide(&self.health.components),
        };
        yaml(&json!({
            "written": decision.apply,
            "deletedFirst": removals(When::BeforeApply),
            "applied": applied,
            "deletedAfterwards": removals(When::AfterApply),
            "lookAgainAfter": plan.requeue_after.map(|delay| format!("{}s", delay.as_secs())),
        }))
    }

    /// The status and the events that go with it.
    pub(crate) fn status_yaml(&self) -> String {
        let notices: Vec<_> = self.health.notices.iter().map(|notice| &notice.reason).collect();
        yaml(&json!({ "status": self.status, "notices": notices }))
    }
}

/// The status that a pass would store over the one in `stored`.
fn status<D: Domain>(
    domain: &D,
    object: &D::Object,
    stored: &Value,
    look: &Look<D::Observed>,
    now: Timestamp,
) -> Value {
    let before = &stored["status"];
    let conditions: Vec<Condition> =
        serde_json::from_value(before["conditions"].clone()).unwrap_or_default();
    let generation = stored["metadata"]["generation"].as_i64().unwrap_or_default();
    let verdict = verdict(
        &look.health,
        &Assessment {
            components: &look.health.components,
            failures: &[],
            extra: &look.health.conditions,
            stored: &conditions,
            stored_state: before["status"].as_str().and_then(|state| state.parse().ok()),
            generation,
            now,
        },
    );
    let conditions = verdict.conditions.commit(&conditions, generation, now);
    let ready = find(&conditions, "Ready").unwrap();
    let overall = Overall {
        state: verdict.state,
        ready: ready.status == Status::True.as_str(),
        message: ready.message.clone(),
    };
    let mut status = domain.status(object, &look.observed, &overall);
    status.insert("status".to_owned(), verdict.state.as_str().into());
    status.insert("conditions".to_owned(), json!(conditions));
    Value::Object(status)
}

fn verdict(health: &Health, assessment: &Assessment<'_>) -> Verdict {
    match health.manual.clone() {
        Some(manual) => {
            let manual = Manual { state: manual.state, conditions: manual.conditions };
            evaluate_manual(manual, assessment)
        }
        None => evaluate(assessment),
    }
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap()
}
