//! The `Ready` condition and the overall state, which close every judgement.

use std::time::Duration;

use super::{Assessment, Findings, is_component, is_unreachable, level};
use crate::conditions::{
    ConditionSet, ConditionUpdate, Observability, Status, find, messages, reasons, types,
};
use crate::health::{ComponentHealth, Dependency};
use crate::names::COMPONENT_SUFFIX;
use crate::state::{State, worst};

/// One component condition and the state it stands for.
struct Standing<'a> {
    condition: &'a ConditionUpdate,
    state: State,
    /// Only what was known before: the component could not be read, and grace still runs.
    kept: bool,
}

/// Sets `Ready` and returns the overall state.
pub(super) fn conclude(
    conditions: &mut ConditionSet,
    components: &[ComponentHealth],
    findings: &Findings,
    assessment: &Assessment<'_>,
    grace: Option<Duration>,
) -> State {
    let standings = standings(conditions, components, assessment, grace.is_some());
    let was_ready = find(assessment.stored, types::READY)
        .is_some_and(|condition| Status::parse(&condition.status) == Status::True);
    let held_back = findings.write_unreachable && !(grace.is_some() && was_ready);
    let blocked = findings.auth_problem().or_else(|| findings.config_problem());

    let state = if blocked.is_some() {
        State::Degraded
    } else {
        overall(
            &standings,
            findings,
            assessment.stored_state.filter(|_| grace.is_some()),
            held_back,
        )
    };
    let ready = if let Some((reason, message)) = blocked {
        not_ready(reason, message, true)
    } else {
        ready_condition(&standings, findings, held_back)
    };
    conditions.set(ready);
    state
}

fn standings<'a>(
    conditions: &'a ConditionSet,
    components: &[ComponentHealth],
    assessment: &Assessment<'_>,
    in_grace: bool,
) -> Vec<Standing<'a>> {
    conditions
        .iter()
        .filter(|condition| is_component(&condition.type_))
        .map(|condition| {
            let component =
                components.iter().find(|c| c.component.condition_type() == condition.type_);
            let kept = in_grace
                && find(assessment.stored, &condition.type_).is_some()
                && component.is_some_and(is_unreachable);
            Standing { condition, state: standing_state(condition.status, component, kept), kept }
        })
        .collect()
}

fn standing_state(status: Status, component: Option<&ComponentHealth>, kept: bool) -> State {
    if status == Status::True {
        return State::Ready;
    }
    let waiting = match component.map(|component| component.dependency) {
        Some(Dependency::Upstream) => State::Pending,
        _ => State::Progressing,
    };
    match component.map(ComponentHealth::state) {
        Some(state) if !kept && (state.is_error() || is_specific(state)) => state,
        _ => waiting,
    }
}

/// Ways of waiting that say more than which direction the component lies in.
fn is_specific(state: State) -> bool {
    matches!(state, State::Pending | State::Starting)
}

fn overall(
    standings: &[Standing<'_>],
    findings: &Findings,
    kept_state: Option<State>,
    held_back: bool,
) -> State {
    if let Some(previous) = kept_state {
        let seen = standings.iter().filter(|standing| !standing.kept).map(|s| s.state);
        return worst(seen.chain([previous]), |state| *state).unwrap_or(previous);
    }
    let worst = worst(standings.iter().map(|s| s.state), |state| *state).unwrap_or(State::Ready);
    let unreachable = !findings.infrastructure.is_empty();
    if held_back || (unreachable && worst != State::Ready) { State::Degraded } else { worst }
}

fn ready_condition(
    standings: &[Standing<'_>],
    findings: &Findings,
    held_back: bool,
) -> ConditionUpdate {
    let all_ready = standings.iter().all(|standing| standing.state == State::Ready);
    if all_ready && !held_back {
        return ConditionUpdate::new(
            types::READY,
            Status::True,
            reasons::ALL_COMPONENTS_READY,
            messages::ALL_COMPONENTS_READY,
        )
        .with(Observability::info());
    }
    if let Some(Standing { condition, .. }) = standings.iter().find(|s| s.state.is_error()) {
        let message =
            format!("Component {} is not ready: {}", name_of(condition), condition.message);
        return not_ready(&condition.reason, &message, true);
    }
    if !findings.infrastructure.is_empty() {
        return not_ready(reasons::INFRASTRUCTURE_ERROR, messages::INFRASTRUCTURE_ERROR, true);
    }
    let message = match standings.iter().find(|standing| standing.state != State::Ready) {
        Some(Standing { condition, .. }) if !condition.message.is_empty() => {
            format!("{}: {}: {}", messages::PROGRESSING, name_of(condition), condition.message)
        }
        _ => messages::PROGRESSING.to_owned(),
    };
    not_ready(reasons::PROGRESSING, &message, false)
}

fn name_of(condition: &ConditionUpdate) -> &str {
    condition.type_.strip_suffix(COMPONENT_SUFFIX).unwrap_or(&condition.type_)
}

fn not_ready(reason: &str, message: &str, is_error: bool) -> ConditionUpdate {
    ConditionUpdate::new(types::READY, Status::False, reason, message).with(level(is_error))
}
