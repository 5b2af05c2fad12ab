//! What there should be.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// How many processes a pod has where that is not one for each container.
pub(super) const PROCESSES: &str = "processes";
/// Which change of its template a pod comes from.
pub(super) const VERSION: &str = "version";

/// How many devices the node offers: fewer than may be asked for.
pub(super) const DEVICES: u64 = 3;
const POOLS: &str = "inference.networking.k8s.io";
const DEVICE: &str = "nvidia.com/gpu";
pub(super) const FLAGS: [&str; 1] = ["--node-resource=nvidia.com/gpu=3"];

/// A workload that is there all the time, so that there is somebody to answer requests.
pub(super) const LASTING: &str = "lasting";

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
    /// These give up their variables, their session and their parent, too.
    Strays,
    /// Its processes do not listen to SIGTERM.
    Stubborn,
    /// With a claim for storage, in which it closes a directory.
    Claim,
    /// Behind an InferencePool. They answer before they are ready.
    Pool,
    /// An autoscaler says how many there are.
    Scaled,
    /// Each asks for a device.
    Device,
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
    pub(super) const ALL: [Kind; 15] = [
        Kind::Plain,
        Kind::Sidecar,
        Kind::Recreate,
        Kind::Forks,
        Kind::Strays,
        Kind::Stubborn,
        Kind::Claim,
        Kind::Pool,
        Kind::Scaled,
        Kind::Device,
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

    /// The gateway leads to it.
    pub(super) fn is_routed(self) -> bool {
        matches!(self, Kind::Plain | Kind::Sidecar | Kind::Pool)
    }

    /// Our services and autoscalers have no pause.
    pub(super) fn fewest(self) -> u64 {
        u64::from(matches!(self, Kind::Service | Kind::Scaled))
    }

    fn processes(self) -> u64 {
        match self {
            Kind::Sidecar | Kind::Forks | Kind::Strays => 2,
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
                let behind = json!({"name": name, "port": 8080});
                let route = route(name, &behind);
                vec![self.deployment(name), config_map(name), service(name), route]
            }
            Kind::Pool => vec![self.deployment(name), pool(name), route(name, &pool_ref(name))],
            Kind::Scaled => vec![self.deployment(name), self.autoscaler(name)],
            Kind::Claim => vec![self.deployment(name), claim(name)],
            _ => vec![self.deployment(name)],
        }
    }

    fn deployment(&self, name: &str) -> Value {
        // Nothing could take the place of pods that are never ready, nor of those with all devices.
        let at_once = matches!(self.kind, Kind::Recreate | Kind::Device) || self.kind.is_hopeless();
        let strategy = if at_once { "Recreate" } else { "RollingUpdate" };
        let mut deployment = json!({
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
        });
        if self.kind == Kind::Scaled {
            deployment["spec"].as_object_mut().unwrap().remove("replicas");
        }
        deployment
    }

    fn pod(&self, name: &str) -> Value {
        let mut server = json!({
            "name": "server", "image": "local/server:1",
            "args": ["--port", "8080", "--version", self.version.to_string()],
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
        });
        match self.kind {
            Kind::Forks => shell("setsid sleep 3600 & exec sleep 3601"),
            Kind::Strays => shell(
                "(env -i \"$(command -v setsid)\" /bin/bash -c \
                 'exec -a \"HOSTNAME=$0\" sleep 3602' \"$HOSTNAME\" &); exec sleep 3603",
            ),
            Kind::Claim => {
                let mut pod = shell("mkdir -p /data/of/$$; chmod 500 /data/of/$$; exec sleep 3604");
                pod["containers"][0]["volumeMounts"] =
                    json!([{"name": "data", "mountPath": "/data"}]);
                let claim = json!({"claimName": name});
                pod["volumes"] = json!([{"name": "data", "persistentVolumeClaim": claim}]);
                pod
            }
            Kind::Stubborn => shell("trap '' TERM; exec sleep 3600"),
            Kind::Missing => json!({"containers": [{"name": "c", "image": "local/missing:1"}]}),
            Kind::Unknown => json!({"containers": [{"name": "c", "image": "nobody/knows:1"}]}),
            Kind::Plain => {
                server["volumeMounts"] = json!([{"name": "config", "mountPath": "/etc/config"}]);
                json!({"containers": [server],
                    "volumes": [{"name": "config", "configMap": {"name": name}}]})
            }
            Kind::Pool => {
                server["readinessProbe"]["initialDelaySeconds"] = json!(1);
                json!({"containers": [server]})
            }
            Kind::Scaled => {
                server["resources"] = json!({"requests": {"cpu": "10m"}});
                json!({"containers": [server]})
            }
            Kind::Device => {
                server["resources"] = json!({"limits": {DEVICE: "1"}});
                json!({"containers": [server]})
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

    /// It has no choice, so that the load of the machine plays no part.
    fn autoscaler(&self, name: &str) -> Value {
        let cpu =
            json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 90}});
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                "minReplicas": self.replicas, "maxReplicas": self.replicas,
                "metrics": [{"type": "Resource", "resource": cpu}],
            },
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

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}},
        },
    })
}

fn pool(name: &str) -> Value {
    json!({
        "apiVersion": format!("{POOLS}/v1"), "kind": "InferencePool", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}}, "targetPorts": [{"number": 8080}],
            "endpointPickerRef":
                {"name": "none", "port": {"number": 9002}, "failureMode": "FailOpen"},
        },
    })
}

fn pool_ref(name: &str) -> Value {
    json!({"group": POOLS, "kind": "InferencePool", "name": name})
}

fn route(name: &str, behind: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": name},
        "spec": {
            "parentRefs": [{"name": "any"}], "hostnames": [format!("{name}.example")],
            "rules": [{"backendRefs": [behind]}],
        },
    })
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 8080}]},
    })
}
