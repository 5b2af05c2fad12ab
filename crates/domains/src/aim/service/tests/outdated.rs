//! A derived template that is not as its service would have it by now.

use serde_json::{Value, json};
use windlass_api::aim::service::AimService;
use windlass_engine::plan::{Look, When};

use crate::aim::service::fixture::{
    Cluster, Seen, TEMPLATE, available, cluster_image, deleted, made, see, see_in, service_with,
    template, with, written,
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

/// What the template says of itself where nothing can come of it.
fn hopeless() -> [Value; 6] {
    let no_config =
        "Observation failed: failed to resolve AIMRuntimeConfig \"gold\": runtime config";
    [
        failed("JobFailed", "Discovery job failed"),
        failed("DiscoveryParseFailed", "Failed to parse discovery output: empty"),
        failed("Failed", no_config),
        failed("Failed", "Apply failed: Job is invalid"),
        json!({ "status": "Degraded" }),
        running("Discovery job is running: no such image"),
    ]
}

fn failed(reason: &str, message: &str) -> Value {
    json!({ "status": "Failed", "conditions": [{ "type": "Failure", "status": "True",
        "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z" }] })
}

fn running(message: &str) -> Value {
    json!({ "status": "Progressing", "conditions": [{ "type": "Progressing", "status": "True",
        "reason": "DiscoveryRunning", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z" }] })
}

/// The service is mended while the template that was made for it has this status.
fn seen_after_mending(status: &Value, more: &[Value]) -> Seen {
    see(&service("right"), after_mending(status, more))
}

fn after_mending(status: &Value, more: &[Value]) -> Vec<Value> {
    let mut objects = objects(&service("wrong"));
    let derived = objects.pop().unwrap();
    objects.push(with(derived, json!({ "status": status })));
    [objects, more.to_vec()].concat()
}

#[test]
fn a_service_that_is_mended_gets_a_new_derived_template() {
    for status in hopeless() {
        let seen = seen_after_mending(&status, &[named(service("right"), "chat")]);
        let removal = &seen.plan.delete[0];
        assert_eq!(removal.key.name, seen.template()["name"].as_str().unwrap());
        let known = Look::Known { uid: "t".into() };
        assert_eq!((removal.when, &removal.how), (When::BeforeApply, &known));
        assert_eq!(written(&seen.plan), [""; 0], "first it has to be gone");
    }
    // The new one is as it should be, and stays.
    let seen = see(&service("right"), objects(&service("right")));
    assert_eq!(deleted(&seen.plan), [""; 0]);
}

#[test]
fn w14_what_may_come_to_an_answer_stays() {
    for status in [
        json!({}),
        json!({ "status": "Pending" }),
        json!({ "status": "Progressing" }),
        running("Discovery job is running"),
        json!({ "status": "Failed" }),
        failed("Failed", "Observation failed: cannot list Job"),
        with(
            failed("Failed", "Apply failed: a quota is busy"),
            json!({ "discovery": { "startedJob": "job" } }),
        ),
        with(
            failed(
                "DiscoveryParseFailed",
                "Failed to parse discovery output: failed to get pod logs",
            ),
            json!({ "discovery": { "unread": true } }),
        ),
    ] {
        assert_eq!(deleted(&seen_after_mending(&status, &[]).plan), [""; 0], "{status}");
    }
}

/// As it is: by its name, or because it is what that one would make.
#[test]
fn what_another_service_has_use_for_stays() {
    for status in hopeless() {
        let deleted_beside = |other: Value| deleted(&seen_after_mending(&status, &[other]).plan);
        let unnamed = json!({ "spec": { "templateRef": null } });
        assert_eq!(deleted_beside(named(service("wrong"), "b")), [""; 0]);
        assert_eq!(deleted_beside(with(named(service("wrong"), "b"), unnamed)), [""; 0]);
        let derived = seen_after_mending(&status, &[]).template()["name"].clone();
        let naming = json!({ "spec": { "overrides": null, "templateRef": derived } });
        assert_eq!(deleted_beside(with(named(service("x"), "b"), naming)), [""; 0]);
        let resolved = json!({ "status": { "resolvedTemplate": { "name": derived } } });
        for spec in [json!({ "overrides": null }), json!({ "templateRef": "another" })] {
            let other = with(named(service("x"), "b"), json!({ "spec": spec }));
            assert_eq!(deleted_beside(with(other, resolved.clone())), [""; 0]);
        }
    }
}

/// Each was served by the template, and would have it otherwise by now.
#[test]
fn services_that_are_mended_together_do_not_wait_for_each_other() {
    let changes = [
        json!({}),
        json!({ "spec": { "templateRef": null } }),
        json!({ "spec": { "templateRef": null, "aimImageName": "tiny-lm-of-old" } }),
    ];
    for status in hopeless() {
        let derived = seen_after_mending(&status, &[]).template()["name"].clone();
        let resolved = json!({ "status": { "resolvedTemplate": { "name": derived } } });
        for (change, secret) in changes.iter().flat_map(|c| [(c, "right"), (c, "third")]) {
            let other = with(with(named(service(secret), "b"), resolved.clone()), change.clone());
            let seen = seen_after_mending(&status, &[named(service("right"), "chat"), other]);
            assert_eq!(deleted(&seen.plan).len(), 1, "{secret} {change}");
        }
    }
}

#[test]
fn services_follow_their_common_base_together() {
    let mut objects = objects(&service("right"));
    let derived = with(objects.pop().unwrap(), json!({ "status": hopeless()[0] }));
    let base = with(objects.pop().unwrap(), json!({ "spec": { "metric": "latency" } }));
    let others = [named(service("right"), "chat"), named(service("right"), "b")];
    let seen = see(&service("right"), [objects, vec![base, derived], others.to_vec()].concat());
    assert_eq!(deleted(&seen.plan).len(), 1);
}

#[test]
fn equal_overrides_of_another_image_or_base_keep_no_template() {
    for status in hopeless() {
        for spec in [
            json!({ "templateRef": "another" }),
            json!({ "templateRef": null, "aimImageName": "another" }),
        ] {
            let other = with(named(service("wrong"), "b"), json!({ "spec": spec }));
            assert_eq!(deleted(&seen_after_mending(&status, &[other]).plan).len(), 1, "{spec}");
        }
    }
}

/// It has found another one for the same image.
#[test]
fn a_service_that_has_found_another_template_keeps_none() {
    let spec = json!({ "spec": { "templateRef": null } });
    let other = with(named(service("wrong"), "b"), spec);
    for status in hopeless() {
        for (scope, count) in [("Namespace", 1), ("Cluster", 1), ("Unknown", 0)] {
            let resolved = json!({ "name": "another-ovr-481268ea", "scope": scope });
            let other = with(other.clone(), json!({ "status": { "resolvedTemplate": resolved } }));
            let seen = seen_after_mending(&status, &[other]);
            assert_eq!(deleted(&seen.plan).len(), count, "{scope}");
        }
    }
}

/// Its end, or that it wants something else, is no event for the one that waits.
#[test]
fn a_service_that_waits_for_another_looks_again() {
    let seen = seen_after_mending(&hopeless()[0], &[named(service("wrong"), "b")]);
    assert!(seen.plan.requeue_after.is_some_and(|after| after.as_secs() <= 60));
    let seen = see(&service("right"), objects(&service("right")));
    assert_eq!(seen.plan.requeue_after, None);
}

/// What a predecessor was told before it failed does not count any more, but may still be served.
#[test]
fn what_a_predecessor_was_told_keeps_its_template_while_it_is_served() {
    let sources = json!({ "modelSources": [{ "name": "m", "sourceUri": "hf://m", "size": "1" }] });
    for status in hopeless() {
        let counts = status["status"] != "Failed";
        let status = with(status, sources.clone());
        let derived = seen_after_mending(&status, &[]).template()["name"].clone();
        let runtime = json!({ "apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime",
            "metadata": { "name": derived, "namespace": "research", "uid": "r",
                "ownerReferences": [{ "apiVersion": "aim.silogen.ai/v1alpha1",
                    "kind": "AIMServiceTemplate", "name": derived, "uid": "t",
                    "controller": true }] },
            "spec": { "containers": [] } });
        let server = json!({ "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
            "metadata": { "name": "old", "namespace": "research", "uid": "i",
                "labels": { "aim.silogen.ai/template": derived } },
            "spec": { "predictor": {} } });
        let of_another = with(runtime.clone(), json!({ "metadata": { "ownerReferences": null } }));
        for (more, stays) in [
            (vec![], counts),
            (vec![of_another], counts),
            (vec![runtime.clone()], true),
            (vec![server.clone()], true),
        ] {
            let seen = seen_after_mending(&status, &more);
            assert_eq!(deleted(&seen.plan).is_empty(), stays, "{status} {more:?}");
            // No event tells that it is served no more.
            assert_eq!(seen.plan.requeue_after.is_some(), stays && !counts, "{status}");
        }
        for kind in ["ServingRuntime", "InferenceService"] {
            let unread = Cluster::of(after_mending(&status, &[])).failing(kind);
            assert_eq!(deleted(&see_in(&service("right"), &unread).plan), [""; 0], "{kind}");
            let unserved = Cluster::of(after_mending(&status, &[])).without(kind);
            let seen = see_in(&service("right"), &unserved);
            assert_eq!(deleted(&seen.plan).is_empty(), counts, "{kind}");
        }
    }
}

/// Whoever makes it anew wants it as it then is.
#[test]
fn services_of_different_minds_do_not_take_turns() {
    for status in hopeless() {
        let mut objects = objects(&service("right"));
        let derived = objects.pop().unwrap();
        let others = [named(service("right"), "chat"), named(service("third"), "b")];
        objects.extend([with(derived, json!({ "status": status }))].into_iter().chain(others));
        let mut third = service("third");
        third.metadata.name = Some("b".to_owned());
        for service in [service("right"), third] {
            assert_eq!(deleted(&see(&service, objects.clone()).plan), [""; 0]);
        }
    }
}

#[test]
fn what_has_an_answer_or_was_made_by_somebody_stays() {
    let change = |change: &dyn Fn(Value) -> Value| {
        let mut objects = objects(&service("wrong"));
        let derived = with(objects.pop().unwrap(), json!({ "status": hopeless()[0] }));
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
