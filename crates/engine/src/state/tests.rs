mod manual;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::*;
use crate::conditions::{
    ConditionUpdate, EventMode, EventType, LogMode, Observability, Status, find, types,
};
use crate::health::{Blocks, ComponentHealth, Dependency};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn ago(seconds: i64) -> Timestamp {
    NOW - SignedDuration::from_secs(seconds)
}

fn stored(type_: &str, status: &str, reason: &str, since: Timestamp) -> Condition {
    Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        message: String::new(),
        observed_generation: Some(1),
        last_transition_time: Time(since),
    }
}

fn model() -> ComponentHealth {
    ComponentHealth::new("Model")
}

fn model_with(error: Error) -> ComponentHealth {
    model().failed_with(vec![error])
}

fn network_timeout() -> Error {
    Error::infrastructure("NetworkTimeout", "Network timeout")
}

fn apply_failure(error: Error) -> Failure {
    Failure { phase: Phase::Apply, error }
}

/// A pass over an object about which nothing is known yet.
fn first_pass(components: &[ComponentHealth]) -> Assessment<'_> {
    Assessment {
        components,
        failures: &[],
        extra: &[],
        stored: &[],
        stored_state: None,
        generation: 2,
        now: NOW,
    }
}

/// Status and reason of a condition.
fn shown<'a>(verdict: &'a Verdict, type_: &str) -> Option<(Status, &'a str)> {
    verdict.conditions.get(type_).map(|c| (c.status, c.reason.as_str()))
}

fn is_recurring_warning(verdict: &Verdict, type_: &str) -> bool {
    let how = &verdict.conditions.get(type_).unwrap().observability;
    how.events == EventMode::Always
        && how.event_type == EventType::Warning
        && how.logs == LogMode::Always
}

fn healthy_for_an_hour() -> [Condition; 2] {
    [
        stored("ModelReady", "True", "Ready", ago(3600)),
        stored("Ready", "True", "AllComponentsReady", ago(3600)),
    ]
}

#[test]
fn g01_a_ready_component_makes_the_object_ready() {
    let components = [model().ready("Ready", "")];
    let verdict = evaluate(&first_pass(&components));
    assert_eq!(shown(&verdict, "ModelReady"), Some((Status::True, "Ready")));
    assert_eq!(shown(&verdict, "Ready"), Some((Status::True, "AllComponentsReady")));
    assert_eq!(verdict.state, State::Ready);
    assert_eq!(verdict.conditions.iter().count(), 2);
    assert!(matches!(verdict.retry, Retry::None));
    let decision = decide(&components);
    assert!(decision.apply && matches!(decision.retry, Retry::None));
}

#[test]
fn g02_the_first_infrastructure_error_blocks_apply_and_backs_off() {
    let components = [model_with(network_timeout())];
    let verdict = evaluate(&first_pass(&components));
    assert_eq!(shown(&verdict, "ModelReady"), Some((Status::False, "NetworkTimeout")));
    let reachable = shown(&verdict, types::DEPENDENCIES_REACHABLE);
    assert_eq!(reachable, Some((Status::False, "InfrastructureError")));
    assert_eq!(verdict.state, State::Degraded);
    assert!(verdict.conditions.iter().all(|c| is_recurring_warning(&verdict, &c.type_)));
    let decision = decide(&components);
    assert!(!decision.apply && matches!(decision.retry, Retry::Backoff(_)));
}

#[test]
fn g03_within_grace_a_ready_object_stays_ready() {
    let components = [model_with(network_timeout())];
    let stored = healthy_for_an_hour();
    let verdict = evaluate(&Assessment {
        stored: &stored,
        stored_state: Some(State::Ready),
        ..first_pass(&components)
    });
    assert_eq!(shown(&verdict, "ModelReady"), Some((Status::True, "NetworkTimeout")));
    assert_eq!(shown(&verdict, "Ready"), Some((Status::True, "AllComponentsReady")));
    assert_eq!(verdict.state, State::Ready);
    assert!(verdict.conditions.any_false(&[types::DEPENDENCIES_REACHABLE]));
    assert!(matches!(verdict.retry, Retry::Backoff(e) if e.causes.len() == 1));
}

#[test]
fn g04_after_grace_the_component_and_the_object_degrade() {
    let components = [model_with(network_timeout())];
    let mut stored = healthy_for_an_hour().to_vec();
    stored.push(self::stored(types::DEPENDENCIES_REACHABLE, "False", "X", ago(11)));
    let verdict = evaluate(&Assessment {
        stored: &stored,
        stored_state: Some(State::Ready),
        ..first_pass(&components)
    });
    assert_eq!(shown(&verdict, "ModelReady"), Some((Status::False, "NetworkTimeout")));
    assert_eq!(verdict.state, State::Degraded);
    assert!(matches!(verdict.retry, Retry::Backoff(_)));
    assert_eq!(verdict.requeue_after, None);
}

#[test]
fn g05_a_recovery_is_announced() {
    let components = [model().ready("Ready", "")];
    let stored = [stored(types::DEPENDENCIES_REACHABLE, "False", "InfrastructureError", ago(5))];
    let verdict = evaluate(&Assessment { stored: &stored, ..first_pass(&components) });
    let reachable = shown(&verdict, types::DEPENDENCIES_REACHABLE);
    assert_eq!(reachable, Some((Status::True, "Reachable")));
    assert!(verdict.conditions.all_true(&["ModelReady", "Ready"]));
    assert_eq!(verdict.state, State::Ready);
}

#[test]
fn g06_auth_and_config_recover_at_info_level() {
    let components = [model().ready("Ready", "")];
    for (type_, reason) in
        [(types::AUTH_VALID, "AuthenticationValid"), (types::CONFIG_VALID, "ConfigurationValid")]
    {
        let stored = [stored(type_, "False", "Old", ago(60))];
        let verdict = evaluate(&Assessment { stored: &stored, ..first_pass(&components) });
        assert_eq!(shown(&verdict, type_), Some((Status::True, reason)));
        let how = &verdict.conditions.get(type_).unwrap().observability;
        assert_eq!(*how, Observability::info());
        assert_eq!(verdict.state, State::Ready);
    }
}

#[test]
fn g07_auth_error_blocks_apply_and_retries_slowly() {
    let components = [model_with(Error::auth("Forbidden", "no"))];
    let verdict = evaluate(&first_pass(&components));
    assert_eq!(shown(&verdict, types::AUTH_VALID), Some((Status::False, "AuthError")));
    assert!(is_recurring_warning(&verdict, types::AUTH_VALID));
    assert_eq!(shown(&verdict, "Ready"), Some((Status::False, "AuthError")));
    assert_eq!(verdict.state, State::Degraded);
    let decision = decide(&components);
    assert!(!decision.apply && matches!(decision.retry, Retry::Slow));
}

#[test]
fn g08_infrastructure_decides_the_retry_and_auth_the_reason() {
    let components = [
        model_with(Error::auth("Forbidden", "no")),
        ComponentHealth::new("Cache").failed_with(vec![network_timeout()]),
    ];
    let verdict = evaluate(&first_pass(&components));
    assert_eq!(shown(&verdict, "Ready"), Some((Status::False, "AuthError")));
    assert!(matches!(verdict.retry, Retry::Backoff(_)));
    let decision = decide(&components);
    assert!(!decision.apply && matches!(decision.retry, Retry::Backoff(_)));
}

#[test]
fn g09_a_missing_reference_blocks_apply_and_retries_slowly() {
    let components = [model_with(Error::missing_upstream("SecretNotFound", "no secret"))];
    let verdict = evaluate(&first_pass(&components));
    let config = shown(&verdict, types::CONFIG_VALID);
    assert_eq!(config, Some((Status::False, "ReferenceNotFound")));
    assert_eq!(shown(&verdict, "ModelReady"), Some((Status::False, "SecretNotFound")));
    assert_eq!(shown(&verdict, "Ready"), Some((Status::False, "ReferenceNotFound")));
    assert_eq!(verdict.state, State::Degraded);
    let decision = decide(&components);
    assert!(!decision.apply && matches!(decision.retry, Retry::Slow));
}

#[test]
fn g10_a_missing_child_is_applied_and_waited_for() {
    let components = [model_with(Error::missing_downstream("ResourceNotReady", "soon"))];
    let decision = decide(&components);
    assert!(decision.apply && matches!(decision.retry, Retry::None));
    let verdict = evaluate(&first_pass(&components));
    assert_eq!(verdict.state, State::Progressing);
    assert_eq!(shown(&verdict, "ModelReady"), Some((Status::False, "ResourceNotReady")));
}

#[test]
fn g11_g12_g13_waiting_upstream_is_pending_and_downstream_progressing() {
    use Dependency::{Downstream, Unspecified, Upstream};
    use State::{Pending, Progressing, Starting};
    for (given, want) in [
        (&[(Progressing, Upstream)][..], Pending),
        (&[(Progressing, Downstream)], Progressing),
        (&[(Progressing, Unspecified)], Progressing),
        (&[(Progressing, Upstream), (Progressing, Downstream)], Pending),
        (&[(Progressing, Downstream), (Progressing, Upstream)], Pending),
        (&[(Pending, Downstream)], Pending),
        (&[(Starting, Downstream)], Starting),
    ] {
        let components: Vec<_> = given
            .iter()
            .zip(["A", "B"])
            .map(|(&(state, dependency), name)| {
                ComponentHealth::new(name).with_state(state, "PodsPending", "").depends(dependency)
            })
            .collect();
        let verdict = evaluate(&first_pass(&components));
        assert_eq!(verdict.state, want, "{given:?}");
        assert_eq!(shown(&verdict, "AReady"), Some((Status::False, "PodsPending")), "{given:?}");
        assert_eq!(shown(&verdict, "Ready"), Some((Status::False, "Progressing")), "{given:?}");
    }
}

#[test]
fn g14_a_component_in_an_error_state_is_named_in_ready() {
    for state in [State::Failed, State::Degraded, State::NotAvailable] {
        let components = [model().with_state(state, "Broken", "it broke")];
        let verdict = evaluate(&first_pass(&components));
        assert_eq!(verdict.state, state);
        assert_eq!(shown(&verdict, "Ready"), Some((Status::False, "Broken")));
        let ready = verdict.conditions.get("Ready").unwrap();
        assert_eq!(ready.message, "Component Model is not ready: it broke");
        assert!(is_recurring_warning(&verdict, "Ready"));
        assert!(is_recurring_warning(&verdict, "ModelReady"));
        assert!(decide(&components).apply);
    }
}

#[test]
fn g15_a_failed_write_is_an_infrastructure_error_and_delete_wins() {
    let components = [model().ready("Ready", "")];
    let delete = Failure { phase: Phase::Delete, error: network_timeout() };
    for (failures, want) in [
        (vec![apply_failure(network_timeout())], "Failed to apply resources: NetworkTimeout"),
        (
            vec![apply_failure(network_timeout()), delete],
            "Failed to delete resources: NetworkTimeout",
        ),
    ] {
        let verdict = evaluate(&Assessment { failures: &failures, ..first_pass(&components) });
        let reachable = verdict.conditions.get(types::DEPENDENCIES_REACHABLE).unwrap();
        assert_eq!(reachable.status, Status::False);
        assert!(reachable.message.starts_with(want), "{}", reachable.message);
        assert!(matches!(verdict.retry, Retry::Backoff(e) if e.causes.len() == failures.len()));
    }
}

#[test]
fn g18_states_derived_from_errors_are_never_failed() {
    let infra = network_timeout;
    let waits = || Error::missing_downstream("A", "");
    for (errors, want) in [
        (vec![infra(), Error::invalid_spec("A", "")], State::Degraded),
        (vec![waits(), Error::auth("A", "")], State::Degraded),
        (vec![waits(), infra()], State::Degraded),
        (vec![Error::new(Category::Unknown, "UnknownError", "odd")], State::Degraded),
        (vec![Error::missing_upstream("A", "")], State::Degraded),
        (vec![Error::resource_exhaustion("A", "")], State::Degraded),
        (vec![waits(), waits()], State::Progressing),
        (vec![], State::Ready),
    ] {
        assert_eq!(derive_state(&errors), want, "{errors:?}");
    }
}

#[test]
fn w01_a_refused_write_changes_ready_and_state() {
    let components = [model().ready("Ready", "")];
    for (error, type_, reason, slow) in [
        (Error::invalid_spec("InvalidSpec", "no"), types::CONFIG_VALID, "InvalidSpec", false),
        (Error::auth("Forbidden", "no"), types::AUTH_VALID, "AuthError", true),
        (
            Error::missing_upstream("NamespaceTerminating", "no"),
            types::CONFIG_VALID,
            "ReferenceNotFound",
            true,
        ),
    ] {
        let failures = [apply_failure(error)];
        let verdict = evaluate(&Assessment { failures: &failures, ..first_pass(&components) });
        assert_eq!(shown(&verdict, type_), Some((Status::False, reason)));
        assert_eq!(shown(&verdict, "Ready"), Some((Status::False, reason)));
        let message = &verdict.conditions.get("Ready").unwrap().message;
        assert!(message.starts_with("Failed to apply resources: "), "{message}");
        assert_eq!(verdict.state, State::Degraded);
        assert_eq!(matches!(verdict.retry, Retry::Slow), slow);
    }
}

#[test]
fn w01_an_unreachable_api_is_not_ready_once_grace_is_over() {
    let components = [model().ready("Ready", "")];
    let failures = [apply_failure(network_timeout())];
    for (since, ready, state) in [(5, true, State::Ready), (11, false, State::Degraded)] {
        let mut stored = healthy_for_an_hour().to_vec();
        stored.push(self::stored(types::DEPENDENCIES_REACHABLE, "False", "X", ago(since)));
        let verdict = evaluate(&Assessment {
            failures: &failures,
            stored: &stored,
            stored_state: Some(State::Ready),
            ..first_pass(&components)
        });
        assert_eq!(verdict.conditions.all_true(&["Ready"]), ready, "{since} s");
        assert_eq!(verdict.state, state, "{since} s");
    }
}

#[test]
fn w02_a_lasting_failure_moves_no_time_after_the_first_pass() {
    let components = [model().ready("Ready", "")];
    let failures = [apply_failure(network_timeout())];
    let first = Assessment { failures: &failures, ..first_pass(&components) };
    let stored = evaluate(&first).commit(&first);
    let second = Assessment {
        stored: &stored,
        stored_state: Some(State::Degraded),
        now: NOW + SignedDuration::from_secs(60),
        ..first
    };
    assert_eq!(evaluate(&second).commit(&second), stored);
}

#[test]
fn w03_an_empty_name_cannot_speak_for_the_object_and_duplicates_merge_into_the_worst() {
    let components = [ComponentHealth::new("").with_state(State::Degraded, "Odd", "")];
    let verdict = evaluate(&first_pass(&components));
    assert_eq!(shown(&verdict, "UnnamedReady"), Some((Status::False, "Odd")));

    let good = model().ready("Fine", "");
    let bad = model_with(Error::auth("Forbidden", "no"));
    for components in [[good.clone(), bad.clone()], [bad, good]] {
        let verdict = evaluate(&first_pass(&components));
        assert_eq!(shown(&verdict, "ModelReady"), Some((Status::False, "Forbidden")));
        assert_eq!(shown(&verdict, types::AUTH_VALID), Some((Status::False, "AuthError")));
    }
}

#[test]
fn w04_times_move_with_the_status_only_and_generations_are_set() {
    let stored = [
        stored("ModelReady", "False", "Waiting", ago(3600)),
        stored("Ready", "False", "Progressing", ago(3600)),
    ];
    let components = [model().progressing("StillWaiting", "")];
    let assessment = Assessment { stored: &stored, ..first_pass(&components) };
    let committed = evaluate(&assessment).commit(&assessment);
    let condition = find(&committed, "ModelReady").unwrap();
    assert_eq!(condition.reason, "StillWaiting");
    assert_eq!(condition.last_transition_time, Time(ago(3600)));
    assert!(committed.iter().all(|condition| condition.observed_generation == Some(2)));
}

#[test]
fn w05_conditions_of_components_no_longer_reported_are_dropped() {
    let stored = [
        stored("CacheReady", "False", "Waiting", ago(3600)),
        stored("ProbeReady", "False", "Waiting", ago(3600)),
        stored("Discovered", "False", "Waiting", ago(3600)),
    ];
    let components = [model().ready("Ready", "")];
    let extra = [ConditionUpdate::new("ProbeReady", Status::True, "Fine", "")];
    let verdict =
        evaluate(&Assessment { stored: &stored, extra: &extra, ..first_pass(&components) });
    assert_eq!(shown(&verdict, "CacheReady"), None);
    assert_eq!(shown(&verdict, "ProbeReady"), Some((Status::True, "Fine")));
    assert!(shown(&verdict, "Discovered").is_some());
    assert_eq!(verdict.state, State::Ready);
}

#[test]
fn w18_an_unknown_error_has_grace_like_any_infrastructure_error() {
    let components = [model_with(Error::new(Category::Unknown, "UnknownError", "odd"))];
    let stored = healthy_for_an_hour();
    let verdict = evaluate(&Assessment {
        stored: &stored,
        stored_state: Some(State::Ready),
        ..first_pass(&components)
    });
    assert_eq!(shown(&verdict, "ModelReady"), Some((Status::True, "UnknownError")));
    assert_eq!(verdict.state, State::Ready);
    assert!(!decide(&components).apply);
}

#[test]
fn w19_grace_keeps_the_previous_state_and_schedules_its_own_end() {
    let components = [model_with(network_timeout())];
    let stored = [
        stored("ModelReady", "False", "Waiting", ago(3600)),
        stored(types::DEPENDENCIES_REACHABLE, "False", "InfrastructureError", ago(4)),
    ];
    let assessment = Assessment {
        stored: &stored,
        stored_state: Some(State::Progressing),
        ..first_pass(&components)
    };
    let verdict = evaluate(&assessment);
    assert_eq!(verdict.state, State::Progressing);
    assert_eq!(shown(&verdict, "Ready"), Some((Status::False, "InfrastructureError")));
    assert_eq!(verdict.requeue_after, Some(Duration::from_secs(6)));

    // Something else that got worse is not hidden.
    let broken = ComponentHealth::new("Cache").with_state(State::Failed, "Lost", "");
    let components = [components[0].clone(), broken];
    let verdict = evaluate(&Assessment { components: &components, ..assessment });
    assert_eq!(verdict.state, State::Failed);
}

#[test]
fn w19_a_time_stored_by_a_clock_ahead_of_ours_gives_no_more_than_the_whole_grace() {
    let components = [model_with(network_timeout())];
    let stored = [stored(types::DEPENDENCIES_REACHABLE, "False", "X", ago(-3600))];
    let verdict = evaluate(&Assessment { stored: &stored, ..first_pass(&components) });
    assert_eq!(verdict.requeue_after, Some(Duration::from_secs(10)));
}

#[test]
fn w20_running_is_true_and_starting_surfaces() {
    for (state, status, overall) in [
        (State::Running, Status::True, State::Ready),
        (State::Starting, Status::False, State::Starting),
    ] {
        let components = [model().with_state(state, "Word", "")];
        let verdict = evaluate(&first_pass(&components));
        assert_eq!(shown(&verdict, "ModelReady"), Some((status, "Word")));
        assert_eq!(verdict.state, overall);
    }
}

#[test]
fn w21_only_errors_that_somebody_has_to_repair_elsewhere_are_retried_slowly() {
    for (error, slow) in [
        (Error::auth("A", ""), true),
        (Error::missing_upstream("A", ""), true),
        (Error::invalid_spec("A", ""), false),
        (Error::missing_downstream("A", ""), false),
        (Error::resource_exhaustion("A", ""), false),
    ] {
        let category = error.category;
        let decision = decide(&[model_with(error)]);
        assert_eq!(matches!(decision.retry, Retry::Slow), slow, "{category}");
    }
}

#[test]
fn errors_of_our_own_children_show_but_do_not_block_their_repair() {
    for error in [
        Error::auth("ImagePullAuthFailure", ""),
        Error::missing_upstream("ImageNotFound", ""),
        Error::invalid_spec("PodFailed", ""),
        network_timeout(),
    ] {
        let component = ComponentHealth { blocks: Blocks::Nothing, ..model_with(error) };
        assert!(decide(std::slice::from_ref(&component)).apply, "{component:?}");
        let components = [component];
        assert_eq!(evaluate(&first_pass(&components)).state, State::Degraded);
    }
}

#[test]
fn exhausted_resources_degrade_without_blocking_apply() {
    let components = [model_with(Error::resource_exhaustion("StorageFull", "disk full"))];
    assert!(decide(&components).apply);
    assert_eq!(evaluate(&first_pass(&components)).state, State::Degraded);
}

#[test]
fn the_domain_may_add_conditions_but_not_decide_ready() {
    let components = [model().ready("Ready", "")];
    let extra = [
        ConditionUpdate::new("Ready", Status::True, "IsaySo", ""),
        ConditionUpdate::new("ProbeReady", Status::False, "Waiting", ""),
    ];
    let verdict = evaluate(&Assessment { extra: &extra, ..first_pass(&components) });
    assert_eq!(shown(&verdict, "Ready"), Some((Status::False, "Progressing")));
    assert_eq!(verdict.state, State::Progressing);
}

#[test]
fn an_object_without_components_is_ready() {
    assert_eq!(evaluate(&first_pass(&[])).state, State::Ready);
}

#[test]
fn selectors_follow_the_rank_and_keep_the_first_of_equals() {
    let items = [("a", State::Ready), ("b", State::Degraded), ("c", State::Degraded)];
    assert_eq!(worst(items, |item| item.1).unwrap().0, "b");
    assert_eq!(best(items, |item| item.1).unwrap().0, "a");
    assert!(worst([], |state: &State| *state).is_none());
}

#[test]
fn states_read_and_print_as_plain_words_and_unknown_ones_rank_lowest() {
    for state in [
        State::Running,
        State::Ready,
        State::Progressing,
        State::Starting,
        State::Pending,
        State::Degraded,
        State::NotAvailable,
        State::Failed,
    ] {
        assert_eq!(state.as_str().parse::<State>(), Ok(state));
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
    assert_eq!("Sideways".parse::<State>().unwrap().rank(), 0);
}
