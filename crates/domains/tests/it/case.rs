//! One case: read, looked at, and written down.

use std::fs;
use std::path::Path;

use futures::FutureExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::serving::zerfoo_inference_service::ZerfooInferenceService;
use windlass_domains::inference_service::{InferenceServiceDomain, Observed};
use windlass_engine::conditions::{Status, find};
use windlass_engine::domain::{Domain, Overall};
use windlass_engine::fetch::{Documents, Serves};
use windlass_engine::pipeline::{Look, look};
use windlass_engine::plan::When;
use windlass_engine::state::{Assessment, decide, evaluate};

pub(crate) struct Case {
    object: ZerfooInferenceService,
    look: Look<Observed>,
    now: Timestamp,
}

impl Case {
    pub(crate) fn load(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let object: ZerfooInferenceService = serde_json::from_value(documents.remove(0)).unwrap();
        let cluster = Documents { objects: documents, serves: Serves::Definitions };
        let now = "2026-05-01T12:00:00Z".parse().unwrap();
        // A cluster made of text never keeps one waiting.
        let look = look(&InferenceServiceDomain::default(), &cluster, &object, now)
            .now_or_never()
            .unwrap();
        Self { object, look, now }
    }

    /// What would be written, in order, and whether it would be written at all.
    pub(crate) fn plan_yaml(&self) -> String {
        let plan = &self.look.plan;
        let removals = |when| -> Vec<String> {
            plan.removals(when).map(|gone| format!("{} {}", gone.kind, gone.key)).collect()
        };
        let applied: Vec<&Value> =
            plan.tiers().concat().into_iter().map(|desired| &desired.body).collect();
        yaml(&json!({
            "written": decide(&self.look.health.components).apply,
            "deletedFirst": removals(When::BeforeApply),
            "applied": applied,
            "deletedAfterwards": removals(When::AfterApply),
            "lookAgainAfter": plan.requeue_after.map(|delay| format!("{}s", delay.as_secs())),
        }))
    }

    /// The status and the events that go with it.
    pub(crate) fn status_yaml(&self) -> String {
        let domain = InferenceServiceDomain::default();
        let health = &self.look.health;
        let stored = self.object.status.clone().unwrap_or_default();
        let generation = self.object.metadata.generation.unwrap_or_default();
        let verdict = evaluate(&Assessment {
            components: &health.components,
            failures: &[],
            extra: &health.conditions,
            stored: &stored.conditions,
            stored_state: stored.status.and_then(|state| state.parse().ok()),
            generation,
            now: self.now,
        });
        let conditions = verdict.conditions.commit(&stored.conditions, generation, self.now);
        let ready = find(&conditions, "Ready").unwrap();
        let overall = Overall {
            state: verdict.state,
            ready: ready.status == Status::True.as_str(),
            message: ready.message.clone(),
        };
        let mut status = domain.status(&self.object, &self.look.observed, &overall);
        status.insert("status".to_owned(), verdict.state.as_str().into());
        status.insert("conditions".to_owned(), json!(conditions));
        let notices: Vec<_> = health.notices.iter().map(|notice| &notice.reason).collect();
        yaml(&json!({ "status": status, "notices": notices }))
    }
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap()
}
