//! The Helm chart, rendered by Helm and judged by a real API server. Tier "real API".
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use xtask::{
    cluster::{Assets, ControlPlane, Options, find_helm},
    test::required,
    workspace::{binary, project_root},
};

const NAMESPACE: &str = "windlass-system";

/// Helm on the chart, or `None` where the test is skipped aloud.
fn helm() -> Option<Helm> {
    match Assets::find().and_then(|assets| Ok(Helm { program: find_helm()?, assets })) {
        Ok(helm) => Some(helm),
        Err(reason) if required("real-api") => panic!("real-api is required: {reason:#}"),
        Err(reason) => {
            println!("skipped: {reason:#}");
            None
        }
    }
}

struct Helm {
    program: PathBuf,
    assets: Assets,
}

impl Helm {
    /// Helm with nothing of the user's own.
    fn command(&self, arguments: &[&str]) -> Command {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("helm");
        let mut command = Command::new(&self.program);
        command.args(arguments).env_remove("KUBECONFIG");
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(variable, &home);
        }
        command
    }

    fn template(&self, values: &[&str]) -> String {
        let mut command = self.command(&["template", "windlass"]);
        command.arg(chart()).args(["--namespace", NAMESPACE, "--kube-version", "v1.33.0"]);
        run(command.args(values))
    }
}

fn chart() -> PathBuf {
    project_root().join("deploy/chart/windlass")
}

fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// What the windlass program prints.
fn windlass(arguments: &[&str]) -> String {
    run(Command::new(binary().unwrap()).args(arguments))
}

fn parse(stream: &str) -> Vec<Value> {
    let objects = serde_saphyr::from_multiple::<Value>(stream).unwrap();
    objects.into_iter().filter(|object| !object.is_null()).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// Who may do what where, without labels.
fn rights(objects: &[Value]) -> BTreeMap<String, Value> {
    let right = |object: &Value| {
        let [kind, namespace, name] =
            [&object["kind"], &object["metadata"]["namespace"], &object["metadata"]["name"]];
        let part = json!([object["rules"], object["roleRef"], object["subjects"]]);
        (format!("{kind} {namespace} {name}"), part)
    };
    let group = |object: &&Value| {
        object["apiVersion"].as_str().unwrap().starts_with("rbac.authorization.k8s.io/")
    };
    objects.iter().filter(group).map(right).collect()
}

#[test]
fn the_chart_grants_what_the_program_asks_for() {
    let Some(helm) = helm() else { return };
    let chart = parse(&helm.template(&[]));
    let program = parse(&windlass(&["manifests"]));
    assert_eq!(rights(&chart), rights(&program));
    assert!(!rights(&chart).is_empty());

    let chart = parse(&helm.template(&["--set", "watchNamespaces={a,b}"]));
    let program = parse(&windlass(&["manifests", "--watch-namespaces=a,b"]));
    assert_eq!(rights(&chart), rights(&program));
    assert_eq!(of_kind(&chart, "Role").len(), 3);
}

#[test]
fn the_chart_runs_the_same_pod_as_the_program_prints() {
    let Some(helm) = helm() else { return };
    let pod = |stream: &str| {
        let objects = parse(stream);
        let [deployment] = of_kind(&objects, "Deployment")[..] else { panic!("{stream}") };
        deployment["spec"]["template"]["spec"].clone()
    };
    assert_eq!(pod(&helm.template(&[])), pod(&windlass(&["manifests"])));
}

#[test]
fn the_values_reach_the_operator() {
    let Some(helm) = helm() else { return };
    let values = "requireAuth=true,zerfooImage=a.example/b:c,concurrency=4,logLevel=debug,\
                  logFormat=text,extraArgs={--lease-namespace=x},metrics.service.enabled=true,\
                  enableKinds={ZerfooInferenceService},gpuMemoryResource=x.example/mib,\
                  hostPathPrefixes={/a,/b},fullnameOverride=other,\
                  kitImage=a.example/kit:1,artifactDeadlineSeconds=7200";
    let objects = parse(&helm.template(&["--set", values]));
    let [deployment] = of_kind(&objects, "Deployment")[..] else { panic!("{objects:?}") };
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(
        *arguments,
        json!([
            "operator",
            "--leader-elect",
            "--lease-name=other",
            "--metrics-bind-address=:8080",
            "--metrics-secure=false",
            "--enable-kinds=ZerfooInferenceService",
            "--concurrency=4",
            "--require-auth",
            "--zerfoo-image=a.example/b:c",
            "--gpu-memory-resource=x.example/mib",
            "--host-path-prefixes=/a,/b",
            "--kit-image=a.example/kit:1",
            "--artifact-deadline-seconds=7200",
            "--log-level=debug",
            "--log-format=text",
            "--lease-namespace=x"
        ])
    );
    assert_eq!(of_kind(&objects, "Service").len(), 1);

    // An empty list is a wish, unlike none at all.
    let rendered = helm.template(&["--set-json", "hostPathPrefixes=[]"]);
    assert!(rendered.contains("- \"--host-path-prefixes=\"\n"), "{rendered}");
    assert!(!helm.template(&[]).contains("host-path"));
    // So is an empty image.
    let rendered = helm.template(&["--set-json", "kitImage=\"\""]);
    assert!(rendered.contains("- \"--kit-image=\"\n"), "{rendered}");
    assert!(!helm.template(&[]).contains("kit-image"));

    let output = helm.command(&["template", "--set", "watchNamespace=a"]).arg(chart()).output();
    let output = output.unwrap();
    assert!(!output.status.success(), "a misspelt value is refused");
}

#[test]
fn the_values_for_model_services_reach_the_operator() {
    let Some(helm) = helm() else { return };
    let plain = arguments(&helm, &[]);
    let given = json!({
        "defaultEngineImage": "a.example/engine:1",
        "defaultEppImage": "a.example/epp:1",
        "defaultRoutingProxyImage": "a.example/proxy:1",
        "defaultGatewayName": "",
        "defaultGatewayNamespace": "infra",
        "provider": "gke",
        "metricsEndpointAuth": false,
        "eppMetricsRbac": "always",
        "eppConfigDialect": "llm-d",
        "plainHttp": true,
        "tracing": {
            "enabled": true,
            "otelEndpoint": "http://collector:4317",
            "sampler": "always_on",
            "samplerArg": 0.5,
        },
    });
    let changed = arguments(&helm, &["--set-json", &format!("modelService={given}")]);
    let added: Vec<_> = changed.into_iter().filter(|flag| !plain.contains(flag)).collect();
    let want = [
        "--default-engine-image=a.example/engine:1",
        "--default-epp-image=a.example/epp:1",
        "--default-routing-proxy-image=a.example/proxy:1",
        "--default-gateway-name=",
        "--default-gateway-namespace=infra",
        "--provider=gke",
        "--metrics-endpoint-auth=false",
        "--epp-metrics-rbac=always",
        "--epp-config-dialect=llm-d",
        "--plain-http",
        "--tracing-enabled",
        "--tracing-otel-endpoint=http://collector:4317",
        "--tracing-sampler=always_on",
        "--tracing-sampler-arg=0.5",
    ];
    assert_eq!(added, want);
    assert_known(&added);
}

/// The operator's arguments with these values.
fn arguments(helm: &Helm, values: &[&str]) -> Vec<String> {
    let objects = parse(&helm.template(values));
    let [deployment] = of_kind(&objects, "Deployment")[..] else { panic!("{objects:?}") };
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    serde_json::from_value(arguments.clone()).unwrap()
}

/// The program knows all of them: it would otherwise end with its usage.
fn assert_known(flags: &[String]) {
    let mut command = Command::new(binary().unwrap());
    command.args(["operator", "--kubeconfig=/nonexistent"]).args(flags);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
}

#[test]
fn the_values_for_aim_reach_the_operator() {
    let Some(helm) = helm() else { return };
    let plain = arguments(&helm, &[]);
    let given = json!({ "operatorNamespace": "aim", "runtimeConfigResolution": "merge",
        "discoveryDeadlineSeconds": 60 });
    let changed = arguments(&helm, &["--set-json", &format!("aim={given}")]);
    let added: Vec<_> = changed.into_iter().filter(|flag| !plain.contains(flag)).collect();
    let want = [
        "--aim-operator-namespace=aim",
        "--runtime-config-resolution=merge",
        "--aim-discovery-deadline-seconds=60",
    ];
    assert_eq!(added, want);
    assert_known(&added);
}

#[test]
fn secured_metrics_have_their_certificate_and_a_role_for_readers() {
    let Some(helm) = helm() else { return };
    let readers = |objects: &[Value]| {
        let roles = of_kind(objects, "ClusterRole").into_iter();
        roles.filter(|role| role["metadata"]["name"] == "windlass-metrics-reader").count()
    };
    assert_eq!(readers(&parse(&helm.template(&[]))), 0);

    let values = "metrics.secure=true,metrics.port=8443,metrics.certificateSecret=a,\
                  metrics.service.enabled=true";
    let objects = parse(&helm.template(&["--set", values]));
    assert_eq!(readers(&objects), 1);
    let [deployment] = of_kind(&objects, "Deployment")[..] else { panic!("{objects:?}") };
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let arguments = container["args"].as_array().unwrap();
    for want in ["--metrics-secure=true", "--metrics-cert-path=/etc/windlass/metrics"] {
        assert!(arguments.contains(&json!(want)), "{want} in {arguments:?}");
    }
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "a");
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/windlass/metrics");
    let [service] = of_kind(&objects, "Service")[..] else { panic!("{objects:?}") };
    assert_eq!(service["spec"]["ports"][0]["name"], "https");
}

#[test]
fn secrets_are_read_only_where_it_is_asked_for() {
    let Some(helm) = helm() else { return };
    let reads = |values: &[&str]| -> Vec<String> {
        let objects = parse(&helm.template(values));
        let roles = objects.iter().filter(|object| {
            let rules = object["rules"].as_array();
            rules.into_iter().flatten().any(|rule| {
                rule["resources"] == json!(["secrets"]) && rule["verbs"].to_string().contains("get")
            })
        });
        let place = |role: &Value| format!("{} {}", role["kind"], role["metadata"]["namespace"]);
        roles.map(place).collect()
    };
    assert_eq!(reads(&[]), [""; 0]);
    let some = ["--set", "secretReaderNamespaces={a}"];
    assert_eq!(reads(&some), [r#""Role" "a""#]);
}

#[test]
fn helm_installs_and_upgrades_the_chart() {
    let Some(helm) = helm() else { return };
    let version = windlass(&["--version"]);
    let version = version.trim().trim_start_matches("windlass ");
    let manifest = fs::read_to_string(chart().join("Chart.yaml")).unwrap();
    let manifest: Value = serde_saphyr::from_str(&manifest).unwrap();
    assert_eq!((&manifest["version"], &manifest["appVersion"]), (&json!(version), &json!(version)));
    run(helm.command(&["lint", "--strict"]).arg(chart()));

    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chart");
    let _ = fs::remove_dir_all(&dir);
    let options = Options { controller_manager: false, ..Options::in_dir(&dir) };
    let plane = ControlPlane::start(&helm.assets, options).unwrap();
    run(plane.kubectl().args(["create", "namespace", NAMESPACE]));
    for values in [&[][..], &["--set", "watchNamespaces={default,kube-public},replicas=2"]] {
        let rendered = helm.template(values);
        let budgets = of_kind(&parse(&rendered), "PodDisruptionBudget").len();
        assert_eq!(budgets, usize::from(!values.is_empty()));
        dry_run(&plane, &rendered);
    }
    dry_run(&plane, &windlass(&["manifests", "--namespace", NAMESPACE]));

    let release = |verb: &str, values: &[&str]| {
        let mut command = helm.command(&[verb, "windlass", "--namespace", NAMESPACE]);
        command.arg("--kubeconfig").arg(plane.kubeconfig()).arg(chart()).args(values);
        run(&mut command)
    };
    release("install", &[]);
    let get = |what: &str| run(plane.kubectl().args(["-n", NAMESPACE, "get", what, "-o", "name"]));
    assert_eq!(get("role"), "role.rbac.authorization.k8s.io/windlass-leader\n");
    let served = run(plane.kubectl().args(["get", "crds", "-o", "name"]));
    let given = fs::read_dir(chart().join("crds")).unwrap().count();
    assert_eq!(served.lines().count(), given, "{served}");
    release("upgrade", &["--set", "watchNamespaces={default},replicas=2"]);
    assert_eq!(get("poddisruptionbudget"), "poddisruptionbudget.policy/windlass\n");

    plane.stop();
    fs::remove_dir_all(&dir).unwrap();
}

/// The API server checks every object and stores none.
fn dry_run(plane: &ControlPlane, stream: &str) {
    let mut child = plane
        .kubectl()
        .args(["apply", "--dry-run=server", "--validate=strict", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
