use super::*;
use crate::conditions::EventType;

#[test]
fn each_status_shows_in_the_three_conditions() {
    type Set = fn(&mut ConditionSet, &str, &str) -> State;
    for (set, state, holds) in [
        (ready as Set, State::Ready, [true, false, false]),
        (progressing, State::Progressing, [false, true, false]),
        (degraded, State::Degraded, [false, false, true]),
        (failed, State::Failed, [false, false, true]),
        (not_available, State::NotAvailable, [false, false, false]),
    ] {
        let mut conditions = ConditionSet::default();
        assert_eq!(set(&mut conditions, "Why", "words"), state);
        let shown: Vec<bool> = conditions.iter().map(|c| c.status == Status::True).collect();
        assert_eq!(shown, holds, "{state}");
        assert!(conditions.iter().all(|c| c.reason == "Why" && c.message == "words"));
        let warns = conditions.iter().any(|c| c.observability.event_type == EventType::Warning);
        assert_eq!(warns, holds[2], "{state}");
    }
}
