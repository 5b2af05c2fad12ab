//! The rows of the status table, in their order.

use serde_json::{Value, json};
use windlass_api::aim::template::AimServiceTemplate;

use crate::aim::template::fixture::{
    Cluster, OUTPUT, after, answered, cluster_template_with, ended, image, later, look, look_at,
    made, pod, template, template_with,
};

#[test]
fn g20_a_config_that_was_asked_for_must_exist() {
    let template = template_with(json!({ "runtimeConfigName": "gold" }));
    let seen = look(&template, &Cluster::of([image()]));
    assert_eq!(seen.phase(), "Failed");
    let message = "Observation failed: failed to resolve AIMRuntimeConfig \\\"gold\\\": runtime \
        config \\\"gold\\\" not found: runtime config not found";
    assert_eq!(
        seen.conditions(),
        [
            format!("Failure=True Failed \"{message}\""),
            "Ready=False Failed \"Template is not ready due to errors\"".to_owned(),
        ]
    );
    assert!(seen.applied().is_empty());
}

#[test]
fn g20_templates_of_the_cluster_go_on_without_their_config() {
    let template = cluster_template_with(json!({ "runtimeConfigName": "gold" }));
    let seen = look(&template, &Cluster::of([image()]));
    assert_eq!(seen.phase(), "Pending");
    assert_eq!(seen.applied(), ["Job discover-tiny-lm-latency-4b2c0414"]);
}

#[test]
fn a_template_without_an_image_has_exactly_two_conditions() {
    let seen = look(&template(), &Cluster::default());
    assert_eq!(seen.phase(), "Degraded");
    let message = "No AIMImage or AIMClusterImage found for image name \\\"tiny-lm\\\"";
    assert_eq!(
        seen.conditions(),
        [
            format!("Failure=True ImageNotFound \"{message}\""),
            "Ready=False ImageNotFound \"Cannot proceed without image\"".to_owned(),
        ]
    );
    assert!(seen.applied().is_empty());
    let seen = look(&cluster_template_with(json!({})), &Cluster::default());
    let message = "No AIMClusterImage found for image name \\\"tiny-lm\\\"";
    assert_eq!(seen.conditions()[0], format!("Failure=True ImageNotFound \"{message}\""));
}

#[test]
fn first_a_job_is_asked_for() {
    let seen = look(&template(), &Cluster::of([image()]));
    assert_eq!(seen.phase(), "Pending");
    assert_eq!(
        seen.conditions(),
        [
            "Progressing=True Reconciling \"Initiating discovery\"",
            "Ready=False Reconciling \"Template is not ready\"",
        ]
    );
    assert_eq!(seen.applied(), ["Job discover-tiny-lm-latency-4b2c0414"]);
}

fn with_job(template: &AimServiceTemplate, condition: Option<&str>, pods: &str) -> Cluster {
    let job = made(&look(template, &Cluster::of([image()])).plan, "job");
    let job = match condition {
        Some(condition) => ended(job, condition),
        None => job,
    };
    Cluster::of([image(), job, pod(pods)])
}

#[test]
fn then_the_job_runs() {
    let seen = look(&template(), &with_job(&template(), None, "Running"));
    assert_eq!(seen.phase(), "Progressing");
    assert_eq!(
        seen.conditions(),
        [
            "Progressing=True DiscoveryRunning \"Discovery job is running\"",
            "Ready=False Reconciling \"Template is not ready yet\"",
            "Discovered=False JobPending \"Discovery job has not completed\"",
        ],
        "as if the pass that made the Job had not seen it"
    );
    assert!(seen.applied().is_empty(), "w06: a Job that exists is left as it is");
    assert!(seen.plan.requeue_after.is_some(), "its pods are not watched");
}

fn waiting(reason: &str, message: &str) -> Value {
    json!([{ "name": "discovery", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": reason, "message": message } } }])
}

/// What is told of the progress while the pod is in this state.
fn progress(pod_status: Value) -> String {
    let mut cluster = with_job(&template(), None, "Pending");
    let status = cluster.objects[2]["status"].as_object_mut().unwrap();
    status.extend(pod_status.as_object().unwrap().clone());
    let (_, reason, message) = look(&template(), &cluster).condition("Progressing").unwrap();
    assert_eq!(reason, "DiscoveryRunning");
    message
}

#[test]
fn w26_what_keeps_the_job_from_running_is_told() {
    let pull = waiting("ImagePullBackOff", "not found");
    let message = progress(json!({ "containerStatuses": pull }));
    assert!(message.starts_with("Discovery job is running: Image"), "{message}");
    let unplaced = json!([{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available" }]);
    let message = progress(json!({ "conditions": unplaced }));
    assert_eq!(message, "Discovery job is running: 0/3 nodes are available");
}

/// Row 3: the words are these alone, as long as nothing is in the way.
#[test]
fn a_pod_that_only_has_not_started_yet_is_no_obstacle() {
    let scheduled = json!([{ "type": "PodScheduled", "status": "True" }]);
    for pod_status in [
        json!({}),
        json!({ "conditions": scheduled }),
        json!({ "conditions": scheduled, "containerStatuses": waiting("ContainerCreating", "") }),
        json!({ "containerStatuses": waiting("PodInitializing", "") }),
    ] {
        assert_eq!(progress(pod_status.clone()), "Discovery job is running", "{pod_status}");
    }
}

/// Nor is what became of an earlier try of the same Job.
#[test]
fn between_the_tries_of_a_job_nothing_is_in_the_way() {
    let ended = json!([{ "name": "discovery", "image": "i", "imageID": "", "ready": false,
        "restartCount": 0, "state": { "terminated": { "exitCode": 1, "reason": "Error" } } }]);
    let failed = json!({ "phase": "Failed", "containerStatuses": ended });
    assert_eq!(progress(failed), "Discovery job is running");
}

#[test]
fn w07_a_failed_job_ends_the_progress() {
    let seen = look(&template(), &with_job(&template(), Some("Failed"), "Failed"));
    assert_eq!(seen.phase(), "Failed");
    assert_eq!(
        seen.conditions(),
        [
            "Failure=True JobFailed \"Discovery job failed\"",
            "Discovered=False DiscoveryFailed \"Discovery failed\"",
            "Progressing=False DiscoveryFailed \"Discovery has ended\"",
            "Ready=False Failed \"Template is not ready\"",
        ]
    );
}

#[test]
fn an_output_that_makes_no_sense_is_told() {
    for (output, inner) in [
        ("", "failed to parse discovery JSON: no valid JSON array found in logs"),
        ("[]", "discovery output contains empty array"),
    ] {
        let cluster = with_job(&template(), Some("Complete"), "Succeeded").printing(output);
        let seen = look(&template(), &cluster);
        assert_eq!(seen.phase(), "Failed");
        let reason = "DiscoveryParseFailed";
        assert_eq!(
            seen.conditions(),
            [
                format!("Failure=True {reason} \"Failed to parse discovery output: {inner}\""),
                format!("Progressing=False {reason} \"Discovery has ended\""),
                format!("Ready=False {reason} \"Template is not ready\""),
            ]
        );
    }
}

#[test]
fn a_job_without_a_pod_is_told() {
    let failure = |cluster: &Cluster| look(&template(), cluster).condition("Failure").unwrap().2;
    let prefix = "Failed to parse discovery output: ";
    let mut cluster = with_job(&template(), Some("Complete"), "Failed");
    let job = "discover-tiny-lm-latency-4b2c0414";
    assert_eq!(failure(&cluster), format!("{prefix}no successful pod found for job {job}"));
    cluster.objects.pop();
    assert_eq!(failure(&cluster), format!("{prefix}no pods found for job {job}"));
}

#[test]
fn g18_then_the_answer_is_there() {
    for noise in ["", "[INFO] scanning\n"] {
        let output = format!("{noise}{OUTPUT}");
        let cluster = with_job(&template(), Some("Complete"), "Succeeded").printing(&output);
        let seen = look(&template(), &cluster);
        assert_eq!(seen.phase(), "Available");
        assert_eq!(seen.conditions(), AVAILABLE);
        assert_eq!(
            seen.status["modelSources"],
            json!([{ "name": "acme/tiny-lm-7b-fp8", "sourceUri": "hf://acme/tiny-lm-7b-fp8",
                "size": "13475459891" }])
        );
        let metadata = &seen.status["profile"]["metadata"];
        assert_eq!((&metadata["gpu_count"], &metadata["metric"]), (&json!(2), &json!("latency")));
        assert_eq!(seen.applied(), ["ServingRuntime tiny-lm-latency"], "in the same pass");
    }
}

const AVAILABLE: [&str; 3] = [
    "Discovered=True Discovered \"Model sources discovered\"",
    "Progressing=False Available \"Discovery complete\"",
    "Ready=True Available \"Template is ready\"",
];

#[test]
fn an_answer_without_models_leaves_the_sources_as_they_were() {
    let cluster = with_job(&template(), Some("Complete"), "Succeeded");
    let seen = look(&template(), &cluster.printing(r#"[{"profile": {}, "models": []}]"#));
    assert_eq!(seen.phase(), "Available");
    assert!(!seen.status.contains_key("modelSources"));
}

#[test]
fn w20_words_that_nobody_knows_are_kept() {
    let output = OUTPUT.replace("\"fp8\"", "\"fp4\"");
    let cluster = with_job(&template(), Some("Complete"), "Succeeded").printing(&output);
    let seen = look(&template(), &cluster);
    assert_eq!(seen.status["profile"]["metadata"]["precision"], "fp4");
}

#[test]
fn an_answer_stands_without_its_job() {
    let template = answered(&template());
    let seen = look_at(&template, &Cluster::of([image()]), later(100_000));
    assert_eq!(seen.phase(), "Available");
    assert_eq!(seen.conditions(), AVAILABLE);
    assert_eq!(seen.applied(), ["ServingRuntime tiny-lm-latency"]);
    assert_eq!(seen.plan.requeue_after, None);
}

#[test]
fn w07_a_failure_is_over_when_it_is_over() {
    let without = template();
    let lost = after(&without, &look(&without, &Cluster::default()));
    let seen = look(&lost, &Cluster::of([image()]));
    let over = "Failure=False Reconciling \"No active failures\"";
    assert_eq!(seen.conditions()[0], over, "it is not available yet");
    assert_eq!(look(&lost, &with_job(&without, None, "Running")).conditions()[0], over);
    let complete = with_job(&without, Some("Complete"), "Succeeded").printing(OUTPUT);
    let answered = look(&lost, &complete);
    assert_eq!(answered.conditions()[0], "Failure=False Available \"No active failures\"");
    let fresh = look(&without, &Cluster::of([image()]));
    assert!(fresh.condition("Failure").is_none(), "there is none that could be over");
}

#[test]
fn what_was_told_of_a_pause_is_over_with_it() {
    let mut paused = answered(&template());
    let conditions = &mut paused.status.as_mut().unwrap().conditions;
    let mut pause = conditions[0].clone();
    pause.type_ = "ReconciliationPaused".to_owned();
    conditions.push(pause);
    assert_eq!(look(&paused, &Cluster::of([image()])).conditions(), AVAILABLE);
}
