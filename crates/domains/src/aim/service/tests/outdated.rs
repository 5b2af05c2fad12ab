//! A derived template that is not as its service would have it by now.

use serde_json::{Value, json};
use windlass_api::aim::service::AimService;
use windlass_engine::plan::{Look, When};

use crate::aim::service::fixture::{
    Seen, TEMPLATE, available, cluster_image, deleted, made, see, service_with, template, with,
    written,
};

fn service(secret: &str) -> AimService {
    service_with(json!({ "overrides": { "precision": "fp8" },
        "imagePullSecrets": [{ "name": secret }] }))
}

/// Base, image, and the derived template that this service would make.
fn objects(made_for: &AimService) -> Vec<Value> {
    let around = vec![cluster_image(""), template(TEMPLATE, json!({}))];
    let derived = made(&see(made_for, around.clone()).plan);
    assert_eq!(derived.len(), 1);
    [around, derived].concat()
}

fn named(mut service: AimService, name: &str) -> Value {
    service.metadata.name = Some(name.to_owned());
    json!(service)
}

fn seen_after_mending(more: &[Value]) -> Seen {
    see(&service("right"), [objects(&service("wrong")), more.to_vec()].concat())
}

#[test]
fn a_service_that_is_mended_gets_a_new_derived_template() {
    let seen = seen_after_mending(&[named(service("right"), "chat")]);
    let removal = &seen.plan.delete[0];
    assert_eq!(removal.key.name, seen.template()["name"].as_str().unwrap());
    assert_eq!((removal.when, &removal.how), (When::BeforeApply, &Look::Known { uid: "t".into() }));
    assert_eq!(written(&seen.plan), [""; 0], "first it has to be gone");
    // The new one is as it should be, and stays.
    let seen = see(&service("right"), objects(&service("right")));
    assert_eq!(deleted(&seen.plan), [""; 0]);
}

#[test]
fn what_another_service_has_use_for_stays() {
    let none: [&str; 0] = [];
    assert_eq!(deleted(&seen_after_mending(&[named(service("wrong"), "b")]).plan), none);
    let derived = seen_after_mending(&[]).template()["name"].clone();
    let naming = json!({ "spec": { "overrides": null, "templateRef": derived } });
    let by_name = with(named(service("x"), "b"), naming);
    assert_eq!(deleted(&seen_after_mending(&[by_name]).plan), none);
    // One that was mended too has no more use for it than the first.
    assert_eq!(deleted(&seen_after_mending(&[named(service("right"), "b")]).plan).len(), 1);
    let other_base =
        with(named(service("wrong"), "b"), json!({ "spec": { "templateRef": "another" } }));
    assert_eq!(deleted(&seen_after_mending(&[other_base]).plan).len(), 1);
}

#[test]
fn what_has_an_answer_or_was_made_by_somebody_stays() {
    let change = |change: &dyn Fn(Value) -> Value| {
        let mut objects = objects(&service("wrong"));
        let derived = objects.pop().unwrap();
        objects.push(change(derived));
        see(&service("right"), objects)
    };
    assert_eq!(deleted(&change(&available).plan), [""; 0]);
    assert_eq!(written(&change(&available).plan), ["InferenceService chat"]);
    let unlabelled = |object: Value| with(object, json!({ "metadata": { "labels": null } }));
    assert_eq!(deleted(&change(&unlabelled).plan), [""; 0]);
    let going = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    assert_eq!(deleted(&change(&|object| with(object, going.clone())).plan), [""; 0]);
}
