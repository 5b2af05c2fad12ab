use super::*;
use crate::conditions::ConditionSet;

fn manual(state: State, ready: bool) -> Manual {
    let mut conditions = ConditionSet::default();
    let ready = ConditionUpdate::new("Ready", Status::from(ready), "MyReason", "mine");
    conditions.set(ready);
    Manual { state, conditions, failures: FailureWords::default() }
}

#[test]
fn only_infrastructure_errors_matter_to_a_domain_that_writes_its_own_status() {
    for (error, apply) in [
        (Error::auth("A", ""), true),
        (Error::invalid_spec("A", ""), true),
        (Error::missing_upstream("A", ""), true),
        (network_timeout(), false),
    ] {
        let components = [model_with(error)];
        let decision = decide_manual(&components);
        assert_eq!(decision.apply, apply);
        assert_eq!(matches!(decision.retry, Retry::None), apply);
        let verdict = evaluate_manual(manual(State::Ready, true), &first_pass(&components));
        assert_eq!(verdict.state, State::Ready);
        assert_eq!(matches!(verdict.retry, Retry::None), apply);
        assert_eq!(verdict.conditions.iter().count(), 1);
    }
}

#[test]
fn w01_a_refused_write_shows_in_a_status_the_domain_wrote_itself() {
    let failures = [apply_failure(Error::invalid_spec("InvalidSpec", "no"))];
    let assessment = Assessment { failures: &failures, ..first_pass(&[]) };
    let verdict = evaluate_manual(manual(State::Ready, true), &assessment);
    assert_eq!(verdict.state, State::Degraded);
    assert_eq!(shown(&verdict, "Ready"), Some((Status::False, "InvalidSpec")));
    assert_eq!(shown(&verdict, types::CONFIG_VALID), Some((Status::False, "InvalidSpec")));
}

#[test]
fn an_unreachable_api_has_grace_there_too_and_its_recovery_is_seen() {
    let failures = [apply_failure(network_timeout())];
    let assessment = Assessment { failures: &failures, ..first_pass(&[]) };
    let verdict = evaluate_manual(manual(State::Ready, true), &assessment);
    assert_eq!(verdict.state, State::Ready);
    assert!(matches!(verdict.retry, Retry::Backoff(_)));
    assert!(verdict.conditions.any_false(&[types::DEPENDENCIES_REACHABLE]));

    let stored = verdict.commit(&assessment);
    let recovered = Manual {
        state: State::Ready,
        conditions: ConditionSet::from_stored(&stored),
        failures: FailureWords::default(),
    };
    let verdict = evaluate_manual(recovered, &first_pass(&[]));
    assert!(verdict.conditions.all_true(&[types::DEPENDENCIES_REACHABLE, "Ready"]));
}

#[test]
fn a_domain_may_have_failed_writes_told_on_ready_alone() {
    for (error, reason) in [
        (network_timeout(), "ReconcileError"),
        (Error::auth("Forbidden", "no"), "ReconcileError"),
        (Error::invalid_spec("NotOwned", "no"), "Conflict"),
        (Error::invalid_spec("FieldConflict", "no"), "InvalidSpec"),
    ] {
        let failures = [apply_failure(error)];
        let assessment = Assessment { failures: &failures, ..first_pass(&[]) };
        let words = FailureWords::OnReady { failed: "ReconcileError", in_the_way: "Conflict" };
        let judged = Manual { failures: words, ..manual(State::Progressing, false) };
        let verdict = evaluate_manual(judged, &assessment);
        assert_eq!(shown(&verdict, "Ready"), Some((Status::False, reason)));
        assert_eq!(verdict.conditions.iter().count(), 1);
        let message = &verdict.conditions.get("Ready").unwrap().message;
        assert!(message.starts_with("Failed to apply resources: "), "{message}");
    }
}

#[test]
fn a_domain_may_have_failed_writes_told_in_conditions_of_its_own() {
    const fn told(type_: &'static str, status: Status, message: &'static str) -> Told {
        Told { type_, status, reason: "Broken", message, in_place: false }
    }
    const TOLD: [Told; 2] =
        [told("Failure", Status::True, "Write: {}"), told("Ready", Status::False, "not ready")];
    const IN_PLACE: [Told; 2] = [TOLD[0], Told { in_place: true, ..TOLD[1] }];
    let failures = [apply_failure(Error::invalid_spec("InvalidSpec", "no"))];
    let assessment = Assessment { failures: &failures, ..first_pass(&[]) };
    let words = |state| FailureWords::Told { conditions: &TOLD, state, instead: false };
    for (worst, state) in [(Some(State::Failed), State::Failed), (None, State::Ready)] {
        let told = Manual { failures: words(worst), ..manual(State::Ready, true) };
        let verdict = evaluate_manual(told, &assessment);
        assert_eq!(verdict.state, state);
        assert_eq!(verdict.conditions.get("Failure").unwrap().message, "Write: no");
        assert_eq!(shown(&verdict, "Ready"), Some((Status::False, "Broken")));
        assert_eq!(verdict.conditions.iter().count(), 2);
    }
    let instead = FailureWords::Told { conditions: &TOLD, state: None, instead: true };
    let told = Manual { failures: instead, ..manual(State::Ready, true) };
    let types: Vec<String> =
        evaluate_manual(told, &assessment).conditions.iter().map(|c| c.type_.clone()).collect();
    assert_eq!(types, ["Failure", "Ready"], "in the order of the words");
    let beside = Manual { failures: words(None), ..manual(State::Ready, true) };
    let new: Vec<String> =
        evaluate_manual(beside, &assessment).conditions.iter().map(|c| c.type_.clone()).collect();
    assert_eq!(new, ["Failure", "Ready"], "what is not stored yet too");
    let kept = FailureWords::Told { conditions: &IN_PLACE, state: None, instead: false };
    let beside = Manual { failures: kept, ..manual(State::Ready, true) };
    let verdict = evaluate_manual(beside, &assessment);
    let order: Vec<String> = verdict.conditions.iter().map(|c| c.type_.clone()).collect();
    assert_eq!(order, ["Ready", "Failure"], "in its place");
    assert_eq!(shown(&verdict, "Ready"), Some((Status::False, "Broken")));
    let quiet = Manual { failures: words(Some(State::Failed)), ..manual(State::Ready, true) };
    assert_eq!(evaluate_manual(quiet, &first_pass(&[])).state, State::Ready);
}
