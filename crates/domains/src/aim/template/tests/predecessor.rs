//! What a predecessor has left: it kept no record of what it had asked.

use serde_json::{Value, json};
use windlass_api::aim::template::{AimServiceTemplate, TemplateStatus};

use crate::aim::template::fixture::{
    Cluster, IMAGE, JOB, OUTPUT, Seen, UID, after, answered, image, image_of, is_available, job_of,
    later, look, made, pass, pruned, template,
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
pub(super) fn runtime_of(image: &str) -> Value {
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

pub(super) fn newer() -> Value {
    image_of(&IMAGE.replace("1.4.0", "2.0.0"))
}

/// How a status comes back from the API.
pub(super) type Stored = fn(&AimServiceTemplate, &Seen) -> AimServiceTemplate;

/// Numbers and nothing come back otherwise than they were stored.
fn pruned_and_rewritten(template: &AimServiceTemplate, seen: &Seen) -> AimServiceTemplate {
    let mut template = pruned(template, seen);
    let profile = template.status.as_mut().unwrap().profile.as_mut().unwrap();
    let args = profile.engine_args.as_mut().unwrap().as_object_mut().unwrap();
    args.insert("ratio".to_owned(), 1.into());
    args.remove("nothing");
    template
}

/// What was read is stored before anything runs by it: a pass ends with a second look, at what it has
/// made and at the status of before.
#[test]
fn w05_an_answer_that_was_just_read_outlives_its_own_pass() {
    let said = json!(answered(&template()).status.unwrap());
    let output = OUTPUT.replace("\"gpu_count\": 2", "\"gpu_count\": 4").replace("7b-fp8", "8b");
    let args = "\"engine_args\": {\"ratio\": 1.0, \"nothing\": null, ";
    let output = output.replace("\"engine_args\": {", args);
    let discovered = json!([{ "type": "Discovered", "status": "True", "reason": "Discovered",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    for (phase, is_labelled) in [("Degraded", true), ("Pending", true), ("Degraded", false)] {
        for stored in [after as Stored, pruned, pruned_and_rewritten] {
            let status = json!({ "status": phase, "modelSources": said["modelSources"],
                "profile": said["profile"], "conditions": discovered });
            let mut template = of_a_predecessor(status);
            let mut cluster = Cluster::of([newer(), runtime_of(IMAGE)]).printing(&output);
            let asks = look(&template, &cluster);
            let mut job = made(&asks.plan, "job");
            if !is_labelled {
                job["metadata"].as_object_mut().unwrap().remove("annotations");
            }
            cluster.objects.push(job);
            cluster.end("Complete");
            for at in [0, 1, 2] {
                let seen = pass(&template, &mut cluster, later(at));
                assert!(is_available(&seen));
                assert_eq!(seen.status["profile"]["metadata"]["gpu_count"], 4, "{phase} {at}");
                let source = &seen.status["modelSources"][0]["name"];
                assert_eq!(source, "acme/tiny-lm-8b", "{phase} {at}");
                assert_eq!(seen.plan.requeue_after.is_some(), at == 0, "{phase} {at}");
                assert_eq!(seen.events().iter().any(|told| told.contains("Succeeded")), at == 0);
                template = stored(&template, &seen);
            }
            let runtime = &cluster.find("ServingRuntime").unwrap()["spec"]["containers"][0];
            assert_eq!(runtime["image"], newer()["spec"]["image"]);
            assert_eq!(runtime["env"][0]["value"], "acme/tiny-lm-8b");
        }
    }
}

/// Without a record the conditions and the Job itself tell what was told before.
#[test]
fn w04_what_fails_is_told_once_and_tried_each_minute_where_no_record_is_kept() {
    let with_answer = pruned(&template(), &look(&answered(&template()), &Cluster::of([image()])));
    for (template, end) in [
        (template(), "Failed"),
        (template(), "Complete"),
        (with_answer.clone(), "Failed"),
        (with_answer, "Complete"),
    ] {
        let has_answer = template.status.is_some();
        let mut cluster = Cluster::of([newer()]).printing("nonsense");
        if has_answer {
            cluster.objects.push(runtime_of(IMAGE));
        }
        let mut template = template;
        let mut told = |cluster: &mut Cluster, at: i64| {
            let seen = pass(&template, cluster, later(at));
            assert_eq!(is_available(&seen), has_answer, "{end} {at}");
            template = pruned(&template, &seen);
            let config = "DefaultRuntimeConfigNotFound";
            let told = seen.events().into_iter().filter(|told| !told.contains(config)).count();
            (told, seen.plan.requeue_after.map(|after| after.as_secs()))
        };
        assert_eq!(told(&mut cluster, 0), (1, Some(15)), "it has started");
        assert_eq!(told(&mut cluster, 5), (0, Some(15)));
        cluster.end(end);
        assert_eq!(told(&mut cluster, 10), (1, Some(1)), "it has failed");
        assert_eq!(told(&mut cluster, 11), (0, Some(59)));
        assert_eq!(told(&mut cluster, 40), (0, Some(30)));
        let failed = cluster.find("Job").unwrap()["metadata"]["uid"].clone();
        assert_eq!(told(&mut cluster, 70), (1, Some(15)), "the next one has started");
        assert_ne!(cluster.find("Job").unwrap()["metadata"]["uid"], failed);
        // Another image need not wait, nor need anything after the Job is gone.
        cluster.end(end);
        told(&mut cluster, 80);
        cluster.objects[0] = image_of(&IMAGE.replace("1.4.0", "2.0.1"));
        assert_eq!(told(&mut cluster, 81), (1, Some(15)));
        cluster.end(end);
        told(&mut cluster, 90);
        cluster.objects.retain(|object| object["kind"] != "Job");
        assert_eq!(told(&mut cluster, 151), (1, Some(15)));
    }
}

/// A Job that does not end is one that has failed, also without a record.
#[test]
fn w26_a_job_that_does_not_end_is_replaced_where_no_record_is_kept() {
    let mut cluster = Cluster::of([image()]);
    let mut template = template();
    let mut phase = |cluster: &mut Cluster, at: i64| {
        let seen = pass(&template, cluster, later(at));
        template = pruned(&template, &seen);
        seen.phase().to_owned()
    };
    assert_eq!(phase(&mut cluster, 0), "Progressing");
    let first = cluster.find("Job").unwrap()["metadata"]["uid"].clone();
    assert_eq!(phase(&mut cluster, 3601), "Failed");
    phase(&mut cluster, 3602);
    phase(&mut cluster, 3700);
    assert_ne!(cluster.find("Job").unwrap()["metadata"]["uid"], first);
}

/// While it is unknown which image there is, the answer of an unknown one is not taken for its.
#[test]
fn w05_what_cannot_be_read_makes_no_answer_of_the_present_image() {
    let said = json!(answered(&template()).status.unwrap());
    for (phase, is_asked) in [("Degraded", true), ("Pending", true), ("Available", false)] {
        let status = json!({ "status": phase, "modelSources": said["modelSources"] });
        let template = of_a_predecessor(status);
        for what in ["AIMImage", "AIMClusterImage", "ServingRuntime"] {
            let unread = Cluster { unread: Some(what), ..Cluster::of([image()]) };
            let seen = look(&template, &unread);
            assert_eq!(seen.condition("Failure").unwrap().1, "Failed", "{phase} {what}");
            let next = look(&after(&template, &seen), &Cluster::of([image()]));
            let asks = next.applied().iter().any(|made| made.starts_with("Job "));
            assert_eq!(asks, is_asked, "{phase} {what}");
        }
    }
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
