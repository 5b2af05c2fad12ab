use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Probe;
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_engine::fetch::Fetched;

use super::*;
use crate::model_service::Settings;
use crate::model_service::fetch::Answers;
use crate::model_service::fixture::{
    base, body, edited, empty_cluster, live as live_of, live_epp, names, observe, observe_as,
    plan_as, plan_of, seen, service_with, settings, settled,
};

/// The Deployment of the base as the operator before us wrote it.
fn predecessors() -> Deployment {
    predecessors_of(&base())
}

fn predecessors_of(service: &ModelService) -> Deployment {
    let mut deployment = live_of(service, Role::Decode);
    deployment.metadata.annotations = None;
    let template = &mut deployment.spec.as_mut().unwrap().template;
    let labels = template.metadata.as_mut().unwrap().labels.as_mut().unwrap();
    labels.insert(VERSION_LABEL.to_owned(), "v1.0.1".to_owned());
    let pod = template.spec.as_mut().unwrap();
    let server = &mut pod.containers[0];
    server.startup_probe = None;
    server.readiness_probe = None;
    server.liveness_probe = None;
    server.volume_mounts.as_mut().unwrap().retain(|mount| mount.name != volumes::SHARED_MEMORY);
    pod.volumes.as_mut().unwrap().retain(|volume| volume.name != volumes::SHARED_MEMORY);
    let unpack = &mut pod.init_containers.as_mut().unwrap()[0];
    unpack.image = Some("ghcr.io/kitops-ml/kitops:v1.10.0".to_owned());
    unpack.args = Some(vec!["set -euo pipefail\nkit unpack --plain-http\n".to_owned()]);
    deployment
}

fn template_of(service: &ModelService, live: &Deployment) -> PodTemplateSpec {
    let cluster = Answers { decode: Fetched::Found(live.clone()), ..settled(&base()) };
    observe(service, cluster).meaning.unwrap().decode.template
}

/// What stands on the base's Deployment once it has been taken over.
fn taken_over_marks() -> BTreeMap<String, String> {
    let cluster = Answers { decode: Fetched::Found(predecessors()), ..settled(&base()) };
    observe(&seen(base()), cluster).meaning.unwrap().decode.marks.annotations().into()
}

fn live_template(live: &Deployment) -> &PodTemplateSpec {
    &live.spec.as_ref().unwrap().template
}

#[test]
fn taking_over_replaces_no_pod() {
    let live = predecessors();
    assert_eq!(&template_of(&seen(base()), &live), live_template(&live));
}

#[test]
fn taking_over_asks_the_pods_and_not_the_status() {
    // The operator before us had not come to its status, or another kind of it kept none.
    let live = predecessors();
    assert_eq!(&template_of(&base(), &live), live_template(&live));
    // Written back by the API server: with its defaults, and numbers in its own form.
    let mut defaulted = serde_json::to_value(&live).unwrap();
    let pod = &mut defaulted["spec"]["template"]["spec"];
    pod["restartPolicy"] = json!("Always");
    pod["containers"][0]["terminationMessagePath"] = json!("/dev/termination-log");
    let defaulted: Deployment = serde_json::from_value(defaulted).unwrap();
    let template = template_of(&base(), &defaulted);
    assert!(template.spec.unwrap().containers[0].startup_probe.is_none());
}

#[test]
fn a_change_that_only_we_can_make_is_not_taken_for_the_live_form() {
    let live = predecessors();
    for change in [
        json!({ "model": { "image": "registry.example.com/models/other:v2" } }),
        json!({ "model": { "insecure": true } }),
        json!({ "decode": { "probes": { "liveness": { "periodSeconds": 30 } } } }),
        json!({ "decode": { "sharedMemory": { "sizeLimit": "8Gi" } } }),
    ] {
        // Even if a pass of ours has said already that it saw the change.
        let changed = seen(edited(&base(), change.clone()));
        let template = template_of(&changed, &live);
        assert!(
            !template.metadata.unwrap().labels.unwrap().contains_key(VERSION_LABEL),
            "{change}"
        );
    }
}

/// Written by the operator before us, with what the API server filled in and recorded as its work.
fn recorded(deployment: &Deployment) -> Deployment {
    let mut value = serde_json::to_value(deployment).unwrap();
    let pod = &mut value["spec"]["template"]["spec"];
    for (field, default) in [
        ("restartPolicy", "Always"),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
    ] {
        pod[field] = json!(default);
    }
    pod["terminationGracePeriodSeconds"] = json!(30);
    let server = &mut pod["containers"][0];
    server["terminationMessagePath"] = json!("/dev/termination-log");
    server["terminationMessagePolicy"] = json!("File");
    if server.get("imagePullPolicy").is_none() {
        server["imagePullPolicy"] = json!("IfNotPresent");
    }
    let fields = record(&value["spec"]["template"]);
    let entry = json!({
        "manager": "manager", "operation": "Update", "apiVersion": "apps/v1",
        "fieldsV1": { "f:spec": { "f:template": fields } },
    });
    value["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    serde_json::from_value(value).unwrap()
}

/// As the API server records who has set what.
fn record(value: &Value) -> Value {
    let keyed = |field: &str, item: &Value| {
        let keys: &[&str] = match field {
            "containers" | "initContainers" | "env" | "volumes" | "imagePullSecrets" => &["name"],
            "volumeMounts" => &["mountPath"],
            "ports" => &["containerPort", "protocol"],
            _ => return None,
        };
        let keys: serde_json::Map<_, _> =
            keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect();
        Some(format!("k:{}", Value::Object(keys)))
    };
    let Value::Object(map) = value else { return json!({}) };
    let fields = map.iter().map(|(field, value)| {
        let below = match value {
            _ if ["nodeSelector", "tolerations"].contains(&field.as_str()) => json!({}),
            Value::Array(items) => {
                let items =
                    items.iter().filter_map(|item| Some((keyed(field, item)?, record(item))));
                Value::Object(items.collect())
            }
            other => record(other),
        };
        (format!("f:{field}"), below)
    });
    let all = [(".".to_owned(), json!({}))].into_iter().chain(fields);
    Value::Object(all.collect())
}

#[test]
fn what_the_server_filled_in_for_the_operator_before_us_is_no_change() {
    let live = recorded(&predecessors());
    let template = template_of(&seen(base()), &live);
    assert_eq!(&template, live_template(&predecessors()));
}

/// An apply takes away what the operator before us has set and we do not want, and the pods with it.
#[test]
fn what_the_spec_no_longer_says_is_not_taken_for_the_live_form() {
    for more in [
        json!({ "engine": { "imagePullPolicy": "Always" } }),
        json!({ "decode": { "annotations": { "team": "ml" } } }),
        json!({ "decode": { "nodeSelector": { "zone": "a" } } }),
        json!({ "decode": { "tolerations": [{ "key": "gpu", "operator": "Exists" }] } }),
        json!({ "decode": { "resources": { "limits": { "memory": "8Gi" } } } }),
        json!({ "model": { "imagePullSecrets": [{ "name": "a" }] } }),
        json!({ "routingProxy": {} }),
    ] {
        let live = recorded(&predecessors_of(&service_with(more.clone())));
        let template = template_of(&seen(base()), &live);
        let pod = template.spec.unwrap();
        assert!(pod.containers[0].startup_probe.is_some(), "{more}");
    }
    let two =
        service_with(json!({ "decode": { "nodeSelector": { "zone": "a", "disk": "fast" } } }));
    let one = service_with(json!({ "decode": { "nodeSelector": { "zone": "a" } } }));
    let template = template_of(&seen(one), &recorded(&predecessors_of(&two)));
    assert!(template.spec.unwrap().containers[0].startup_probe.is_some());
}

#[test]
fn what_others_have_set_is_theirs_and_stays() {
    let mut live = recorded(&predecessors());
    let template = &mut live.spec.as_mut().unwrap().template;
    let restarted = "kubectl.kubernetes.io/restartedAt".to_owned();
    let annotations = [(restarted, "2026-05-01T12:00:00Z".to_owned())].into();
    template.metadata.as_mut().unwrap().annotations = Some(annotations);
    let template = template_of(&seen(base()), &live);
    assert!(template.spec.unwrap().containers[0].startup_probe.is_none());
}

#[test]
fn what_was_taken_over_is_known_as_such_until_it_changes() {
    assert_eq!(taken_over_marks()[FORM_ANNOTATION], "taken-over");
    let mut marked = predecessors();
    marked.metadata.annotations = Some(taken_over_marks());
    assert_eq!(&template_of(&seen(base()), &marked), live_template(&predecessors()));
}

#[test]
fn m10_what_somebody_changes_in_pods_of_the_present_form_is_put_back() {
    let ours = live_of(&base(), Role::Decode);
    let mut edited = ours.clone();
    let pod = edited.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    pod.containers[0].readiness_probe = None;
    pod.containers[0].liveness_probe =
        Some(Probe { period_seconds: Some(77), ..Default::default() });
    pod.init_containers.as_mut().unwrap()[0].image = Some("evil:1".to_owned());
    pod.volumes.as_mut().unwrap().retain(|volume| volume.name != volumes::SHARED_MEMORY);
    assert_eq!(&template_of(&seen(base()), &edited), live_template(&ours));
}

/// A deadline replaces no pod, and unpacking may take longer than the API server's own allows.
#[test]
fn taking_over_gives_pods_without_probes_time_too() {
    let cluster = Answers { decode: Fetched::Found(predecessors()), ..settled(&base()) };
    let plan = plan_of(&seen(base()), cluster);
    let spec = &body(&plan, "Deployment", &names().role(Role::Decode))["spec"];
    assert_eq!(spec["progressDeadlineSeconds"], 4200);
}

#[test]
fn once_the_service_changes_its_pods_get_everything_new() {
    let live = predecessors();
    for change in [
        json!({ "engine": { "args": ["--max-model-len=4096"] } }),
        json!({ "decode": { "nodeSelector": { "zone": "a" } } }),
        json!({ "decode": { "probes": { "liveness": { "periodSeconds": 30 } } } }),
        json!({ "decode": { "sharedMemory": { "sizeLimit": "8Gi" } } }),
        json!({ "model": { "insecure": true } }),
    ] {
        let changed = edited(&seen(base()), change.clone());
        // Taken over once, so that the revision stands on the Deployment.
        let mut marked = live.clone();
        marked.metadata.annotations = Some(taken_over_marks());
        let template = template_of(&changed, &marked);
        let labels = template.metadata.unwrap().labels.unwrap();
        assert!(!labels.contains_key(VERSION_LABEL), "{change}");
        let pod = template.spec.unwrap();
        assert!(pod.containers[0].readiness_probe.is_some(), "{change}");
        assert!(pod.volumes.unwrap().iter().any(|v| v.name == volumes::SHARED_MEMORY), "{change}");
        let script = pod.init_containers.unwrap()[0].args.clone().unwrap()[0].clone();
        let plain = change.pointer("/model/insecure").is_some();
        assert_eq!(script.contains("--plain-http"), plain, "{change}");
    }
}

#[test]
fn a_change_of_something_else_replaces_no_pod() {
    let live = predecessors();
    let mut marked = live.clone();
    marked.metadata.annotations = Some(taken_over_marks());
    for change in [
        json!({ "decode": { "replicas": 5 } }),
        json!({ "decode": { "strategy": { "type": "Recreate" } } }),
        json!({ "httpRoute": { "gatewayRef": { "name": "gw" } } }),
        json!({ "inferencePool": { "endpointPicker": { "replicas": 2 } } }),
        json!({ "monitoring": { "podMonitor": { "enabled": false } } }),
    ] {
        let changed = edited(&seen(base()), change.clone());
        assert_eq!(&template_of(&changed, &marked), live_template(&live), "{change}");
    }
}

#[test]
fn a_change_that_the_operator_before_us_never_saw_is_made_in_full() {
    let changed = edited(&seen(base()), json!({ "engine": { "args": ["--other"] } }));
    let template = template_of(&changed, &predecessors());
    assert!(template.spec.unwrap().containers[0].startup_probe.is_some());
    // It was seen by now, but not carried out.
    let template = template_of(&seen(changed), &predecessors());
    assert!(template.spec.unwrap().containers[0].startup_probe.is_some());
}

#[test]
fn m06_a_new_version_of_the_operator_restarts_nothing() {
    let mut decode = live_of(&base(), Role::Decode);
    // An older version of ours, which probed in another way.
    let marks = decode.metadata.annotations.as_mut().unwrap();
    marks.insert(FORM_ANNOTATION.to_owned(), "older".to_owned());
    let server = &mut decode.spec.as_mut().unwrap().template.spec.as_mut().unwrap().containers[0];
    server.liveness_probe = Some(Probe { period_seconds: Some(77), ..Default::default() });
    let epp = live_epp(&base());
    let newer = Settings { version: "v9".to_owned(), ..settings() };
    let cluster = Answers { decode: Fetched::Found(decode.clone()), ..settled(&base()) };
    let plan = plan_as(&newer, &seen(base()), cluster);
    for live in [decode, epp] {
        let name = live.metadata.name.clone().unwrap();
        let template = &body(&plan, "Deployment", &name)["spec"]["template"];
        assert_eq!(template, &serde_json::to_value(live_template(&live)).unwrap(), "{name}");
        let labels = &body(&plan, "Deployment", &name)["metadata"]["labels"];
        assert_eq!(labels[VERSION_LABEL], "v9");
    }
}

#[test]
fn m06_the_order_of_volumes_stays_too() {
    let service = service_with(json!({
        "model": { "imagePullSecrets": [{ "name": "a" }, { "name": "b" }] },
        "decode": {
            "sharedMemory": {},
            "volumes": [{ "name": "extra", "emptyDir": {} }],
            "volumeMounts": [{ "name": "extra", "mountPath": "/extra" }],
        },
    }));
    let plan = plan_of(&seen(service.clone()), settled(&service));
    let template = &body(&plan, "Deployment", &names().role(Role::Decode))["spec"]["template"];
    let live = live_of(&service, Role::Decode);
    assert_eq!(template, &serde_json::to_value(live_template(&live)).unwrap());
}

#[test]
fn m06_new_pods_carry_no_version() {
    let plan = plan_of(&base(), settled(&base()));
    for name in [names().role(Role::Decode), names().epp().to_owned()] {
        let labels = &body(&plan, "Deployment", &name)["spec"]["template"]["metadata"]["labels"];
        assert!(labels.get(VERSION_LABEL).is_none(), "{name}");
    }
}

#[test]
fn taking_over_restarts_no_endpoint_picker() {
    let mut live = live_epp(&base());
    live.metadata.annotations = None;
    let template = &mut live.spec.as_mut().unwrap().template;
    let labels = template.metadata.as_mut().unwrap().labels.as_mut().unwrap();
    labels.insert(VERSION_LABEL.to_owned(), "v1.0.1".to_owned());
    let cluster = Answers { epp: Fetched::Found(live.clone()), ..settled(&base()) };
    let template = observe(&seen(base()), cluster).meaning.unwrap().epp.template;
    assert_eq!(&template, live_template(&live));
}

#[test]
fn another_default_image_is_a_change_of_services_without_one() {
    let service = service_with(json!({ "engine": { "image": "" } }));
    let newer = Settings { default_engine_image: "vllm:2".to_owned(), ..settings() };
    let plan = plan_as(&newer, &seen(service.clone()), settled(&service));
    let deployment = body(&plan, "Deployment", &names().role(Role::Decode)).to_string();
    assert!(deployment.contains("\"vllm:2\""));
}

#[test]
fn settings_that_matter_only_at_the_start_replace_no_pod() {
    let other = Settings { kit_image: "kit:2".to_owned(), plain_http: true, ..settings() };
    let plan = plan_as(&other, &seen(base()), settled(&base()));
    let name = names().role(Role::Decode);
    let live = live_of(&base(), Role::Decode);
    let template = &body(&plan, "Deployment", &name)["spec"]["template"];
    assert_eq!(template, &serde_json::to_value(live_template(&live)).unwrap());
}

/// The decode Deployment as it is made with other settings.
fn live_as(settings: &Settings, service: &ModelService) -> Deployment {
    let plan = plan_as(settings, service, empty_cluster());
    let made = body(&plan, "Deployment", &names().role(Role::Decode)).clone();
    serde_json::from_value(made).unwrap()
}

#[test]
fn unpacking_that_is_left_out_or_comes_back_replaces_no_pod() {
    let secrets = json!([{ "name": "a" }, { "name": "b" }]);
    let more = json!({ "model": { "imagePullSecrets": secrets }, "routingProxy": {} });
    let service = service_with(more);
    let without = Settings { kit_image: String::new(), ..settings() };
    for (before, now) in [(settings(), without.clone()), (without.clone(), settings())] {
        let live = live_as(&before, &service);
        let cluster = Answers { decode: Fetched::Found(live.clone()), ..settled(&service) };
        let plan = plan_as(&now, &seen(service.clone()), cluster);
        let template = &body(&plan, "Deployment", &names().role(Role::Decode))["spec"]["template"];
        assert_eq!(template, &serde_json::to_value(live_template(&live)).unwrap());
    }
    // A step that the operator before us made stays as well, and so does its absence.
    let mut taken = predecessors();
    let cluster =
        |live: &Deployment| Answers { decode: Fetched::Found(live.clone()), ..settled(&base()) };
    let kept = |settings: &Settings, live: &Deployment| {
        let observed = observe_as(settings, &seen(base()), cluster(live));
        observed.meaning.unwrap().decode.template
    };
    assert_eq!(&kept(&without, &taken), live_template(&taken));
    taken.spec.as_mut().unwrap().template.spec.as_mut().unwrap().init_containers = None;
    assert_eq!(&kept(&settings(), &taken), live_template(&taken));
    // But not if it loads another model.
    let other = json!({ "model": { "image": "registry.example.com/models/other:v2" } });
    let observed = observe_as(&without, &edited(&base(), other), cluster(&predecessors()));
    assert_eq!(observed.meaning.unwrap().decode.template.spec.unwrap().init_containers, None);
}

/// If this fails, pods of the present form would be replaced: count [`WAYS`] up, and pin the new hash.
#[test]
fn the_parts_that_are_kept_change_only_with_another_way() {
    let secrets = json!([{ "name": "a" }, { "name": "b" }]);
    let service = service_with(json!({ "model": { "imagePullSecrets": secrets } }));
    let template = observe(&service, settled(&service)).meaning.unwrap().decode.template;
    let pod = template.spec.unwrap();
    let server = &pod.containers[0];
    let kept = json!([
        template.metadata.unwrap().labels.unwrap().get(VERSION_LABEL),
        pod.init_containers.unwrap()[0],
        [&server.startup_probe, &server.readiness_probe, &server.liveness_probe],
        server.volume_mounts,
        pod.volumes,
    ]);
    assert_eq!((WAYS, hashed(&kept).as_str()), (1, "e36ac4db9b6297e6"));
}

/// If this fails, so will every pod of every service when the operator is upgraded.
#[test]
fn revisions_never_change_by_themselves() {
    let meaning = observe(&base(), settled(&base())).meaning.unwrap();
    assert_eq!(meaning.decode.marks.revision, "38635123a83a5744");
    assert_eq!(meaning.epp.marks.revision, "42ea9087923513ef");
}
