use super::*;
use crate::error::InfrastructureError;

fn object(change: Value) -> Object {
    let mut value = json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 1,
                      "labels": { "l": "v" }, "annotations": { "a": "v" }, "finalizers": ["f"] },
        "status": { "ready": false },
    });
    for (field, new) in change["metadata"].as_object().into_iter().flatten() {
        value["metadata"][field] = new.clone();
    }
    if let Some(status) = change.get("status") {
        value["status"] = status.clone();
    }
    Object::from_value(value).unwrap()
}

#[test]
fn a_change_that_comes_in_with_the_answer_to_our_own_write_is_noticed() {
    let read = object(json!({}));
    for (change, same) in [
        (json!({ "status": { "ready": true } }), true),
        (json!({ "metadata": { "resourceVersion": "2" } }), true),
        (json!({ "metadata": { "generation": 2 } }), false),
        (json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }), false),
        (json!({ "metadata": { "annotations": { "windlass.dev/paused": "true" } } }), false),
        (json!({ "metadata": { "labels": {} } }), false),
        (json!({ "metadata": { "finalizers": [] } }), false),
    ] {
        assert_eq!(is_same_wish(&object(change.clone()), &read), same, "{change}");
    }
}

fn verdict(state: State, retry: Retry, requeue_after: Option<Duration>) -> Verdict {
    Verdict { state, conditions: ConditionSet::default(), retry, requeue_after }
}

fn plan(requeue_after: Option<u64>) -> Plan {
    Plan { requeue_after: requeue_after.map(Duration::from_secs), ..Plan::default() }
}

#[test]
fn a_pass_ends_with_the_right_time_to_look_again() {
    let backoff = || Retry::Backoff(InfrastructureError::default());
    let seconds = Duration::from_secs;
    for (state, retry, grace, delay, again, outcome) in [
        (State::Ready, Retry::None, None, None, Again::OnEvent, Outcome::Success),
        (State::Ready, Retry::None, None, Some(5), Again::After(seconds(5)), Outcome::Success),
        // Nobody retries a wrong spec, but it is no success either.
        (State::Degraded, Retry::None, None, None, Again::OnEvent, Outcome::Blocked),
        (State::Degraded, Retry::Slow, None, None, Again::Slowly, Outcome::Blocked),
        (State::Degraded, Retry::Slow, None, Some(900), Again::Slowly, Outcome::Blocked),
        (State::Degraded, Retry::Slow, None, Some(5), Again::After(seconds(5)), Outcome::Blocked),
        (State::Degraded, backoff(), None, None, Again::Backoff, Outcome::Retry),
        // The end of the grace period is not slept through.
        (State::Ready, backoff(), Some(4), None, Again::BackoffWithin(seconds(4)), Outcome::Retry),
    ] {
        let verdict = verdict(state, retry, grace.map(seconds));
        let pass = conclude(&verdict, &Applied::default(), &plan(delay));
        assert_eq!(pass, Pass { again, outcome }, "{verdict:?}");
    }
}
