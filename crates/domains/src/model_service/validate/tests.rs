use serde_json::{Value, json};

use super::*;
use crate::model_service::fixture::{named, service_with, settings, split_with};

fn judged(service: &ModelService) -> Result<Wanted, Rule> {
    validate(service, &Names::of(service, "test"), &settings())
}

fn broken(spec: Value) -> Rule {
    judged(&service_with(spec)).unwrap_err()
}

#[test]
fn m16_each_bad_spec_has_its_text_and_its_field() {
    let picker = |port: i32| json!({ "inferencePool": { "endpointPicker": { "port": port } } });
    let nixl = json!([{ "name": NIXL_PORT_VARIABLE, "value": "8000" }]);
    for (spec, text, field) in [
        (
            json!({ "prefill": {} }),
            "prefill needs routingProxy, which hands prompts over to the prefill pods",
            "spec.prefill",
        ),
        (
            json!({ "routingProxy": { "targetPort": 8000 } }),
            "routingProxy targetPort must differ from engine port, which the proxy itself uses",
            "spec.routingProxy.targetPort",
        ),
        (
            picker(9003),
            "inferencePool endpointPicker port must not be 9003 or 9090, which the endpoint \
             picker uses for health and metrics",
            "spec.inferencePool.endpointPicker.port",
        ),
        (
            json!({ "routingProxy": {}, "engine": { "env": nixl } }),
            "engine env VLLM_NIXL_SIDE_CHANNEL_PORT must differ from engine port, which the proxy \
             itself uses",
            "spec.engine.env",
        ),
        (
            json!({ "decode": { "volumes": [{ "name": "model", "emptyDir": {} }] } }),
            "decode volumes must not have the name model, which the operator itself uses",
            "spec.decode.volumes",
        ),
        (
            json!({ "decode": { "volumeMounts": [{ "name": "x", "mountPath": "/dev/shm" }] } }),
            "decode volumeMounts must not use /dev/shm, which the operator itself uses",
            "spec.decode.volumeMounts",
        ),
        (
            json!({ "decode": { "sharedMemory": { "sizeLimit": "lots" } } }),
            "decode sharedMemory sizeLimit must be a positive quantity",
            "spec.decode.sharedMemory.sizeLimit",
        ),
    ] {
        let rule = broken(spec.clone());
        assert_eq!((rule.to_string().as_str(), rule.field().as_str()), (text, field), "{spec}");
    }
}

#[test]
fn m16_a_model_is_not_put_where_something_else_is_mounted() {
    let secrets = json!([{ "name": "a" }, { "name": "b" }]);
    let alone = json!({ "parallelism": { "tensor": 1 } });
    for (path, spec, taken) in [
        ("/tmp/model-oci", json!({}), true),
        ("/tmp/model-oci/", json!({}), true),
        ("/dev/shm", json!({}), true),
        ("/dev/shm", json!({ "decode": alone }), false),
        ("/.docker", json!({}), false),
        ("/.docker", json!({ "model": { "imagePullSecrets": secrets } }), true),
        ("/.docker-1", json!({ "model": { "imagePullSecrets": secrets } }), true),
        ("/.docker-2", json!({ "model": { "imagePullSecrets": secrets } }), false),
        ("/models", json!({ "model": { "imagePullSecrets": secrets } }), false),
    ] {
        let mut service = service_with(spec.clone());
        service.spec.model.mount_path = path.to_owned();
        let rule = judged(&service).err();
        let want = taken.then(|| Rule::ModelPath(path.to_owned()));
        assert_eq!(rule, want, "{path} {spec}");
    }
    let rule = Rule::ModelPath("/dev/shm".to_owned());
    let text = "model mountPath must not be /dev/shm, which the operator itself uses";
    assert_eq!(
        (rule.to_string(), rule.field()),
        (text.to_owned(), "spec.model.mountPath".to_owned())
    );
    // Where nothing is unpacked, nothing is in the way.
    let settings = Settings { kit_image: String::new(), ..settings() };
    let service = service_with(json!({ "model": { "mountPath": "/tmp/model-oci" } }));
    assert!(validate(&service, &Names::of(&service, "test"), &settings).is_ok());
}

#[test]
fn shared_memory_of_the_users_own_is_fine_where_there_is_no_other() {
    let own = |shared: Value| {
        judged(&service_with(json!({ "decode": {
            "sharedMemory": shared,
            "volumes": [{ "name": "dshm", "emptyDir": { "medium": "Memory" } }],
            "volumeMounts": [{ "name": "dshm", "mountPath": "/dev/shm" }],
        } })))
    };
    assert!(own(json!({ "enabled": false })).is_ok());
    let name = "dshm".to_owned();
    assert_eq!(own(json!({})).err(), Some(Rule::VolumeName { role: "decode", name }));
}

#[test]
fn m16_names_that_make_no_service_are_refused() {
    for (name, valid) in [
        ("a".repeat(59), true),
        ("a".repeat(60), false),
        (format!("0{}", "a".repeat(56)), true),
        (format!("0{}", "a".repeat(57)), false),
        (format!("a--{}", "b".repeat(57)), true),
        (format!("a--{}", "b".repeat(60)), false),
    ] {
        let judged = judged(&named(&name, "ml"));
        assert_eq!(judged.err(), (!valid).then_some(Rule::Name), "{name}");
    }
}

#[test]
fn a_side_channel_that_nothing_else_uses_is_fine() {
    let nixl = json!([{ "name": NIXL_PORT_VARIABLE, "value": "8000" }]);
    assert!(judged(&service_with(json!({ "engine": { "env": nixl } }))).is_ok());
    assert!(judged(&split_with(json!({}))).is_ok());
}

#[test]
fn m12_a_pool_that_is_spoken_of_fails_open() {
    let mode = |spec: Value| judged(&service_with(spec)).unwrap().epp.failure_mode;
    assert_eq!(mode(json!({})), FailureMode::FailClose);
    let picker = |picker: Value| json!({ "inferencePool": { "endpointPicker": picker } });
    assert_eq!(mode(picker(json!({}))), FailureMode::FailOpen);
    assert_eq!(mode(picker(json!({ "failureMode": "FailClose" }))), FailureMode::FailClose);
}

#[test]
fn empty_texts_are_as_good_as_none() {
    let wanted = judged(&service_with(json!({
        "engine": { "image": "" },
        "model": { "mountPath": "" },
        "routingProxy": { "image": "" },
    })))
    .unwrap();
    assert_eq!(wanted.engine_image, settings().default_engine_image);
    assert_eq!(wanted.proxy_image, Some(settings().default_routing_proxy_image));
    assert_eq!(wanted.mount_path, "/models");
}
