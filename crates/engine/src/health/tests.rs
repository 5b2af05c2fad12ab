use super::*;
use crate::error::Category;

/// What an inspector found, in short: state, reason, and the category of its error.
pub(super) fn brief(inspection: Inspection) -> (State, String, Option<Category>) {
    let category = inspection.errors.first().map(|error| error.category);
    let health = inspection.into_component("X", Dependency::Downstream, Blocks::Nothing);
    (health.state(), health.reason().to_owned(), category)
}

pub(super) fn message(inspection: Inspection) -> String {
    inspection.into_component("X", Dependency::Downstream, Blocks::Nothing).message().to_owned()
}

/// A Kubernetes object as it would be read.
pub(super) fn object<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[test]
fn names_hold_letters_and_digits_and_are_never_empty() {
    for (text, want) in
        [("Model", "Model"), ("", "Unnamed"), ("my comp/onent", "mycomponent"), ("--", "Unnamed")]
    {
        assert_eq!(ComponentName::new(text).as_str(), want);
    }
    assert_eq!(ComponentName::new("Model").condition_type(), "ModelReady");
}

#[test]
fn what_is_said_wins_over_what_errors_tell() {
    let error = Error::auth("Forbidden", "no");
    let health = ComponentHealth::new("Model").failed_with(vec![error.clone()]);
    assert_eq!(
        (health.state(), health.reason(), health.message()),
        (State::Degraded, "Forbidden", "no")
    );
    let health = health.progressing("Waiting", "soon");
    assert_eq!(
        (health.state(), health.reason(), health.message()),
        (State::Progressing, "Waiting", "soon")
    );
    let health = ComponentHealth::new("Model");
    assert_eq!((health.state(), health.reason(), health.message()), (State::Ready, "Ready", ""));
}

#[test]
fn an_inspection_takes_its_place_among_the_components() {
    let health = Inspection::failed(Error::auth("Forbidden", "no")).into_component(
        "Model",
        Dependency::Upstream,
        Blocks::Nothing,
    );
    assert_eq!(health.component.as_str(), "Model");
    assert_eq!((health.dependency, health.blocks), (Dependency::Upstream, Blocks::Nothing));
    assert_eq!(health.errors.len(), 1);
}
