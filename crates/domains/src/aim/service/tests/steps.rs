//! What is told of a service, step by step.

use serde_json::{Value, json};
use windlass_engine::error::Error;
use windlass_engine::state::{Failure, Phase};

use crate::aim::service::fixture::{
    Cluster, Seen, TEMPLATE, available, base, catalogue, cluster_image, cluster_template, image,
    inference_service, of_another, overriding, ready_inference_service, route, routed, said, see,
    see_after, see_in, service_with, template, with, written,
};

const CACHE: &str = "CacheReady=True CacheWarm \"Caching not requested\"";
const NO_ROUTING: &str = "RoutingReady=True RouteReady \"Routing disabled\"";
const FINE: &str = "Failure=False Resolved \"No active failures\"";
const RESOLVED: &str = "Resolved=True Resolved \"Resolved template \"tiny-lm-latency\"\"";

fn assert_told(seen: &Seen, state: &str, conditions: &[&str]) {
    assert_eq!(seen.conditions, conditions);
    assert_eq!(seen.state(), state);
}

/// A stop after the template was found.
fn assert_stopped(seen: &Seen, state: &str, last: [&str; 4]) {
    let [failure, runtime, progressing, ready] = last;
    let all = [CACHE, NO_ROUTING, failure, RESOLVED, runtime, progressing, ready];
    assert_told(seen, state, &all);
}

#[test]
fn step_b_and_p_the_cache_is_ready_when_it_is_not_asked_for_or_all_else_is_there() {
    let caching = service_with(json!({ "cacheModel": true }));
    let waiting = "CacheReady=False WaitingForCache \"Waiting for cache warm-up\"";
    assert_eq!(see(&caching, vec![]).told(&["CacheReady"]), [waiting]);
    let warm = "CacheReady=True CacheWarm \"Template caching enabled\"";
    assert_eq!(see(&caching, catalogue()).told(&["CacheReady"]), [warm]);
}

#[test]
fn step_d_routing_needs_a_gateway() {
    let service = service_with(json!({ "routing": { "enabled": true } }));
    let seen = see(&service, [catalogue(), vec![ready_inference_service()]].concat());
    assert_told(
        &seen,
        "Failed",
        &[
            CACHE,
            "RoutingReady=False RouteFailed \"routing.gatewayRef must be specified via AIMService \
             or runtime config when routing is enabled\"",
            "Failure=True RouteFailed \"Routing gateway reference is missing\"",
            RESOLVED,
            "RuntimeReady=False ConfiguringRoute \"Waiting for HTTPRoute to become ready\"",
            "Progressing=True ConfiguringRoute \"InferenceService reconciliation in progress\"",
            "Ready=False ConfiguringRoute \"Waiting for HTTPRoute to become ready\"",
        ],
    );
    assert_eq!(written(&seen.plan), ["InferenceService chat"]);
    // It stays failed while there is no InferenceService either.
    assert_eq!(see(&service, catalogue()).state(), "Failed");
}

#[test]
fn step_e_a_route_has_to_come_first() {
    let waiting = "RoutingReady=False ConfiguringRoute \"Waiting for HTTPRoute to be created\"";
    assert_eq!(see(&routed(), catalogue()).told(&["RoutingReady"]), [waiting]);
    let unserved = see_in(&routed(), &Cluster::of(catalogue()).without("HTTPRoute"));
    assert_eq!(
        unserved.told(&["RoutingReady"]),
        [
            "RoutingReady=False ConfiguringRoute \"The cluster does not know HTTPRoutes; install the \
          Gateway API\""
        ]
    );
}

#[test]
fn step_f_what_cannot_be_read_halts_everything() {
    let objects = || [catalogue(), vec![ready_inference_service()]].concat();
    for kind in ["AIMServiceTemplate", "AIMClusterImage", "AIMRuntimeConfig"] {
        let seen = see_in(&base(), &Cluster::of(objects()).failing(kind));
        let message = format!("Observation failed: Timeout: {kind} gives no answer");
        let unread =
            |type_: &str, status: &str| format!("{type_}={status} ValidationFailed \"{message}\"");
        assert_told(
            &seen,
            "Failed",
            &[
                CACHE,
                NO_ROUTING,
                &unread("Failure", "True"),
                "Resolved=False ValidationFailed \"Template resolution pending due to \
                 reconciliation failure\"",
                &unread("RuntimeReady", "False"),
                "Progressing=False ValidationFailed \"Reconciliation halted due to failure\"",
                &unread("Ready", "False"),
            ],
        );
        assert!(seen.retries && !seen.applies, "{kind}");
        assert_eq!((seen.plan.apply.len(), seen.plan.delete.len()), (0, 0), "{kind}");
    }
}

#[test]
fn step_e_a_route_that_cannot_be_read_is_unknown() {
    let seen = see_in(&routed(), &Cluster::of(catalogue()).failing("HTTPRoute"));
    let unread = "RoutingReady=False ConfiguringRoute \"HTTPRoute cannot be read: Timeout: HTTPRoute \
                  gives no answer\"";
    assert_eq!(seen.told(&["RoutingReady"]), [unread]);
    assert_eq!(written(&seen.plan), ["InferenceService chat", "HTTPRoute chat"]);
    assert!(seen.plan.delete.is_empty() && seen.plan.requeue_after.is_some());
}

/// Spec 10: steps D, E, G and those behind them are the only ones to speak of `Failure`, and G only
/// "routing disabled, or routing ready"; weakness 9 clears one that is there and adds none.
#[test]
fn step_g_a_failure_is_spoken_of_only_where_a_step_does() {
    let types = |seen: &Seen| {
        let type_ = |line: &String| line.split('=').next().unwrap().to_owned();
        seen.conditions.iter().map(type_).collect::<Vec<_>>()
    };
    let ready = || [catalogue(), vec![ready_inference_service()]].concat();
    let waiting = see(&routed(), ready());
    let silent = ["CacheReady", "RoutingReady", "Resolved", "RuntimeReady", "Progressing", "Ready"];
    assert_eq!(types(&waiting), silent);

    // What comes later comes last, and stays there.
    let accepted = route(said(&[("Accepted", "True", "Accepted", "")]));
    let running = see(&waiting.stored(routed()), [ready(), vec![accepted]].concat());
    assert_eq!(types(&running), [&silent[..], &["Failure"]].concat());
    assert_eq!(running.told(&["Failure"]), [FINE]);
    let waiting = see(&running.stored(routed()), ready());
    assert_eq!(types(&waiting), types(&running));
    assert_eq!(waiting.told(&["Failure"]), [FINE]);

    // Step J comes after I.
    let service = service_with(json!({ "runtimeConfigName": "gold", "routing": {
        "enabled": true, "gatewayRef": { "name": "edge" } } }));
    assert_eq!(
        types(&see(&service, catalogue())),
        [
            "CacheReady",
            "RoutingReady",
            "Resolved",
            "Failure",
            "RuntimeReady",
            "Progressing",
            "Ready"
        ]
    );
}

#[test]
fn step_f_a_write_that_fails_is_told() {
    let error = Error::invalid_spec("Invalid", "failed to apply HTTPRoute chat: no");
    let failures = [Failure { phase: Phase::Apply, error }];
    let seen = see_after(&routed(), &Cluster::of(catalogue()), &failures);
    assert_told(
        &seen,
        "Failed",
        &[
            CACHE,
            "RoutingReady=False ConfiguringRoute \"Waiting for HTTPRoute to be created\"",
            "Failure=True RuntimeFailed \"Apply failed: failed to apply HTTPRoute chat: no\"",
            "Resolved=False RuntimeFailed \"Template resolution pending due to reconciliation \
             failure\"",
            "RuntimeReady=False RuntimeFailed \"Apply failed: failed to apply HTTPRoute chat: no\"",
            "Progressing=False RuntimeFailed \"Reconciliation halted due to failure\"",
            "Ready=False RuntimeFailed \"Apply failed: failed to apply HTTPRoute chat: no\"",
        ],
    );
}

/// The step that finds it warm (P) comes after the one that stops (F).
#[test]
fn step_f_a_write_that_fails_leaves_the_cache_cold() {
    let error = Error::invalid_spec("Invalid", "failed to apply InferenceService chat: no");
    let failures = [Failure { phase: Phase::Apply, error }];
    let caching = service_with(json!({ "cacheModel": true }));
    let seen = see_after(&caching, &Cluster::of(catalogue()), &failures);
    let cold = "CacheReady=False WaitingForCache \"Waiting for cache warm-up\"";
    assert_eq!(seen.conditions[..2], [cold, NO_ROUTING]);
    assert!(seen.conditions[2].starts_with("Failure=True RuntimeFailed "));
    let again = see_after(&seen.stored(caching), &Cluster::of(catalogue()), &failures);
    assert_eq!(again.conditions, seen.conditions);
}

#[test]
fn step_h_a_template_is_about_to_be_made() {
    let seen = see(&overriding(json!({ "precision": "fp8" })), vec![template(TEMPLATE, json!({}))]);
    assert_told(
        &seen,
        "Pending",
        &[
            CACHE,
            NO_ROUTING,
            FINE,
            "Resolved=False TemplateNotFound \"Template not found; creating derived template\"",
            "RuntimeReady=False CreatingRuntime \"Waiting for template creation\"",
            "Progressing=True TemplateNotFound \"Waiting for template to be created\"",
            "Ready=False TemplateNotFound \"Template missing\"",
        ],
    );
}

#[test]
fn step_h_there_is_no_template() {
    for (service, message) in [
        (
            base(),
            "Template \"tiny-lm-latency\" not found. Create the template or verify the template \
             name.",
        ),
        (
            service_with(json!({ "templateRef": null })),
            "No template reference specified and no default template found on the image. Provide \
             spec.templateRef or configure the image's defaultServiceTemplate field.",
        ),
    ] {
        let seen = see(&service, vec![image("")]);
        let failure = format!("Failure=True TemplateNotFound \"{message}\"");
        let unresolved = format!("Resolved=False TemplateNotFound \"{message}\"");
        assert_told(
            &seen,
            "Degraded",
            &[
                CACHE,
                NO_ROUTING,
                &failure,
                &unresolved,
                "RuntimeReady=False TemplateNotFound \"Referenced template does not exist\"",
                "Progressing=False TemplateNotFound \"Cannot proceed without template\"",
                "Ready=False TemplateNotFound \"Template missing\"",
            ],
        );
    }
}

#[test]
fn step_j_a_named_runtime_config_is_missing() {
    let service = service_with(json!({ "runtimeConfigName": "gold" }));
    // Before the image, which is missing too.
    let seen = see(&service, vec![template(TEMPLATE, json!({}))]);
    assert_stopped(
        &seen,
        "Degraded",
        [
            "Failure=True RuntimeConfigMissing \"AIMRuntimeConfig \"gold\" not found in namespace \
             \"research\"\"",
            "RuntimeReady=False RuntimeConfigMissing \"Cannot configure runtime without \
             AIMRuntimeConfig\"",
            "Progressing=False RuntimeConfigMissing \"Runtime configuration is missing\"",
            "Ready=False RuntimeConfigMissing \"AIMRuntimeConfig \"gold\" not found in namespace \
             \"research\"\"",
        ],
    );
}

#[test]
fn step_k_the_image_is_missing() {
    for (template, message) in [
        (template(TEMPLATE, json!({})), "AIMImage \"tiny-lm\" not found in namespace \"research\""),
        (cluster_template(TEMPLATE, json!({})), "AIMClusterImage \"tiny-lm\" not found"),
    ] {
        assert_stopped(
            &see(&base(), vec![template]),
            "Degraded",
            [
                &format!("Failure=True ImageNotFound \"{message}\""),
                "RuntimeReady=False ImageNotFound \"Cannot create InferenceService without image\"",
                "Progressing=False ImageNotFound \"Image is missing\"",
                &format!("Ready=False ImageNotFound \"{message}\""),
            ],
        );
    }
}

#[test]
fn step_l_the_path_makes_no_sense() {
    let routing = json!({ "enabled": true, "gatewayRef": { "name": "edge" },
        "routeTemplate": "{.spec.templateRef}{.spec.runtimeConfigName}" });
    let images = json!({ "templateRef": null, "routing": routing });
    let template = cluster_template("t", json!({}));
    let seen = see(&service_with(images), vec![cluster_image("t"), template]);
    let message = "route template produced an empty path";
    assert_eq!(
        seen.told(&["Failure", "RuntimeReady", "Progressing", "Ready"]),
        [
            format!("Failure=True RouteTemplateInvalid \"{message}\""),
            "RuntimeReady=False RouteTemplateInvalid \"Cannot configure HTTP routing\"".to_owned(),
            "Progressing=False RouteTemplateInvalid \"Routing template is invalid\"".to_owned(),
            format!("Ready=False RouteTemplateInvalid \"{message}\""),
        ]
    );
    assert_eq!(seen.state(), "Degraded");
}

fn with_status(status: Value) -> Vec<Value> {
    let template = cluster_template(TEMPLATE, json!({}));
    vec![cluster_image(""), with(template, json!({ "status": status }))]
}

#[test]
fn step_m_the_template_is_not_well() {
    let condition = |status: &str| {
        json!([{ "type": "Failure", "status": status, "reason": "JobFailed",
            "message": "Discovery job failed", "lastTransitionTime": "2026-01-01T00:00:00Z" }])
    };
    for (phase, conditions, reason, message) in [
        ("Failed", condition("True"), "JobFailed", "Discovery job failed"),
        ("Degraded", condition("True"), "JobFailed", "Discovery job failed"),
        ("Degraded", condition("False"), "TemplateDegraded", "Template is not available"),
        ("Failed", json!([]), "TemplateDegraded", "Template is not available"),
    ] {
        let status = json!({ "status": phase, "conditions": conditions });
        assert_stopped(
            &see(&base(), with_status(status)),
            phase,
            [
                &format!("Failure=True {reason} \"{message}\""),
                &format!(
                    "RuntimeReady=False {reason} \"Cannot create InferenceService due to template \
                     issues\""
                ),
                &format!(
                    "Progressing=False {reason} \"Service cannot proceed due to template issues\""
                ),
                &format!("Ready=False {reason} \"Service cannot be ready due to template issues\""),
            ],
        );
    }
}

#[test]
fn g20_c_step_n_the_template_is_not_available_yet() {
    for status in [json!({}), json!({ "status": "Pending" }), json!({ "status": "Progressing" })] {
        assert_stopped(
            &see(&base(), with_status(status)),
            "Pending",
            [
                FINE,
                "RuntimeReady=False TemplateNotAvailable \"Template \"tiny-lm-latency\" is not yet \
                 Available\"",
                "Progressing=True TemplateNotAvailable \"Waiting for template discovery to \
                 complete\"",
                "Ready=False TemplateNotAvailable \"Template is not available\"",
            ],
        );
    }
}

#[test]
fn g20_d_step_o_there_is_no_model_to_fetch() {
    let sourceless = json!([{ "name": "a", "sourceUri": "", "size": "1" }]);
    for sources in [json!([]), sourceless] {
        let status = json!({ "status": "Available", "modelSources": sources });
        assert_stopped(
            &see(&base(), with_status(status)),
            "Degraded",
            [
                "Failure=True NoModelSources \"Template \"tiny-lm-latency\" is Available but \
                 discovery produced no usable model sources\"",
                "RuntimeReady=False NoModelSources \"Cannot create InferenceService without model \
                 sources\"",
                "Progressing=False NoModelSources \"Service is degraded due to missing model \
                 sources\"",
                "Ready=False NoModelSources \"Service cannot be ready without model sources\"",
            ],
        );
    }
}

#[test]
fn step_q_there_is_no_inference_service() {
    let words = |runtime: &str| {
        [
            FINE.to_owned(),
            format!("RuntimeReady=False CreatingRuntime \"{runtime}\""),
            "Progressing=True CreatingRuntime \"Reconciling InferenceService resources\""
                .to_owned(),
            "Ready=False CreatingRuntime \"InferenceService not yet created\"".to_owned(),
        ]
    };
    let absent = words("Waiting for InferenceService creation");
    assert_stopped(&see(&base(), catalogue()), "Starting", absent.each_ref().map(String::as_str));
    // One of an earlier service of this name says nothing about this one.
    let objects = [catalogue(), vec![of_another(ready_inference_service())]].concat();
    assert_stopped(&see(&base(), objects), "Starting", absent.each_ref().map(String::as_str));
    let deleting = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let objects = [catalogue(), vec![with(ready_inference_service(), deleting)]].concat();
    assert_stopped(&see(&base(), objects), "Starting", absent.each_ref().map(String::as_str));
    let unserved = see_in(&base(), &Cluster::of(catalogue()).without("InferenceService"));
    let words = words("The cluster does not know InferenceServices; install KServe");
    assert_stopped(&unserved, "Starting", words.each_ref().map(String::as_str));
}

/// Spec 10: "read errors count as absent"; the reasons are those of absence, the words are true.
#[test]
fn step_q_an_inference_service_that_cannot_be_read_counts_as_absent() {
    let odd = with(ready_inference_service(), json!({ "status": { "conditions": "all well" } }));
    let failing = Cluster::of(catalogue()).failing("InferenceService");
    let unreadable = Cluster::of([catalogue(), vec![odd]].concat());
    for (cluster, error) in [
        (failing, "Timeout: InferenceService gives no answer"),
        (unreadable, "Unreadable: The API returned a InferenceService that cannot be read"),
    ] {
        let seen = see_in(&base(), &cluster);
        let unread = format!("\"InferenceService cannot be read: {error}");
        assert_eq!(seen.state(), "Starting");
        let [runtime, progressing, ready] =
            seen.told(&["RuntimeReady", "Progressing", "Ready"])[..]
        else {
            panic!("{:?}", seen.conditions)
        };
        assert!(runtime.starts_with(&format!("RuntimeReady=False CreatingRuntime {unread}")));
        assert!(ready.starts_with(&format!("Ready=False CreatingRuntime {unread}")), "{ready}");
        assert!(progressing.starts_with("Progressing=True CreatingRuntime"), "{progressing}");
        assert_eq!(seen.told(&["Failure"]), [FINE]);
        // Under its one name: what is there is mended, and no second one can come of it.
        assert_eq!(written(&seen.plan), ["InferenceService chat"]);
        assert!(seen.applies && seen.plan.requeue_after.is_some(), "it is read again");
    }
}

#[test]
fn step_q_the_service_runs() {
    assert_stopped(
        &see(&base(), [catalogue(), vec![ready_inference_service()]].concat()),
        "Running",
        [
            FINE,
            "RuntimeReady=True RuntimeReady \"InferenceService is ready\"",
            "Progressing=False RuntimeReady \"Service is running\"",
            "Ready=True RuntimeReady \"AIMService is ready to serve traffic\"",
        ],
    );
}

#[test]
fn step_q_the_inference_service_is_not_ready() {
    for status in [
        json!({}),
        json!({ "conditions": [{ "type": "Ready", "status": "False" }] }),
        json!({ "conditions": [{ "type": "Other", "status": "True" }] }),
    ] {
        assert_stopped(
            &see(&base(), [catalogue(), vec![inference_service(status)]].concat()),
            "Starting",
            [
                FINE,
                "RuntimeReady=False CreatingRuntime \"Waiting for InferenceService to become \
                 ready\"",
                "Progressing=True CreatingRuntime \"InferenceService reconciliation in progress\"",
                "Ready=False CreatingRuntime \"Waiting for InferenceService to become ready\"",
            ],
        );
    }
}

#[test]
fn g20_b_step_q_the_model_was_not_loaded() {
    let failed = json!({ "modelStatus": { "lastFailureInfo": { "message": "out of memory" } } });
    assert_stopped(
        &see(&base(), [catalogue(), vec![inference_service(failed)]].concat()),
        "Degraded",
        [
            "Failure=True RuntimeFailed \"out of memory\"",
            "RuntimeReady=False RuntimeFailed \"out of memory\"",
            "Progressing=True RuntimeFailed \"InferenceService reconciliation in progress\"",
            "Ready=False RuntimeFailed \"out of memory\"",
        ],
    );
}

#[test]
fn step_q_a_service_without_its_route_does_not_run() {
    let seen = see(&routed(), [catalogue(), vec![ready_inference_service()]].concat());
    assert_eq!(seen.state(), "Starting");
    let message = "Waiting for HTTPRoute to become ready";
    assert_eq!(
        seen.told(&["RuntimeReady", "Ready"]),
        [
            format!("RuntimeReady=False ConfiguringRoute \"{message}\""),
            format!("Ready=False ConfiguringRoute \"{message}\"")
        ]
    );
}

#[test]
fn a_template_of_the_namespace_goes_all_the_way() {
    let objects =
        vec![image(""), available(template(TEMPLATE, json!({}))), ready_inference_service()];
    assert_eq!(see(&base(), objects).state(), "Running");
}
