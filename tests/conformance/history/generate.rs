//! Writes of several managers to one object, drawn at random.

use serde_json::{Map, Value, json};

use crate::case::{Names, Step};

/// A source of choices that a seed repeats exactly (the generator of `splitmix64`).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Some of them, in any order.
    fn some<T: Clone>(&mut self, from: &[T]) -> Vec<T> {
        let mut left = from.to_vec();
        let mut taken = Vec::new();
        for _ in 0..self.below(from.len() + 1) {
            taken.push(left.remove(self.below(left.len())));
        }
        taken
    }

    fn map(&mut self, keys: &[&str], values: &[&str]) -> Value {
        let keys = self.some(keys);
        let entry = |key: &str| (key.to_owned(), json!(self.pick(values)));
        Value::Object(keys.into_iter().map(entry).collect())
    }
}

/// What the history is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    ConfigMap,
    Service,
    Deployment,
    Widget,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] =
        [Kind::ConfigMap, Kind::Service, Kind::Deployment, Kind::Widget];

    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Kind::ConfigMap => "c",
            Kind::Service => "s",
            Kind::Deployment => "d",
            Kind::Widget => "w",
        }
    }

    fn collection(self) -> &'static str {
        match self {
            Kind::ConfigMap => "${core}/configmaps",
            Kind::Service => "${core}/services",
            Kind::Deployment => "${apps}/deployments",
            Kind::Widget => "${widgets}",
        }
    }

    fn version_and_kind(self) -> (&'static str, &'static str) {
        match self {
            Kind::ConfigMap => ("v1", "ConfigMap"),
            Kind::Service => ("v1", "Service"),
            Kind::Deployment => ("apps/v1", "Deployment"),
            Kind::Widget => ("${group}/v1", "Widget"),
        }
    }

    fn has_status(self) -> bool {
        matches!(self, Kind::Deployment | Kind::Widget)
    }

    /// Where JSON patches reach.
    fn pointers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::ConfigMap => &[("/data/a", "1"), ("/data/b", "2"), ("/metadata/labels/x", "1")],
            Kind::Service => &[("/spec/selector/app", "1"), ("/metadata/labels/x", "2")],
            Kind::Deployment => &[
                ("/spec/template/spec/containers/0/image", "i:3"),
                ("/metadata/annotations/x", "1"),
            ],
            Kind::Widget => &[("/spec/labels/x", "3"), ("/spec/items/0/value", "3")],
        }
    }
}

/// What steps may call by name.
pub(crate) fn names(name: &str) -> Names {
    let mut names = Names::default();
    names.set("ns", "history");
    names.set("group", "history.example.com");
    names.set("core", "/api/v1/namespaces/history");
    names.set("apps", "/apis/apps/v1/namespaces/history");
    names.set("widgets", "/apis/history.example.com/v1/namespaces/history/widgets");
    names.set("name", name);
    // Until the object is there.
    names.set("rv", "1");
    names
}

/// The object is made first; what follows is drawn.
pub(crate) fn history(kind: Kind, random: &mut Random, steps: usize) -> Vec<Step> {
    let first = if random.percent(50) { create(kind, random) } else { apply(kind, random) };
    let mut history = vec![first];
    history.extend((1..steps).map(|_| {
        let write = write(kind, random);
        if random.percent(12) { dry(write) } else { write }
    }));
    history.push(step(kind, "GET", "", None, Value::Null));
    history
}

fn write(kind: Kind, random: &mut Random) -> Step {
    match random.below(100) {
        0..35 => apply(kind, random),
        35..50 => merge(kind, random),
        50..60 => put(kind, random),
        60..70 => strategic(kind, random),
        70..78 => json_patch(kind, random),
        78..88 if kind.has_status() => status(kind, random),
        88..93 if kind.has_status() => {
            let body = json!({ "spec": { "replicas": random.below(4) } });
            step(kind, "PATCH", &format!("/scale?{}", manager(random)), Some("merge"), body)
        }
        93..95 => {
            let body = json!({ "metadata": { "managedFields": [{}] } });
            step(kind, "PATCH", &format!("?{}", manager(random)), Some("merge"), body)
        }
        95..97 => step(kind, "DELETE", "", None, Value::Null),
        97..99 => create(kind, random),
        _ => step(kind, "GET", "", None, Value::Null),
    }
}

/// The same, of which nothing is to stay.
fn dry(mut step: Step) -> Step {
    if let Some(request) = &mut step.request {
        let joint = if request.contains('?') { '&' } else { '?' };
        *request += &format!("{joint}dryRun=All");
    }
    step
}

fn step(kind: Kind, method: &str, rest: &str, content_type: Option<&str>, body: Value) -> Step {
    Step {
        request: Some(format!("{method} {}/${{name}}{rest}", kind.collection())),
        content_type: content_type.map(str::to_owned),
        body: (!body.is_null()).then_some(body),
        ..Step::default()
    }
}

fn manager(random: &mut Random) -> String {
    format!("fieldManager={}", random.pick(&["m1", "m2", "m3"]))
}

fn create(kind: Kind, random: &mut Random) -> Step {
    let request = format!("POST {}?{}", kind.collection(), manager(random));
    Step { request: Some(request), body: Some(object(kind, random)), ..Step::default() }
}

fn apply(kind: Kind, random: &mut Random) -> Step {
    let force = if random.percent(50) { "&force=true" } else { "" };
    let rest = format!("?{}{force}", manager(random));
    step(kind, "PATCH", &rest, Some("apply"), object(kind, random))
}

fn put(kind: Kind, random: &mut Random) -> Step {
    let mut body = object(kind, random);
    body["metadata"]["resourceVersion"] = json!("${rv}");
    step(kind, "PUT", &format!("?{}", manager(random)), None, body)
}

fn merge(kind: Kind, random: &mut Random) -> Step {
    let mut body = object(kind, random);
    forget_identity(&mut body);
    forget_some(&mut body, random, 2);
    step(kind, "PATCH", &format!("?{}", manager(random)), Some("merge"), body)
}

/// Custom objects have no strategic merge; that is an answer too.
fn strategic(kind: Kind, random: &mut Random) -> Step {
    let mut body = object(kind, random);
    forget_identity(&mut body);
    forget_some(&mut body, random, 1);
    if let Kind::Deployment = kind {
        direct(&mut body["spec"], random);
    }
    step(kind, "PATCH", &format!("?{}", manager(random)), Some("strategic"), body)
}

fn json_patch(kind: Kind, random: &mut Random) -> Step {
    let mut operations = Vec::new();
    for _ in 0..=random.below(2) {
        let (path, value) = *random.pick(kind.pointers());
        let op = *random.pick(&["add", "replace", "remove", "test"]);
        operations.push(json!({ "op": op, "path": path, "value": value }));
    }
    step(kind, "PATCH", &format!("?{}", manager(random)), Some("json"), json!(operations))
}

fn status(kind: Kind, random: &mut Random) -> Step {
    let mut status = json!({});
    maybe(random, &mut status, "replicas", |random| json!(random.below(3)));
    if let Kind::Widget = kind {
        maybe(random, &mut status, "phase", |random| json!(random.pick(&["a", "b"])));
    }
    maybe(random, &mut status, "conditions", |random| {
        let types = random.some(&["Ready", "Available"]);
        let condition = |kind| json!({ "type": kind, "status": *random.pick(&["True", "False"]) });
        types.into_iter().map(condition).collect()
    });
    let (version, name) = kind.version_and_kind();
    if random.percent(50) {
        let metadata = json!({ "name": "${name}" });
        let body =
            json!({ "apiVersion": version, "kind": name, "metadata": metadata, "status": status });
        let rest = format!("/status?{}&force=true", manager(random));
        return step(kind, "PATCH", &rest, Some("apply"), body);
    }
    let rest = format!("/status?{}", manager(random));
    step(kind, "PATCH", &rest, Some("merge"), json!({ "status": status }))
}

fn forget_identity(body: &mut Value) {
    if let Some(map) = body.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
    }
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.remove("name");
    }
}

/// Makes some fields null, down to a depth.
fn forget_some(value: &mut Value, random: &mut Random, depth: usize) {
    let Some(map) = value.as_object_mut() else { return };
    for (key, field) in map {
        // Without these the object is refused, again and again.
        if ["selector", "template", "clusterIP", "spec", "metadata"].contains(&key.as_str()) {
            if depth > 0 {
                forget_some(field, random, depth);
            }
        } else if random.percent(20) {
            *field = Value::Null;
        } else if depth > 0 {
            forget_some(field, random, depth - 1);
        }
    }
}

/// Adds directives of strategic merge patches.
fn direct(spec: &mut Value, random: &mut Random) {
    let Some(pod) = spec.pointer_mut("/template/spec").filter(|pod| pod.is_object()) else {
        return;
    };
    for (list, names) in [("containers", ["c", "d"]), ("volumes", ["v", "u"])] {
        // Kubernetes breaks on an order of nothing.
        let Some(items) = pod[list].as_array().filter(|items| !items.is_empty()) else { continue };
        if random.percent(25) {
            // The order of the patch's own items must be kept; others may stand between them.
            let mut order: Vec<&str> =
                items.iter().filter_map(|item| item["name"].as_str()).collect();
            let others: Vec<&str> =
                names.into_iter().filter(|name| !order.contains(name)).collect();
            for other in random.some(&others) {
                order.insert(random.below(order.len() + 1), other);
            }
            let order: Vec<Value> = order.iter().map(|name| json!({ "name": name })).collect();
            pod[format!("$setElementOrder/{list}")] = json!(order);
        }
    }
    if random.percent(30)
        && let Some(Value::Array(variables)) = pod.pointer_mut("/containers/0/env")
    {
        let name = *random.pick(&["A", "B", "C", "D"]);
        // A name may be there once only.
        variables.retain(|variable| variable["name"] != name);
        variables.push(json!({ "name": name, "$patch": "delete" }));
    }
    if random.percent(15) && spec["strategy"].is_object() {
        spec["strategy"] = json!({ "$retainKeys": ["type"], "type": "Recreate" });
    }
}

fn maybe(
    random: &mut Random,
    object: &mut Value,
    field: &str,
    value: impl FnOnce(&mut Random) -> Value,
) {
    if random.percent(45) {
        object[field] = value(random);
    }
}

/// An object with some of its fields.
fn object(kind: Kind, random: &mut Random) -> Value {
    let (version, name) = kind.version_and_kind();
    let mut metadata = json!({ "name": "${name}" });
    maybe(random, &mut metadata, "labels", |random| random.map(&["x", "y"], &["1", "2"]));
    maybe(random, &mut metadata, "annotations", |random| random.map(&["x", "y"], &["1", "2"]));
    if random.percent(5) {
        metadata["finalizers"] = json!(random.some(&["x.io/a", "x.io/b"]));
    }
    let mut object = Map::new();
    object.insert("apiVersion".into(), json!(version));
    object.insert("kind".into(), json!(name));
    object.insert("metadata".into(), metadata);
    let mut object = Value::Object(object);
    match kind {
        Kind::ConfigMap => {
            maybe(random, &mut object, "data", |random| {
                random.map(&["a", "b", "c"], &["1", "2", ""])
            });
        }
        Kind::Service => object["spec"] = service(random),
        Kind::Deployment => object["spec"] = deployment(random),
        Kind::Widget => object["spec"] = widget(random),
    }
    object
}

/// Headless, because the addresses of the two servers differ.
fn service(random: &mut Random) -> Value {
    let mut spec = json!({ "clusterIP": "None" });
    maybe(random, &mut spec, "selector", |random| random.map(&["app", "tier"], &["1", "2"]));
    maybe(random, &mut spec, "publishNotReadyAddresses", |random| json!(random.percent(50)));
    maybe(random, &mut spec, "ports", |random| {
        let ports = [
            json!({ "name": "a", "port": 80 }),
            json!({ "name": "b", "port": 443, "targetPort": "https" }),
            json!({ "name": "c", "port": 80, "protocol": "UDP" }),
        ];
        json!(random.some(&ports))
    });
    spec
}

fn deployment(random: &mut Random) -> Value {
    let mut labels = json!({ "app": "a" });
    maybe(random, &mut labels, "extra", |random| json!(random.pick(&["1", "2"])));
    let mut pod = json!({});
    let names: &[&str] = if random.percent(30) { &["c", "d"] } else { &["c"] };
    pod["containers"] = names.iter().map(|name| container(name, random)).collect();
    maybe(random, &mut pod, "nodeSelector", |random| random.map(&["a", "b"], &["1"]));
    maybe(random, &mut pod, "tolerations", |random| {
        json!(random.some(&[json!({ "key": "a", "operator": "Exists" })]))
    });
    maybe(random, &mut pod, "volumes", |random| {
        let volumes = [
            json!({ "name": "v", "emptyDir": {} }),
            json!({ "name": "u", "configMap": { "name": "c" } }),
        ];
        json!(random.some(&volumes))
    });
    let template = json!({ "metadata": { "labels": labels }, "spec": pod });
    let selector = json!({ "matchLabels": { "app": "a" } });
    let mut spec = json!({ "selector": selector, "template": template });
    maybe(random, &mut spec, "replicas", |random| json!(random.below(3)));
    maybe(random, &mut spec, "minReadySeconds", |random| json!(random.below(3)));
    maybe(random, &mut spec, "paused", |random| json!(random.percent(50)));
    maybe(random, &mut spec, "strategy", |random| {
        let rolling = json!({ "maxSurge": random.below(3), "maxUnavailable": "50%" });
        json!({ "type": "RollingUpdate", "rollingUpdate": rolling })
    });
    spec
}

fn container(name: &str, random: &mut Random) -> Value {
    let mut container = json!({ "name": name, "image": *random.pick(&["i:1", "i:2", "i"]) });
    maybe(random, &mut container, "args", |random| json!(random.some(&["a", "b"])));
    maybe(random, &mut container, "env", |random| {
        let names = random.some(&["A", "B", "C"]);
        let variable = |name| json!({ "name": name, "value": *random.pick(&["1", "2", ""]) });
        names.into_iter().map(variable).collect()
    });
    // The same port in two containers, or half a byte, is a warning.
    if name == "c" {
        maybe(random, &mut container, "ports", |random| {
            let ports = [
                json!({ "containerPort": 80 }),
                json!({ "containerPort": 80, "protocol": "UDP" }),
                // A write of the scale orders the keys of owned fields as texts. With numbers that
                // are in that order anyway, nothing is stored which nobody sees.
                json!({ "containerPort": 90, "name": "https" }),
            ];
            json!(random.some(&ports))
        });
    }
    maybe(random, &mut container, "resources", |random| {
        let mut limits = random.map(&["cpu"], &["1", "1000m", "0.5"]);
        maybe(random, &mut limits, "memory", |random| json!(random.pick(&["1024Mi", "1Gi"])));
        json!({ "limits": limits })
    });
    container
}

fn widget(random: &mut Random) -> Value {
    let mut spec = json!({});
    maybe(random, &mut spec, "replicas", |random| json!(random.below(4)));
    maybe(random, &mut spec, "mode", |random| json!(random.pick(&["auto", "manual"])));
    maybe(random, &mut spec, "note", |random| (*random.pick(&[json!(null), json!("n")])).clone());
    maybe(random, &mut spec, "nested", |random| {
        let mut nested = json!({});
        maybe(random, &mut nested, "level", |random| json!(random.pick(&["info", "debug"])));
        maybe(random, &mut nested, "depth", |random| json!(random.below(3)));
        nested
    });
    maybe(random, &mut spec, "deep", |_| json!({}));
    maybe(random, &mut spec, "items", |random| {
        let names = random.some(&["a", "b", "c"]);
        names.into_iter().map(|name| item(name, random)).collect()
    });
    maybe(random, &mut spec, "tags", |random| json!(random.some(&["t", "u", "v"])));
    maybe(random, &mut spec, "steps", |random| json!(random.some(&["s", "t"])));
    maybe(random, &mut spec, "labels", |random| random.map(&["x", "y"], &["1", "2"]));
    maybe(random, &mut spec, "options", |random| random.map(&["x", "y"], &["1", "2"]));
    maybe(
        random,
        &mut spec,
        "free",
        |random| json!({ "list": random.some(&[1, 2]), "map": random.map(&["x", "y"], &["1"]) }),
    );
    spec
}

fn item(name: &str, random: &mut Random) -> Value {
    let mut item = json!({ "name": name });
    maybe(random, &mut item, "value", |random| json!(random.pick(&["1", "2"])));
    maybe(random, &mut item, "weight", |random| json!(random.below(3)));
    item
}
