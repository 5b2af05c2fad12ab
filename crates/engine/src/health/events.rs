//! Events as evidence: which object they speak of, and which is the newest.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The event was seen last at the newest of its times; which of them are set depends on who wrote it.
pub(super) fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
    [
        series.map(|time| time.0),
        event.event_time.as_ref().map(|time| time.0),
        event.last_timestamp.as_ref().map(|time| time.0),
        event.first_timestamp.as_ref().map(|time| time.0),
        event.metadata.creation_timestamp.as_ref().map(|time| time.0),
    ]
    .into_iter()
    .flatten()
    .max()
}

/// Whether an event speaks of this very object and not of a namesake before it.
pub(super) fn is_about(event: &Event, kind: &str, object: &ObjectMeta) -> bool {
    let about = &event.involved_object;
    let agree = |left: &Option<String>, right: &Option<String>| match (left, right) {
        (Some(left), Some(right)) => left == right,
        _ => true,
    };
    about.kind.as_deref().is_none_or(|named| named == kind)
        && about.name.is_some()
        && about.name == object.name
        && agree(&about.namespace, &object.namespace)
        && agree(&about.uid, &object.uid)
}

/// The newest event whose reason is one of those given.
pub(super) fn newest<'a>(
    events: impl IntoIterator<Item = &'a Event>,
    reasons: &[&str],
) -> Option<&'a Event> {
    events
        .into_iter()
        .filter(|event| event.reason.as_deref().is_some_and(|reason| reasons.contains(&reason)))
        .max_by_key(|event| last_seen(event))
}
