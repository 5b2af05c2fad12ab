//! What there should be.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// How many processes a pod has where that is not one for each container.
pub(super) const PROCESSES: &str = "processes";
/// Which change of its template a pod comes from.
pub(super) const VERSION: &str = "version";

/// What has been asked for, by name.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) workloads: BTreeMap<String, Workload>,
    /// How many names have been used: none is used again.
    pub(super) names: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Workload {
    pub(super) kind: Kind,
    pub(super) replicas: u64,
    pub(super) version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A Deployment of servers behind a Service.
    Plain,
    /// With an init container and a sidecar.
    Sidecar,
    /// All old pods go before a new one comes.
    Recreate,
    /// Its processes leave others behind that lead a life of their own.
    Forks,
    /// Its processes do not listen to SIGTERM.
    Stubborn,
    /// Through our operator.
    Service,
    /// One that ends well.
    Job,
    /// One that does not.
    FailingJob,
    /// Of a program that nobody has.
    Missing,
    /// Of an image that no rule knows.
    Unknown,
}

impl Kind {
    pub(super) const ALL: [Kind; 10] = [
        Kind::Plain,
        Kind::Sidecar,
        Kind::Recreate,
        Kind::Forks,
        Kind::Stubborn,
        Kind::Service,
        Kind::Job,
        Kind::FailingJob,
        Kind::Missing,
        Kind::Unknown,
    ];

    pub(super) fn is_job(self) -> bool {
        matches!(self, Kind::Job | Kind::FailingJob)
    }

    /// Pods that can never be ready.
    pub(super) fn is_hopeless(self) -> bool {
        matches!(self, Kind::Missing | Kind::Unknown)
    }

    fn processes(self) -> u64 {
        match self {
            Kind::Sidecar | Kind::Forks => 2,
            _ => 1,
        }
    }
}

impl Workload {
    /// Everything that makes it up; the first object is the one that others go with.
    pub(super) fn objects(&self, name: &str) -> Vec<Value> {
        match self.kind {
            Kind::Service => vec![self.inference_service(name)],
            kind if kind.is_job() => vec![self.job(name)],
            Kind::Plain | Kind::Sidecar => {
                vec![self.deployment(name), config_map(name), service(name)]
            }
            _ => vec![self.deployment(name)],
        }
    }

    fn deployment(&self, name: &str) -> Value {
        // Nothing could take the place of pods that are never ready.
        let at_once = self.kind == Kind::Recreate || self.kind.is_hopeless();
        let strategy = if at_once { "Recreate" } else { "RollingUpdate" };
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {
                "replicas": self.replicas,
                "strategy": {"type": strategy},
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {
                        "app": name,
                        VERSION: self.version.to_string(),
                        PROCESSES: self.kind.processes().to_string(),
                    }},
                    "spec": self.pod(name),
                },
            },
        })
    }

    fn pod(&self, name: &str) -> Value {
        let mut server = json!({
            "name": "server", "image": "local/server:1",
            "args": ["--port", "8080", "--version", self.version.to_string()],
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
        });
        match self.kind {
            Kind::Forks => shell("setsid sleep 3600 & exec sleep 3601"),
            Kind::Stubborn => shell("trap '' TERM; exec sleep 3600"),
            Kind::Missing => json!({"containers": [{
                "name": "c", "image": "local/server:1", "command": ["/no/such/program"],
            }]}),
            Kind::Unknown => json!({"containers": [{"name": "c", "image": "nobody/knows:1"}]}),
            Kind::Plain => {
                server["volumeMounts"] = json!([{"name": "config", "mountPath": "/etc/config"}]);
                json!({"containers": [server],
                    "volumes": [{"name": "config", "configMap": {"name": name}}]})
            }
            Kind::Sidecar => json!({
                "initContainers": [
                    {"name": "first", "image": "local/shell:1", "args": ["echo first > /data/first"],
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
                    {"name": "beside", "image": "local/server:1", "args": ["--port", "8081"],
                        "restartPolicy": "Always"},
                ],
                "containers": [server],
                "volumes": [{"name": "data", "emptyDir": {}}],
            }),
            _ => json!({"containers": [server]}),
        }
    }

    fn job(&self, name: &str) -> Value {
        let script = match self.kind {
            Kind::Job => "sleep 0.5; echo done > /dev/termination-log",
            _ => "exit 3",
        };
        let mut pod = shell(script);
        pod["restartPolicy"] = json!("Never");
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"backoffLimit": 0, "template": {"spec": pod}},
        })
    }

    fn inference_service(&self, name: &str) -> Value {
        json!({
            "apiVersion": "serving.zerfoo.com/v1alpha1", "kind": "ZerfooInferenceService",
            "metadata": {"name": name},
            "spec": {
                "modelRef": "llama-3-1b-q4", "replicas": self.replicas,
                "auth": {"allowNoAuth": true},
                "extraArgs": ["--version", self.version.to_string()],
            },
        })
    }
}

/// A pod that runs a script.
fn shell(script: &str) -> Value {
    json!({
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "shell", "image": "local/shell:1", "args": [script]}],
    })
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 8080}]},
    })
}
