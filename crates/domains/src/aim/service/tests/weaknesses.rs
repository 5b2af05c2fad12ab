//! What the operator before us got wrong, where no other test speaks of it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};
use windlass_api::aim::service::{AimService, ServiceStatus};
use windlass_engine::conditions::EventMode;
use windlass_engine::domain::Domain;
use windlass_engine::error::Error;
use windlass_engine::fetch::Fetched;
use windlass_engine::plan::Plan;

use crate::aim::catalogue::Images;
use crate::aim::runtime_config::Configs;
use crate::aim::service::fetch::{Answers, Templates};
use crate::aim::service::fixture::{
    Cluster, TEMPLATE, available, base, catalogue, cluster_image, cluster_template,
    ready_inference_service, route, routed, said, see, see_in, service_with, template, with,
    written,
};
use crate::aim::service::{ServiceDomain, compose};

/// A service that was reported in this state, with a failure.
fn reported(mut service: AimService, state: &str) -> AimService {
    service.status = Some(ServiceStatus {
        status: Some(state.to_owned()),
        conditions: vec![Condition {
            type_: "Failure".to_owned(),
            status: "True".to_owned(),
            reason: "ImageNotFound".to_owned(),
            message: "gone".to_owned(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }],
        ..Default::default()
    });
    service
}

#[test]
fn w08_the_state_does_not_depend_on_the_one_before() {
    for state in ["Failed", "Degraded", "Running", "Pending"] {
        assert_eq!(see(&reported(base(), state), catalogue()).state(), "Starting", "{state}");
    }
}

#[test]
fn w09_a_failure_is_over_when_nothing_fails_any_more() {
    let objects = [catalogue(), vec![ready_inference_service()]].concat();
    let seen = see(&reported(routed(), "Degraded"), objects);
    assert_eq!(seen.told(&["Failure"]), ["Failure=False Resolved \"No active failures\""]);
}

/// Each condition is set to its last word alone, so no time moves back and forth.
#[test]
fn w10_conditions_are_unique_and_in_the_order_of_the_steps() {
    let caching = service_with(json!({ "cacheModel": true }));
    for (service, objects) in [
        (base(), vec![]),
        (base(), catalogue()),
        (caching, catalogue()),
        (routed(), [catalogue(), vec![route(said(&[("Accepted", "False", "", "")]))]].concat()),
    ] {
        let seen = see(&service, objects);
        let types: Vec<&str> =
            seen.conditions.iter().map(|line| line.split('=').next().unwrap()).collect();
        assert_eq!(
            types,
            [
                "CacheReady",
                "RoutingReady",
                "Failure",
                "Resolved",
                "RuntimeReady",
                "Progressing",
                "Ready"
            ]
        );
    }
}

fn answers() -> Answers {
    let images = || Images { namespaced: Fetched::Missing, cluster: Fetched::Missing };
    let found = |value: Value| Fetched::Found(serde_json::from_value(value).unwrap());
    Answers {
        templates: Templates {
            images: images(),
            own_base: Fetched::Missing,
            cluster_base: found(available(cluster_template(TEMPLATE, json!({})))),
            derived_name: String::new(),
            derived: Fetched::Missing,
            services: Fetched::Missing,
            is_served: Fetched::Missing,
            all_own: Fetched::Found(Vec::new()),
            all_cluster: Fetched::Found(Vec::new()),
        },
        images: Some(images()),
        configs: Configs {
            name: "default".to_owned(),
            namespaced: Fetched::Missing,
            cluster: Fetched::Missing,
        },
        inference_service: Some(Fetched::Missing),
        route: Some(Fetched::Missing),
    }
}

/// Even an error that holds nothing back by itself, such as a missing right.
#[test]
fn whatever_could_not_be_read_nothing_is_changed() {
    fn failed<T>() -> Fetched<T> {
        Fetched::Failed(Error::auth("Forbidden", "no"))
    }
    let plan_of = |answers: Answers| -> Plan {
        let domain = ServiceDomain::default();
        let service = service_with(json!({ "routing": {} }));
        domain.plan(&service, &compose::compose(&domain.settings, &service, answers))
    };
    let stray = serde_json::from_value(route(json!([]))).unwrap();
    let known = Answers { route: Some(Fetched::Found(stray)), ..answers() };
    let plan = plan_of(known.clone());
    assert_eq!((plan.apply.len(), plan.delete.len()), (1, 1));
    let templates = Templates { own_base: failed(), ..known.templates.clone() };
    let configs = Configs { cluster: failed(), ..known.configs.clone() };
    let images = Images { namespaced: Fetched::Missing, cluster: failed() };
    for unread in [
        Answers { templates, ..known.clone() },
        Answers { configs, ..known.clone() },
        Answers { images: Some(images), ..known.clone() },
    ] {
        let plan = plan_of(unread);
        assert_eq!((plan.apply.len(), plan.delete.len()), (0, 0));
        assert!(plan.requeue_after.is_some());
    }
    // Of the children nothing is made, and what is not known to be there is not deleted.
    let plan = plan_of(Answers { route: Some(failed()), ..known });
    assert_eq!((plan.apply.len(), plan.delete.len()), (1, 0));
    assert!(plan.requeue_after.is_some());
}

#[test]
fn w18_the_first_source_with_an_address_counts() {
    let sources = json!([{ "name": "a", "sourceUri": "", "size": "1" },
        { "name": "b", "sourceUri": "hf://b", "size": "1" }]);
    let change = json!({ "status": { "modelSources": sources } });
    let template = with(available(cluster_template(TEMPLATE, json!({}))), change);
    let seen = see(&base(), vec![cluster_image(""), template]);
    let model = &seen.plan.apply[0].body["spec"]["predictor"]["model"];
    assert_eq!(model["storageUri"], "hf://b");
}

#[test]
fn no_condition_is_an_event() {
    let domain = ServiceDomain::default();
    let observed = compose::compose(&domain.settings, &base(), answers());
    let health = domain.health(&base(), &observed);
    assert!(health.notices.is_empty() && health.news.is_empty());
    assert!(!domain.identity().events.corrections, "what was set back is in the log alone");
    for condition in health.manual.unwrap().conditions.iter() {
        assert_eq!(condition.observability.events, EventMode::Never, "{}", condition.type_);
    }
}

/// Who has asked for something is woken when it comes, goes or changes.
#[test]
fn w03_a_service_asks_for_all_that_may_change_its_fate() {
    let asked = |service: &AimService, objects: Vec<Value>| {
        let cluster = Cluster::of(objects);
        see_in(service, &cluster);
        cluster.asked()
    };
    let nameless = service_with(json!({ "templateRef": null }));
    assert_eq!(
        asked(&nameless, vec![]),
        [
            "AIMImage tiny-lm",
            "AIMClusterImage tiny-lm",
            "AIMRuntimeConfig default",
            "AIMClusterRuntimeConfig default",
            "InferenceService chat",
            "HTTPRoute chat",
        ]
    );
    let service = service_with(json!({ "overrides": {}, "runtimeConfigName": "team" }));
    let missing = asked(&service, vec![]);
    let derived = "AIMServiceTemplate tiny-lm-latency-ovr-44136fa3";
    for question in [
        derived,
        "AIMServiceTemplate *",
        "AIMClusterServiceTemplate *",
        "AIMServiceTemplate tiny-lm-latency",
        "AIMClusterServiceTemplate tiny-lm-latency",
        "AIMRuntimeConfig team",
        "AIMClusterRuntimeConfig team",
    ] {
        assert!(missing.iter().any(|asked| asked == question), "{question}");
    }
    let there = asked(&service, vec![template("tiny-lm-latency-ovr-44136fa3", json!({}))]);
    assert!(there.iter().any(|asked| asked == derived));
    assert!(there.iter().any(|asked| asked == "AIMImage tiny-lm"));
}

#[test]
fn a_derived_template_that_becomes_available_is_served() {
    let service = service_with(json!({ "overrides": { "precision": "fp8" } }));
    let made = written(&see(&service, vec![template(TEMPLATE, json!({}))]).plan);
    let name = made[0].strip_prefix("AIMServiceTemplate ").unwrap();
    let derived = available(template(name, json!({ "precision": "fp8" })));
    let seen = see(&service, vec![cluster_image(""), derived]);
    assert_eq!(written(&seen.plan), ["InferenceService chat"]);
}
