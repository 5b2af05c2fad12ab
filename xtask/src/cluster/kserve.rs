//! KServe's own controller beside a control plane: it makes Deployments and Services of
//! InferenceServices, and its webhooks complete and refuse them as they do elsewhere.
//!
//! There is neither Knative nor a gateway, so the mode is the one that makes Deployments, and nothing
//! is done about ingress. What it would add to pods is left out: nothing runs in them here.

use std::{
    ffi::OsString,
    fs,
    net::{Ipv4Addr, TcpStream},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result};

use super::{
    ControlPlane, Lifetime,
    control_plane::{Arguments, apply_text, ca_file, free_port},
    keys::base64,
    process::Process,
    wait_until,
};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// A running controller of KServe. Dropping it ends it.
pub struct Kserve {
    _process: Process,
}

impl Kserve {
    /// Starts it for a control plane that has KServe's CRDs, and returns once its webhooks are asked.
    pub fn add_to(plane: &ControlPlane, program: &Path) -> Result<Kserve> {
        let port = free_port()?;
        apply_text(plane.kubectl(), "the settings of KServe", SETTINGS)?;
        let mut process = start(plane, program, port)?;
        let listens = wait_until("KServe serves its webhooks", READY_WITHIN, || {
            process.check_running()?;
            Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(()))
        });
        listens.with_context(|| format!("the end of its log:\n{}", process.log_tail()))?;
        let certificate = plane.ca_pem()?;
        apply_text(plane.kubectl(), "the webhooks of KServe", &webhooks(port, &certificate))?;
        Ok(Kserve { _process: process })
    }
}

fn start(plane: &ControlPlane, program: &Path, port: u16) -> Result<Process> {
    let home = plane.dir().join("kserve");
    // Where its library looks for them, below the folder for temporary files.
    let keys = home.join("k8s-webhook-server/serving-certs");
    fs::create_dir_all(&keys).with_context(|| format!("cannot create {}", keys.display()))?;
    let certificate = ca_file(plane.dir());
    let key = certificate.with_extension("key");
    for (from, to) in [(&certificate, "tls.crt"), (&key, "tls.key")] {
        fs::copy(from, keys.join(to)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let mut temporary = OsString::from("TMPDIR=");
    temporary.push(&home);
    let mut arguments = Arguments(vec![temporary, program.into()]);
    arguments
        .path("--kubeconfig", &plane.kubeconfig())
        .text("--webhook-port", &port.to_string())
        .text("--metrics-addr", "0")
        .text("--health-probe-addr", "0");
    let name = "kserve-manager";
    Process::start(name, Path::new("env"), arguments.0, plane.dir(), Lifetime::Bound)
}

/// The least that its controller starts with.
const SETTINGS: &str = r#"apiVersion: v1
kind: Namespace
metadata: {name: kserve}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inferenceservice-config, namespace: kserve}
data:
  deploy: '{"defaultDeploymentMode": "Standard"}'
  ingress: '{"ingressGateway": "none/none", "ingressDomain": "example.com", "urlScheme": "http",
    "disableIstioVirtualHost": true, "disableIngressCreation": true}'
  storageInitializer: '{"image": "kserve/storage-initializer", "cpuRequest": "100m", "cpuLimit": "1",
    "memoryRequest": "100Mi", "memoryLimit": "1Gi", "cpuModelcar": "10m", "memoryModelcar": "15Mi"}'
"#;

fn webhooks(port: u16, certificate: &str) -> String {
    let hook = |verb: &str, version: &str, kind: &str| {
        format!(
            r#"- name: {kind}.kserve-webhook-server.{verb}
  clientConfig:
    url: https://127.0.0.1:{port}/{verb}-serving-kserve-io-{version}-{kind}
    caBundle: {authority}
  admissionReviewVersions: [v1beta1]
  failurePolicy: Fail
  sideEffects: None
  rules:
  - apiGroups: [serving.kserve.io]
    apiVersions: [{version}]
    operations: [CREATE, UPDATE]
    resources: [{kind}s]
"#,
            authority = base64(certificate.as_bytes()),
        )
    };
    let configuration = |kind: &str, hooks: &[String]| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\n\
             metadata: {{name: serving.kserve.io}}\nwebhooks:\n{}",
            hooks.concat()
        )
    };
    let defaulter = hook("mutate", "v1beta1", "inferenceservice");
    let validators = [
        hook("validate", "v1beta1", "inferenceservice"),
        hook("validate", "v1alpha1", "servingruntime"),
        hook("validate", "v1alpha1", "clusterservingruntime"),
    ];
    [
        configuration("MutatingWebhookConfiguration", &[defaulter]),
        configuration("ValidatingWebhookConfiguration", &validators),
    ]
    .join("---\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn each_webhook_is_asked_where_it_is_served() {
        let text = webhooks(1234, "certificate");
        let (mutating, validating) = text.split_once("---\n").unwrap();
        let mutating: Value = serde_saphyr::from_str(mutating).unwrap();
        let validating: Value = serde_saphyr::from_str(validating).unwrap();
        assert_eq!(
            mutating["webhooks"][0]["clientConfig"]["url"],
            "https://127.0.0.1:1234/mutate-serving-kserve-io-v1beta1-inferenceservice"
        );
        assert_eq!(validating["webhooks"].as_array().unwrap().len(), 3);
        assert_eq!(validating["webhooks"][1]["rules"][0]["resources"][0], "servingruntimes");
    }
}
