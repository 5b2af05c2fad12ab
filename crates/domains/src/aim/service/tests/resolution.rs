//! Which template, image and runtime config a service gets.

use serde_json::{Value, json};
use windlass_api::aim::service::AimService;

use crate::aim::service::fixture::{
    TEMPLATE, available, base, body, catalogue, cluster_config, cluster_image, cluster_template,
    config, image, made, overriding, see, service_with, template, with, written,
};

fn found(name: &str, scope: &str) -> Value {
    match scope {
        "Namespace" => json!({ "name": name, "namespace": "research", "scope": scope,
            "kind": "AIMServiceTemplate", "uid": format!("AIMServiceTemplate/{name}") }),
        _ => json!({ "name": name, "scope": scope, "kind": "AIMClusterServiceTemplate",
            "uid": format!("AIMClusterServiceTemplate/{name}") }),
    }
}

fn unknown(name: &str) -> Value {
    json!({ "name": name, "scope": "Unknown", "kind": "AIMServiceTemplate" })
}

/// Reference of the service, the objects, and what is resolved.
#[test]
fn w25_the_template_is_the_services_else_the_images() {
    let own = || template("a", json!({}));
    let cluster = || cluster_template("a", json!({}));
    for (reference, objects, expected) in [
        (" a ", vec![own(), cluster()], found("a", "Namespace")),
        ("a", vec![cluster()], found("a", "Cluster")),
        ("a", vec![], unknown("a")),
        (" ", vec![], unknown("chat")),
        ("", vec![image("a"), cluster_image("b"), own()], found("a", "Namespace")),
        ("", vec![image(" a "), cluster()], found("a", "Cluster")),
        ("", vec![image(" "), cluster_image("a"), own()], found("a", "Namespace")),
        ("", vec![cluster_image("a")], unknown("a")),
        ("", vec![image(""), cluster_image(""), own()], unknown("chat")),
        // A template in another namespace is none.
        ("a", vec![with(own(), json!({ "metadata": { "namespace": "x" } }))], unknown("a")),
    ] {
        let seen = see(&service_with(json!({ "templateRef": reference })), objects.clone());
        assert_eq!(seen.template(), expected, "{reference:?} {objects:?}");
        assert_eq!(written(&seen.plan), [""; 0], "a template is never made without overrides");
    }
}

#[test]
fn a_template_of_the_cluster_knows_no_images_of_a_namespace() {
    let seen = see(&base(), vec![image(""), cluster_template(TEMPLATE, json!({}))]);
    assert_eq!(
        seen.told(&["Failure"]),
        ["Failure=True ImageNotFound \"AIMClusterImage \"tiny-lm\" not found\""]
    );
    assert!(!seen.status.contains_key("resolvedImage"));
}

#[test]
fn w25_the_image_is_reported() {
    let own = json!({ "name": "tiny-lm", "namespace": "research", "scope": "Namespace",
        "kind": "AIMImage", "uid": "AIMImage/tiny-lm" });
    let of_cluster = json!({ "name": "tiny-lm", "scope": "Cluster", "kind": "AIMClusterImage",
        "uid": "AIMClusterImage/tiny-lm" });
    let template = || template(TEMPLATE, json!({}));
    for (objects, expected) in [
        (vec![template(), image(""), cluster_image("")], own),
        (vec![template(), cluster_image("")], of_cluster.clone()),
        (catalogue(), of_cluster),
    ] {
        assert_eq!(see(&base(), objects).status["resolvedImage"], expected);
    }
}

/// Names of the service and of the template, and the one that counts.
#[test]
fn w16_the_templates_runtime_config_counts_where_the_service_names_none() {
    for (service, of_template, expected) in [
        (Some("team"), Some("gold"), "team"),
        (None, Some("gold"), "gold"),
        (Some(" "), Some(" gold "), "gold"),
        (None, None, "default"),
        (Some("default"), Some("gold"), "default"),
    ] {
        let configs = ["team", "gold", "default"].map(|name| config(name, json!({})));
        let spec = json!({ "runtimeConfigName": of_template });
        let mut objects = vec![cluster_image(""), cluster_template(TEMPLATE, spec)];
        objects.extend(configs);
        let seen = see(&service_with(json!({ "runtimeConfigName": service })), objects);
        let reference = json!({ "name": expected, "namespace": "research", "scope": "Namespace",
            "kind": "AIMRuntimeConfig", "uid": format!("AIMRuntimeConfig/{expected}") });
        assert_eq!(seen.status["resolvedRuntimeConfig"], reference, "{service:?} {of_template:?}");
    }
}

#[test]
fn without_a_config_that_of_the_template_is_reported() {
    let known = json!({ "name": "default", "namespace": "kaiwo-system", "scope": "Namespace" });
    let status = json!({ "status": { "resolvedRuntimeConfig": known } });
    let template = with(cluster_template(TEMPLATE, json!({})), status);
    let seen = see(&base(), vec![template.clone()]);
    assert_eq!(seen.status["resolvedRuntimeConfig"], known);
    let seen = see(&base(), vec![template, cluster_config("default", json!({}))]);
    assert_eq!(seen.status["resolvedRuntimeConfig"]["kind"], "AIMClusterRuntimeConfig");
    assert!(!see(&base(), vec![]).status.contains_key("resolvedRuntimeConfig"));
}

#[test]
fn g12_the_derived_name_carries_the_overrides() {
    for (overrides, hash) in [
        (json!({ "metric": "throughput" }), "99ad0cdb"),
        (json!({ "metric": "latency", "precision": "bf16" }), "92d21d06"),
        (
            json!({ "metric": "throughput", "precision": "fp16",
                "gpuSelector": { "count": 2, "model": "MI325X" } }),
            "74a7d070",
        ),
    ] {
        let seen = see(&overriding(overrides), vec![template(TEMPLATE, json!({}))]);
        let name = format!("{TEMPLATE}-ovr-{hash}");
        assert_eq!(written(&seen.plan), [format!("AIMServiceTemplate {name}")]);
    }
}

const GPUS: fn() -> Value = || json!({ "gpuSelector": { "count": 2, "model": "MI300X" } });

fn tuned() -> Value {
    with(GPUS(), json!({ "metric": "throughput", "precision": "fp16" }))
}

fn tuning() -> Value {
    json!({ "metric": "throughput", "precision": "fp16" })
}

#[test]
fn g15_a_template_that_is_the_same_is_used_again() {
    let base = template(TEMPLATE, GPUS());
    for (objects, expected) in [
        (vec![template("handmade", tuned())], found("handmade", "Namespace")),
        (vec![cluster_template("handmade", tuned())], found("handmade", "Cluster")),
        (
            vec![cluster_template("a", tuned()), template("handmade", tuned())],
            found("handmade", "Namespace"),
        ),
        // Of several the first by name.
        (vec![template("b", tuned()), template("a", tuned())], found("a", "Namespace")),
        (
            vec![cluster_template("b", tuned()), cluster_template("a", tuned())],
            found("a", "Cluster"),
        ),
    ] {
        let seen = see(&overriding(tuning()), [objects.clone(), vec![base.clone()]].concat());
        assert_eq!(seen.template(), expected, "{objects:?}");
        assert_eq!(written(&seen.plan), [""; 0]);
    }
    // The base itself goes before all others.
    let objects = vec![template("a", tuned()), template(TEMPLATE, tuned())];
    let seen = see(&overriding(tuning()), objects);
    assert_eq!(seen.template(), found(TEMPLATE, "Namespace"));
}

#[test]
fn g15_who_has_chosen_stays_with_it() {
    let mut service = overriding(tuning());
    let others = || vec![template("b", tuned()), template(TEMPLATE, GPUS())];
    let first = see(&service, others());
    assert_eq!(first.template(), found("b", "Namespace"));
    service.status = Some(serde_json::from_value(first.status.into()).unwrap());
    let more = [others(), vec![template("a", tuned())]].concat();
    assert_eq!(see(&service, more).template(), found("b", "Namespace"));
    let without = vec![template("a", tuned()), template(TEMPLATE, GPUS())];
    assert_eq!(see(&service, without).template(), found("a", "Namespace"));
}

/// Two ways to write the same, and things that are not.
#[test]
fn g15_sameness_is_one_of_meaning() {
    let base = json!({ "resources": { "limits": { "cpu": "1", "memory": "1Gi" } } });
    for (change, same) in [
        (json!({}), true),
        (json!({ "resources": { "limits": { "cpu": "1000m", "memory": "1024Mi" } } }), true),
        (json!({ "env": [], "resources": { "requests": {} } }), true),
        (json!({ "resources": { "limits": { "cpu": "2" } } }), false),
        (json!({ "resources": { "requests": { "cpu": "1" } } }), false),
        (json!({ "env": [{ "name": "A" }] }), false),
        (json!({ "caching": { "enabled": true } }), false),
        (json!({ "imagePullSecrets": [{ "name": "s" }] }), false),
        (json!({ "runtimeConfigName": "gold" }), false),
        (json!({ "aimImageName": "other" }), false),
        (json!({ "metric": "latency" }), false),
    ] {
        let handmade = with(base.clone(), with(tuning(), change.clone()));
        let objects = vec![template(TEMPLATE, base.clone()), template("handmade", handmade)];
        let seen = see(&overriding(tuning()), objects);
        assert_eq!(seen.template() == found("handmade", "Namespace"), same, "{change}");
    }
}

#[test]
fn g15_a_template_of_the_cluster_cannot_have_what_is_a_namespaces() {
    for own in [
        json!({ "env": [{ "name": "A", "value": "1" }] }),
        json!({ "imagePullSecrets": [{ "name": "s" }] }),
        json!({ "cacheModel": true }),
    ] {
        let service = service_with(with(own.clone(), json!({ "overrides": tuning() })));
        let objects = vec![template(TEMPLATE, GPUS()), cluster_template("handmade", tuned())];
        assert_eq!(written(&see(&service, objects).plan).len(), 1, "{own}");
    }
}

#[test]
fn g16_without_one_that_is_the_same_a_template_is_made() {
    let almost = with(GPUS(), json!({ "metric": "throughput" }));
    let objects = vec![template(TEMPLATE, GPUS()), template("handmade", almost)];
    let seen = see(&overriding(tuning()), objects);
    let derived = seen.template()["name"].as_str().unwrap().to_owned();
    assert!(derived.starts_with("tiny-lm-latency-ovr-"), "{derived}");
    assert_eq!(written(&seen.plan), [format!("AIMServiceTemplate {derived}")]);
    let spec = with(tuned(), json!({ "aimImageName": "tiny-lm", "runtimeConfigName": "default" }));
    assert_eq!(body(&seen.plan, "AIMServiceTemplate")["spec"], spec);
    assert_eq!(
        seen.template(),
        json!({ "name": derived, "namespace": "research", "scope": "Unknown",
            "kind": "AIMServiceTemplate" })
    );
    assert_eq!(seen.state(), "Pending");
    assert_eq!(
        seen.told(&["Resolved"]),
        ["Resolved=False TemplateNotFound \"Template not found; creating derived template\""]
    );
}

fn derived_name(service: &AimService) -> String {
    let seen = see(service, vec![template(TEMPLATE, json!({}))]);
    seen.template()["name"].as_str().unwrap().to_owned()
}

#[test]
fn w14_a_derived_template_is_used_as_it_is_and_never_written_again() {
    let service = overriding(tuning());
    let name = derived_name(&service);
    for spec in [tuning(), json!({ "env": [{ "name": "A", "value": "another service's" }] })] {
        let derived = available(template(&name, spec));
        // The base may have gone since.
        let seen = see(&service, vec![cluster_image(""), derived]);
        assert_eq!(seen.template(), found(&name, "Namespace"));
        assert_eq!(written(&seen.plan), ["InferenceService chat"]);
    }
}

/// Names of derived templates have room for the first 50 bytes of the base.
#[test]
fn a_derived_template_of_another_base_is_not_used() {
    let long = |last: &str| format!("{}-{last}", "a".repeat(50));
    let bases = || {
        let other = json!({ "aimImageName": "other", "precision": "fp8" });
        vec![template(&long("1"), json!({})), template(&long("2"), other)]
    };
    let service = |last: &str| {
        service_with(json!({ "templateRef": long(last), "overrides": { "metric": "latency" } }))
    };
    let first = see(&service("1"), bases());
    let name = first.template()["name"].as_str().unwrap().to_owned();
    let hash = derived_name(&overriding(json!({ "metric": "latency" })));
    assert!(name.starts_with(&"a".repeat(50)) && name.ends_with(&hash[TEMPLATE.len()..]), "{name}");

    let taken = [bases(), made(&first.plan)].concat();
    assert_eq!(see(&service("1"), taken.clone()).template()["name"], name, "the name is its own");
    let second = see(&service("2"), taken.clone());
    let beside = second.template()["name"].as_str().unwrap().to_owned();
    assert!(beside != name && beside.len() == 63 && beside.contains("-ovr-"), "{beside}");
    assert_eq!(written(&second.plan), [format!("AIMServiceTemplate {beside}")]);
    let spec = &body(&second.plan, "AIMServiceTemplate")["spec"];
    assert_eq!((&spec["aimImageName"], &spec["precision"]), (&json!("other"), &json!("fp8")));

    let both = [taken, made(&second.plan)].concat();
    assert_eq!(see(&service("2"), both).template()["name"], beside);
    // It stays with that one when the name is free again.
    let own_only = [bases(), made(&second.plan)].concat();
    assert_eq!(see(&service("2"), own_only).template()["name"], beside);
}

/// Nobody knows for what it was made, or it serves already.
#[test]
fn a_derived_template_of_another_base_is_used_where_it_was_written_or_serves() {
    let long = |last: &str| format!("{}-{last}", "a".repeat(50));
    let service = |last: &str| {
        service_with(json!({ "templateRef": long(last), "overrides": { "metric": "latency" } }))
    };
    let bases = |second: Value| {
        let second = with(json!({ "aimImageName": "other" }), second);
        vec![template(&long("1"), json!({})), template(&long("2"), second)]
    };
    let resolved = |service: &AimService, objects: [Vec<Value>; 2]| {
        see(service, objects.concat()).template()["name"].as_str().unwrap().to_owned()
    };
    let first = made(&see(&service("1"), bases(json!({}))).plan);
    let name = first[0]["metadata"]["name"].as_str().unwrap();
    let beside = resolved(&service("2"), [bases(json!({})), first.clone()]);
    assert_ne!(beside, name);

    let unlabelled = with(first[0].clone(), json!({ "metadata": { "labels": null } }));
    assert_eq!(resolved(&service("2"), [bases(json!({})), vec![unlabelled]]), name);
    let served = served_by(service("2"), name, "Namespace");
    assert_eq!(resolved(&served, [bases(json!({})), first.clone()]), name);
    let missed = served_by(service("2"), name, "Unknown");
    assert_eq!(resolved(&missed, [bases(json!({})), first.clone()]), beside);
    // One that has another name stays with that as well, whatever becomes of either base.
    let served = served_by(service("2"), &beside, "Namespace");
    let own = template(&beside, json!({ "aimImageName": "other", "metric": "latency" }));
    for others in [first, vec![]] {
        let around = [others, vec![own.clone()]].concat();
        assert_eq!(resolved(&served, [bases(json!({ "precision": "fp8" })), around]), beside);
    }
}

fn served_by(mut service: AimService, template: &str, scope: &str) -> AimService {
    let status = json!({ "resolvedTemplate": { "name": template, "scope": scope } });
    service.status = Some(serde_json::from_value(status).unwrap());
    service
}

/// Spec 4.3: one that exists under the computed name is used. A base may have been edited since, or
/// made anew.
#[test]
fn a_derived_template_is_used_whatever_has_become_of_its_base() {
    let service = overriding(json!({ "metric": "throughput" }));
    let made = made(&see(&service, vec![template(TEMPLATE, json!({}))]).plan);
    let derived = available(made[0].clone());
    for change in [json!({ "precision": "fp8" }), json!({ "aimImageName": "newer" })] {
        let objects = vec![cluster_image(""), derived.clone(), template(TEMPLATE, change)];
        let seen = see(&service, objects);
        assert_eq!(seen.template()["name"], derived["metadata"]["name"]);
        assert_eq!(written(&seen.plan), ["InferenceService chat"]);
    }
}

#[test]
fn w14_who_names_a_derived_template_does_not_write_it() {
    let labels = json!({ "metadata": { "labels": { "aim.silogen.ai/derived-template": "true" } } });
    let derived = with(available(template("x-ovr-12345678", json!({}))), labels);
    let service = service_with(json!({ "templateRef": "x-ovr-12345678",
        "env": [{ "name": "A", "value": "1" }] }));
    let seen = see(&service, vec![cluster_image(""), derived]);
    assert_eq!(written(&seen.plan), ["InferenceService chat"]);
}

#[test]
fn w15_overrides_of_nothing_are_a_missing_template() {
    let seen = see(&overriding(tuning()), vec![]);
    assert_eq!(seen.state(), "Degraded");
    let message = "Template \"tiny-lm-latency\" not found. Create the template or verify the \
                   template name.";
    assert_eq!(
        seen.told(&["Failure", "Resolved"]),
        [
            format!("Failure=True TemplateNotFound \"{message}\""),
            format!("Resolved=False TemplateNotFound \"{message}\"")
        ]
    );
    assert_eq!(seen.template(), unknown(TEMPLATE));
    assert_eq!(written(&seen.plan), [""; 0]);
    assert!(!seen.retries);
    let nameless = service_with(json!({ "templateRef": null, "overrides": {} }));
    let seen = see(&nameless, vec![image("")]);
    assert_eq!(seen.state(), "Degraded");
    assert_eq!(seen.template(), unknown("chat"));
    assert!(seen.told(&["Failure"])[0].contains("No template reference specified"));
}

#[test]
fn the_image_of_a_template_still_to_be_made_is_looked_for_where_its_base_looks() {
    let service = overriding(tuning());
    let seen = see(&service, vec![image(""), template(TEMPLATE, json!({}))]);
    assert_eq!(seen.status["resolvedImage"]["kind"], "AIMImage");
    let objects = vec![image(""), cluster_image(""), cluster_template(TEMPLATE, json!({}))];
    let seen = see(&service, objects);
    assert_eq!(seen.status["resolvedImage"]["kind"], "AIMClusterImage");
}
