//! When an image is asked again, and when not.

use serde_json::{Value, json};
use windlass_api::aim::template::AimServiceTemplate;
use windlass_engine::error::Error;
use windlass_engine::plan::{Strategy, When};

use crate::aim::template::fixture::{
    Cluster, JOB, OUTPUT, Seen, after, answered, cluster_template_with, config, ended, image,
    image_of, is_available, job_of, later, look, look_at, made, now, pod, template, template_with,
};

/// The template after its Job of this uid has failed, at this time.
fn failed(template: &AimServiceTemplate, uid: &str, seconds: i64) -> AimServiceTemplate {
    let job = ended(job_of(&self::template(), uid), "Failed");
    let seen = look_at(template, &Cluster::of([image(), job]), later(seconds));
    assert_eq!(seen.phase(), "Failed");
    after(template, &seen)
}

#[test]
fn w06_a_job_is_made_and_never_changed() {
    let seen = look(&template(), &Cluster::of([image()]));
    assert_eq!(seen.plan.apply[0].strategy, Strategy::CreateOnce);
}

#[test]
fn w04_after_a_failure_it_takes_longer_and_longer_until_the_next_try() {
    let mut template = template();
    let mut at = 0;
    for (try_, delay) in [60, 120, 240, 480, 960, 1920, 3600, 3600].into_iter().enumerate() {
        template = failed(&template, &format!("job-{try_}"), at);
        let gone = Cluster::of([image()]);
        let early = look_at(&template, &gone, later(at + delay - 1));
        assert_eq!((early.phase(), early.applied().len()), ("Failed", 0), "try {try_}");
        assert_eq!(early.plan.requeue_after.map(|left| left.as_secs()), Some(1));
        let due = look_at(&template, &gone, later(at + delay));
        assert_eq!(due.applied(), [format!("Job {JOB}")], "try {try_}");
        at += delay;
    }
}

#[test]
fn w04_meanwhile_the_failure_stands() {
    let failed = failed(&template(), "job", 0);
    let told = look_at(
        &template(),
        &Cluster::of([image(), ended(job_of(&template(), "job"), "Failed")]),
        now(),
    );
    for objects in [vec![image()], vec![image(), ended(job_of(&template(), "job"), "Failed")]] {
        let seen = look_at(&failed, &Cluster::of(objects), later(30));
        assert_eq!(seen.phase(), "Failed");
        assert_eq!(seen.conditions(), told.conditions());
        assert_eq!(seen.status["discovery"]["failures"], 1, "a failure counts once");
    }
}

/// The name of the next Job is that of the last.
#[test]
fn a_failed_job_makes_room_for_the_next_one() {
    let failed = failed(&template(), "job", 0);
    let cluster = Cluster::of([image(), ended(job_of(&template(), "job"), "Failed")]);
    let seen = look_at(&failed, &cluster, later(60));
    assert_eq!((seen.deleted(), seen.applied().len()), (vec![format!("Job {JOB}")], 0));
    assert_eq!(seen.plan.removals(When::BeforeApply).count(), 1);
}

#[test]
fn another_image_need_not_wait_for_the_failure_of_the_first() {
    let failed = failed(&template(), "job", 0);
    let mended = Cluster::of([image_of("registry.example.com/aim/tiny-lm:1.4.1")]);
    let seen = look_at(&failed, &mended, later(1));
    assert_eq!(seen.applied().len(), 1);
    assert_ne!(seen.applied(), [format!("Job {JOB}")]);
}

#[test]
fn w26_a_job_that_does_not_end_has_failed() {
    let cluster = Cluster::of([image(), job_of(&template(), "job"), pod("Pending")]);
    assert_eq!(look_at(&template(), &cluster, later(3500)).phase(), "Progressing");
    let seen = look_at(&template(), &cluster, later(3600));
    assert_eq!((seen.phase(), seen.deleted().len()), ("Failed", 0), "first it is stored");
    assert_eq!(seen.status["discovery"]["failures"], 1);
    assert!(seen.plan.requeue_after.is_some());
    let stored = after(&template(), &seen);
    let next = look_at(&stored, &cluster, later(3601));
    assert_eq!((next.phase(), next.deleted()), ("Failed", vec![format!("Job {JOB}")]));
    // Without it nothing new begins before its time.
    let gone = look_at(&stored, &Cluster::of([image()]), later(3602));
    assert_eq!((gone.phase(), gone.applied().len()), ("Failed", 0));
}

#[test]
fn an_output_that_cannot_be_read_is_tried_again_while_the_job_lasts() {
    let job = ended(job_of(&template(), "job"), "Complete");
    let mut cluster = Cluster::of([image(), job, pod("Succeeded")]);
    cluster.output = Some(Err(Error::infrastructure("Timeout", "no answer")));
    let seen = look(&template(), &cluster);
    let (_, reason, message) = seen.condition("Failure").unwrap();
    assert_eq!(reason, "DiscoveryParseFailed");
    assert!(message.contains("failed to get pod logs: "), "{message}");
    assert_eq!(seen.health.components[0].errors.len(), 1, "so it is tried again soon");
    let stored = after(&template(), &seen);
    let again = look_at(&stored, &cluster, later(5));
    assert_eq!(again.status["discovery"], seen.status["discovery"], "it counts once");
    let next = [&seen, &again].map(|seen| seen.plan.requeue_after.map(|left| left.as_secs()));
    assert_eq!(next, [Some(1), None], "what goes on failing is not read each second");
    // w04: gone with its Job, it is asked again, but not at once.
    let gone = Cluster::of([image()]);
    assert_eq!(look_at(&stored, &gone, later(59)).applied().len(), 0);
    assert_eq!(look_at(&stored, &gone, later(60)).applied().len(), 1);
    let read = look_at(&stored, &cluster.printing(OUTPUT), later(10));
    assert_eq!(read.phase(), "Available");
    assert!(read.status["discovery"].get("failures").is_none());
}

/// Spec 5.3 tells apart what could not be got from what could not be read.
#[test]
fn why_an_output_could_not_be_read_is_told() {
    let job = ended(job_of(&template(), "job"), "Complete");
    let inner = |error: Error| {
        let mut cluster = Cluster::of([image(), job.clone(), pod("Succeeded")]);
        cluster.output = Some(Err(error));
        let message = look(&template(), &cluster).condition("Failure").unwrap().2;
        message.strip_prefix("Failed to parse discovery output: ").unwrap().to_owned()
    };
    for (error, what) in [
        (Error::infrastructure("LogInterrupted", "cut"), "failed to read pod logs: "),
        (Error::infrastructure("LogTooSlow", "slow"), "failed to read pod logs: "),
        (Error::invalid_spec("LogTooLong", "long"), "failed to read pod logs: "),
        (Error::infrastructure("ServerError", "no node"), "failed to get pod logs: "),
        (Error::auth("Forbidden", "no"), "failed to get pod logs: "),
    ] {
        let message = inner(error.clone());
        assert!(message.starts_with(what) && message.ends_with(&error.message), "{message}");
    }
}

#[test]
fn w05_an_answer_outlives_what_cannot_be_read() {
    let mut template = answered(&template());
    template.spec.common.runtime_config_name = Some("gone".to_owned());
    let seen = look(&template, &Cluster::of([image()]));
    assert!(is_available(&seen));
    let (_, reason, message) = seen.condition("Failure").unwrap();
    assert_eq!(reason, "Failed");
    assert!(message.starts_with("Observation failed: "), "{message}");
    assert!(seen.applied().is_empty() && seen.deleted().is_empty());
    assert_eq!(seen.status["modelSources"], json!(template.status.unwrap().model_sources));
}

#[test]
fn w05_an_answer_that_lost_its_image_is_remembered() {
    let template = answered(&template());
    let seen = look(&template, &Cluster::default());
    assert_eq!(seen.phase(), "Degraded");
    let back = look(&after(&template, &seen), &Cluster::of([image()]));
    assert!(is_available(&back));
    assert_eq!(back.applied(), ["ServingRuntime tiny-lm-latency"], "it is not asked again");
}

/// W5 names the image and the parameters.
#[test]
fn w05_other_variables_are_no_reason_to_ask_again() {
    let env = json!({ "env": [{ "name": "HF_TOKEN", "value": "t" }] });
    let mut edited = template_with(env.clone());
    edited.status = answered(&template()).status;
    let seen = look(&edited, &Cluster::of([image()]));
    assert!(is_available(&seen));
    assert_eq!(seen.applied(), ["ServingRuntime tiny-lm-latency"]);
    // But with them it may go well where it did not.
    let mut edited = template_with(env);
    edited.status = failed(&template(), "job", 0).status;
    let seen = look_at(&edited, &Cluster::of([image()]), later(1));
    assert_eq!(seen.applied(), [format!("Job {JOB}")]);
}

#[test]
fn w05_other_inputs_are_asked_about_while_the_old_answer_stands() {
    let template = answered(&template());
    let mut changed = template.clone();
    changed.spec.common.parameters.metric = Some("latency".to_owned());
    let newer = image_of("registry.example.com/aim/tiny-lm:2.0.0");
    for (template, image) in [(&template, newer), (&changed, image())] {
        let seen = look(template, &Cluster::of([image.clone()]));
        assert!(is_available(&seen));
        assert_eq!(seen.applied().len(), 2, "a Job and the runtime");
        let job = made(&seen.plan, "second");
        let running = look(template, &Cluster::of([image.clone(), job.clone()]));
        assert!(is_available(&running));
        assert_eq!(running.condition("Progressing").unwrap().1, "DiscoveryRunning");

        let mut failing = vec![image.clone(), ended(job.clone(), "Failed")];
        let failed = look(template, &Cluster::of(failing.clone()));
        assert!(is_available(&failed));
        assert_eq!(failed.condition("Failure").unwrap().1, "JobFailed");
        let waiting = look_at(&after(template, &failed), &Cluster::of(failing.clone()), later(5));
        assert!(is_available(&waiting));
        assert_eq!(waiting.condition("Failure").unwrap().1, "JobFailed", "it stands");

        failing[1] = ended(job, "Complete");
        let mut pod = pod("Succeeded");
        pod["metadata"]["labels"]["job-name"] = failing[1]["metadata"]["name"].clone();
        failing.push(pod);
        let output = OUTPUT.replace("\"gpu_count\": 2", "\"gpu_count\": 4");
        let second = look(template, &Cluster::of(failing).printing(&output));
        assert!(is_available(&second));
        assert_eq!(second.status["profile"]["metadata"]["gpu_count"], 4);
        assert_eq!(
            second.events(),
            ["Normal DiscoverySucceeded: Model sources discovered successfully"]
        );
    }
}

#[test]
fn a_job_that_asks_something_else_goes() {
    let other = template_with(json!({ "metric": "throughput" }));
    let job = job_of(&other, "job");
    assert_eq!(job["metadata"]["name"], JOB, "the name does not tell");
    for job in [job.clone(), ended(job, "Complete")] {
        let seen = look(&template(), &Cluster::of([image(), job]));
        assert_eq!((seen.deleted(), seen.applied().len()), (vec![format!("Job {JOB}")], 0));
    }
}

#[test]
fn w22_jobs_of_a_namesake_do_not_count() {
    let mut job = job_of(&template(), "job");
    job["metadata"]["ownerReferences"][0]["uid"] = "another".into();
    assert_eq!(look(&template(), &Cluster::of([image(), job])).phase(), "Pending");
}

/// In the namespace of the operator a template of the cluster and one of the namespace may have the
/// same name and image, and so the same name for their Jobs.
#[test]
fn w22_a_namesake_of_the_other_kind_does_not_keep_a_template_from_asking() {
    let of_cluster = cluster_template_with(json!({}));
    let taken = |kind: &str| {
        let mut job = made(&look(&of_cluster, &Cluster::of([image()])).plan, "job");
        assert_eq!(job["metadata"]["name"], JOB);
        let owner = json!({ "kind": kind, "uid": "another" });
        job["metadata"]["ownerReferences"][0]
            .as_object_mut()
            .unwrap()
            .extend(owner.as_object().unwrap().clone());
        job
    };
    let beside = look(&of_cluster, &Cluster::of([image(), taken("AIMServiceTemplate")]));
    let job = beside.body("Job");
    let name = job["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("discover-tiny-lm-latency-") && name != JOB, "{name}");
    assert_eq!((beside.phase(), name.len()), ("Pending", JOB.len()));
    assert!(beside.plan.requeue_after.is_some(), "in case that both ask at the same time");
    // Its own counts, whether or not the other is still there.
    for others in [vec![taken("AIMServiceTemplate")], vec![]] {
        let own = made(&beside.plan, "own");
        let seen = look(&of_cluster, &Cluster::of([vec![image(), own], others].concat()));
        assert_eq!(
            (seen.phase(), seen.applied().len(), seen.deleted().len()),
            ("Progressing", 0, 0)
        );
    }
    // One of an earlier template of this kind goes by itself, and then the name is free again.
    let earlier = look(&of_cluster, &Cluster::of([image(), taken("AIMClusterServiceTemplate")]));
    assert_eq!(earlier.applied(), [format!("Job {JOB}")]);
}

#[test]
fn without_kserve_there_is_an_answer_but_no_runtime() {
    let template = answered(&template());
    let cluster = Cluster { without_kserve: true, ..Cluster::of([image()]) };
    let seen = look(&template, &cluster);
    assert!(is_available(&seen) && seen.applied().is_empty());
}

/// What was missing for the image to be pulled.
#[test]
fn another_account_or_secret_is_tried_at_once() {
    let failed = failed(&template(), "job", 0);
    let secrets = config("default", json!({ "imagePullSecrets": [{ "name": "s" }] }));
    let seen = look_at(&failed, &Cluster::of([image(), secrets.clone()]), later(1));
    assert_eq!(seen.applied().len(), 1);
    let seen = look(&template(), &Cluster::of([image(), secrets.clone(), ended_job("Failed")]));
    assert_eq!(seen.deleted(), [format!("Job {JOB}")], "another takes its name");
    let stuck = Cluster::of([image(), secrets, job_of(&template(), "job"), held_up()]);
    assert_eq!(look(&template(), &stuck).deleted(), [format!("Job {JOB}")]);
    assert!(look(&template(), &Cluster::of([image(), held_up()])).deleted().is_empty());
}

fn ended_job(condition: &str) -> Value {
    ended(job_of(&template(), "job"), condition)
}

/// A pod that cannot start.
fn held_up() -> Value {
    let mut pod = pod("Pending");
    pod["status"]["containerStatuses"] = json!([{ "name": "discovery", "image": "i",
        "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": "ImagePullBackOff", "message": "not found" } } }]);
    pod
}

/// A Job of which no pod was made, such as for want of its service account.
fn podless() -> Value {
    let mut job = job_of(&template(), "job");
    job["status"] = json!({ "startTime": job["metadata"]["creationTimestamp"] });
    job
}

#[test]
fn a_job_that_gets_no_pod_is_told_and_replaced_by_one_with_another_account() {
    let progress = |seen: &Seen| seen.condition("Progressing").unwrap().2;
    let cluster = Cluster::of([image(), podless()]);
    // The Job is a minute older than the first look.
    let early = look_at(&template(), &cluster, later(-30));
    assert_eq!(progress(&early), "Discovery job is running");
    let next = early.plan.requeue_after.expect("no event tells that time has passed");
    assert!(next.as_secs() <= 30, "{next:?}");
    let late = look_at(&template(), &cluster, later(-29));
    assert_eq!(progress(&late), "Discovery job is running: no pod could be created");
    assert_eq!((late.phase(), late.deleted().len()), ("Progressing", 0));

    let account = config("default", json!({ "serviceAccountName": "runner" }));
    let mended = Cluster::of([image(), podless(), account]);
    assert!(look_at(&template(), &mended, later(-30)).deleted().is_empty());
    assert_eq!(look_at(&template(), &mended, later(-29)).deleted(), [format!("Job {JOB}")]);
}

#[test]
fn a_job_that_has_had_a_pod_or_is_to_have_none_lacks_nothing() {
    let mut suspended = podless();
    suspended["spec"]["suspend"] = true.into();
    // Where no controller of Jobs runs, nothing is known of an obstacle.
    let mut unseen = podless();
    unseen["status"] = json!({});
    let counts = ["active", "ready", "failed", "succeeded"].map(|count| {
        let mut job = podless();
        job["status"][count] = 1.into();
        job
    });
    for job in counts.into_iter().chain([suspended, unseen]) {
        let seen = look(&template(), &Cluster::of([image(), job.clone()]));
        assert_eq!(seen.condition("Progressing").unwrap().2, "Discovery job is running", "{job}");
    }
}

/// It does not say what it was asked with, but shows what it runs with.
#[test]
fn a_predecessors_job_that_cannot_start_is_replaced_by_one_that_may() {
    let mut job = job_of(&template(), "job");
    job["metadata"].as_object_mut().unwrap().remove("annotations");
    let stuck = vec![image(), job, held_up()];
    assert!(look(&template(), &Cluster::of(stuck.clone())).deleted().is_empty());
    for spec in [
        json!({ "imagePullSecrets": [{ "name": "s" }] }),
        json!({ "serviceAccountName": "runner" }),
    ] {
        let mended = Cluster::of([stuck.clone(), vec![config("default", spec)]].concat());
        assert_eq!(look(&template(), &mended).deleted(), [format!("Job {JOB}")]);
    }
}

/// W6: create-only. What was changed counts for the next one, if there has to be one.
#[test]
fn w06_a_job_that_may_still_answer_is_left_alone() {
    let edited = template_with(json!({ "env": [{ "name": "A", "value": "1" }] }));
    let runs_with =
        json!({ "serviceAccountName": "runner", "imagePullSecrets": [{ "name": "s" }] });
    let config = config("default", runs_with);
    for pods in [vec![], vec![pod("Pending")], vec![pod("Running")], vec![pod("Failed")]] {
        let around = vec![image(), job_of(&template(), "job")];
        for (template, more) in [(&edited, vec![]), (&template(), vec![config.clone()])] {
            let seen = look(template, &Cluster::of([around.clone(), pods.clone(), more].concat()));
            assert_eq!((seen.phase(), seen.deleted().len()), ("Progressing", 0), "{pods:?}");
            assert!(seen.applied().is_empty());
        }
    }
}

/// Nor does its failure count against what it was not tried with.
#[test]
fn a_job_that_takes_too_long_is_replaced_at_once_by_one_with_another_account() {
    let config = config("default", json!({ "serviceAccountName": "runner" }));
    let objects = [image(), job_of(&template(), "job"), config.clone(), pod("Running")];
    let cluster = Cluster::of(objects);
    let seen = look_at(&template(), &cluster, later(3600));
    assert_eq!((seen.phase(), seen.deleted().len()), ("Failed", 0), "first it is stored");
    let stored = after(&template(), &seen);
    let next = look_at(&stored, &cluster, later(3601));
    assert_eq!(next.deleted(), [format!("Job {JOB}")]);
    let gone = look_at(&stored, &Cluster::of([image(), config]), later(3602));
    assert_eq!(gone.applied(), [format!("Job {JOB}")]);
}

#[test]
fn the_answer_of_a_job_counts_whatever_it_ran_with() {
    let job = ended(job_of(&template(), "job"), "Complete");
    let secrets = config("default", json!({ "imagePullSecrets": [{ "name": "s" }] }));
    let cluster = Cluster::of([image(), secrets, job, pod("Succeeded")]).printing(OUTPUT);
    assert_eq!(look(&template(), &cluster).phase(), "Available");
}

#[test]
fn while_it_waits_it_tells_why_and_nothing_that_is_over() {
    let failed = failed(&template(), "job", 0);
    let lost = after(&failed, &look_at(&failed, &Cluster::default(), later(5)));
    assert_eq!(lost.status.as_ref().unwrap().status.as_deref(), Some("Degraded"));
    let back = look_at(&lost, &Cluster::of([image()]), later(10));
    assert_eq!(back.phase(), "Failed");
    assert_eq!(back.condition("Failure").unwrap().1, "JobFailed");
    assert_eq!(back.condition("Ready").unwrap().2, "Template is not ready");
}

/// What it is served by goes along, and what has told it is left to be looked at once more.
#[test]
fn w05_the_pass_that_finds_an_answer_serves_it_and_deletes_nothing() {
    let newer = image_of("registry.example.com/aim/tiny-lm:2.0.0");
    for template in [template(), answered(&template())] {
        let mut cluster = Cluster::of([newer.clone()]).printing(OUTPUT);
        cluster.objects.push(made(&look(&template, &cluster).plan, "second"));
        cluster.end("Complete");
        cluster.objects.push(job_of(&self::template(), "first"));
        let seen = look(&template, &cluster);
        assert!(is_available(&seen));
        assert_eq!(seen.applied(), ["ServingRuntime tiny-lm-latency"]);
        assert!(seen.deleted().is_empty(), "{:?}", seen.deleted());
        let next = look(&after(&template, &seen), &cluster);
        assert_eq!(next.applied(), ["ServingRuntime tiny-lm-latency"]);
        assert_eq!(next.deleted(), [format!("Job {JOB}")], "which nobody waits for");
    }
}

#[test]
fn w05_an_image_that_goes_back_is_asked_again_if_the_other_has_answered_meanwhile() {
    let template = answered(&template());
    let newer = image_of("registry.example.com/aim/tiny-lm:2.0.0");
    let mut cluster = Cluster::of([newer.clone()]).printing(OUTPUT);
    let job = made(&look(&template, &cluster).plan, "second");
    cluster.objects.push(job.clone());
    let running = after(&template, &look(&template, &cluster));
    let back = look(&running, &Cluster::of([image(), job.clone()]));
    assert!(is_available(&back));
    assert_eq!(back.condition("Progressing").unwrap().1, "Available");
    assert_eq!(back.applied(), ["ServingRuntime tiny-lm-latency"], "its answer stands");
    assert_eq!(back.deleted(), [format!("Job {}", job["metadata"]["name"].as_str().unwrap())]);

    cluster.end("Complete");
    let second = after(&running, &look(&running, &cluster));
    let back = look(&second, &Cluster::of([image()]));
    assert!(is_available(&back));
    assert!(back.applied().contains(&format!("Job {JOB}")), "{:?}", back.applied());
}
