use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::conditions::Observability;

fn stored(type_: &str, status: &str, reason: &str) -> Condition {
    Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

fn update(type_: &str, status: Status, how: Observability) -> ConditionUpdate {
    ConditionUpdate::new(type_, status, "Reason", "words").with(how)
}

fn set_of(updates: impl IntoIterator<Item = ConditionUpdate>) -> ConditionSet {
    let mut set = ConditionSet::default();
    updates.into_iter().for_each(|update| set.set(update));
    set
}

fn subjects(notes: &[EventNote]) -> Vec<&str> {
    notes.iter().map(|note| note.action.as_str()).collect()
}

#[test]
fn w23_changes_come_in_condition_order_and_lasting_ones_only_when_due() {
    let old = [stored("Lasting", "False", "Reason"), stored("Quiet", "True", "Reason")];
    let set = set_of([
        update("Lasting", Status::False, Observability::error()),
        update("Zeta", Status::False, Observability::error()),
        update("Quiet", Status::True, Observability::info()),
        update("Alpha", Status::True, Observability::info()),
    ]);
    assert_eq!(subjects(&events_for(&old, &set, |_| false)), ["Zeta", "Alpha"]);
    assert_eq!(subjects(&events_for(&old, &set, |_| true)), ["Zeta", "Alpha", "Lasting"]);
    let lines = logs_for(&old, &set, |type_| type_ == "Lasting");
    let types: Vec<_> = lines.iter().map(|line| line.condition.as_str()).collect();
    assert_eq!(types, ["Zeta", "Alpha", "Lasting"]);
}

#[test]
fn a_changed_reason_is_told_and_silence_is_kept() {
    let old = [stored("A", "True", "Before"), stored("B", "True", "Before")];
    let set = set_of([
        update("A", Status::True, Observability::info()),
        update("B", Status::True, Observability::silent()),
    ]);
    assert_eq!(subjects(&events_for(&old, &set, |_| true)), ["A"]);
    assert_eq!(logs_for(&old, &set, |_| true).len(), 1);
}

#[test]
fn stored_conditions_that_nobody_set_are_quiet() {
    let old = [stored("A", "False", "Broken")];
    let set = ConditionSet::from_stored(&old);
    assert!(events_for(&old, &set, |_| true).is_empty());
    assert!(logs_for(&old, &set, |_| true).is_empty());
}

#[test]
fn text_is_the_override_then_the_message_then_made_up_from_the_type() {
    for (type_, status, message, instead, want) in [
        ("ModelReady", Status::True, "", None, "Model is ready: Reason"),
        ("ModelReady", Status::False, "", None, "Model is not ready: Reason"),
        ("ModelReady", Status::Unknown, "", None, "Model status unknown: Reason"),
        ("Ready", Status::True, "", None, "is ready: Reason"),
        ("ModelReady", Status::True, "said", None, "said"),
        ("ModelReady", Status::True, "said", Some("instead"), "instead"),
    ] {
        let how = Observability {
            event_message: instead.map(Into::into),
            log_message: instead.map(Into::into),
            ..Observability::default()
        };
        let set = set_of([ConditionUpdate::new(type_, status, "Reason", message).with(how)]);
        assert_eq!(events_for(&[], &set, |_| false)[0].message, want);
        assert_eq!(logs_for(&[], &set, |_| false)[0].message, want);
    }
}

#[test]
fn an_event_has_the_overriding_reason_and_its_type() {
    let how = Observability::warning().with_event_reason("Other");
    let set = set_of([update("ModelReady", Status::False, how)]);
    let want = EventNote {
        type_: EventType::Warning,
        reason: "Other".into(),
        message: "words".into(),
        action: "ModelReady".into(),
    };
    assert_eq!(events_for(&[], &set, |_| false), [want]);
}

#[test]
fn the_level_of_a_line_follows_the_event_unless_it_is_for_debugging() {
    for (how, want) in [
        (Observability::info(), LogLevel::Info),
        (Observability::error(), LogLevel::Error),
        (Observability::default().with_warning_event(), LogLevel::Error),
        (Observability::warning().with_debug_log(), LogLevel::Debug),
    ] {
        let set = set_of([update("A", Status::True, how)]);
        assert_eq!(logs_for(&[], &set, |_| false)[0].level, want);
    }
}

#[test]
fn w16_event_messages_fit_and_end_between_characters() {
    let long = "é".repeat(1000) + "x";
    let set = set_of([ConditionUpdate::new("A", Status::True, "Reason", format!("x{long}"))]);
    assert_eq!(events_for(&[], &set, |_| false)[0].message.len(), 1023);
}
