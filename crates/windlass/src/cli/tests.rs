use super::*;

#[test]
fn the_flags_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn long_flags_may_have_one_dash() {
    for (command, given, want) in [
        ("operator", "-leader-elect", "--leader-elect"),
        ("operator", "-metrics-bind-address=:8443", "--metrics-bind-address=:8443"),
        ("operator", "--leader-elect", "--leader-elect"),
        ("operator", "-provider=istio", "--provider=istio"),
        ("operator", "-kubeconfig", "--kubeconfig"),
        ("operator", "-h", "-h"),
        ("operator", "-V", "-V"),
        ("operator", "-1", "-1"),
        ("render", "-default-epp-image=a", "--default-epp-image=a"),
        ("render", "-f", "-f"),
        ("render", "-nfoo", "-nfoo"),
        ("render", "-", "-"),
    ] {
        let arguments = ["windlass", command, given].map(OsString::from).into();
        assert_eq!(go_style(arguments)[2], OsString::from(want), "{command} {given}");
    }
}

#[test]
fn a_deployment_of_the_go_original_may_keep_its_flags() {
    let flags = [
        "-default-engine-image=a.example/engine:1",
        "--default-epp-image=a.example/epp:1",
        "--default-routing-proxy-image=a.example/proxy:1",
        "--kit-image=",
        "--default-gateway-name=",
        "-provider=gke",
        "--metrics-endpoint-auth=false",
        "--tracing-enabled",
        "--tracing-otel-endpoint=http://collector:4317",
        "--tracing-sampler=always_on",
        "--tracing-sampler-arg=1",
        "-metrics-bind-address=:8443",
        "--metrics-secure=true",
        "--metrics-cert-path=/tmp/k8s-metrics-server/metrics-certs",
        "--metrics-cert-name=tls.crt",
        "--metrics-cert-key=tls.key",
        "--enable-http2=false",
        "--health-probe-bind-address=:8081",
        "--leader-elect",
        "--zap-devel=false",
        "--zap-encoder=console",
        "--zap-log-level=2",
        "--zap-stacktrace-level=error",
        "--zap-time-encoding=rfc3339nano",
        "-kubeconfig=/etc/kubeconfig",
    ];
    let arguments = ["windlass", "operator"].into_iter().chain(flags).map(OsString::from);
    Cli::try_parse_from(go_style(arguments.collect())).unwrap();
}

#[test]
fn a_link_of_the_name_kit_is_the_command() {
    for (given, want) in [
        (&["/usr/bin/kit", "pack", "."][..], &["windlass", "kit", "pack", "."][..]),
        (&["kit"], &["windlass", "kit"]),
        (&["windlass", "crds"], &["windlass", "crds"]),
        (&["kitten", "crds"], &["kitten", "crds"]),
    ] {
        let given: Vec<OsString> = given.iter().map(OsString::from).collect();
        assert_eq!(as_kit(given), want, "{want:?}");
    }
}
