//! From the health of the components to conditions, overall state and what to do next.
//!
//! [`decide`] says before anything is written whether to write; [`evaluate`] judges once, when the
//! failures of writing are known too.

mod findings;
mod ready;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::conditions::{
    ConditionSet, ConditionUpdate, Observability, Status, find, messages, reasons, types,
};
use crate::error::{Error, InfrastructureError, categorise_write};
use crate::health::{Blocks, ComponentHealth};
use crate::names::{COMPONENT_SUFFIX, INFRASTRUCTURE_GRACE};
use crate::state::State;
use findings::Findings;

/// Everything the judgement of one pass rests on.
#[derive(Clone, Copy, Debug)]
pub struct Assessment<'a> {
    pub components: &'a [ComponentHealth],
    /// What went wrong while writing.
    pub failures: &'a [Failure],
    /// Conditions that the domain adds; those ending in `Ready` count as components.
    pub extra: &'a [ConditionUpdate],
    pub stored: &'a [Condition],
    pub stored_state: Option<State>,
    pub generation: i64,
    pub now: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Apply,
    Delete,
}

/// A write that the API refused or did not answer.
#[derive(Clone, Debug)]
pub struct Failure {
    pub phase: Phase,
    pub error: Error,
}

impl Failure {
    pub fn new(phase: Phase, error: &kube::Error) -> Self {
        Self { phase, error: categorise_write(error) }
    }
}

/// Whether to write, and when to come back if nothing else happens.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Deletes are writes as well.
    pub apply: bool,
    pub retry: Retry,
}

#[derive(Clone, Debug)]
pub enum Retry {
    /// A change of something watched will wake us.
    None,
    /// Soon, then later and later.
    Backoff(InfrastructureError),
    /// Every few minutes: somebody has to act, and not everything they may touch is watched.
    Slow,
}

#[derive(Clone, Debug)]
pub struct Verdict {
    pub state: State,
    pub conditions: ConditionSet,
    pub retry: Retry,
    /// When the grace period ends and the judgement may change without any event.
    pub requeue_after: Option<Duration>,
}

impl Verdict {
    /// The conditions to store.
    pub fn commit(&self, assessment: &Assessment<'_>) -> Vec<Condition> {
        self.conditions.commit(assessment.stored, assessment.generation, assessment.now)
    }
}

/// A status that the domain wrote itself.
#[derive(Clone, Debug)]
pub struct Manual {
    pub state: State,
    pub conditions: ConditionSet,
    pub failures: FailureWords,
}

/// Where a domain that writes its own status tells of writes that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureWords {
    /// In the parent conditions, and on Ready once the grace period is over.
    #[default]
    ParentConditions,
    /// On Ready alone and at once, under these reasons; a spec that cannot work has its own.
    OnReady {
        failed: &'static str,
        /// An object of the wanted name is not ours.
        in_the_way: &'static str,
    },
    /// In these conditions and at once.
    Told {
        conditions: &'static [Told],
        state: Option<State>,
        /// Whether they stand instead of what else was to be told, or beside it.
        instead: bool,
    },
    /// Nowhere but in the log: what is reported stands, and only tidying up goes on.
    Log,
}

/// A condition that tells of a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub type_: &'static str,
    pub status: Status,
    pub reason: &'static str,
    /// `{}` stands for what went wrong.
    pub message: &'static str,
    /// Whether it keeps the place that it has in a pass without failure.
    pub in_place: bool,
}

/// Missing children and exhausted resources never hold back apply: applying is what repairs them.
pub fn decide(components: &[ComponentHealth]) -> Decision {
    let blocking = Findings::of(components.iter().filter(|c| c.blocks == Blocks::Apply), &[]);
    let apply = blocking.infrastructure.is_empty()
        && blocking.auth.is_none()
        && blocking.invalid_spec.is_none()
        && blocking.missing_upstream.is_none();
    Decision { apply, retry: Findings::of(components, &[]).retry() }
}

/// For domains that write their own status: only unreachable dependencies matter.
pub fn decide_manual(components: &[ComponentHealth]) -> Decision {
    let blocking = Findings::of(components.iter().filter(|c| c.blocks == Blocks::Apply), &[]);
    let all = Findings::of(components, &[]);
    Decision { apply: blocking.infrastructure.is_empty(), retry: all.backoff() }
}

pub fn evaluate(assessment: &Assessment<'_>) -> Verdict {
    let components = merge_duplicates(assessment.components);
    let findings = Findings::of(&components, assessment.failures);
    let grace = remaining_grace(&findings, assessment);
    let mut conditions = ConditionSet::from_stored(assessment.stored);
    drop_unreported(&mut conditions, &components, assessment.extra);
    set_reachable(&mut conditions, &findings);
    for component in &components {
        let condition = component_condition(component, &conditions, grace.is_some());
        conditions.set(condition);
    }
    set_auth_and_config(&mut conditions, &findings);
    for update in assessment.extra.iter().filter(|update| update.type_ != types::READY) {
        conditions.set(update.clone());
    }
    let state = ready::conclude(&mut conditions, &components, &findings, assessment, grace);
    Verdict { state, conditions, retry: findings.retry(), requeue_after: grace }
}

/// The domain's word stands, except that an object whose changes cannot be written is not well.
pub fn evaluate_manual(manual: Manual, assessment: &Assessment<'_>) -> Verdict {
    let Manual { mut state, mut conditions, failures } = manual;
    let writes = Findings::of([], assessment.failures);
    let grace = match failures {
        FailureWords::ParentConditions => remaining_grace(&writes, assessment),
        FailureWords::OnReady { .. } | FailureWords::Told { .. } | FailureWords::Log => None,
    };
    if failures == FailureWords::ParentConditions {
        set_reachable(&mut conditions, &writes);
        set_auth_and_config(&mut conditions, &writes);
    }
    for update in assessment.extra {
        conditions.set(update.clone());
    }
    if let FailureWords::Told { conditions: told, state: worst, instead } = failures {
        if let Some(failure) = assessment.failures.first() {
            if instead {
                conditions = ConditionSet::from_stored(assessment.stored);
            }
            // What is new comes in the order in which it is told, not in that of a pass without failure.
            let is_new = |type_: &str| find(assessment.stored, type_).is_none();
            conditions.retain(|known| {
                let is_told = |told: &Told| told.type_ == known.type_ && !told.in_place;
                !is_new(&known.type_) || !told.iter().any(is_told)
            });
            tell(&mut conditions, told, &failure.error);
            state = worst.unwrap_or(state);
        }
    } else if let Some((reason, message)) = writes.headline(failures)
        && failures != FailureWords::Log
        && grace.is_none()
        && !state.is_error()
    {
        state = State::Degraded;
        conditions.mark_false(types::READY, reason, message, Observability::error());
    }
    let retry = match Findings::of(assessment.components, assessment.failures).backoff() {
        Retry::None => writes.retry(),
        backoff => backoff,
    };
    Verdict { state, conditions, retry, requeue_after: grace }
}

fn tell(conditions: &mut ConditionSet, told: &[Told], error: &Error) {
    for Told { type_, status, reason, message, .. } in told {
        let message = message.replace("{}", &error.message);
        let update = ConditionUpdate::new(*type_, *status, *reason, message);
        // Whether its conditions make events is for the domain to say, and it says so by words alone.
        conditions.set(update.with(Observability::silent().with_error_log()));
    }
}

/// Time left in which an unreachable dependency does not yet change what was last known.
///
/// It starts when the dependency was first found unreachable, which may be this very pass.
fn remaining_grace(findings: &Findings, assessment: &Assessment<'_>) -> Option<Duration> {
    if findings.infrastructure.is_empty() {
        return None;
    }
    let since = find(assessment.stored, types::DEPENDENCIES_REACHABLE)
        .filter(|condition| Status::parse(&condition.status) == Status::False)
        .map_or(assessment.now, |condition| condition.last_transition_time.0);
    // Written by a clock ahead of ours: as good as now.
    let elapsed = Duration::try_from(assessment.now.duration_since(since)).unwrap_or_default();
    INFRASTRUCTURE_GRACE.checked_sub(elapsed).filter(|left| !left.is_zero())
}

/// Components are reported under one name each; of two under the same name the worse one speaks,
/// and the errors of both count.
fn merge_duplicates(components: &[ComponentHealth]) -> Vec<ComponentHealth> {
    let mut merged: Vec<ComponentHealth> = Vec::with_capacity(components.len());
    for component in components {
        let Some(known) = merged.iter_mut().find(|known| known.component == component.component)
        else {
            merged.push(component.clone());
            continue;
        };
        let errors = known.errors.iter().chain(&component.errors).cloned().collect();
        if component.state().rank() < known.state().rank() {
            *known = component.clone();
        }
        // The errors of the other one must not change what the worse one says of itself.
        known.state = Some(known.state());
        known.reason = Some(known.reason().to_owned());
        known.message = Some(known.message().to_owned());
        known.errors = errors;
    }
    merged
}

/// Component conditions outlive the pass that set them, but not the component.
fn drop_unreported(
    conditions: &mut ConditionSet,
    components: &[ComponentHealth],
    extra: &[ConditionUpdate],
) {
    conditions.retain(|condition| {
        !is_component(&condition.type_)
            || components.iter().any(|c| c.component.condition_type() == condition.type_)
            || extra.iter().any(|update| update.type_ == condition.type_)
    });
}

fn is_component(type_: &str) -> bool {
    type_.ends_with(COMPONENT_SUFFIX) && !types::PARENT.contains(&type_)
}

fn component_condition(
    component: &ComponentHealth,
    conditions: &ConditionSet,
    in_grace: bool,
) -> ConditionUpdate {
    let type_ = component.component.condition_type();
    let state = component.state();
    let (status, how) = match conditions.get(&type_) {
        Some(stored) if in_grace && is_unreachable(component) => {
            (stored.status, level(stored.status == Status::False))
        }
        _ => (Status::from(state.is_ready()), level(state.is_error())),
    };
    ConditionUpdate::new(type_, status, component.reason(), component.message()).with(how)
}

/// Could not be read. An error that was read off a child is knowledge, and no reason for grace.
fn is_unreachable(component: &ComponentHealth) -> bool {
    !component.state().is_ready()
        && component.blocks == Blocks::Apply
        && component.errors.iter().any(|error| error.category.is_infrastructure())
}

fn level(is_error: bool) -> Observability {
    if is_error { Observability::error() } else { Observability::info() }
}

/// Appears with the first failure and stays, so that a recovery can be seen.
fn set_reachable(conditions: &mut ConditionSet, findings: &Findings) {
    let message = (!findings.infrastructure.is_empty()).then_some(&findings.infrastructure_message);
    set_parent(
        conditions,
        types::DEPENDENCIES_REACHABLE,
        message.map(|message| (reasons::INFRASTRUCTURE_ERROR, message.as_str())),
        (reasons::REACHABLE, messages::REACHABLE),
    );
}

fn set_auth_and_config(conditions: &mut ConditionSet, findings: &Findings) {
    let good = (reasons::AUTHENTICATION_VALID, messages::AUTH_VALID);
    set_parent(conditions, types::AUTH_VALID, findings.auth_problem(), good);
    let good = (reasons::CONFIGURATION_VALID, messages::CONFIG_VALID);
    set_parent(conditions, types::CONFIG_VALID, findings.config_problem(), good);
}

fn set_parent(
    conditions: &mut ConditionSet,
    type_: &str,
    problem: Option<(&str, &str)>,
    good: (&str, &str),
) {
    if let Some((reason, message)) = problem {
        conditions.mark_false(type_, reason, message, Observability::error());
    } else if conditions.any_false(&[type_]) {
        conditions.mark_true(type_, good.0, good.1, Observability::info());
    }
}
