use serde_json::{Value, json};

use super::*;
use crate::inference_service::fixture::{base, service_with};

fn text(change: Value) -> Option<String> {
    validate(&service_with(change), &Settings::default()).err().map(|error| error.to_string())
}

#[test]
fn s10_each_invalid_spec_has_its_text() {
    for (change, want) in [
        (json!({ "modelRef": "" }), "modelRef is required"),
        (json!({ "replicas": 0 }), "replicas must be >= 1"),
        (json!({ "replicas": -1 }), "replicas must be >= 1"),
        (
            json!({ "minReplicas": 10, "maxReplicas": 5 }),
            "minReplicas (10) must be <= maxReplicas (5)",
        ),
        (json!({ "canary": { "modelRef": "", "weight": 20 } }), "canary modelRef is required"),
        (
            json!({ "canary": { "modelRef": "b", "weight": 101 } }),
            "canary weight must be 0-100, got 101",
        ),
        (
            json!({ "canary": { "modelRef": "b", "weight": -1 } }),
            "canary weight must be 0-100, got -1",
        ),
        (json!({ "healthCheck": { "path": "" } }), "healthCheck path is required"),
        (json!({ "healthCheck": { "interval": 0 } }), "healthCheck interval must be > 0"),
        (json!({ "healthCheck": { "interval": "-1s" } }), "healthCheck interval must be > 0"),
        (json!({ "healthCheck": { "timeout": 0 } }), "healthCheck timeout must be > 0"),
    ] {
        let want = format!("operator: invalid spec: {want}");
        assert_eq!(text(change.clone()), Some(want), "{change}");
    }
}

#[test]
fn s10_the_first_broken_rule_speaks() {
    let mut everything = json!({
        "modelRef": "",
        "replicas": 0,
        "minReplicas": 3,
        "maxReplicas": 2,
        "canary": { "modelRef": "", "weight": 101 },
        "healthCheck": { "path": "", "interval": 0, "timeout": 0 },
        "resources": { "cpu": "lots" },
    });
    for (mended, value, want) in [
        ("/none", json!(null), "modelRef is required"),
        ("/modelRef", json!("--x"), "replicas must be >= 1"),
        ("/replicas", json!(1), "minReplicas (3) must be <= maxReplicas (2)"),
        ("/maxReplicas", json!(3), "canary modelRef is required"),
        ("/canary/modelRef", json!("--y"), "canary weight must be 0-100, got 101"),
        ("/canary/weight", json!(0), "healthCheck path is required"),
        ("/healthCheck/path", json!("x"), "healthCheck interval must be > 0"),
        ("/healthCheck/interval", json!("1s"), "healthCheck timeout must be > 0"),
        ("/healthCheck/timeout", json!("1s"), "modelRef must match ^[A-Za-z0-9][A-Za-z0-9._/-]*$"),
        ("/modelRef", json!("x"), "canary modelRef must match ^[A-Za-z0-9][A-Za-z0-9._/-]*$"),
        ("/canary/modelRef", json!("y"), "healthCheck path must start with /"),
        ("/healthCheck/path", json!("/x"), "resources cpu must be a positive quantity or empty"),
    ] {
        if let Some(field) = everything.pointer_mut(mended) {
            *field = value;
        }
        let want = format!("operator: invalid spec: {want}");
        assert_eq!(text(everything.clone()), Some(want), "{mended}");
    }
}

#[test]
fn s11_valid_specs_pass_and_one_bound_means_no_autoscaling() {
    for (change, bounds) in [
        (json!({}), None),
        (json!({ "canary": { "modelRef": "b", "weight": 50 } }), None),
        (json!({ "minReplicas": 2, "maxReplicas": 10 }), Some(Bounds { min: 2, max: 10 })),
        (json!({ "minReplicas": 3, "maxReplicas": 0 }), None),
        (json!({ "minReplicas": 0, "maxReplicas": 4 }), None),
    ] {
        let wanted = validate(&service_with(change.clone()), &Settings::default()).unwrap();
        assert_eq!(wanted.bounds, bounds, "{change}");
    }
}

#[test]
fn k03_an_integer_interval_equals_the_same_text() {
    let probes = |interval: Value| {
        let service = service_with(json!({ "healthCheck": { "interval": interval } }));
        validate(&service, &Settings::default()).unwrap().probes
    };
    assert_eq!(probes(json!(30_000_000_000_i64)), probes(json!("30s")));
    assert_eq!(probes(json!("30s")).period_seconds, 30);
}

#[test]
fn k15_flags_escaping_paths_and_long_names_are_rejected() {
    for model_ref in ["--port", "../x", "/x", "a b", "ä", "a;b"] {
        assert_eq!(
            text(json!({ "modelRef": model_ref })).as_deref(),
            Some("operator: invalid spec: modelRef must match ^[A-Za-z0-9][A-Za-z0-9._/-]*$"),
            "{model_ref}"
        );
    }
    assert_eq!(
        text(json!({ "modelRef": "a/../x" })).as_deref(),
        Some("operator: invalid spec: modelRef must not contain ..")
    );
    for (name, valid) in [
        ("a".repeat(55), true),
        ("a".repeat(56), false),
        ("1a".to_owned(), false),
        ("a-".to_owned(), false),
        ("a.b".to_owned(), false),
        ("A".to_owned(), false),
        (String::new(), false),
    ] {
        let mut service = base();
        service.metadata.name = Some(name.clone());
        let verdict = validate(&service, &Settings::default()).map(|_| ());
        assert_eq!(verdict, if valid { Ok(()) } else { Err(InvalidSpec(Rule::Name)) }, "{name}");
    }
}

#[test]
fn additions_to_the_original_are_checked_too() {
    for (change, want) in [
        (json!({ "minReplicas": -1 }), "minReplicas must be >= 0"),
        (json!({ "maxReplicas": -1 }), "maxReplicas must be >= 0"),
        (json!({ "canary": { "modelRef": "b", "replicas": 0 } }), "canary replicas must be >= 1"),
        (
            json!({ "healthCheck": { "interval": "soon" } }),
            "healthCheck interval must be a duration such as 10s or 1m30s",
        ),
        (json!({ "startupTimeout": "0s" }), "startupTimeout must be > 0"),
        (
            json!({ "healthCheck": { "livenessPath": "live" } }),
            "healthCheck livenessPath must start with /",
        ),
        (
            json!({ "routing": { "parentRefs": [], "pathPrefix": "x" } }),
            "routing pathPrefix must start with /",
        ),
        (
            json!({ "resources": { "memory": "0" } }),
            "resources memory must be a positive quantity or empty",
        ),
        (
            json!({ "resources": { "gpuMemory": "24 GB" } }),
            "resources gpuMemory must be a positive quantity or empty",
        ),
        (
            json!({ "resources": { "gpuMemory": "1Ti" }, "gpu": { "vendor": "amd" } }),
            "resources gpuMemory needs 1048576 MiB per device, more than any known device has",
        ),
        (json!({ "auth": {} }), "auth needs either apiKeySecretRef or allowNoAuth: true"),
        (
            json!({ "auth": { "allowNoAuth": true, "apiKeySecretRef": { "name": "k", "key": "k" } } }),
            "auth needs either apiKeySecretRef or allowNoAuth: true",
        ),
        (
            json!({ "cache": { "emptyDir": {}, "hostPath": {} } }),
            "cache may use only one of emptyDir, persistentVolumeClaim and hostPath",
        ),
        (
            json!({ "cache": { "prefetch": { "quant": "--help" } } }),
            "cache prefetch quant must match ^[A-Za-z0-9][A-Za-z0-9._-]*$",
        ),
        (
            json!({ "cache": { "prefetch": { "quant": "" } } }),
            "cache prefetch quant must match ^[A-Za-z0-9][A-Za-z0-9._-]*$",
        ),
        (
            json!({ "cache": { "persistentVolumeClaim": { "claimName": "" } } }),
            "cache persistentVolumeClaim claimName is required",
        ),
        (json!({ "image": "" }), "image must not be empty or contain white space"),
        (json!({ "image": "a b" }), "image must not be empty or contain white space"),
        (json!({ "port": 0 }), "port must be 1-65535"),
        (json!({ "port": 65536 }), "port must be 1-65535"),
        (json!({ "gpu": { "count": 0 } }), "gpu count must be 1-1024"),
        (
            json!({ "gpu": { "memoryTolerancePercent": 100 } }),
            "gpu memoryTolerancePercent must be 0-99",
        ),
        (
            json!({ "auth": { "apiKeySecretRef": { "name": "", "key": "k" } } }),
            "auth apiKeySecretRef needs name and key",
        ),
        (
            json!({ "huggingFaceTokenSecretRef": { "name": "n", "key": "" } }),
            "huggingFaceTokenSecretRef needs name and key",
        ),
        (
            json!({ "modelRef": "qwen-3-8b", "cache": { "prefetch": { "quant": "Q4_K_M" } } }),
            "modelRef is an alias whose repository the operator does not know; to prefetch it, \
             give the Hugging Face repository id instead",
        ),
        (
            json!({
                "canary": { "modelRef": "qwen-3-4b" },
                "cache": { "prefetch": { "quant": "Q4_K_M" } },
            }),
            "canary modelRef is an alias whose repository the operator does not know; to prefetch \
             it, give the Hugging Face repository id instead",
        ),
    ] {
        let want = format!("operator: invalid spec: {want}");
        assert_eq!(text(change.clone()), Some(want), "{change}");
    }
}

fn key_variable(value: Value) -> Value {
    let mut variable = json!({ "name": "ZERFOO_API_KEY" });
    variable.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
    json!({ "env": [variable] })
}

#[test]
fn k14_required_auth_cannot_be_switched_off_by_arguments() {
    let settings = Settings { require_auth: true, ..Settings::default() };
    let key = json!({ "apiKeySecretRef": { "name": "k", "key": "apiKey" } });
    for (arguments, want) in [
        (&["--rate-limit", "5"][..], None),
        (&["--tls-cert=$(CERT)"], None),
        (&["--allow-no-auth"], Some(Rule::AuthSwitchedOff)),
        (&["-allow-no-auth"], Some(Rule::AuthSwitchedOff)),
        (&["--allow-no-auth=true"], Some(Rule::AuthSwitchedOff)),
        (&["--rate-limit", "5", "--allow-no-auth"], Some(Rule::AuthSwitchedOff)),
        // With `FLAG: --allow-no-auth` in the environment.
        (&["$(FLAG)"], Some(Rule::ArgumentUnclear)),
        (&["--$(FLAG)"], Some(Rule::ArgumentUnclear)),
        (&["--allow-$(REST)=true"], Some(Rule::ArgumentUnclear)),
    ] {
        let service = service_with(json!({ "auth": key, "extraArgs": arguments }));
        let verdict = validate(&service, &settings).err().map(|error| error.0);
        assert_eq!(verdict, want, "{arguments:?}");
        assert!(validate(&service, &Settings::default()).is_ok(), "{arguments:?}");
    }
}

#[test]
fn the_key_of_a_secret_is_not_replaced_by_a_variable() {
    for value in [json!({ "value": "other" }), json!({ "value": "" }), json!({})] {
        let mut change = key_variable(value);
        change["auth"] = json!({ "apiKeySecretRef": { "name": "k", "key": "apiKey" } });
        assert_eq!(
            text(change).as_deref(),
            Some(
                "operator: invalid spec: env must not set ZERFOO_API_KEY, which \
                 auth.apiKeySecretRef sets"
            )
        );
    }
}

#[test]
fn k14_an_operator_that_requires_auth_refuses_open_services() {
    let settings = Settings { require_auth: true, ..Settings::default() };
    for (change, valid) in [
        (json!({}), false),
        (json!({ "auth": { "allowNoAuth": true } }), false),
        (json!({ "auth": { "apiKeySecretRef": { "name": "k", "key": "apiKey" } } }), true),
        (json!({ "extraArgs": ["--keystore", "/keys"] }), true),
        (json!({ "extraArgs": ["--api-key=$(KEY)"] }), true),
        (json!({ "extraArgs": ["--api-key="] }), false),
        (json!({ "extraArgs": ["--api-key", ""] }), false),
        (json!({ "extraArgs": ["--keystore"] }), false),
        (key_variable(json!({ "value": "k" })), true),
        (
            key_variable(json!({ "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } })),
            true,
        ),
        (key_variable(json!({})), false),
        (key_variable(json!({ "value": "" })), false),
        (key_variable(json!({ "value": " " })), false),
        (
            json!({
                "auth": { "allowNoAuth": true },
                "env": [{ "name": "ZERFOO_API_KEY", "value": "k" }],
            }),
            false,
        ),
    ] {
        let verdict = validate(&service_with(change.clone()), &settings).map(|_| ());
        let want = if valid { Ok(()) } else { Err(InvalidSpec(Rule::AuthRequired)) };
        assert_eq!(verdict, want, "{change}");
    }
}

#[test]
fn doubtful_specs_are_remarked_upon() {
    use Remark::{AutoscalingIncomplete, ProbeTimeoutExceedsInterval, UnauthenticatedEndpoint};
    let quiet = json!({ "auth": { "allowNoAuth": true } });
    for (change, want) in [
        (quiet, &[][..]),
        (json!({}), &[UnauthenticatedEndpoint]),
        (json!({ "auth": { "apiKeySecretRef": { "name": "k", "key": "k" } } }), &[]),
        (json!({ "extraArgs": ["--api-key=k"] }), &[]),
        (json!({ "extraArgs": ["api-key"] }), &[UnauthenticatedEndpoint]),
        (json!({ "auth": { "allowNoAuth": true }, "minReplicas": 3 }), &[AutoscalingIncomplete]),
        (
            json!({ "healthCheck": { "interval": "5s", "timeout": "6s" } }),
            &[UnauthenticatedEndpoint, ProbeTimeoutExceedsInterval],
        ),
        (
            json!({ "healthCheck": { "interval": "5s", "timeout": "5s" } }),
            &[UnauthenticatedEndpoint],
        ),
    ] {
        let wanted = validate(&service_with(change.clone()), &Settings::default()).unwrap();
        assert_eq!(wanted.remarks, want, "{change}");
    }
}

#[test]
fn a_directory_of_the_node_must_be_one_that_the_administrator_allows() {
    for (prefixes, path, valid) in [
        (&["/var/lib/zerfoo/models"][..], "/var/lib/zerfoo/models", true),
        (&["/var/lib/zerfoo/models"], "/var/lib/zerfoo/models/", true),
        (&["/var/lib/zerfoo/models"], "/var/lib//zerfoo/models/llama", true),
        (&["/var/lib/zerfoo/models/"], "/var/lib/zerfoo/models", true),
        (&["/var/lib/zerfoo/models"], "/var/lib/zerfoo/models-of-others", false),
        (&["/var/lib/zerfoo/models"], "/var/lib/zerfoo", false),
        (&["/var/lib/zerfoo/models"], "/", false),
        (&["/var/lib/zerfoo/models"], "/etc", false),
        (&["/var/lib/zerfoo/models"], "/var/lib/zerfoo/models/../../kubelet", false),
        (&["/var/lib/zerfoo/models"], "/var/lib/zerfoo/models/./x", false),
        (&["/a", "/b"], "/b/c", true),
        (&["/"], "/etc", true),
        // A slip of the administrator allows nothing rather than everything.
        (&[""], "/etc", false),
        (&["etc"], "/etc", false),
    ] {
        let settings = Settings {
            host_path_prefixes: prefixes.iter().map(|prefix| (*prefix).to_owned()).collect(),
            ..Settings::default()
        };
        let service = service_with(json!({ "cache": { "hostPath": { "path": path } } }));
        let verdict = validate(&service, &settings).map(|_| ());
        let outside = Rule::HostPathOutside(settings.host_path_prefixes);
        let want = if valid { Ok(()) } else { Err(InvalidSpec(outside)) };
        assert_eq!(verdict, want, "{prefixes:?} {path}");
    }
    let text = text(json!({ "cache": { "hostPath": { "path": "/etc" } } })).unwrap();
    assert_eq!(
        text,
        "operator: invalid spec: cache hostPath path must be /var/lib/zerfoo/models or below, \
         without . and .."
    );
}

#[test]
fn without_allowed_directories_no_service_gets_one() {
    let settings = Settings { host_path_prefixes: Vec::new(), ..Settings::default() };
    let service = service_with(json!({ "cache": { "hostPath": {} } }));
    let error = validate(&service, &settings).unwrap_err();
    assert_eq!(
        error.to_string(),
        "operator: invalid spec: cache hostPath is forbidden by the operator"
    );
    assert_eq!(error.0.field(), "spec.cache.hostPath");
}

#[test]
fn a_cache_must_have_a_size_if_it_has_a_limit() {
    for wrong in ["x", "0", "-1Gi"] {
        let want =
            "operator: invalid spec: cache emptyDir sizeLimit must be a positive quantity or empty";
        assert_eq!(text_of_limit(wrong).as_deref(), Some(want), "{wrong}");
    }
    assert_eq!(text_of_limit("10Gi"), None);
}

fn text_of_limit(limit: &str) -> Option<String> {
    text(json!({ "cache": { "emptyDir": { "sizeLimit": limit } } }))
}
