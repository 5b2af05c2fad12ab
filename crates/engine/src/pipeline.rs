//! One pass over one object: fetch → compose → plan → decide → apply → status → report.
//!
//! After a pass has written something it looks again, so that status is never computed from objects
//! it has itself outdated.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Client, Resource,
    api::{Patch, PatchParams},
};
use serde_json::{Map, Value, json};
use tracing::{Instrument, debug_span};

use crate::{
    apply::{Applied, Applier, Parent},
    asked::{Asked, Asking},
    cache::Cache,
    compare::{difference, own_part, without_strays},
    conditions::{ConditionSet, ConditionUpdate, Observability, Status, types},
    domain::{Domain, Health, Identity, Overall},
    error::{Error, chain},
    fetch::{Noting, Reader},
    kind::{Kind, ObjectKey},
    labels::{self, ControllerLabels},
    lease::Clock,
    looked::Looked,
    metrics::Outcome,
    names,
    object::Object,
    plan::Plan,
    queue::Again,
    reader::{self, ClusterReader},
    report::Reporter,
    state::{self, Assessment, Failure, Phase, Retry, State, Verdict},
};

/// Writes may uncover the next change (a deleted autoscaler frees a field); more rounds than this
/// mean that something writes against us, which is better left to the queue.
const ROUNDS: usize = 3;
const UNSETTLED: Duration = Duration::from_secs(1);
/// A plan that wants to look again later than this does not hold up a slow retry.
const SLOW: Duration = Duration::from_secs(30);

pub struct Pipeline<D: Domain> {
    pub domain: D,
    pub kind: Kind,
    pub identity: Identity,
    pub client: Client,
    pub cache: Arc<Cache>,
    pub reader: ClusterReader,
    pub applier: Applier,
    pub reporter: Reporter,
    pub clock: Clock,
    pub(crate) asked: Asked,
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    pub again: Again,
    pub outcome: Outcome,
}

impl Pass {
    pub(crate) const IDLE: Self = Self { again: Again::OnEvent, outcome: Outcome::Success };
    pub(crate) const RETRY: Self = Self { again: Again::Backoff, outcome: Outcome::Retry };
}

/// What one look at the cluster gives.
pub struct Look<O> {
    pub observed: O,
    pub plan: Plan,
    pub health: Health,
    pub(crate) looked: Looked,
}

/// The pure middle: the same for the reconciler, `windlass render` and the tests.
pub async fn look<D: Domain>(
    domain: &D,
    reader: &dyn Reader,
    object: &D::Object,
    now: Timestamp,
) -> Look<D::Observed> {
    let noting = Noting { reader, notes: Looked::default() };
    let fetched = domain.fetch(&noting, object).instrument(debug_span!("fetch")).await;
    let observed = domain.compose(object, fetched, now);
    let mut plan = domain.plan(object, &observed);
    let health = domain.health(object, &observed);
    let parent_labels = object.meta().labels.clone().unwrap_or_default();
    let rules = domain.label_rules(&observed);
    let identity = domain.identity();
    let ours = ControllerLabels {
        managed_by: identity.managed_by.to_owned(),
        name_key: identity.name_label.to_owned(),
        owner_name: object.meta().name.clone().unwrap_or_default(),
    };
    for desired in &mut plan.apply {
        labels::propagate(&parent_labels, &mut desired.body, &rules);
        labels::add_controller_labels(&mut desired.body, &ours);
    }
    Look { observed, plan, health, looked: noting.notes }
}

impl<D: Domain> Pipeline<D> {
    pub async fn reconcile(&self, key: &ObjectKey) -> Pass {
        let stored = self.cache.seen(&self.kind, key);
        if let Some(pass) = self.release_left_behind(key, stored.as_deref()).await {
            return pass;
        }
        let Some(stored) = stored else {
            self.reporter.forget(key);
            self.asked.forget(key);
            self.applier.unchanging.forget(key);
            return Pass::IDLE;
        };
        if stored.deleting && self.identity.finalizer.is_none() {
            return Pass::IDLE;
        }
        let object: D::Object = match stored.parse() {
            Ok(object) => object,
            Err(error) => return self.unreadable(&stored, &error).await,
        };
        if stored.deleting {
            return self.finalize(&stored, &object).await;
        }
        if self.domain.needs_finalizer(&object)
            && let Some(pass) = self.ensure_finalizer(&stored, object.meta()).await
        {
            return pass;
        }
        if names::is_paused(object.meta().annotations.as_ref()) {
            return self.paused(&stored).await;
        }
        self.converge(&stored, &object).await
    }

    /// Children that an object left behind, or leaves now, must not wait for it. `Some` ends the pass.
    async fn release_left_behind(&self, key: &ObjectKey, stored: Option<&Object>) -> Option<Pass> {
        let alive = stored.filter(|stored| !stored.deleting).map(|stored| stored.uid.as_str());
        let kinds: Vec<Kind> = self.domain.watches().into_iter().map(|watch| watch.kind).collect();
        let releasing = self.applier.release_left_behind(&self.kind, key, alive, &kinds);
        let error = releasing.await.err()?;
        tracing::warn!(error = chain(&error), "cannot release what is left behind");
        Some(Pass::RETRY)
    }

    async fn converge(&self, stored: &Object, object: &D::Object) -> Pass {
        tracing::Span::current().record("generation", stored.generation);
        let now = (self.clock)();
        let parent = self.parent(stored);
        let notes = Asking::new(&self.asked, &stored.key);
        let reader = Noting { reader: &self.reader, notes };
        let mut look = look(&self.domain, &reader, object, now).await;
        let mut applied = Applied::default();
        let mut settled = false;
        let before = Before::of(stored);
        let is_new_wish = before.observed_generation != Some(stored.generation);
        for round in 0..ROUNDS {
            let decision = match &look.health.manual {
                Some(_) => state::decide_manual(&look.health.components),
                None => state::decide(&look.health.components),
            };
            if !decision.apply {
                settled = true;
                break;
            }
            let applying = self.applier.run(&parent, &look.plan, &look.looked);
            let mut outcome = applying.instrument(debug_span!("apply")).await;
            if is_new_wish && round == 0 {
                // What changes first was asked for; what must be changed again is drift.
                outcome.corrections.clear();
            }
            let skipped = outcome.skipped;
            settled = (outcome.written == 0 && !skipped) || !outcome.failures.is_empty();
            applied.add(outcome);
            if applied.written > 0 || skipped {
                let next = self::look(&self.domain, &reader, object, now).await;
                // What was just written need not be compared; if somebody changed it, an event tells.
                settled |= !skipped && next.plan == look.plan;
                look = next;
            }
            if settled {
                break;
            }
        }
        reader.notes.done();
        let verdict = judge(&look.health, &applied.failures, &before, stored.generation, now);
        let mut pass = conclude(&verdict, &applied, &look.plan);
        if !settled {
            pass.again = Again::After(UNSETTLED);
        }
        let status = self.status(object, &look.observed, &verdict, &before, stored.generation, now);
        let wanted = Value::Object(status);
        let writing = self.write_status(stored, &wanted);
        match writing.instrument(debug_span!("status")).await {
            Ok(Written::AsRead) => {}
            Ok(Written::Changed) => pass.again = Again::After(Duration::ZERO),
            Err(kube::Error::Api(status)) if status.code == 404 => return Pass::IDLE,
            Err(error) => {
                tracing::warn!(error = chain(&error), "status update failed");
                return Pass::RETRY;
            }
        }
        let reference = self.reference(stored);
        self.reporter.conditions(&reference, &before.conditions, &verdict.conditions, now).await;
        self.reporter.corrections(&reference, &applied.corrections).await;
        if is_new_wish {
            self.reporter.notices(&reference, &look.health.notices).await;
        }
        self.reporter.notices(&reference, &look.health.news).await;
        if let Err(error) = self.drop_strays(stored, &wanted).await {
            tracing::warn!(error = chain(&error), "cannot drop what a predecessor reported");
            return Pass::RETRY;
        }
        if applied.failures.is_empty() && self.is_needlessly_finalized(object, &look.observed) {
            return self.drop_finalizer(stored).await;
        }
        pass
    }

    fn status(
        &self,
        object: &D::Object,
        observed: &D::Observed,
        verdict: &Verdict,
        before: &Before,
        generation: i64,
        now: Timestamp,
    ) -> Map<String, Value> {
        let ready = verdict.conditions.get(types::READY);
        let overall = Overall {
            state: verdict.state,
            ready: ready.is_some_and(|condition| condition.status == Status::True),
            message: ready.map(|condition| condition.message.clone()).unwrap_or_default(),
        };
        let mut status = self.domain.status(object, observed, &overall);
        let conditions = verdict.conditions.commit(&before.conditions, generation, now);
        self.insert_state(&mut status, verdict.state);
        status.insert("observedGeneration".to_owned(), generation.into());
        status.insert("conditions".to_owned(), json!(conditions));
        status
    }

    fn insert_state(&self, status: &mut Map<String, Value>, state: State) {
        if self.identity.state_word {
            status.insert("status".to_owned(), state.as_str().into());
        }
    }

    /// Fields that a predecessor wrote stay when an apply leaves them out, and would go on telling
    /// what is no longer true.
    async fn drop_strays(&self, stored: &Object, wanted: &Value) -> Result<(), kube::Error> {
        let live = self.cache.seen(&self.kind, &stored.key);
        let live = live.as_deref().unwrap_or(stored).value();
        let strays = without_strays(&live, self.identity.predecessors, "status", wanted);
        let Some(strays) = strays else { return Ok(()) };
        let patch = json!({ "metadata": { "uid": stored.uid }, "status": strays });
        let params = PatchParams {
            field_manager: Some(self.identity.controller.into()),
            ..PatchParams::default()
        };
        let api = reader::api(&self.client, &self.kind, stored.key.namespace.as_deref());
        let now = api.patch_status(&stored.key.name, &params, &Patch::Merge(&patch)).await?;
        self.cache.put(&self.kind, Arc::new(Object::from(now)));
        Ok(())
    }

    /// Only if it differs, and without a version: nobody else writes these fields.
    async fn write_status(&self, stored: &Object, status: &Value) -> Result<Written, kube::Error> {
        let body = json!({
            "apiVersion": self.kind.api_version(),
            "kind": self.kind.kind,
            "metadata": { "name": stored.key.name, "uid": stored.uid },
            "status": status,
        });
        // The newest known version: an earlier round of this pass may have written already.
        let live = self.cache.seen(&self.kind, &stored.key);
        let live = live.as_deref().unwrap_or(stored);
        let unchanging = &self.applier.unchanging;
        if difference(&body, &live.value(), self.identity.controller, "status").is_none()
            || unchanging.knows(&stored.key, &self.kind, live, &body)
        {
            return Ok(Written::AsRead);
        }
        let api = reader::api(&self.client, &self.kind, stored.key.namespace.as_deref());
        let params = PatchParams::apply(self.identity.controller).force();
        let written = api.patch_status(&stored.key.name, &params, &Patch::Apply(&body)).await?;
        let written = Arc::new(Object::from(written));
        if written.resource_version == live.resource_version {
            // An older definition drops what it does not know.
            unchanging.remember(&stored.key, &self.kind, &written, &body);
        }
        self.cache.put_own(&self.kind, written.clone());
        // The answer holds what others wrote meanwhile, and the cache takes it for known.
        Ok(if is_same_wish(&written, stored) { Written::AsRead } else { Written::Changed })
    }

    /// Touches nothing but the condition that tells why nothing happens.
    async fn paused(&self, stored: &Object) -> Pass {
        let before = Before::own_part(stored, self.identity.controller);
        let mut conditions = ConditionSet::from_stored(&before.conditions);
        conditions.set(
            ConditionUpdate::new(
                types::RECONCILIATION_PAUSED,
                Status::True,
                "PausedByAnnotation",
                "An annotation pauses reconciliation; the other conditions are of the time before",
            )
            .with(Observability::silent()),
        );
        tracing::debug!("paused");
        let generation = before.observed_generation.unwrap_or(stored.generation);
        let conditions = conditions.commit(&before.conditions, generation, (self.clock)());
        let mut status = before.status;
        status.insert("conditions".to_owned(), json!(conditions));
        self.write_blocked(stored, status).await
    }

    /// The object does not fit our type: only possible where the CRD's schema was loosened.
    async fn unreadable(&self, stored: &Object, error: &crate::object::Unreadable) -> Pass {
        let error = Error::invalid_spec("InvalidSpec", chain(error));
        self.tell_failures(stored, &[Failure { phase: Phase::Apply, error }]).await
    }

    /// Says what stands in the way, and nothing of the domain's own: that may no longer be true.
    pub(crate) async fn tell_failures(&self, stored: &Object, failures: &[Failure]) -> Pass {
        let before = Before::own_part(stored, self.identity.controller);
        let now = (self.clock)();
        let verdict = judge(&Health::default(), failures, &before, stored.generation, now);
        let conditions = verdict.conditions.commit(&before.conditions, stored.generation, now);
        let mut status = Map::new();
        self.insert_state(&mut status, verdict.state);
        status.insert("observedGeneration".to_owned(), stored.generation.into());
        status.insert("conditions".to_owned(), json!(conditions));
        let pass = self.write_blocked(stored, status).await;
        let reference = self.reference(stored);
        self.reporter.conditions(&reference, &before.conditions, &verdict.conditions, now).await;
        pass
    }

    async fn write_blocked(&self, stored: &Object, status: Map<String, Value>) -> Pass {
        match self.write_status(stored, &Value::Object(status)).await {
            Ok(Written::AsRead) => Pass { again: Again::OnEvent, outcome: Outcome::Blocked },
            Ok(Written::Changed) => {
                Pass { again: Again::After(Duration::ZERO), outcome: Outcome::Blocked }
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Pass::IDLE,
            Err(error) => {
                tracing::warn!(error = chain(&error), "status update failed");
                Pass::RETRY
            }
        }
    }

    pub(crate) fn parent(&self, stored: &Object) -> Parent {
        Parent {
            kind: self.kind.clone(),
            key: stored.key.clone(),
            uid: stored.uid.clone(),
            label: labels::owner_label(&stored.key.name),
        }
    }

    pub(crate) fn reference(&self, stored: &Object) -> k8s_openapi::api::core::v1::ObjectReference {
        k8s_openapi::api::core::v1::ObjectReference {
            api_version: Some(self.kind.api_version()),
            kind: Some(self.kind.kind.to_string()),
            name: Some(stored.key.name.clone()),
            namespace: stored.key.namespace.clone(),
            uid: Some(stored.uid.clone()),
            ..Default::default()
        }
    }
}

/// What a status write has shown of the object itself.
enum Written {
    AsRead,
    /// Somebody changed the object since it was read, and no event will tell.
    Changed,
}

fn is_same_wish(now: &Object, read: &Object) -> bool {
    let (a, b) = (now.value(), read.value());
    let same = |field: &str| a["metadata"][field] == b["metadata"][field];
    now.generation == read.generation
        && now.deleting == read.deleting
        && now.labels == read.labels
        && same("annotations")
        && same("finalizers")
}

/// The status as it was stored before the pass.
struct Before {
    status: Map<String, Value>,
    conditions: Vec<Condition>,
    state: Option<State>,
    observed_generation: Option<i64>,
}

impl Before {
    fn of(stored: &Object) -> Self {
        Self::read(stored.value())
    }

    /// Without what others have written there, for passes that write again what they find.
    fn own_part(stored: &Object, manager: &str) -> Self {
        Self::read(own_part(&stored.value(), manager, "status"))
    }

    fn read(mut object: Value) -> Self {
        let status = match object.get_mut("status").map(Value::take) {
            Some(Value::Object(status)) => status,
            _ => Map::new(),
        };
        let stored = status.get("conditions").and_then(Value::as_array);
        let parse = |value: &Value| serde_json::from_value(value.clone()).ok();
        Self {
            conditions: stored.into_iter().flatten().filter_map(parse).collect(),
            state: status.get("status").and_then(Value::as_str).and_then(|s| s.parse().ok()),
            observed_generation: status.get("observedGeneration").and_then(Value::as_i64),
            status,
        }
    }
}

fn judge(
    health: &Health,
    failures: &[Failure],
    before: &Before,
    generation: i64,
    now: Timestamp,
) -> Verdict {
    let assessment = Assessment {
        components: &health.components,
        failures,
        extra: &health.conditions,
        stored: &before.conditions,
        stored_state: before.state,
        generation,
        now,
    };
    let mut verdict = match &health.manual {
        Some(manual) => state::evaluate_manual(manual.clone(), &assessment),
        None => state::evaluate(&assessment),
    };
    if health.manual.is_none() {
        // A condition that nobody reports any more is no longer ours to keep.
        let reported = |type_: &str| {
            types::PARENT.contains(&type_)
                || health.conditions.iter().any(|update| update.type_ == type_)
                || health.components.iter().any(|c| c.component.condition_type() == type_)
        };
        verdict.conditions.retain(|condition| reported(&condition.type_));
    }
    verdict
}

fn conclude(verdict: &Verdict, applied: &Applied, plan: &Plan) -> Pass {
    let soon = plan.requeue_after.into_iter().chain(verdict.requeue_after).min();
    // What stands in the way of a write need not be watched (a foreign object, a quota, a webhook).
    let slow = matches!(verdict.retry, Retry::Slow) || !applied.failures.is_empty();
    if let Retry::Backoff(error) = &verdict.retry {
        tracing::warn!(error = chain(error), "pass failed");
        let again = soon.map_or(Again::Backoff, Again::BackoffWithin);
        return Pass { again, outcome: Outcome::Retry };
    }
    let again = match soon {
        Some(delay) if !slow || delay < SLOW => Again::After(delay),
        _ if slow => Again::Slowly,
        _ => Again::OnEvent,
    };
    let blocked = slow || verdict.state.is_error();
    Pass { again, outcome: if blocked { Outcome::Blocked } else { Outcome::Success } }
}

#[cfg(test)]
mod tests;
