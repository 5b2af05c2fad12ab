use std::path::Path;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::*;
use crate::node::{sources::Found, translate::Mount};

fn sources() -> Sources {
    let map: ConfigMap =
        serde_json::from_value(json!({"data": {"a": "1", "B": "two", "same": "map"}})).unwrap();
    let mut secret = Secret::default();
    let data = [("k", &b"secret"[..]), ("same", b"secret"), ("raw", b"\xff")];
    secret.data =
        Some(data.map(|(key, value)| (key.to_owned(), ByteString(value.to_vec()))).into());
    let mut sources = Sources::default();
    sources.config_maps.insert("map".into(), Ok(Some(map.into())));
    sources.config_maps.insert("gone".into(), Ok(None));
    sources.config_maps.insert("denied".into(), Err("configmaps \"denied\" is forbidden".into()));
    secret.data.as_mut().unwrap().remove("raw");
    sources.secrets.insert("sec".into(), Ok(Some(secret.clone().into())));
    secret.data.as_mut().unwrap().insert("raw".into(), ByteString(vec![0xff]));
    let found: Found<Secret> = Ok(Some(secret.into()));
    sources.secrets.insert("binary".into(), found);
    sources
}

fn pod(container: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": "p", "namespace": "ns", "uid": "u-1",
            "labels": {"app": "x", "b/c": "d"},
            "annotations": {"note": "say \"hi\"\n\u{1}"},
        },
        "spec": {"serviceAccountName": "sa", "containers": [container]},
    }))
    .unwrap()
}

fn services() -> Vec<Service> {
    let service = |name: &str, ip: &str, ports: Value| {
        serde_json::from_value(json!({
            "metadata": {"name": name}, "spec": {"clusterIP": ip, "ports": ports},
        }))
        .unwrap()
    };
    vec![
        service(
            "my-svc",
            "127.96.0.5",
            json!([{"name": "http", "port": 80}, {"name": "dns-udp", "port": 53, "protocol": "UDP"}]),
        ),
        service("headless", "None", json!([{"port": 1}])),
        service("kubernetes", "127.96.0.1", json!([{"name": "https", "port": 443}])),
    ]
}

fn variables_of(pod: &Pod) -> Result<Variables, String> {
    let allocatable = BTreeMap::from([
        ("cpu".to_owned(), Quantity("8".into())),
        ("memory".to_owned(), Quantity("16Gi".into())),
    ]);
    let facts = Facts {
        node_name: "laptop",
        host_ip: "127.0.0.1",
        pod_ip: "127.64.0.9",
        allocatable: &allocatable,
        api: "127.0.0.1:6443".parse().unwrap(),
    };
    let container = &pod.spec.as_ref().unwrap().containers[0];
    of_pod(pod, container, &sources(), &services(), facts).map_err(|error| error.to_string())
}

fn variables(env: Value) -> Result<Variables, String> {
    variables_of(&pod(json!({
        "name": "c",
        "env": env,
        "resources": {
            "limits": {"cpu": "1500m", "hugepages-2Mi": "4Mi"},
            "requests": {"cpu": "0.1", "memory": "1000Ki"},
        },
    })))
}

fn value(from: Value) -> Result<String, String> {
    let found = variables(json!([{"name": "X", "valueFrom": from}]))?;
    Ok(found.get("X").cloned().unwrap_or_else(|| "(none)".into()))
}

#[test]
fn fields_of_the_pod_are_told() {
    for (path, want) in [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", "x"),
        ("metadata.labels['b/c']", "d"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['note']", "say \"hi\"\n\u{1}"),
        ("metadata.labels", "app=\"x\"\nb/c=\"d\""),
        ("metadata.annotations", "note=\"say \\\"hi\\\"\\n\\x01\""),
        ("spec.nodeName", "laptop"),
        ("spec.serviceAccountName", "sa"),
        ("status.hostIP", "127.0.0.1"),
        ("status.podIP", "127.64.0.9"),
        ("status.podIPs", "127.64.0.9"),
    ] {
        assert_eq!(value(json!({"fieldRef": {"fieldPath": path}})).unwrap(), want, "{path}");
    }
    for (path, want) in [
        ("status.phase", "unsupported fieldPath: status.phase"),
        ("spec.x['a']", "fieldPath \"spec.x['a']\" does not support subscript"),
    ] {
        assert_eq!(value(json!({"fieldRef": {"fieldPath": path}})).unwrap_err(), want);
    }
}

#[test]
fn resources_are_divided_and_rounded_up() {
    for (resource, divisor, want) in [
        ("limits.cpu", "0", "2"),
        ("limits.cpu", "1", "2"),
        ("limits.cpu", "1m", "1500"),
        ("requests.cpu", "1", "1"),
        ("requests.cpu", "1m", "100"),
        ("requests.memory", "1Mi", "1"),
        ("requests.memory", "1Ki", "1000"),
        ("requests.memory", "0", "1024000"),
        ("limits.memory", "1Gi", "16"),
        ("limits.ephemeral-storage", "1", "0"),
        ("requests.ephemeral-storage", "1", "0"),
        ("limits.hugepages-2Mi", "1Mi", "4"),
    ] {
        let from = json!({"resourceFieldRef": {"resource": resource, "divisor": divisor}});
        assert_eq!(value(from).unwrap(), want, "{resource} by {divisor}");
    }
    for (from, want) in [
        (json!({"resource": "limits.gpu"}), "unsupported container resource : limits.gpu"),
        (json!({"resource": "cpu"}), "unsupported container resource : cpu"),
        (json!({"resource": "limits.cpu", "containerName": "x"}), "container x not found"),
    ] {
        assert_eq!(value(json!({"resourceFieldRef": from})).unwrap_err(), want);
    }
}

#[test]
fn keys_of_other_objects_are_read_or_said_to_be_missing() {
    for (from, want) in [
        (json!({"configMapKeyRef": {"name": "map", "key": "a"}}), Ok("1")),
        (json!({"secretKeyRef": {"name": "sec", "key": "k"}}), Ok("secret")),
        (
            json!({"configMapKeyRef": {"name": "map", "key": "zz"}}),
            Err("couldn't find key zz in ConfigMap ns/map"),
        ),
        (
            json!({"secretKeyRef": {"name": "sec", "key": "zz"}}),
            Err("couldn't find key zz in Secret ns/sec"),
        ),
        (
            json!({"configMapKeyRef": {"name": "missing", "key": "a"}}),
            Err("configmap \"missing\" not found"),
        ),
        (
            json!({"secretKeyRef": {"name": "missing", "key": "a"}}),
            Err("secret \"missing\" not found"),
        ),
        (json!({"configMapKeyRef": {"name": "gone", "key": "a", "optional": true}}), Ok("(none)")),
        (json!({"secretKeyRef": {"name": "sec", "key": "zz", "optional": true}}), Ok("(none)")),
        (
            json!({"configMapKeyRef": {"name": "denied", "key": "a", "optional": true}}),
            Err("configmaps \"denied\" is forbidden"),
        ),
        (
            json!({"secretKeyRef": {"name": "binary", "key": "raw"}}),
            Err("key raw of secret \"binary\" is not text"),
        ),
    ] {
        let got = value(from.clone());
        assert_eq!(got.as_deref().map_err(String::as_str), want, "{from}");
    }
}

#[test]
fn values_expand_from_earlier_ones_and_services() {
    let found = variables(json!([
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)$(LATER)$$(A)"},
        {"name": "LATER", "value": "x"},
        {"name": "URL", "value": "http://$(MY_SVC_SERVICE_HOST):$(MY_SVC_SERVICE_PORT)"},
        {"name": "A", "value": "$(A)2"},
        {"name": "EMPTY"},
    ]))
    .unwrap();
    assert_eq!(found["A"], "12");
    assert_eq!(found["B"], "1$(LATER)$(A)");
    assert_eq!(found["URL"], "http://127.96.0.5:80");
    assert_eq!(found["EMPTY"], "");
}

#[test]
fn whole_objects_come_under_their_prefix_and_give_way_to_single_values() {
    let pod = pod(json!({
        "name": "c",
        "envFrom": [
            {"configMapRef": {"name": "map"}},
            {"prefix": "S_", "secretRef": {"name": "sec"}},
            {"secretRef": {"name": "sec"}},
            {"configMapRef": {"name": "gone", "optional": true}},
        ],
        "env": [{"name": "a", "value": "own $(B)"}],
    }));
    let found = variables_of(&pod).unwrap();
    for (name, want) in
        [("a", "own two"), ("B", "two"), ("S_k", "secret"), ("same", "secret"), ("k", "secret")]
    {
        assert_eq!(found[name], want, "{name}");
    }
    let missing = super::tests::pod(json!({
        "name": "c", "envFrom": [{"configMapRef": {"name": "missing"}}],
    }));
    assert_eq!(variables_of(&missing).unwrap_err(), "configmap \"missing\" not found");
}

#[test]
fn services_with_an_address_are_announced() {
    let found = variables(json!([{"name": "MY_SVC_PORT", "value": "own"}])).unwrap();
    for (name, want) in [
        ("MY_SVC_SERVICE_HOST", "127.96.0.5"),
        ("MY_SVC_SERVICE_PORT", "80"),
        ("MY_SVC_SERVICE_PORT_HTTP", "80"),
        ("MY_SVC_SERVICE_PORT_DNS_UDP", "53"),
        ("MY_SVC_PORT", "own"),
        ("MY_SVC_PORT_80_TCP", "tcp://127.96.0.5:80"),
        ("MY_SVC_PORT_80_TCP_PROTO", "tcp"),
        ("MY_SVC_PORT_80_TCP_PORT", "80"),
        ("MY_SVC_PORT_80_TCP_ADDR", "127.96.0.5"),
        ("MY_SVC_PORT_53_UDP", "udp://127.96.0.5:53"),
        ("KUBERNETES_SERVICE_HOST", "127.0.0.1"),
        ("KUBERNETES_SERVICE_PORT", "6443"),
        ("KUBERNETES_SERVICE_PORT_HTTPS", "6443"),
        ("KUBERNETES_PORT", "tcp://127.0.0.1:6443"),
    ] {
        assert_eq!(found[name], want, "{name}");
    }
    assert!(!found.keys().any(|name| name.starts_with("HEADLESS")));

    let mut alone = pod(json!({"name": "c"}));
    alone.spec.as_mut().unwrap().enable_service_links = Some(false);
    let found = variables_of(&alone).unwrap();
    assert!(!found.contains_key("MY_SVC_SERVICE_HOST"));
    assert_eq!(found["KUBERNETES_SERVICE_HOST"], "127.0.0.1");
}

#[test]
fn a_process_sees_little_of_the_user_and_all_of_its_pod() {
    let rule = Rule::parse_all(
        "[[image]]\nmatch = \"*\"\nargv = [\"x\"]\ninherit = [\"HF_TOKEN\", \"NONE\"]\n\
         env = { ADDRESS = \"{podIP}:1\", MODE = \"rule\" }\n",
    )
    .unwrap()
    .remove(0);
    let ambient = |name: &str| match name {
        "PATH" | "LANG" | "HF_TOKEN" | "AWS_SECRET" => Some(format!("user's {name}")),
        _ => None,
    };
    let base = Base {
        ambient: &ambient,
        hostname: "p",
        pod_ip: "127.64.0.9",
        scratch: "/s/scratch",
        kubeconfig: Some("/s/kubeconfig"),
    };
    let given = Placeholders {
        windlass: Path::new("/w"),
        pod_ip: "127.64.0.9",
        state: Path::new("/s"),
        name: "n",
        ports: &BTreeMap::new(),
    };
    let mounts =
        Mounts::new([Mount { path: "/data".into(), real: "/s/v".into(), read_only: false }]);
    let own = [("MODE", "pod"), ("DIR", "/data/x"), ("HOST", "0.0.0.0")];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let found = of_process(base, &rule, given, &own, &mounts).unwrap();
    let want = [
        ("ADDRESS", "127.64.0.9:1"),
        ("DIR", "/s/v/x"),
        ("HF_TOKEN", "user's HF_TOKEN"),
        ("HOME", "/s/scratch"),
        ("HOST", "0.0.0.0"),
        ("HOSTNAME", "p"),
        ("KUBECONFIG", "/s/kubeconfig"),
        ("LANG", "user's LANG"),
        ("MODE", "pod"),
        ("PATH", "user's PATH"),
        ("POD_IP", "127.64.0.9"),
        ("TMPDIR", "/s/scratch"),
    ];
    assert_eq!(found, want.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

#[test]
fn the_host_is_called_as_the_pod_says() {
    for (spec, want) in [
        (json!({ "containers": [] }), "p"),
        (json!({ "containers": [], "hostname": "" }), "p"),
        (json!({ "containers": [], "hostname": "h" }), "h"),
    ] {
        let pod = json!({ "metadata": { "name": "p" }, "spec": spec });
        assert_eq!(hostname(&serde_json::from_value(pod).unwrap()), want);
    }
}
