//! What is worth an event, and that it is told once.

use futures::executor::block_on;
use serde_json::json;
use windlass_api::aim::template::{AimClusterServiceTemplate, AimServiceTemplate};
use windlass_engine::domain::Domain;
use windlass_engine::fetch::{Documents, Serves};

use crate::aim::settings::{Resolution, Settings};
use crate::aim::template::TemplateDomain;
use crate::aim::template::fetch::fetch;
use crate::aim::template::fixture::{
    Cluster, OUTPUT, Seen, after, answered, cluster_template_with, config, domain, ended, image,
    image_of, look, made, now, pod, pruned, template, template_with,
};

const NO_DEFAULT: &str = "Warning DefaultRuntimeConfigNotFound: Default AIMRuntimeConfig not \
    found, proceeding with controller defaults.";

#[test]
fn w23_which_config_is_in_effect_is_told_when_it_changes() {
    let none = Cluster::of([image()]);
    let first = look(&template(), &none);
    assert_eq!(first.events(), [NO_DEFAULT]);
    let known = after(&template(), &first);
    assert!(look(&known, &none).events().is_empty(), "once");

    let some = Cluster::of([image(), config("default", json!({}))]);
    let found = look(&known, &some);
    let resolved =
        "Normal RuntimeConfigResolved: Using AIMRuntimeConfig \"default\" from namespace/research";
    assert_eq!(found.events(), [resolved]);
    let known = after(&known, &found);
    assert!(look(&known, &some).events().is_empty(), "once");
    assert_eq!(look(&known, &none).events(), [NO_DEFAULT]);
}

#[test]
fn w23_only_the_config_that_counts_is_named() {
    let cluster_config = json!({ "apiVersion": "aim.silogen.ai/v1alpha1",
        "kind": "AIMClusterRuntimeConfig", "metadata": { "name": "default", "uid": "c" } });
    let seen = look(&template(), &Cluster::of([image(), cluster_config.clone()]));
    let told = "Normal RuntimeConfigResolved: Using AIMRuntimeConfig \"default\" from cluster";
    assert_eq!(seen.events(), [told]);
    let both = Cluster::of([image(), cluster_config, config("default", json!({}))]);
    assert!(look(&template(), &both).events()[0].ends_with("from namespace/research"));
}

#[test]
fn merged_both_configs_are_named() {
    let cluster_config = json!({ "apiVersion": "aim.silogen.ai/v1alpha1",
        "kind": "AIMClusterRuntimeConfig", "metadata": { "name": "default", "uid": "c" } });
    let settings = Settings { resolution: Resolution::Merge, ..Settings::default() };
    let told = |objects: Vec<serde_json::Value>| {
        let documents = Documents { objects, serves: Serves::Everything };
        let answers = block_on(fetch(&settings, &documents, &template()));
        let domain = TemplateDomain::<AimServiceTemplate>::new(settings.clone());
        let observed = domain.compose(&template(), answers, now());
        domain.health(&template(), &observed).news[0].message.clone()
    };
    let own = || config("default", json!({}));
    let both = told(vec![image(), cluster_config.clone(), own()]);
    assert_eq!(both, "Using AIMRuntimeConfig \"default\" from namespace/research, cluster");
    assert!(told(vec![image(), own()]).ends_with("from namespace/research"));
    assert!(told(vec![image(), cluster_config]).ends_with("from cluster"));
}

/// Of neither anything is stored, so only the change of the template tells that there is news.
#[test]
fn who_goes_back_to_the_default_hears_that_it_is_missing() {
    let gold = template_with(json!({ "runtimeConfigName": "gold" }));
    let none = Cluster::of([image()]);
    let missing = look(&gold, &none);
    assert_eq!(missing.events(), [""; 0], "a condition says it");
    let mut edited = after(&template(), &missing);
    edited.metadata.generation = Some(2);
    assert_eq!(look(&edited, &none).events(), [NO_DEFAULT]);
}

#[test]
fn w27_a_missing_config_of_a_template_of_the_cluster_is_told() {
    let template = cluster_template_with(json!({ "runtimeConfigName": "gold" }));
    let seen = look(&template, &Cluster::of([image()]));
    let told = "Warning RuntimeConfigNotFound: AIMRuntimeConfig \"gold\" not found, proceeding \
        with controller defaults.";
    assert_eq!(seen.events(), [told]);
}

/// Neither has a config, so only the change of the template itself tells that there is news.
#[test]
fn w27_a_config_that_is_missing_under_another_name_is_told() {
    let known = |spec: serde_json::Value, generation: i64, from: &Seen| {
        let mut template = cluster_template_with(spec);
        template.metadata.generation = Some(generation);
        let status = serde_json::from_value(from.status.clone().into()).unwrap();
        AimClusterServiceTemplate { status: Some(status), ..template }
    };
    let none = Cluster::of([image()]);
    let first = look(&cluster_template_with(json!({})), &none);
    assert_eq!(first.events(), [NO_DEFAULT]);
    let gold = json!({ "runtimeConfigName": "gold" });
    let told = "Warning RuntimeConfigNotFound: AIMRuntimeConfig \"gold\" not found, proceeding \
        with controller defaults.";
    let renamed = look(&known(gold.clone(), 2, &first), &none);
    assert_eq!(renamed.events(), [told]);
    assert!(look(&known(gold, 1, &renamed), &none).events().is_empty(), "once");
}

/// The events of the asking alone.
fn told(objects: &[serde_json::Value], output: &str, phase: Option<&str>) -> Vec<String> {
    let mut template = after(&template(), &look(&template(), &Cluster::of([image()])));
    template.status.as_mut().unwrap().status = phase.map(str::to_owned);
    look(&template, &Cluster::of(objects).printing(output)).events()
}

#[test]
fn how_the_asking_goes_is_told() {
    let job = made(&look(&template(), &Cluster::of([image()])).plan, "job");
    let running = [image(), job.clone()];
    let started = "Normal DiscoveryStarted: Discovery job is running";
    assert_eq!(told(&running, "", Some("Pending")), [started]);

    let failed = [image(), ended(job.clone(), "Failed")];
    let failure = "Warning DiscoveryFailed: Discovery job failed";
    assert_eq!(told(&failed, "", Some("Progressing")), [failure]);

    let complete = [image(), ended(job, "Complete"), pod("Succeeded")];
    let parsed = "Normal DiscoverySucceeded: Model sources discovered successfully";
    assert_eq!(told(&complete, OUTPUT, Some("Progressing")), [parsed]);
    let nonsense = "Warning DiscoveryParseFailed: Failed to parse discovery output: failed to \
        parse discovery JSON: no valid JSON array found in logs";
    assert_eq!(told(&complete, "nonsense", Some("Progressing")), [nonsense]);
}

/// Whatever was the case before: an image may have been missing, an attempt may have failed, an answer
/// may be there already.
#[test]
fn each_attempt_is_told_once_when_it_starts() {
    let started = "Normal DiscoveryStarted: Discovery job is running";
    let job = |uid: &str| made(&look(&template(), &Cluster::of([image()])).plan, uid);
    for phase in [None, Some("Pending"), Some("Degraded"), Some("Failed")] {
        assert_eq!(told(&[image(), job("job")], "", phase), [started], "{phase:?}");
    }
    let running = Cluster::of([image(), job("job")]);
    let seen = look(&template(), &running);
    let of_a_predecessor = pruned(&template(), &seen);
    assert_eq!(look(&of_a_predecessor, &running).events(), [""; 0], "who kept no record of it");

    let known = after(&template(), &seen);
    assert_eq!(look(&known, &running).events(), [""; 0], "also not by another process");
    let lost = after(&known, &look(&known, &Cluster::default()));
    assert_eq!(look(&lost, &running).events(), [""; 0], "it is still the same attempt");
    let another = Cluster::of([image(), job("another")]);
    assert_eq!(look(&known, &another).events(), [started]);

    // Beside an answer that stands.
    let answered = answered(&template());
    let newer = image_of("registry.example.com/aim/tiny-lm:2.0.0");
    let second = made(&look(&answered, &Cluster::of([newer.clone()])).plan, "second");
    let running = Cluster::of([newer, second]);
    let seen = look(&answered, &running);
    assert_eq!((seen.phase(), seen.events()), ("Available", vec![started.to_owned()]));
    assert_eq!(look(&after(&answered, &seen), &running).events(), [""; 0]);
}

/// The events of templates are a closed list, and this is none of them.
#[test]
fn what_was_set_back_is_no_event() {
    assert!(!domain::<AimServiceTemplate>().identity().events.corrections);
    assert!(!domain::<AimClusterServiceTemplate>().identity().events.corrections);
}

#[test]
fn a_failure_is_told_once() {
    let job = made(&look(&template(), &Cluster::of([image()])).plan, "job");
    let cluster = Cluster::of([image(), ended(job, "Failed")]);
    let first = look(&template(), &cluster);
    assert_eq!(first.events().len(), 2, "with that of the config");
    assert!(look(&after(&template(), &first), &cluster).events().is_empty());
}
