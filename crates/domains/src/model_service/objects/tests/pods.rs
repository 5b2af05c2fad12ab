//! The serving pods.

use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;

use super::texts;
use crate::model_service::fixture::{base, body, fresh, plan_as, service_with, settings};
use crate::model_service::{Settings, Tracing, fixture};

fn deployment(service: &ModelService, role: &str) -> Value {
    body(&fresh(service), "Deployment", &format!("qwen3-32b-{role}")).clone()
}

fn pod(service: &ModelService, role: &str) -> Value {
    deployment(service, role)["spec"]["template"]["spec"].clone()
}

fn server(service: &ModelService, role: &str) -> Value {
    pod(service, role)["containers"][0].clone()
}

fn names(list: &Value) -> Vec<&str> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[test]
fn s01_the_decode_pods_of_the_base() {
    let deployment = deployment(&base(), "decode");
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert!(deployment["spec"].get("strategy").is_none());
    let pod = pod(&base(), "decode");
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(
        pod["securityContext"],
        json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } })
    );
    assert_eq!(names(&pod["initContainers"]), ["model-unpack"]);
    let server = server(&base(), "decode");
    assert_eq!(server["name"], "vllm");
    assert_eq!(server["image"], "vllm/vllm-openai:v0.8.0");
    assert_eq!(server["command"], json!(["vllm", "serve"]));
    assert_eq!(
        texts(&server["args"]).join(" "),
        "/models --port 8000 --served-model-name qwen/Qwen3-32B --tensor-parallel-size 4 \
         --max-model-len=8192"
    );
    assert_eq!(
        server["env"],
        json!([
            { "name": "TP_SIZE", "value": "4" },
            { "name": "DP_SIZE", "value": "1" },
            { "name": "DP_SIZE_LOCAL", "value": "1" },
        ])
    );
    let devices = json!({ "nvidia.com/gpu": "4" });
    assert_eq!(server["resources"], json!({ "limits": devices, "requests": devices }));
    assert_eq!(
        server["volumeMounts"][0],
        json!({ "name": "model", "mountPath": "/models", "readOnly": true })
    );
    assert_eq!(
        server["securityContext"],
        json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
    );
    assert_eq!(
        server["ports"],
        json!([{ "name": "http", "containerPort": 8000, "protocol": "TCP" }])
    );
}

#[test]
fn s01_the_model_is_unpacked_before_the_server_starts() {
    let pod = pod(&base(), "decode");
    let unpack = &pod["initContainers"][0];
    assert_eq!(unpack["image"], "ghcr.io/kitops-ml/kitops:v1.11.0");
    assert_eq!(unpack["command"], json!(["/bin/sh", "-c"]));
    assert_eq!(
        unpack["env"],
        json!([
            { "name": "OCI_MODEL_IMAGE", "value": "registry.example.com/models/qwen3-32b:v1" },
            { "name": "MODEL_MOUNT_PATH", "value": "/models" },
            { "name": "KITOPS_HOME", "value": "/tmp/model-oci" },
        ])
    );
    assert_eq!(
        unpack["volumeMounts"],
        json!([
            { "name": "model-tmp", "mountPath": "/tmp/model-oci" },
            { "name": "model", "mountPath": "/models" },
        ])
    );
    assert_eq!(names(&pod["volumes"]), ["model", "model-tmp", "dshm"]);
    assert_eq!(pod["volumes"][0]["emptyDir"], json!({}));
}

#[test]
fn without_an_image_for_it_nothing_is_unpacked() {
    let settings = Settings { kit_image: String::new(), ..settings() };
    let plan = plan_as(&settings, &base(), fixture::empty_cluster());
    let pod = &body(&plan, "Deployment", "qwen3-32b-decode")["spec"]["template"]["spec"];
    assert!(pod.get("initContainers").is_none());
}

#[test]
fn our_own_image_unpacks_without_a_shell() {
    for (image, plain) in [
        ("ghcr.io/windlass/windlass:0.1.0", false),
        ("mirror.local:5000/a/windlass:1", true),
        ("ghcr.io/kitops-ml/kitops:v1.11.0", true),
    ] {
        let settings = Settings { kit_image: image.to_owned(), plain_http: plain, ..settings() };
        let plan = plan_as(&settings, &base(), fixture::empty_cluster());
        let pod = &body(&plan, "Deployment", "qwen3-32b-decode")["spec"]["template"]["spec"];
        let unpack = &pod["initContainers"][0];
        assert_eq!(unpack["image"], image);
        if image.contains("kitops") {
            assert_eq!(unpack["command"], json!(["/bin/sh", "-c"]));
            continue;
        }
        assert_eq!(unpack["command"], json!(["windlass"]));
        let flags: &[&str] = if plain { &["--plain-http"] } else { &[] };
        let want = [
            &["kit", "unpack"],
            flags,
            &["-o", "-d", "$(MODEL_MOUNT_PATH)", "--", "$(OCI_MODEL_IMAGE)"],
        ]
        .concat();
        assert_eq!(texts(&unpack["args"]), want);
        // The rest is as with any other image.
        let usual = self::pod(&base(), "decode");
        for field in ["env", "volumeMounts", "securityContext"] {
            assert_eq!(unpack[field], usual["initContainers"][0][field], "{field}");
        }
    }
}

fn script(service: &ModelService) -> String {
    pod(service, "decode")["initContainers"][0]["args"][0].as_str().unwrap().to_owned()
}

#[test]
fn m02_models_come_over_tls_unless_plain_http_is_asked_for() {
    assert!(!script(&base()).contains("--plain-http"));
    assert!(
        script(&service_with(json!({ "model": { "insecure": true } })))
            .contains("kit unpack \"$OCI_MODEL_IMAGE\" --plain-http -o -d \"$MODEL_MOUNT_PATH\"")
    );
    let settings = Settings { plain_http: true, ..settings() };
    for (service, plain) in
        [(base(), true), (service_with(json!({ "model": { "insecure": false } })), false)]
    {
        let plan = plan_as(&settings, &service, fixture::empty_cluster());
        let pod = &body(&plan, "Deployment", "qwen3-32b-decode")["spec"]["template"]["spec"];
        let script = pod["initContainers"][0]["args"][0].as_str().unwrap();
        assert_eq!(script.contains("--plain-http"), plain);
    }
}

#[test]
fn m18_the_copy_that_fetching_leaves_is_removed() {
    assert!(script(&base()).ends_with("rm -rf \"${KITOPS_HOME:?}\"/*\n"));
}

#[test]
fn m19_the_credentials_of_all_pull_secrets_are_tried() {
    let secrets = json!([{ "name": "first" }, { "name": "second" }]);
    let service = service_with(json!({ "model": { "imagePullSecrets": secrets } }));
    let pod = pod(&service, "decode");
    let unpack = &pod["initContainers"][0];
    let env = json!({ "name": "DOCKER_CONFIGS", "value": "/.docker /.docker-1" });
    assert!(unpack["env"].as_array().unwrap().contains(&env));
    assert!(script(&service).contains("for DOCKER_CONFIG in $DOCKER_CONFIGS"));
    assert_eq!(pod["volumes"][3]["secret"]["secretName"], "second");
    assert_eq!(pod["volumes"][3]["secret"]["optional"], true);
}

#[test]
fn s03_a_proxy_stands_before_the_decode_server() {
    let service = service_with(json!({ "routingProxy": {} }));
    let pod = pod(&service, "decode");
    assert_eq!(names(&pod["initContainers"]), ["model-unpack", "routing-proxy"]);
    let proxy = &pod["initContainers"][1];
    assert_eq!(proxy["restartPolicy"], "Always");
    assert_eq!(proxy["image"], "ghcr.io/llm-d/llm-d-routing-sidecar:v0.6.0");
    assert_eq!(
        texts(&proxy["args"]).join(" "),
        "--port 8000 --vllm-port 8200 --connector nixlv2 --secure-proxy=false"
    );
    assert_eq!(proxy["ports"][0]["name"], "proxy");
    assert_eq!(proxy["ports"][0]["containerPort"], 8000);
    assert!(proxy.get("env").is_none());
    let server = &pod["containers"][0];
    assert_eq!(texts(&server["args"])[1..3], ["--port", "8200"]);
    assert_eq!(server["ports"][0]["containerPort"], 8200);
    let plan = fresh(&service);
    let pool = body(&plan, "InferencePool", "qwen3-32b");
    assert_eq!(pool["spec"]["targetPorts"], json!([{ "number": 8000 }]));
}

#[test]
fn s03_the_proxy_gets_its_flags_in_order() {
    let proxy = json!({
        "targetPort": 8300, "connector": "lmcache", "zapEncoder": "json", "zapLogLevel": "debug",
        "secureProxy": true, "prefillerUseTLS": false,
        "certPath": "/certs", "image": "proxy:1",
    });
    let pod = pod(&service_with(json!({ "routingProxy": proxy })), "decode");
    let proxy = &pod["initContainers"][1];
    assert_eq!(
        texts(&proxy["args"]).join(" "),
        "--port 8000 --vllm-port 8300 --connector lmcache --zap-encoder json \
         --zap-log-level debug --secure-proxy=true --prefiller-use-tls=false --cert-path /certs"
    );
    assert_eq!(proxy["image"], "proxy:1");
}

#[test]
fn s04_prefill_pods_have_no_proxy_and_the_public_port() {
    let service = service_with(json!({ "routingProxy": {}, "prefill": { "replicas": 1 } }));
    let pod = pod(&service, "prefill");
    assert_eq!(names(&pod["initContainers"]), ["model-unpack"]);
    let server = &pod["containers"][0];
    assert_eq!(texts(&server["args"])[1..3], ["--port", "8000"]);
    let deployment = deployment(&service, "prefill");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["llm-d.ai/role"], "prefill");
    assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
}

#[test]
fn s05_devices_are_counted_by_tensor_and_local_copies() {
    let devices = |parallelism: Value, accelerator: &str| {
        let service = service_with(json!({
            "accelerator": { "type": accelerator },
            "decode": { "parallelism": parallelism },
        }));
        let server = server(&service, "decode");
        (server["resources"]["limits"].clone(), texts(&server["args"]).join(" "))
    };
    for (sizes, count, flags) in [
        (json!(null), "1", ""),
        (json!({ "tensor": 4 }), "4", "--tensor-parallel-size 4"),
        (
            json!({ "tensor": 4, "dataLocal": 2 }),
            "8",
            "--tensor-parallel-size 4 --data-parallel-size-local 2",
        ),
        (json!({ "tensor": 1, "data": 2 }), "1", "--data-parallel-size 2"),
    ] {
        let (limits, args) = devices(sizes.clone(), "nvidia");
        assert_eq!(limits, json!({ "nvidia.com/gpu": count }), "{sizes}");
        assert!(args.contains(flags), "{sizes}");
    }
    for (accelerator, resource) in
        [("amd", "amd.com/gpu"), ("intel-gaudi", "habana.ai/gaudi"), ("google", "google.com/tpu")]
    {
        let (limits, _) = devices(json!(null), accelerator);
        assert_eq!(limits, json!({ resource: "1" }));
    }
    let cpu = service_with(json!({ "accelerator": { "type": "cpu" } }));
    assert!(server(&cpu, "decode").get("resources").is_none());
}

#[test]
fn s05_devices_replace_what_the_user_says_about_them() {
    let resources = json!({ "limits": { "cpu": 8, "nvidia.com/gpu": 1 } });
    let server = server(&service_with(json!({ "decode": { "resources": resources } })), "decode");
    assert_eq!(
        server["resources"],
        json!({
            "limits": { "cpu": "8", "nvidia.com/gpu": "4" },
            "requests": { "nvidia.com/gpu": "4" },
        })
    );
}

#[test]
fn s06_a_numeric_side_channel_port_is_opened() {
    let ports = |value: &str, role: &str| {
        let entry = json!({ "name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": value });
        let service = service_with(json!({
            "engine": { "env": [entry] }, "routingProxy": {}, "prefill": {},
        }));
        server(&service, role)["ports"].clone()
    };
    let nixl = json!({ "name": "nixl-side", "containerPort": 6123, "protocol": "TCP" });
    for role in ["decode", "prefill"] {
        assert_eq!(ports("6123", role)[1], nixl, "{role}");
        for value in ["abc", "70000", "+1", "", "0"] {
            assert_eq!(ports(value, role).as_array().unwrap().len(), 1, "{role} {value:?}");
        }
    }
    assert_eq!(ports("8200", "decode").as_array().unwrap().len(), 1, "the server's own port");
}

#[test]
fn s07_the_pull_secret_reaches_unpacking_and_not_the_server() {
    let secrets = json!([{ "name": "my-registry-secret" }]);
    let service = service_with(json!({ "model": { "imagePullSecrets": secrets } }));
    let pod = pod(&service, "decode");
    assert_eq!(pod["imagePullSecrets"], secrets);
    assert_eq!(
        pod["volumes"][2],
        json!({
            "name": "docker-config",
            "secret": {
                "secretName": "my-registry-secret",
                "items": [{ "key": ".dockerconfigjson", "path": "config.json" }],
            },
        })
    );
    let unpack = &pod["initContainers"][0];
    assert_eq!(unpack["env"][3], json!({ "name": "DOCKER_CONFIG", "value": "/.docker" }));
    assert_eq!(
        unpack["volumeMounts"][2],
        json!({ "name": "docker-config", "mountPath": "/.docker", "readOnly": true })
    );
    let mounts = pod["containers"][0]["volumeMounts"].to_string();
    assert!(!mounts.contains("docker-config"));
}

/// Server-side apply refuses a list with two entries of one name.
#[test]
fn a_pull_secret_that_is_named_twice_is_used_once() {
    let secrets = json!([{ "name": "first" }, { "name": "second" }, { "name": "first" }]);
    let service = service_with(json!({ "model": { "imagePullSecrets": secrets } }));
    let pod = pod(&service, "decode");
    assert_eq!(names(&pod["imagePullSecrets"]), ["first", "second"]);
    let volumes = ["model", "model-tmp", "docker-config", "docker-config-1", "dshm"];
    assert_eq!(names(&pod["volumes"]), volumes);
    let twice = json!({ "model": { "imagePullSecrets": [{ "name": "a" }, { "name": "a" }] } });
    let once = json!({ "model": { "imagePullSecrets": [{ "name": "a" }] } });
    assert_eq!(script(&service_with(twice)), script(&service_with(once)));
}

#[test]
fn of_two_variables_of_one_name_the_last_counts() {
    let env = json!([
        { "name": "A", "value": "1" },
        { "name": "TP_SIZE", "value": "9" },
        { "name": "A", "value": "2" },
    ]);
    let server = server(&service_with(json!({ "engine": { "env": env } })), "decode");
    assert_eq!(names(&server["env"]), ["TP_SIZE", "DP_SIZE", "DP_SIZE_LOCAL", "A"]);
    assert_eq!(server["env"][0]["value"], "9");
    assert_eq!(server["env"][3]["value"], "2");
}

#[test]
fn m01_the_server_is_probed_where_it_listens() {
    for (service, port) in [(base(), 8000), (service_with(json!({ "routingProxy": {} })), 8200)] {
        let server = server(&service, "decode");
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            let want = json!({ "path": "/health", "port": port });
            assert_eq!(server[probe]["httpGet"], want, "{probe}");
        }
        assert_eq!(server["startupProbe"]["failureThreshold"], 360);
    }
    // A rollout is late only after the slowest start.
    assert_eq!(deployment(&base(), "decode")["spec"]["progressDeadlineSeconds"], 4200);
}

#[test]
fn m01_probes_may_be_changed_in_part_or_switched_off() {
    let with = |probes: Value| service_with(json!({ "decode": { "probes": probes } }));
    let slower = server(&with(json!({ "startup": { "failureThreshold": 1000 } })), "decode");
    assert_eq!(slower["startupProbe"]["failureThreshold"], 1000);
    assert_eq!(slower["startupProbe"]["periodSeconds"], 10);
    assert_eq!(slower["startupProbe"]["httpGet"]["path"], "/health");
    let own = json!({ "readiness": { "httpGet": { "path": "/v1/models", "port": 1 } } });
    let own = server(&with(own), "decode");
    assert_eq!(own["readinessProbe"]["httpGet"], json!({ "path": "/v1/models", "port": 1 }));
    let tcp = server(&with(json!({ "liveness": { "tcpSocket": { "port": 1 } } })), "decode");
    assert!(tcp["livenessProbe"].get("httpGet").is_none());
    let off = with(json!({ "disabled": true }));
    let server = server(&off, "decode");
    assert!(server.get("startupProbe").is_none() && server.get("livenessProbe").is_none());
    // The model has to be unpacked all the same.
    assert_eq!(deployment(&off, "decode")["spec"]["progressDeadlineSeconds"], 4200);
}

#[test]
fn m01_a_server_with_a_certificate_is_probed_over_tls() {
    let args = json!(["--ssl-certfile=/certs/tls.crt"]);
    let server = server(&service_with(json!({ "engine": { "args": args } })), "decode");
    assert_eq!(server["readinessProbe"]["httpGet"]["scheme"], "HTTPS");
}

#[test]
fn m17_shared_memory_is_there_for_several_devices() {
    let volumes = |decode: Value| {
        let pod = pod(&service_with(json!({ "decode": decode })), "decode");
        let mut volumes = pod["volumes"].as_array().unwrap().clone().into_iter();
        volumes.find(|volume| volume["name"] == "dshm").map(|volume| volume["emptyDir"].clone())
    };
    assert_eq!(volumes(json!({})), Some(json!({ "medium": "Memory" })));
    let one = json!({ "parallelism": { "tensor": 1 } });
    assert_eq!(volumes(one), None);
    let sized = json!({ "sharedMemory": { "sizeLimit": "8Gi" }, "parallelism": null });
    assert_eq!(volumes(sized), Some(json!({ "medium": "Memory", "sizeLimit": "8Gi" })));
    assert_eq!(volumes(json!({ "sharedMemory": { "enabled": false } })), None);
    let mounts = server(&base(), "decode")["volumeMounts"].clone();
    assert_eq!(mounts[1], json!({ "name": "dshm", "mountPath": "/dev/shm" }));
}

#[test]
fn m17_what_a_role_may_say_reaches_its_pods() {
    let service = service_with(json!({ "decode": {
        "serviceAccountName": "runner",
        "runtimeClassName": "nvidia",
        "priorityClassName": "high",
        "runAsUser": 1000,
        "fsGroup": 2000,
        "affinity": { "podAntiAffinity": {} },
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0 } },
        "nodeSelector": { "zone": "a" },
        "tolerations": [{ "key": "gpu", "operator": "Exists" }],
        "annotations": { "team": "ml" },
        "volumes": [{ "name": "extra", "emptyDir": {} }],
        "volumeMounts": [{ "name": "extra", "mountPath": "/extra" }],
    } }));
    let deployment = deployment(&service, "decode");
    let template = &deployment["spec"]["template"];
    let pod = &template["spec"];
    assert_eq!(deployment["spec"]["strategy"]["rollingUpdate"], json!({ "maxSurge": 0 }));
    assert_eq!(template["metadata"]["annotations"], json!({ "team": "ml" }));
    assert_eq!(pod["serviceAccountName"], "runner");
    assert_eq!(pod["runtimeClassName"], "nvidia");
    assert_eq!(pod["priorityClassName"], "high");
    assert_eq!(pod["securityContext"]["runAsUser"], 1000);
    assert_eq!(pod["securityContext"]["fsGroup"], 2000);
    assert_eq!(pod["nodeSelector"], json!({ "zone": "a" }));
    assert_eq!(pod["tolerations"][0]["key"], "gpu");
    assert_eq!(names(&pod["volumes"]).last(), Some(&"extra"));
    assert_eq!(pod["containers"][0]["volumeMounts"][2]["mountPath"], "/extra");
}

#[test]
fn s12_the_proxy_is_traced_with_the_rest() {
    let settings = Settings {
        tracing: Tracing {
            enabled: true,
            otel_endpoint: "http://otel:4317".to_owned(),
            sampler_arg: "0.5".to_owned(),
            ..Tracing::default()
        },
        ..settings()
    };
    let service = service_with(json!({ "routingProxy": {} }));
    let plan = plan_as(&settings, &service, fixture::empty_cluster());
    let pod = &body(&plan, "Deployment", "qwen3-32b-decode")["spec"]["template"]["spec"];
    assert_eq!(
        pod["initContainers"][1]["env"],
        json!([
            { "name": "OTEL_SERVICE_NAME", "value": "llm-d-routing-sidecar" },
            { "name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://otel:4317" },
            { "name": "OTEL_TRACES_EXPORTER", "value": "otlp" },
            { "name": "OTEL_TRACES_SAMPLER", "value": "parentbased_traceidratio" },
            { "name": "OTEL_TRACES_SAMPLER_ARG", "value": "0.5" },
        ])
    );
}
