//! What the server adds to new objects, beyond defaults.

use serde_json::{Map, Value, json};

use super::{
    Resource, default,
    object::{at, at_mut, fill, has, integer, items, items_mut, map_mut, text},
    qos,
};

/// What the server knows that a new object does not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The account of the pod, see [`account_name`]. None: there is no such account.
    pub account: Option<&'a Value>,
    /// An address for the service, see [`wants_address`].
    pub address: Option<&'a str>,
    /// The name of the default storage class.
    pub storage_class: Option<&'a str>,
    /// Five random characters for the name of the token volume.
    pub suffix: &'a str,
    /// RFC 3339 in seconds.
    pub time: &'a str,
}

/// The writer may not create this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
    )]
    NoAccount { namespace: String, name: String },
}

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";

/// The account that a new pod would run under.
pub fn account_name(pod: &Value) -> &str {
    let names = [["spec", "serviceAccountName"], ["spec", "serviceAccount"]];
    let mut names = names.iter().map(|path| text(pod, path));
    names.find(|name| !name.is_empty()).unwrap_or("default")
}

/// Whether a service needs an address that it does not name itself.
pub fn wants_address(service: &Value) -> bool {
    text(service, &["spec", "clusterIP"]).is_empty()
        && text(service, &["spec", "type"]) != "ExternalName"
}

/// Adds to a new object that has its name, its uid and its defaults.
pub fn on_create(
    resource: &Resource,
    object: &mut Value,
    context: &Context<'_>,
) -> Result<(), Error> {
    match (&*resource.group, &*resource.kind) {
        ("", "Pod") => pod(object, context)?,
        ("", "Service") => service(object, context),
        ("", "Secret") => string_data(object),
        ("", "Namespace") => {
            add_finalizer(object, &["spec"], "kubernetes");
            status(object, json!({ "phase": "Active" }));
        }
        ("", "PersistentVolumeClaim") => claim(object, context),
        ("", "PersistentVolume") => {
            add_finalizer(object, &["metadata"], "kubernetes.io/pv-protection");
            status(object, json!({ "phase": "Pending", "lastPhaseTransitionTime": context.time }));
        }
        ("apps", "Deployment") => status(object, json!({})),
        ("apps", "ReplicaSet") => status(object, json!({ "replicas": 0 })),
        ("batch", "Job") => {
            job(object);
            status(object, json!({}));
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            status(object, json!({ "currentMetrics": null, "desiredReplicas": 0 }));
        }
        ("policy", "PodDisruptionBudget") => status(
            object,
            json!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 }),
        ),
        _ => {}
    }
    default(resource, object);
    Ok(())
}

/// Carries over what the server gave to the stored object and an update may leave out.
pub fn on_update(resource: &Resource, object: &mut Value, old: &Value) {
    match (&*resource.group, &*resource.kind) {
        ("", "Pod") => {
            if let Some(spec) = at_mut(object, &["spec"]) {
                tolerate_all(spec);
            }
        }
        ("", "Service") => keep_address(object, old),
        ("", "Secret") => string_data(object),
        ("", "PersistentVolumeClaim") => keep(object, old, &["spec"], "volumeName"),
        // They change through `/finalize` only.
        ("", "Namespace") => restore(object, old, &["spec"], "finalizers"),
        ("batch", "Job") => keep(object, old, &["spec"], "selector"),
        _ => {}
    }
}

/// The same for a write of `/status`.
pub fn on_status_update(resource: &Resource, object: &mut Value, old: &Value, time: &str) {
    const SINCE: &str = "lastPhaseTransitionTime";
    if (&*resource.group, &*resource.kind) != ("", "PersistentVolume") {
        return;
    }
    let (phase, since) = (["status", "phase"], ["status", SINCE]);
    let untold = at(object, &since).is_none_or(|given| Some(given) == at(old, &since));
    if text(object, &phase) == text(old, &phase) {
        keep(object, old, &["status"], SINCE);
    } else if untold && let Some(status) = map_mut(object, &["status"]) {
        status.insert(SINCE.to_owned(), time.into());
    }
}

fn keep(object: &mut Value, old: &Value, path: &[&str], name: &str) {
    let full: Vec<&str> = path.iter().copied().chain([name]).collect();
    if at(object, &full).is_none()
        && let Some(value) = at(old, &full)
        && let Some(map) = map_mut(object, path)
    {
        map.insert(name.to_owned(), value.clone());
    }
}

/// Whatever the update says.
fn restore(object: &mut Value, old: &Value, path: &[&str], name: &str) {
    if let Some(map) = map_mut(object, path) {
        map.remove(name);
    }
    keep(object, old, path, name);
}

fn status(object: &mut Value, status: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert("status".to_owned(), status);
    }
}

fn add_finalizer(object: &mut Value, path: &[&str], finalizer: &str) {
    let Some(map) = map_mut(object, path) else { return };
    let list = map.entry("finalizers").or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut()
        && !list.iter().any(|item| item == finalizer)
    {
        list.push(finalizer.into());
    }
}

fn pod(object: &mut Value, context: &Context<'_>) -> Result<(), Error> {
    let name = account_name(object).to_owned();
    let Some(account) = context.account else {
        let namespace = text(object, &["metadata", "namespace"]).to_owned();
        return Err(Error::NoAccount { namespace, name });
    };
    let qos = qos::class(object);
    if let Some(spec) = at_mut(object, &["spec"]) {
        if let Some(map) = spec.as_object_mut() {
            map.insert("serviceAccountName".to_owned(), name.clone().into());
            map.insert("serviceAccount".to_owned(), name.into());
        }
        let wish = [
            at(spec, &["automountServiceAccountToken"]),
            at(account, &["automountServiceAccountToken"]),
        ];
        if wish.into_iter().flatten().find_map(Value::as_bool).unwrap_or(true) {
            mount_token(spec, context.suffix);
        }
        let secrets = items(account, &["imagePullSecrets"]);
        if items(spec, &["imagePullSecrets"]).is_empty() && !secrets.is_empty() {
            let names = secrets.iter().map(|secret| json!({ "name": text(secret, &["name"]) }));
            let names: Vec<Value> = names.collect();
            if let Some(map) = spec.as_object_mut() {
                map.insert("imagePullSecrets".to_owned(), names.into());
            }
        }
        if !has(spec, "priority") {
            fill(spec, "priority", 0);
        }
        fill(spec, "preemptionPolicy", "PreemptLowerPriority");
        tolerate_all(spec);
    }
    let is_gated = !items(object, &["spec", "schedulingGates"]).is_empty();
    status(object, json!({ "phase": "Pending", "qosClass": qos }));
    if is_gated && let Some(status) = map_mut(object, &["status"]) {
        let gated = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null,
            "lastTransitionTime": context.time,
        });
        status.insert("conditions".to_owned(), json!([gated]));
    }
    Ok(())
}

fn mount_token(spec: &mut Value, suffix: &str) {
    let volumes = items(spec, &["volumes"]);
    let names = volumes.iter().map(|volume| text(volume, &["name"]));
    let existing = names.clone().find(|name| name.starts_with(TOKEN_VOLUME)).map(str::to_owned);
    let present = existing.is_some();
    let name = existing.unwrap_or_else(|| format!("{TOKEN_VOLUME}{suffix}"));
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        for container in items_mut(spec, &[list]) {
            let mounts = items(container, &["volumeMounts"]);
            if !mounts.iter().any(|mount| text(mount, &["mountPath"]) == TOKEN_PATH) {
                let mount = json!({ "name": name, "readOnly": true, "mountPath": TOKEN_PATH });
                append(container, "volumeMounts", mount);
                needed = true;
            }
        }
    }
    if needed && !present {
        append(spec, "volumes", json!({ "name": name, "projected": token_sources() }));
    }
}

fn token_sources() -> Value {
    let root = json!({
        "name": "kube-root-ca.crt",
        "items": [{ "key": "ca.crt", "path": "ca.crt" }],
    });
    let namespace = json!({
        "path": "namespace",
        "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" },
    });
    json!({
        "defaultMode": 420,
        "sources": [
            { "serviceAccountToken": { "path": "token", "expirationSeconds": 3607 } },
            { "configMap": root },
            { "downwardAPI": { "items": [namespace] } },
        ],
    })
}

fn append(object: &mut Value, name: &str, item: Value) {
    let Some(map) = object.as_object_mut() else { return };
    let list = map.entry(name).or_insert(Value::Null);
    if list.is_null() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}

fn tolerate_all(spec: &mut Value) {
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        tolerate(spec, taint);
    }
}

/// For five minutes, unless the pod says something of this taint itself.
fn tolerate(spec: &mut Value, taint: &str) {
    let said = items(spec, &["tolerations"]).iter().any(|toleration| {
        let key = text(toleration, &["key"]);
        let effect = text(toleration, &["effect"]);
        (key == taint || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
    });
    if !said {
        let toleration = json!({
            "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
        });
        append(spec, "tolerations", toleration);
    }
}

fn service(object: &mut Value, context: &Context<'_>) {
    let wants = wants_address(object);
    let Some(spec) = at_mut(object, &["spec"]) else { return };
    if text(spec, &["type"]) != "ExternalName" {
        if wants && let Some(address) = context.address {
            fill(spec, "clusterIP", address);
        }
        let address = text(spec, &["clusterIP"]).to_owned();
        if !address.is_empty() && items(spec, &["clusterIPs"]).is_empty() {
            fill(spec, "clusterIPs", json!([address]));
        }
        families(spec, None);
    }
    status(object, json!({ "loadBalancer": {} }));
}

/// Which families of addresses stand behind the service.
fn families(spec: &mut Value, old: Option<&Value>) {
    let open = is_open(spec);
    let before = old.map(|old| text(old, &["ipFamilyPolicy"])).filter(|policy| !policy.is_empty());
    let usual = if open { "RequireDualStack" } else { "SingleStack" };
    fill(spec, "ipFamilyPolicy", before.unwrap_or(usual));
    let single = text(spec, &["ipFamilyPolicy"]) == "SingleStack";
    let mut families = items(spec, &["ipFamilies"]).to_vec();
    if single && old.is_some_and(|old| items(old, &["ipFamilies"]) == families) {
        // To ask for one family is to let go of the other.
        families.truncate(1);
    }
    // Whoever demands both families, or the other one, is refused and gets none.
    let other = text(spec, &["clusterIP"]).contains(':');
    let both = text(spec, &["ipFamilyPolicy"]) == "RequireDualStack";
    if families.is_empty() && !other && (open || !both) {
        families.push("IPv4".into());
    }
    if open && !single && families.len() == 1 {
        let other = if families[0] == "IPv4" { "IPv6" } else { "IPv4" };
        families.push(other.into());
    }
    if let Some(map) = spec.as_object_mut().filter(|_| !families.is_empty()) {
        map.insert("ipFamilies".to_owned(), families.into());
    }
}

/// Without address and selector nobody knows yet what will stand behind the name.
pub(crate) fn is_open(spec: &Value) -> bool {
    let selects = at(spec, &["selector"]).and_then(Value::as_object);
    text(spec, &["clusterIP"]) == "None" && selects.is_none_or(Map::is_empty)
}

fn keep_address(object: &mut Value, old: &Value) {
    if text(object, &["spec", "type"]) == "ExternalName" {
        return;
    }
    let given = text(object, &["spec", "clusterIP"]).to_owned();
    let stored = text(old, &["spec", "clusterIP"]);
    keep(object, old, &["spec"], "clusterIP");
    // Whoever changes the one address need not know of the list.
    let same_list = at(object, &["spec", "clusterIPs"]) == at(old, &["spec", "clusterIPs"]);
    if !given.is_empty()
        && given != stored
        && same_list
        && let Some(spec) = map_mut(object, &["spec"])
    {
        spec.insert("clusterIPs".to_owned(), json!([given]));
    }
    if given.is_empty() || given == stored {
        keep(object, old, &["spec"], "clusterIPs");
    }
    if let Some(spec) = at_mut(object, &["spec"]) {
        families(spec, Some(at(old, &["spec"]).unwrap_or(&Value::Null)));
    }
}

fn string_data(object: &mut Value) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let Some(map) = object.as_object_mut() else { return };
    let Some(Value::Object(texts)) = map.remove("stringData") else { return };
    let data = map.entry("data").or_insert(Value::Null);
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    for (key, value) in texts {
        if let (Some(data), Some(text)) = (data.as_object_mut(), value.as_str()) {
            data.insert(key, STANDARD.encode(text).into());
        }
    }
}

fn claim(object: &mut Value, context: &Context<'_>) {
    add_finalizer(object, &["metadata"], "kubernetes.io/pvc-protection");
    if let Some(spec) = at_mut(object, &["spec"])
        && !has(spec, "storageClassName")
        && let Some(class) = context.storage_class
    {
        fill(spec, "storageClassName", class);
    }
    status(object, json!({ "phase": "Pending" }));
}

/// Pods are told apart by the uid of their Job, unless the writer sees to it.
fn job(object: &mut Value) {
    if at(object, &["spec", "manualSelector"]).and_then(Value::as_bool) == Some(true) {
        return;
    }
    let uid = text(object, &["metadata", "uid"]).to_owned();
    let name = text(object, &["metadata", "name"]).to_owned();
    let shared = {
        let own = at(object, &["metadata", "labels"]);
        own.is_none() || own == at(object, &["spec", "template", "metadata", "labels"])
    };
    let Some(labels) = map_mut(object, &["spec", "template", "metadata", "labels"]) else { return };
    for (key, value) in [
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
    ] {
        labels.insert(key.to_owned(), value.as_str().into());
    }
    let labels = labels.clone();
    if shared && let Some(meta) = map_mut(object, &["metadata"]) {
        meta.insert("labels".to_owned(), labels.into());
    }
    if let Some(selector) = map_mut(object, &["spec", "selector", "matchLabels"]) {
        selector.insert("batch.kubernetes.io/controller-uid".to_owned(), uid.into());
    }
}

/// The grace that a pod asks for itself.
pub fn grace_period(pod: &Value) -> i64 {
    integer(pod, &["spec", "terminationGracePeriodSeconds"]).unwrap_or(30)
}
