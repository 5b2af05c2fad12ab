//! What a predecessor has left: it kept no record of what it had asked.

use serde_json::{Value, json};
use windlass_api::aim::template::{AimServiceTemplate, TemplateStatus};

use crate::aim::template::fixture::{
    Cluster, IMAGE, JOB, UID, after, answered, image, image_of, is_available, job_of, look,
    template,
};

/// Neither says what it was asked with.
#[test]
fn what_a_predecessor_has_done_counts() {
    let mut job = job_of(&template(), "job");
    job["metadata"].as_object_mut().unwrap().remove("annotations");
    assert_eq!(look(&template(), &Cluster::of([image(), job])).phase(), "Progressing");

    let available = AimServiceTemplate {
        status: Some(TemplateStatus {
            status: Some("Available".to_owned()),
            ..answered(&template()).status.unwrap()
        }),
        ..template()
    };
    let mut available = available;
    available.status.as_mut().unwrap().discovery = None;
    let seen = look(&available, &Cluster::of([image()]));
    assert!(is_available(&seen));
    assert_eq!(seen.applied(), ["ServingRuntime tiny-lm-latency"], "it is not asked again");
    let newer = Cluster::of([image_of(&IMAGE.replace("1.4.0", "2.0.0"))]);
    let seen = look(&after(&available, &seen), &newer);
    assert_eq!(seen.applied().len(), 2, "from then on the inputs are known");
}

fn of_a_predecessor(status: Value) -> AimServiceTemplate {
    AimServiceTemplate { status: Some(serde_json::from_value(status).unwrap()), ..template() }
}

/// Its image may be missing at first, and then the word for it is no longer Available.
#[test]
fn what_a_predecessor_has_discovered_outlives_its_image() {
    let said = json!(answered(&template()).status.unwrap());
    let discovered = json!([{ "type": "Discovered", "status": "True", "reason": "Discovered",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let nothing = json!({ "metadata": {} });
    for status in [
        json!({ "status": "Available", "modelSources": said["modelSources"], "profile": nothing }),
        json!({ "status": "Available", "profile": said["profile"] }),
        json!({ "status": "Available", "profile": nothing, "conditions": discovered }),
    ] {
        let template = of_a_predecessor(status.clone());
        let lost = look(&template, &Cluster::of([runtime_of(IMAGE)]));
        assert_eq!(lost.phase(), "Degraded");
        let back = look(&after(&template, &lost), &Cluster::of([image(), runtime_of(IMAGE)]));
        assert!(is_available(&back), "{status}");
        assert_eq!(back.applied(), ["ServingRuntime tiny-lm-latency"], "it is not asked again");
    }
}

/// As a predecessor has left it.
fn runtime_of(image: &str) -> Value {
    json!({ "apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime",
        "metadata": { "name": "tiny-lm-latency", "namespace": "research", "uid": "runtime",
            "ownerReferences": [{ "apiVersion": "aim.silogen.ai/v1alpha1",
                "kind": "AIMServiceTemplate", "name": "tiny-lm-latency", "uid": UID,
                "controller": true }] },
        "spec": { "containers": [{ "name": "kserve-container", "image": image }] } })
}

/// It kept no record of the image that had answered, but what runs shows it.
#[test]
fn w05_another_image_than_the_one_a_predecessor_had_asked_is_asked() {
    let said = json!(answered(&template()).status.unwrap());
    let newer = image_of(&IMAGE.replace("1.4.0", "2.0.0"));
    for phase in ["Available", "Degraded"] {
        let status = json!({ "status": phase, "modelSources": said["modelSources"],
            "profile": said["profile"] });
        let template = of_a_predecessor(status);
        // The image may be missing for a while, or change while nobody looks.
        let lost = look(&template, &Cluster::of([runtime_of(IMAGE)]));
        for template in [after(&template, &lost), template] {
            let seen = look(&template, &Cluster::of([newer.clone(), runtime_of(IMAGE)]));
            assert!(seen.applied().iter().any(|made| made.starts_with("Job ")), "{phase}");
            // That the runtime follows the image is no answer either.
            let runtime = runtime_of(newer["spec"]["image"].as_str().unwrap());
            let next = look(&after(&template, &seen), &Cluster::of([newer.clone(), runtime]));
            assert!(next.applied().iter().any(|made| made.starts_with("Job ")), "{phase}");
        }
    }
}

/// What is not known to be an answer of this image is asked; what runs stays as it is until that is stored.
#[test]
fn w05_where_nothing_runs_a_predecessors_answer_outlives_no_loss_of_its_image() {
    let said = json!(answered(&template()).status.unwrap());
    let status = json!({ "status": "Available", "modelSources": said["modelSources"] });
    let template = of_a_predecessor(status);
    let mut foreign = runtime_of(IMAGE);
    foreign["metadata"]["ownerReferences"] = json!([]);
    for objects in [vec![], vec![foreign]] {
        let lost = look(&template, &Cluster::of(objects.clone()));
        let back = look(&after(&template, &lost), &Cluster::of([objects, vec![image()]].concat()));
        assert!(back.applied().contains(&format!("Job {JOB}")));
    }
}

#[test]
fn w05_until_it_is_stored_what_has_answered_what_runs_is_left_alone() {
    let said = json!(answered(&template()).status.unwrap());
    let template =
        of_a_predecessor(json!({ "status": "Degraded", "modelSources": said["modelSources"] }));
    let newer = image_of(&IMAGE.replace("1.4.0", "2.0.0"));
    let cluster = Cluster::of([newer, runtime_of(IMAGE)]);
    let seen = look(&template, &cluster);
    assert!(seen.applied().iter().all(|made| made.starts_with("Job ")), "{:?}", seen.applied());
    let next = look(&after(&template, &seen), &cluster);
    assert!(next.applied().contains(&"ServingRuntime tiny-lm-latency".to_owned()));
}

/// It asked again, perhaps another image, whenever it was not Available.
#[test]
fn what_a_predecessor_was_told_before_it_failed_or_asked_again_is_no_answer() {
    let said = json!(answered(&template()).status.unwrap());
    let (sources, profile) = (&said["modelSources"], &said["profile"]);
    let discovered = |status: &str| {
        json!([{ "type": "Discovered", "status": status, "reason": "Any", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }])
    };
    for status in [
        json!({ "status": "Failed", "modelSources": sources }),
        json!({ "status": "Failed", "profile": profile, "conditions": discovered("True") }),
        json!({ "status": "Progressing", "profile": profile, "conditions": discovered("False") }),
        json!({ "status": "Degraded", "modelSources": sources, "conditions": discovered("False") }),
    ] {
        let template = of_a_predecessor(status.clone());
        for first in [Cluster::of([image()]), Cluster::default()] {
            let seen = look(&template, &first);
            assert_ne!(seen.phase(), "Available", "{status}");
            // Nor is it one when the state that spoke against it is over.
            let next = look(&after(&template, &seen), &Cluster::of([image()]));
            assert_eq!((next.phase(), next.applied()), ("Pending", vec![format!("Job {JOB}")]));
        }
    }
}

/// Section 9: a row touches only its own conditions.
#[test]
fn w07_that_an_answer_does_not_count_adds_nothing_to_a_row() {
    let said = json!(answered(&template()).status.unwrap());
    let status = json!({ "status": "Failed", "modelSources": said["modelSources"] });
    let lost = look(&of_a_predecessor(status), &Cluster::default());
    let types = lost.status["conditions"].as_array().unwrap().iter().map(|told| &told["type"]);
    assert_eq!(types.collect::<Vec<_>>(), ["Failure", "Ready"]);
}

/// It wrote one before there was any answer.
#[test]
fn an_empty_profile_of_a_predecessor_is_no_answer() {
    let status = json!({ "status": "Progressing", "profile": { "metadata": {} } });
    let seen = look(&of_a_predecessor(status), &Cluster::of([image()]));
    assert_eq!((seen.phase(), seen.applied()), ("Pending", vec![format!("Job {JOB}")]));
}
