//! Derived templates go when no service uses them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures::executor::block_on;
use serde_json::{Value, json};
use windlass_api::aim::template::AimServiceTemplate;
use windlass_engine::domain::{Domain, Whose};
use windlass_engine::fetch::{Documents, Notes, Noting, Serves};
use windlass_engine::kind::{Kind, ObjectKey};

use crate::aim::Settings;
use crate::aim::derived::name_beside;
use crate::aim::template::fetch::fetch;
use crate::aim::template::fixture::{
    Cluster, UID, cluster_template_with, domain, image, later, look, look_at, now, template,
};

const NAME: &str = "tiny-lm-latency-ovr-99ad0cdb";

fn derived() -> AimServiceTemplate {
    let mut derived = template();
    derived.metadata.name = Some(NAME.to_owned());
    derived.metadata.labels = Some(labels());
    derived
}

fn labels() -> BTreeMap<String, String> {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    BTreeMap::from([
        label("aim.silogen.ai/derived-template", "true"),
        label("app.kubernetes.io/managed-by", "aim-controller"),
    ])
}

fn service(namespace: &str, spec: Value, status: Value) -> Value {
    json!({ "apiVersion": "aim.silogen.ai/v1alpha1", "kind": "AIMService",
        "metadata": { "name": "chat", "namespace": namespace, "uid": "s" },
        "spec": spec, "status": status })
}

fn goes_with(service: Value) -> bool {
    let seen = look(&derived(), &Cluster::of([image(), service]));
    let deleted = seen.deleted() == [format!("AIMServiceTemplate {NAME}")];
    assert_eq!(deleted, seen.applied().is_empty(), "nothing is made for what goes");
    deleted
}

#[test]
fn w14_a_derived_template_stays_while_a_service_uses_it() {
    let plain = json!({ "aimImageName": "tiny-lm" });
    let users = [
        (json!({ "aimImageName": "tiny-lm", "templateRef": format!(" {NAME} ") }), json!({})),
        (json!({ "aimImageName": "tiny-lm", "overrides": { "metric": "throughput" } }), json!({})),
        (
            json!({ "templateRef": " tiny-lm-latency ", "overrides": { "metric": "throughput" } }),
            json!({}),
        ),
        (plain.clone(), json!({ "resolvedTemplate": { "name": NAME } })),
    ];
    for (spec, status) in users {
        assert!(!goes_with(service("research", spec.clone(), status)), "{spec}");
    }
    let others = [
        ("research", plain.clone(), json!({ "resolvedTemplate": { "name": "another" } })),
        ("research", json!({ "overrides": { "metric": "latency" } }), json!({})),
        // Equal overrides of another base make up another template.
        (
            "research",
            json!({ "templateRef": "another", "overrides": { "metric": "throughput" } }),
            json!({}),
        ),
        ("elsewhere", plain, json!({ "resolvedTemplate": { "name": NAME } })),
    ];
    for (namespace, spec, status) in others {
        assert!(goes_with(service(namespace, spec.clone(), status)), "{spec}");
    }
}

/// One whose usual name is taken by the template of another base has a name beside it.
#[test]
fn w14_a_derived_template_under_another_name_stays_while_a_service_asks_for_it() {
    let overrides = json!({ "metric": "throughput" });
    let mut beside = derived();
    let parameters = serde_json::from_value(overrides.clone()).unwrap();
    let long = "a".repeat(60);
    beside.metadata.name = name_beside(&long, &parameters);
    let asks = |base: &str| {
        let spec = json!({ "templateRef": base, "overrides": overrides });
        look(&beside, &Cluster::of([image(), service("research", spec, json!({}))]))
    };
    assert!(asks(&long).deleted().is_empty());
    assert_eq!(asks(&"a".repeat(61)).deleted().len(), 1);
}

/// A template is woken by the one service that it asks for by name, not by each of its namespace.
#[test]
fn w14_a_derived_template_asks_for_one_of_its_services() {
    let watches = domain::<AimServiceTemplate>().watches();
    let services = watches.iter().find(|watch| watch.kind.kind == "AIMService").unwrap();
    assert_eq!(services.whose, Whose::Named);
    let named = |name: &str, template: &str| {
        let mut service = service("research", json!({ "templateRef": template }), json!({}));
        service["metadata"]["name"] = name.into();
        service
    };
    let objects = [named("c", NAME), named("b", NAME), named("a", "another"), image()];
    let documents = Documents { objects: objects.to_vec(), serves: Serves::Everything };
    let reader = Noting { reader: &documents, notes: ByName::default() };
    block_on(fetch(&Settings::default(), &reader, &derived()));
    let asked = reader.notes.0.into_inner().unwrap();
    let services: Vec<_> = asked.iter().filter(|asked| asked.starts_with("AIMService ")).collect();
    assert_eq!(services, ["AIMService b"]);
}

/// What is asked for by name.
#[derive(Default)]
struct ByName(Mutex<Vec<String>>);

impl Notes for ByName {
    fn one(&self, kind: &Kind, key: &ObjectKey) {
        self.0.lock().unwrap().push(format!("{kind} {}", key.name));
    }
}

#[test]
fn w14_a_service_on_its_way_out_uses_nothing() {
    let mut service = service("research", json!({ "templateRef": NAME }), json!({}));
    service["metadata"]["deletionTimestamp"] = "2026-01-01T11:00:00Z".into();
    assert!(goes_with(service));
}

#[test]
fn w14_a_new_one_is_given_time() {
    let mut derived = derived();
    let made = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now());
    derived.metadata.creation_timestamp = Some(made);
    // Without an image there is nothing else to wait for.
    let cluster = Cluster::default();
    let seen = look_at(&derived, &cluster, later(20));
    assert!(seen.deleted().is_empty());
    assert_eq!(seen.plan.requeue_after.map(|left| left.as_secs()), Some(40));
    assert_eq!(look_at(&derived, &cluster, later(60)).deleted().len(), 1);
}

/// Also a copy of a derived one, with its labels.
#[test]
fn a_template_that_somebody_wrote_stays() {
    for (name, labels) in [
        (NAME, BTreeMap::new()),
        ("my-own", labels()),
        ("my-own-ovr-latency1", labels()),
        (NAME, labels().into_iter().take(1).collect()),
    ] {
        let mut own = template();
        own.metadata.name = Some(name.to_owned());
        own.metadata.labels = Some(labels);
        let seen = look(&own, &Cluster::of([image()]));
        assert_eq!((seen.deleted().len(), seen.applied().len()), (0, 1), "{name}");
    }
    let mut of_cluster = cluster_template_with(json!({}));
    of_cluster.metadata.labels = Some(labels());
    of_cluster.metadata.name = Some(NAME.to_owned());
    assert!(look(&of_cluster, &Cluster::of([image()])).deleted().is_empty());
}

/// A service that has changed its mind is served by the old template until the new one is there.
#[test]
fn w14_it_stays_while_a_server_runs_by_it() {
    let server = json!({ "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
        "metadata": { "name": "chat", "namespace": "research", "uid": "i",
            "labels": { "aim.silogen.ai/template": NAME } },
        "spec": { "predictor": {} } });
    let seen = look(&derived(), &Cluster::of([image(), server]));
    assert!(seen.deleted().is_empty());
    assert!(seen.plan.requeue_after.is_some(), "servers are not watched");
}

#[test]
fn w14_only_this_very_one_goes() {
    let seen = look(&derived(), &Cluster::of([image()]));
    let uid = UID.to_owned();
    assert_eq!(seen.plan.delete[0].how, windlass_engine::plan::Look::Known { uid });
}
