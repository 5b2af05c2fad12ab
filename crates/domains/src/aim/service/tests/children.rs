//! The objects, field by field.

use serde_json::{Value, json};

use crate::aim::service::fixture::{
    Cluster, TEMPLATE, available, base, body, catalogue, cluster_config, cluster_image,
    cluster_template, config, image, inference_service, overriding, routed, see, see_in,
    service_with, template, with, written,
};

fn inference(service: &windlass_api::aim::service::AimService, objects: Vec<Value>) -> Value {
    body(&see(service, objects).plan, "InferenceService").clone()
}

#[test]
fn g19_the_inference_service_is_made_of_all_parts() {
    let service = service_with(json!({
        "replicas": 2, "runtimeConfigName": "team",
        "env": [{ "name": "A", "value": "1" }], "imagePullSecrets": [{ "name": "s1" }],
    }));
    let team = json!({ "serviceAccountName": "runner",
        "imagePullSecrets": [{ "name": "s1" }, { "name": "s2" }] });
    let mut objects = catalogue();
    objects.push(config("team", team));
    assert_eq!(
        inference(&service, objects),
        json!({
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": { "name": "chat", "namespace": "research", "labels": {
                "app.kubernetes.io/name": "aim-service",
                "app.kubernetes.io/component": "inference-service",
                "app.kubernetes.io/managed-by": "aim-controller",
                "aim.silogen.ai/template": "tiny-lm-latency",
                "aim.silogen.ai/model-id": "acme_tiny-lm-7b-fp8",
                "aim.silogen.ai/aim-image": "tiny-lm",
                "aim.silogen.ai/template.metric": "latency",
                "aim.silogen.ai/template.precision": "fp8",
            } },
            "spec": { "predictor": {
                "minReplicas": 2,
                "maxReplicas": 2,
                "serviceAccountName": "runner",
                "imagePullSecrets": [{ "name": "s1" }, { "name": "s2" }],
                "model": {
                    "modelFormat": { "name": "aim", "version": "1" },
                    "runtime": "tiny-lm-latency",
                    "storageUri": "hf://acme/tiny-lm-7b-fp8",
                    "env": [{ "name": "A", "value": "1" }],
                    "resources": {
                        "requests": { "cpu": "4", "memory": "16Gi", "amd.com/gpu": "2" },
                        "limits": { "memory": "24Gi", "amd.com/gpu": "2" },
                    },
                },
            } },
        })
    );
}

/// Resources of service, template and image, and what comes of them.
#[test]
fn g19_resources_are_chosen_as_a_whole() {
    let amounts = |cpu: &str| json!({ "requests": { "cpu": cpu } });
    let filled = |cpu: &str| {
        json!({ "requests": { "cpu": cpu, "amd.com/gpu": "2" },
            "limits": { "amd.com/gpu": "2" } })
    };
    let of_image = json!({ "requests": { "cpu": "4", "memory": "16Gi", "amd.com/gpu": "2" },
        "limits": { "memory": "24Gi", "amd.com/gpu": "2" } });
    for (service, template, expected) in [
        (Some(amounts("1")), Some(amounts("2")), filled("1")),
        (None, Some(amounts("2")), filled("2")),
        (None, None, of_image),
        (
            Some(json!({})),
            Some(amounts("2")),
            json!({ "requests": { "amd.com/gpu": "2" }, "limits": { "amd.com/gpu": "2" } }),
        ),
    ] {
        let spec = |resources: Option<Value>| match resources {
            Some(resources) => json!({ "resources": resources }),
            None => json!({}),
        };
        let template = available(cluster_template(TEMPLATE, spec(template)));
        let objects = vec![cluster_image(""), template];
        let made = inference(&service_with(spec(service.clone())), objects);
        assert_eq!(made["spec"]["predictor"]["model"]["resources"], expected, "{service:?}");
    }
}

#[test]
fn w24_both_sides_get_the_same_number_of_devices() {
    let of = |resources: Value| {
        let made = inference(&service_with(json!({ "resources": resources })), catalogue());
        made["spec"]["predictor"]["model"]["resources"].clone()
    };
    let one = json!({ "amd.com/gpu": "1" });
    let both = json!({ "limits": one, "requests": one });
    assert_eq!(of(json!({ "limits": { "amd.com/gpu": 1 } })), both);
    assert_eq!(of(json!({ "requests": { "amd.com/gpu": "1" } })), both);
    // What the user says of both is the user's.
    let odd = json!({ "limits": { "amd.com/gpu": "4" }, "requests": one });
    assert_eq!(of(odd.clone()), odd);
}

#[test]
fn without_known_devices_none_are_added() {
    for gpu_count in [Value::Null, json!(0)] {
        let change = json!({ "status": { "profile": { "metadata": { "gpu_count": gpu_count } } } });
        let template = with(available(cluster_template(TEMPLATE, json!({}))), change);
        let made = inference(&base(), vec![cluster_image(""), template.clone()]);
        let resources = &made["spec"]["predictor"]["model"]["resources"];
        assert!(resources["limits"].get("amd.com/gpu").is_none(), "{resources}");
        // One side that is given counts for both all the same.
        let one = json!({ "amd.com/gpu": "1" });
        let given = service_with(json!({ "resources": { "requests": one } }));
        let made = inference(&given, vec![cluster_image(""), template.clone()]);
        assert_eq!(made["spec"]["predictor"]["model"]["resources"]["limits"], one, "w24");
    }
}

/// A missing image is reported, and prevents nothing.
#[test]
fn an_image_that_has_gone_takes_nothing_from_what_runs() {
    let template = available(cluster_template(TEMPLATE, json!({})));
    let live = json!({ "requests": { "cpu": "4", "amd.com/gpu": "2" },
        "limits": { "amd.com/gpu": "2" } });
    let running = with(
        inference_service(json!({})),
        json!({ "spec": { "predictor": { "model": { "resources": live } } } }),
    );
    let made = inference(&base(), vec![template.clone(), running]);
    assert_eq!(made["spec"]["predictor"]["model"]["resources"], live);
    let made = inference(&base(), vec![template]);
    let devices = json!({ "requests": { "amd.com/gpu": "2" }, "limits": { "amd.com/gpu": "2" } });
    assert_eq!(made["spec"]["predictor"]["model"]["resources"], devices);
}

#[test]
fn replicas_are_minimum_and_maximum() {
    for (replicas, expected) in [
        (json!(3), json!([3, 3])),
        (json!(0), json!([0, null])),
        (json!(null), json!([null, null])),
    ] {
        let made = inference(&service_with(json!({ "replicas": replicas })), catalogue());
        let predictor = &made["spec"]["predictor"];
        assert_eq!(json!([predictor["minReplicas"], predictor["maxReplicas"]]), expected);
    }
}

#[test]
fn a_config_of_the_cluster_gives_no_account() {
    let spec = json!({ "serviceAccountName": "runner", "imagePullSecrets": [{ "name": "s" }] });
    let mut objects = catalogue();
    objects.push(cluster_config("default", spec));
    let made = inference(&base(), objects);
    assert!(made["spec"]["predictor"].get("serviceAccountName").is_none());
    assert!(made["spec"]["predictor"].get("imagePullSecrets").is_none());
}

#[test]
fn a_source_without_a_name_is_named_after_the_image() {
    let sources = json!({ "status": { "modelSources": [{ "sourceUri": "hf://a/b", "size": "1" }],
        "profile": { "metadata": { "metric": "", "precision": null } } } });
    let template = with(available(template(TEMPLATE, json!({ "aimImageName": "A/B" }))), sources);
    let made = inference(&base(), vec![template]);
    let labels = &made["metadata"]["labels"];
    assert_eq!(labels["aim.silogen.ai/model-id"], "A_B");
    assert_eq!(labels["aim.silogen.ai/aim-image"], "A_B");
    assert!(labels.get("aim.silogen.ai/template.metric").is_none());
    assert!(labels.get("aim.silogen.ai/template.precision").is_none());
}

#[test]
fn w22_a_long_template_name_still_gives_a_label() {
    let name = format!("{}.{}", "a".repeat(62), "b".repeat(30));
    let objects = vec![cluster_image(""), available(cluster_template(&name, json!({})))];
    let made = inference(&service_with(json!({ "templateRef": name })), objects);
    assert_eq!(made["metadata"]["labels"]["aim.silogen.ai/template"], "a".repeat(62));
    assert_eq!(made["spec"]["predictor"]["model"]["runtime"], name);
}

#[test]
fn w31_a_variable_that_is_given_twice_is_set_once() {
    let env = json!([{ "name": "A", "value": "1" }, { "name": "B", "value": "2" },
        { "name": "A", "value": "3" }]);
    let once = json!([{ "name": "B", "value": "2" }, { "name": "A", "value": "3" }]);
    let service = service_with(json!({ "env": env, "imagePullSecrets":
        [{ "name": "s" }, { "name": "s" }] }));
    let made = inference(&service, catalogue());
    assert_eq!(made["spec"]["predictor"]["model"]["env"], once);
    assert_eq!(made["spec"]["predictor"]["imagePullSecrets"], json!([{ "name": "s" }]));
    let service = service_with(json!({ "env": env, "overrides": {} }));
    let plan = see(&service, catalogue()).plan;
    assert_eq!(body(&plan, "AIMServiceTemplate")["spec"]["env"], once);
}

#[test]
fn the_route_leads_from_the_gateway_to_the_predictor() {
    let service = service_with(json!({ "routing": {
        "enabled": true,
        "gatewayRef": { "name": "edge", "group": "", "port": 80, "sectionName": "http" },
        "annotations": { "a": "b" },
        "routeTemplate": "/{.metadata.name}",
    } }));
    let plan = see(&service, catalogue()).plan;
    assert_eq!(written(&plan), ["InferenceService chat", "HTTPRoute chat"]);
    assert_eq!(
        *body(&plan, "HTTPRoute"),
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {
                "name": "chat",
                "namespace": "research",
                "annotations": { "a": "b" },
                "labels": {
                    "app.kubernetes.io/name": "aim-service",
                    "app.kubernetes.io/component": "inference-service",
                    "app.kubernetes.io/managed-by": "aim-controller",
                    "aim.silogen.ai/template": "tiny-lm-latency",
                    "aim.silogen.ai/model-id": "acme_tiny-lm-7b-fp8",
                },
            },
            "spec": {
                "parentRefs": [{ "group": "gateway.networking.k8s.io", "kind": "Gateway",
                    "namespace": "research", "name": "edge", "port": 80, "sectionName": "http" }],
                "rules": [{
                    "matches": [{ "path": { "type": "PathPrefix", "value": "/chat" } }],
                    "filters": [{ "type": "URLRewrite", "urlRewrite": { "path": {
                        "type": "ReplacePrefixMatch", "replacePrefixMatch": "/" } } }],
                    "backendRefs": [{ "kind": "Service", "name": "chat-predictor",
                        "namespace": "research", "port": 80 }],
                }],
            },
        })
    );
}

#[test]
fn g14_a_derived_template_has_two_labels_and_no_owner() {
    let plan = see(
        &overriding(json!({})),
        vec![template(
            TEMPLATE,
            json!({ "env":
        [{ "name": "A", "value": "1" }] }),
        )],
    );
    // The same spec, so the base itself will do.
    assert_eq!(written(&plan.plan), [""; 0]);
    let objects = vec![cluster_template(TEMPLATE, json!({ "aimImageName": "" }))];
    let service = service_with(json!({ "overrides": {}, "runtimeConfigName": " " }));
    assert_eq!(
        *body(&see(&service, objects).plan, "AIMServiceTemplate"),
        json!({
            "apiVersion": "aim.silogen.ai/v1alpha1",
            "kind": "AIMServiceTemplate",
            "metadata": {
                "name": "tiny-lm-latency-ovr-44136fa3",
                "namespace": "research",
                "labels": {
                    "app.kubernetes.io/managed-by": "aim-controller",
                    "aim.silogen.ai/derived-template": "true",
                },
            },
            "spec": { "aimImageName": "tiny-lm", "runtimeConfigName": "default" },
        })
    );
}

/// What the service says goes before what the base says, field by field.
#[test]
fn a_derived_template_is_the_base_but_for_what_the_service_says() {
    let base = json!({
        "metric": "latency", "precision": "fp8", "runtimeConfigName": "gold",
        "gpuSelector": { "count": 1, "model": "MI300X" },
        "resources": { "limits": { "cpu": "1" } },
        "env": [{ "name": "A", "value": "base" }], "imagePullSecrets": [{ "name": "base" }],
        "caching": { "enabled": true },
    });
    let own = json!({
        "runtimeConfigName": " team ", "resources": { "limits": { "cpu": "2" } },
        "env": [{ "name": "B", "value": "own" }], "imagePullSecrets": [{ "name": "own" }],
        "cacheModel": true,
        "overrides": { "metric": "throughput", "gpuSelector": { "count": 2, "model": "MI325X" } },
    });
    let spec_of = |service: Value| {
        let objects = vec![template(TEMPLATE, base.clone())];
        body(&see(&service_with(service), objects).plan, "AIMServiceTemplate")["spec"].clone()
    };
    assert_eq!(
        spec_of(own),
        json!({
            "aimImageName": "tiny-lm", "metric": "throughput", "precision": "fp8",
            "runtimeConfigName": "team", "gpuSelector": { "count": 2, "model": "MI325X" },
            "resources": { "limits": { "cpu": "2" } },
            "env": [{ "name": "B", "value": "own" }], "imagePullSecrets": [{ "name": "own" }],
            "caching": { "enabled": true, "env": [{ "name": "B", "value": "own" }] },
        })
    );
    let kept = with(base.clone(), json!({ "aimImageName": "tiny-lm", "precision": "int8" }));
    assert_eq!(spec_of(json!({ "overrides": { "precision": "int8" } })), kept);
}

#[test]
fn nothing_is_made_of_a_kind_that_the_cluster_does_not_know() {
    let cluster = Cluster::of(catalogue()).without("InferenceService").without("HTTPRoute");
    assert_eq!(written(&see_in(&routed(), &cluster).plan), [""; 0]);
    let cluster = Cluster::of(catalogue()).without("HTTPRoute");
    assert_eq!(written(&see_in(&routed(), &cluster).plan), ["InferenceService chat"]);
}

/// Why nothing is made yet.
#[test]
fn an_inference_service_waits_for_all_that_it_is_made_of() {
    let ready = || available(cluster_template(TEMPLATE, json!({})));
    let pending = cluster_template(TEMPLATE, json!({}));
    let sourceless = with(ready(), json!({ "status": { "modelSources": [] } }));
    let missing = with(ready(), json!({ "spec": { "runtimeConfigName": "gold" } }));
    for (objects, expected) in [
        (vec![image("")], vec![]),
        (vec![cluster_image(""), pending], vec![]),
        (vec![cluster_image(""), sourceless], vec![]),
        (vec![cluster_image(""), missing], vec![]),
        (vec![ready()], vec!["InferenceService chat"]),
        (vec![cluster_image(""), ready()], vec!["InferenceService chat"]),
    ] {
        // What exists is never taken away.
        let live = inference_service(json!({}));
        let seen = see(&base(), objects.iter().cloned().chain([live]).collect());
        assert_eq!(written(&seen.plan), expected, "{objects:?}");
        assert!(seen.plan.delete.is_empty());
        assert_eq!(written(&see(&base(), objects).plan), expected);
    }
}
