use jiff::SignedDuration;

use super::*;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn hour_ago() -> Timestamp {
    NOW - SignedDuration::from_hours(1)
}

fn stored(type_: &str, status: &str, reason: &str) -> Condition {
    Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        message: "old".into(),
        observed_generation: None,
        last_transition_time: Time(hour_ago()),
    }
}

fn set_of(updates: &[(&str, Status, &str, &str)]) -> ConditionSet {
    let mut set = ConditionSet::default();
    for (type_, status, reason, message) in updates {
        set.set(ConditionUpdate::new(*type_, *status, *reason, *message));
    }
    set
}

#[test]
fn g20_new_words_keep_the_time_and_a_new_status_moves_it() {
    let stored = [stored("Works", "True", "Success")];
    for (status, reason, since) in [
        (Status::True, "Success", hour_ago()),
        (Status::True, "OtherReason", hour_ago()),
        (Status::False, "Failed", NOW),
    ] {
        let mut set = ConditionSet::from_stored(&stored);
        set.set(ConditionUpdate::new("Works", status, reason, "new"));
        let committed = set.commit(&stored, 7, NOW);
        assert_eq!(committed[0].message, "new");
        assert_eq!(committed[0].last_transition_time, Time(since), "{status} {reason}");
        assert_eq!(committed[0].observed_generation, Some(7));
    }
}

#[test]
fn g20_only_new_types_and_changed_status_or_reason_are_transitions() {
    let old = [
        stored("Ready", "False", "NotReady"),
        stored("Available", "True", "Fine"),
        stored("Gone", "True", "Fine"),
    ];
    let new = set_of(&[
        ("Ready", Status::True, "Ready", ""),
        ("Available", Status::True, "Fine", "a new message"),
        ("New", Status::True, "Fine", ""),
    ]);
    let changed: Vec<_> = transitions(&old, &new).iter().map(|t| t.new.type_.as_str()).collect();
    assert_eq!(changed, ["Ready", "New"]);
}

#[test]
fn w02_going_there_and_back_within_a_pass_moves_nothing() {
    let stored = [stored("Works", "False", "Broken")];
    let mut set = ConditionSet::from_stored(&stored);
    set.mark_true("Works", "Fine", "", Observability::info());
    set.mark_false("Works", "Broken", "", Observability::error());
    assert_eq!(set.commit(&stored, 1, NOW)[0].last_transition_time, Time(hour_ago()));
    assert!(transitions(&stored, &set).is_empty());
}

#[test]
fn w16_reasons_the_api_server_would_refuse_become_unknown() {
    for (reason, want) in [
        ("Fine", "Fine"),
        ("A", "A"),
        ("Some_Reason,With:Marks1", "Some_Reason,With:Marks1"),
        ("", "Unknown"),
        ("two words", "Unknown"),
        ("1st", "Unknown"),
        ("_x", "Unknown"),
        ("Ends:", "Unknown"),
        ("naïve", "Unknown"),
        (&"a".repeat(1025), "Unknown"),
    ] {
        let set = set_of(&[("Works", Status::True, reason, "")]);
        assert_eq!(set.get("Works").unwrap().reason, want, "{reason:?}");
    }
}

#[test]
fn w16_messages_are_cut_between_characters() {
    let message = format!("x{}", "é".repeat(20_000));
    let set = set_of(&[("Works", Status::True, "Fine", &message)]);
    assert_eq!(set.get("Works").unwrap().message.len(), 32_767);
}

#[test]
fn stored_order_is_kept_and_new_types_follow() {
    let stored = [stored("B", "True", "Fine"), stored("A", "True", "Fine")];
    let mut set = ConditionSet::from_stored(&stored);
    set.mark_unknown("C", "Fine", "", Observability::info());
    set.mark_false("A", "Broken", "", Observability::info());
    let types: Vec<_> = set.iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(types, ["B", "A", "C"]);
    set.delete("B");
    set.delete("absent");
    assert!(set.get("B").is_none());
}

#[test]
fn absent_types_are_neither_true_nor_false() {
    let set = set_of(&[("T", Status::True, "A", ""), ("F", Status::False, "A", "")]);
    assert!(set.all_true(&[]) && set.all_true(&["T"]));
    assert!(!set.all_true(&["T", "absent"]) && !set.all_true(&["T", "F"]));
    assert!(set.any_true(&["absent", "T"]) && !set.any_true(&["absent", "F"]));
    assert!(set.any_false(&["absent", "F"]) && !set.any_false(&["absent", "T"]));
}

#[test]
fn options_change_what_they_name_and_compose_in_order() {
    use EventMode as E;
    use EventType::{Normal, Warning};
    use LogLevel::{Debug, Error, Info};
    use LogMode as L;
    let default = Observability::default;
    for (how, want) in [
        (default(), (E::OnTransition, Normal, L::OnTransition, Info)),
        (default().with_debug_log(), (E::OnTransition, Normal, L::OnTransition, Debug)),
        (default().with_warning_event(), (E::OnTransition, Warning, L::OnTransition, Info)),
        (default().with_recurring(), (E::Always, Normal, L::Always, Info)),
        (default().with_recurring_error_log(), (E::OnTransition, Normal, L::Always, Error)),
        (default().with_recurring_warning_event(), (E::Always, Warning, L::OnTransition, Info)),
        (Observability::info(), (E::OnTransition, Normal, L::OnTransition, Info)),
        (Observability::warning(), (E::OnTransition, Warning, L::OnTransition, Error)),
        (Observability::error(), (E::Always, Warning, L::Always, Error)),
        (default().with_critical_error(), (E::Always, Warning, L::Always, Error)),
        (Observability::silent(), (E::Never, Normal, L::Never, Info)),
        (Observability::silent().with_recurring(), (E::Never, Normal, L::Never, Info)),
        (Observability::error().as_silent(), (E::Never, Warning, L::Never, Error)),
        (Observability::silent().with_event_level(None), (E::Never, Normal, L::Never, Info)),
        (
            Observability::silent().with_event_level(Some(Warning)),
            (E::OnTransition, Warning, L::Never, Info),
        ),
    ] {
        assert_eq!((how.events, how.event_type, how.logs, how.log_level), want, "{how:?}");
    }
}
