//! Roles that every cluster has and clients count on.

use serde_json::{Value, json};

use super::{AUTHENTICATED, MASTERS, aggregated};

const GROUP: &str = "rbac.authorization.k8s.io";
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const ALL: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Resources of a group that users of a namespace work with.
struct Area {
    groups: &'static [&'static str],
    readable: &'static [&'static str],
    writable: &'static [&'static str],
}

const AREAS: &[Area] = &[
    Area {
        groups: &[""],
        readable: &[
            "configmaps",
            "endpoints",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "pods/log",
            "pods/status",
            "serviceaccounts",
            "services",
            "services/status",
            "namespaces",
            "namespaces/status",
        ],
        writable: &[
            "configmaps",
            "persistentvolumeclaims",
            "pods",
            "secrets",
            "serviceaccounts",
            "services",
        ],
    },
    Area { groups: &["", "events.k8s.io"], readable: &["events"], writable: &["events"] },
    Area { groups: &["discovery.k8s.io"], readable: &["endpointslices"], writable: &[] },
    Area {
        groups: &["apps"],
        readable: &[
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
        ],
        writable: &["deployments", "deployments/scale", "replicasets", "replicasets/scale"],
    },
    Area {
        groups: &["autoscaling"],
        readable: &["horizontalpodautoscalers", "horizontalpodautoscalers/status"],
        writable: &["horizontalpodautoscalers"],
    },
    Area { groups: &["batch"], readable: &["jobs", "jobs/status"], writable: &["jobs"] },
    Area {
        groups: &["policy"],
        readable: &["poddisruptionbudgets", "poddisruptionbudgets/status"],
        writable: &["poddisruptionbudgets"],
    },
    Area {
        groups: &["networking.k8s.io"],
        readable: &["networkpolicies"],
        writable: &["networkpolicies"],
    },
];

/// The objects to be there from the first start, each with its `kind`.
pub fn bootstrap() -> Vec<Value> {
    let mut roles = vec![
        role("cluster-admin", json!([rule(&["*"], &["*"], &["*"]), paths(&["*"], &["*"])])),
        role("system:discovery", json!([paths(DISCOVERY, &["get"])])),
        role("system:public-info-viewer", json!([paths(PUBLIC, &["get"])])),
        role("system:basic-user", basic_user()),
        gathered("system:aggregate-to-view", "view", view()),
        gathered("system:aggregate-to-edit", "edit", edit()),
        gathered("system:aggregate-to-admin", "admin", admin()),
        gathering("view", Some("edit")),
        gathering("edit", Some("admin")),
        gathering("admin", None),
    ];
    for index in 0..roles.len() {
        let all: Vec<&Value> = roles.iter().collect();
        let rules = aggregated(all[index], &all);
        roles[index]["rules"] = rules.into();
    }
    roles.extend([
        binding("cluster-admin", &[MASTERS]),
        binding("system:discovery", &[AUTHENTICATED]),
        binding("system:basic-user", &[AUTHENTICATED]),
        binding("system:public-info-viewer", &[AUTHENTICATED, "system:unauthenticated"]),
    ]);
    roles
}

const DISCOVERY: &[&str] = &[
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];
const PUBLIC: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];

fn basic_user() -> Value {
    let reviews = &["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
    json!([
        rule(&["authorization.k8s.io"], reviews, &["create"]),
        rule(&["authentication.k8s.io"], &["selfsubjectreviews"], &["create"]),
    ])
}

fn view() -> Value {
    AREAS.iter().map(|area| rule(area.groups, area.readable, READ)).collect()
}

fn edit() -> Value {
    let writable = AREAS.iter().filter(|area| !area.writable.is_empty());
    let mut rules = vec![
        rule(&[""], &["secrets"], READ),
        rule(&[""], &["serviceaccounts"], &["impersonate"]),
        rule(&[""], &["pods/eviction", "serviceaccounts/token"], &["create"]),
        rule(&["coordination.k8s.io"], &["leases"], ALL),
    ];
    rules.extend(writable.map(|area| rule(area.groups, area.writable, WRITE)));
    rules.into()
}

fn admin() -> Value {
    json!([
        rule(&["authorization.k8s.io"], &["localsubjectaccessreviews"], &["create"]),
        rule(&[GROUP], &["rolebindings", "roles"], ALL),
    ])
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

fn paths(urls: &[&str], verbs: &[&str]) -> Value {
    json!({ "nonResourceURLs": urls, "verbs": verbs })
}

fn role(name: &str, rules: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": name,
            "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
            "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
        },
        "rules": rules,
    })
}

fn label(of: &str) -> String {
    format!("{GROUP}/aggregate-to-{of}")
}

/// A role that becomes part of another.
fn gathered(name: &str, into: &str, rules: Value) -> Value {
    let mut role = role(name, rules);
    role["metadata"]["labels"][label(into)] = "true".into();
    role
}

/// A role made of others, CRDs' own ones included.
fn gathering(name: &str, into: Option<&str>) -> Value {
    let mut role = role(name, json!([]));
    role["aggregationRule"] =
        json!({ "clusterRoleSelectors": [{ "matchLabels": { label(name): "true" } }] });
    if let Some(into) = into {
        role["metadata"]["labels"][label(into)] = "true".into();
    }
    role
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let subject = |group: &&str| json!({ "apiGroup": GROUP, "kind": "Group", "name": group });
    let mut binding = self::role(role, Value::Null);
    binding["kind"] = "ClusterRoleBinding".into();
    binding["roleRef"] = json!({ "apiGroup": GROUP, "kind": "ClusterRole", "name": role });
    binding["subjects"] = groups.iter().map(subject).collect();
    if let Some(map) = binding.as_object_mut() {
        map.remove("rules");
    }
    binding
}
