//! No field is passed over in silence.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Value, json};

use crate::{
    builtin::{
        RESOURCES, Resource, Storage,
        fields::{Effect, Rule, Unless, fields, short},
        resource,
        unsupported::{self, Runner},
        validate, warnings,
    },
    types::{self, Form, Typed},
};

/// A field of a type that is reached from a kind, by the names on the way there.
struct Place {
    resource: &'static Resource,
    /// Each with whether it is an item of a list that is meant.
    way: Vec<(String, bool)>,
    of: &'static str,
    field: String,
    form: Form,
}

/// Every field that somebody may act on, once for each kind and type. What is idle or told of as a whole
/// is not looked into.
fn places() -> Vec<Place> {
    let mut places = Vec::new();
    for resource in RESOURCES.iter() {
        if !matches!(resource.storage, Storage::Own | Storage::Shared { .. }) {
            continue;
        }
        let typed = types::builtin().kind(&resource.api_version(), &resource.kind);
        let mut seen = BTreeSet::new();
        go(resource, typed.expect("the kind is in the table"), &[], &mut seen, &mut places);
    }
    places
}

fn go(
    resource: &'static Resource,
    typed: Typed<'static>,
    way: &[(String, bool)],
    seen: &mut BTreeSet<&'static str>,
    places: &mut Vec<Place>,
) {
    let Form::Struct(of) = typed.form() else { return };
    let name = short(types::builtin().name(typed.id).expect("it has a name"));
    if !seen.insert(name) {
        return;
    }
    let common = ["kind", "apiVersion", "metadata", "status"];
    for (field, known) in &of.fields {
        if (way.is_empty() || name == "core.v1.PodTemplateSpec") && common.contains(&&**field) {
            continue;
        }
        let form = typed.at(known.form).form().clone();
        let acted = |rule: &Rule| rule.field == field && rule.effect == Effect::Acted;
        if fields().of(name).iter().any(acted) {
            let (inner, is_list) = match &form {
                Form::List { items, .. } => (*items, true),
                Form::Map { values, .. } => (*values, false),
                _ => (known.form, false),
            };
            let way = [way, &[(field.clone(), is_list)]].concat();
            go(resource, typed.at(inner), &way, seen, places);
        }
        let (way, field) = (way.to_vec(), field.clone());
        places.push(Place { resource, way, of: name, field, form });
    }
}

#[test]
fn every_field_of_every_kind_is_judged() {
    let mut missing = BTreeSet::new();
    for Place { of, field, .. } in places() {
        let rules: Vec<_> = fields().of(of).iter().filter(|rule| rule.field == field).collect();
        let whole = rules.iter().filter(|rule| rule.values.is_empty()).count();
        // Of some values something else may be said than of the others.
        if rules.is_empty() || whole > 1 {
            missing.insert(format!("{of} {field}"));
        }
    }
    assert!(missing.is_empty(), "say of each once what becomes of it: {missing:#?}");
}

#[test]
fn nothing_is_judged_that_is_not_there() {
    let there: BTreeSet<_> = places().into_iter().map(|place| (place.of, place.field)).collect();
    for (of, rules) in fields().types() {
        for rule in rules {
            assert!(there.contains(&(of, rule.field.to_owned())), "{of} {}", rule.field);
            assert_eq!(rule.effect == Effect::Idle, !rule.reason.is_empty(), "{of} {rule:?}");
        }
    }
}

/// The smallest object that says it, and the field as messages name it.
fn saying(place: &Place, rule: &Rule) -> (Value, String) {
    let value = match (&place.form, rule.values.first()) {
        (Form::List { .. }, Some(value)) => json!([value]),
        (Form::List { .. }, None) => json!([{ "a": "b" }]),
        (Form::Map { .. }, Some(key)) => json!({ *key: "1" }),
        (Form::Struct(_), Some(key)) => json!({ *key: { "a": "1" } }),
        (_, Some(&"false")) => json!(false),
        (_, Some(value)) => json!(value),
        (Form::Scalar(types::Scalar::Boolean), None) => json!(true),
        (Form::Scalar(types::Scalar::Integer), None) => json!(1),
        (Form::Scalar(_), None) => json!("x"),
        (_, None) => json!({ "a": "b" }),
    };
    let (mut object, mut path) = (json!({ place.field.clone(): value }), String::new());
    for (name, is_list) in place.way.iter().rev() {
        object = json!({ name.clone(): if *is_list { json!([object]) } else { object } });
    }
    for (name, is_list) in &place.way {
        path += &format!("{name}{}.", if *is_list { "[0]" } else { "" });
    }
    object["metadata"] = json!({ "name": "x" });
    path += &place.field;
    match (&place.form, rule.values.first()) {
        (Form::Map { .. }, Some(key)) => path += &format!("[{key}]"),
        (Form::Struct(_), Some(key)) => path += &format!(".{key}"),
        _ => {}
    }
    (object, path)
}

#[test]
fn what_has_no_effect_is_refused_or_told_of() {
    let mut told = 0;
    for place in places() {
        for rule in fields().of(place.of).iter().filter(|rule| rule.field == place.field) {
            let (object, path) = saying(&place, rule);
            let causes = validate(place.resource, &object, None);
            let mut here = causes.iter().filter(|cause| cause.field == path);
            // Some are forbidden in Kubernetes' own words, which come first.
            let refused = match rule.effect {
                Effect::Refused => here.any(|cause| cause.message.starts_with("Forbidden: ")),
                _ => here.any(|cause| cause.message.contains("on a local node")),
            };
            let warning = format!("{path}: has no effect on a local node");
            let warned = warnings(place.resource, &object, None).contains(&warning);
            let kind = &place.resource.kind;
            assert_eq!(refused, rule.effect == Effect::Refused, "{kind} {path} {causes:#?}");
            assert_eq!(warned, rule.effect == Effect::Warned, "{kind} {path}");
            told += usize::from(rule.effect.is_told());
        }
    }
    assert!(told > 200, "only {told} in all kinds together");
}

#[test]
fn these_were_refused_from_the_beginning() {
    let refused = |of: &str, field: &str, value: &str| {
        fields().of(of).iter().any(|rule| {
            let values = &rule.values;
            rule.field == field
                && rule.effect == Effect::Refused
                && if value.is_empty() { values.is_empty() } else { values.contains(&value) }
        })
    };
    for (of, field, value) in [
        ("batch.v1.JobSpec", "completionMode", "Indexed"),
        ("batch.v1.JobSpec", "podFailurePolicy", ""),
        ("batch.v1.JobSpec", "successPolicy", ""),
        ("batch.v1.JobSpec", "managedBy", ""),
        ("core.v1.ServiceSpec", "type", "ExternalName"),
        ("core.v1.ServiceSpec", "type", "NodePort"),
        ("core.v1.ServiceSpec", "type", "LoadBalancer"),
    ] {
        assert!(refused(of, field, value), "{of} {field} {value}");
    }
}

#[test]
fn what_asks_for_nothing_is_not_told_of() {
    let pods = resource("", "v1", "pods").expect("pods are served");
    let services = resource("", "v1", "services").expect("Services are served");
    let container = |more: Value| {
        let mut container = json!({ "name": "c", "image": "i" });
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "containers": [container] })
    };
    let mut on_host = container(json!({ "ports": [{ "containerPort": 80, "hostPort": 80 }] }));
    on_host["hostNetwork"] = json!(true);
    for (resource, spec) in [
        (pods, json!({ "affinity": {}, "shareProcessNamespace": false, "hostUsers": true })),
        (
            pods,
            json!({ "dnsPolicy": "ClusterFirst", "os": { "name": "linux" }, "hostAliases": [] }),
        ),
        (
            pods,
            container(json!({ "securityContext": { "privileged": false, "capabilities": {} } })),
        ),
        (pods, container(json!({ "securityContext": { "allowPrivilegeEscalation": true } }))),
        // There the ports are those of the machine.
        (pods, on_host),
        (services, json!({ "sessionAffinity": "None", "externalIPs": [], "type": "ClusterIP" })),
        // Nobody forwards to the pods of a headless Service, whatever they speak.
        (services, json!({ "clusterIP": "None", "ports": [{ "port": 1, "protocol": "UDP" }] })),
    ] {
        let object = json!({ "metadata": { "name": "x" }, "spec": spec });
        assert_eq!(warnings(resource, &object, None), Vec::<String>::new(), "{object}");
        let causes = validate(resource, &object, None);
        let here = causes.iter().find(|cause| cause.message.contains("local node"));
        assert_eq!(here, None, "{object}");
    }
}

#[test]
fn a_warning_is_for_who_changes_what_is_wanted() {
    let services = resource("", "v1", "services").expect("Services are served");
    let old = json!({ "metadata": { "name": "x" }, "spec": { "sessionAffinity": "ClientIP" } });
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "a": "b" });
    new["status"] = json!({ "loadBalancer": {} });
    assert_eq!(warnings(services, &new, Some(&old)), Vec::<String>::new());
    new["spec"]["selector"] = json!({ "a": "b" });
    let told = ["spec.sessionAffinity: has no effect on a local node"];
    assert_eq!(warnings(services, &new, Some(&old)), told);
    assert_eq!(warnings(services, &old, None), told);
}

#[test]
fn users_are_told_of_where_they_cannot_be_chosen() {
    let deployments = resource("apps", "v1", "deployments").expect("Deployments are served");
    let told = |user: u32, wanted: Value| {
        let pod = json!({
            "securityContext": wanted,
            "initContainers": [{ "name": "a", "securityContext": { "runAsUser": 7 } }],
            "containers": [{ "name": "b", "securityContext": { "runAsGroup": 0 } }],
        });
        let object = json!({ "spec": { "template": { "spec": pod } } });
        let told = unsupported::users(deployments, &object, Runner { user, group: 8 });
        let end = ": has no effect on a local node that is not run by root";
        let paths = told.iter().map(|told| told.strip_suffix(end).unwrap());
        let short = |path: &str| path.trim_start_matches("spec.template.spec.").to_owned();
        paths.map(short).collect::<Vec<_>>()
    };
    let both = json!({ "runAsUser": 7, "runAsGroup": 8, "fsGroup": 8, "runAsNonRoot": true });
    let other = json!({ "runAsUser": 9, "runAsGroup": 9, "fsGroup": 9 });
    let group = "containers[0].securityContext.runAsGroup";
    let nothing: Vec<String> = Vec::new();
    assert_eq!(told(0, other.clone()), nothing, "root may choose");
    assert_eq!(told(7, both), [group], "its own is nothing to tell of");
    assert_eq!(
        told(1, other),
        [
            "securityContext.runAsUser",
            "securityContext.runAsGroup",
            "securityContext.fsGroup",
            "initContainers[0].securityContext.runAsUser",
            group,
        ]
    );
}

#[test]
fn a_template_is_told_of_where_it_is_written() {
    let deployments = resource("apps", "v1", "deployments").expect("Deployments are served");
    let pod = json!({
        "topologySpreadConstraints": [{ "maxSkew": 1 }],
        "containers": [
            { "name": "a" },
            { "name": "b", "securityContext": { "readOnlyRootFilesystem": true } },
        ],
    });
    let object = json!({ "metadata": { "name": "x" }, "spec": { "template": { "spec": pod } } });
    assert_eq!(
        warnings(deployments, &object, None),
        [
            "spec.template.spec.containers[1].securityContext.readOnlyRootFilesystem: has no effect \
             on a local node",
            "spec.template.spec.topologySpreadConstraints: has no effect on a local node",
        ]
    );
}

#[test]
fn what_is_told_of_part_of_a_field_names_that_part() {
    let pods = resource("", "v1", "pods").expect("pods are served");
    let nodes = resource("", "v1", "nodes").expect("nodes are served");
    let mount = |name: &str| json!({ "name": name, "mountPath": "/x", "readOnly": true });
    let pod = json!({
        "resources": { "limits": { "cpu": "1" }, "requests": { "cpu": "1" } },
        "containers": [{
            "name": "c",
            "resources": { "limits": { "cpu": "1", "ephemeral-storage": "1Gi" } },
            "volumeMounts": [mount("secret"), mount("scratch"), mount("none")],
        }],
        "volumes": [
            { "name": "secret", "secret": { "secretName": "s" } },
            { "name": "scratch", "emptyDir": {} },
        ],
    });
    let taints =
        json!([{ "key": "a", "effect": "NoSchedule" }, { "key": "a", "effect": "NoExecute" }]);
    let told = |of: &Resource, spec: Value| {
        let all = warnings(of, &json!({ "metadata": { "name": "x" }, "spec": spec }), None);
        let fields = all.iter().map(|text| text.split(": ").next().unwrap_or_default().to_owned());
        fields.collect::<Vec<_>>()
    };
    assert_eq!(
        told(pods, pod),
        [
            "spec.containers[0].resources.limits[ephemeral-storage]",
            "spec.containers[0].volumeMounts[1].readOnly",
            "spec.containers[0].volumeMounts[2].readOnly",
            "spec.resources.limits",
        ]
    );
    assert_eq!(told(nodes, json!({ "taints": taints })), ["spec.taints[1].effect"]);
    // What is refused inside is found all the same.
    let claims = json!({ "resources": { "limits": { "cpu": "1" }, "claims": [{ "name": "g" }] } });
    let causes = validate(pods, &json!({ "metadata": { "name": "x" }, "spec": claims }), None);
    assert!(causes.iter().any(|cause| cause.field == "spec.resources.claims"), "{causes:#?}");
}

#[test]
fn a_container_is_not_restarted_against_the_will_of_its_pod() {
    let jobs = resource("batch", "v1", "jobs").expect("Jobs are served");
    let refused = |of_pod: &str, list: &str, own: &str| {
        let pod = json!({ "restartPolicy": of_pod, list: [{ "name": "c", "restartPolicy": own }] });
        let object =
            json!({ "metadata": { "name": "x" }, "spec": { "template": { "spec": pod } } });
        let field = format!("spec.template.spec.{list}[0].restartPolicy");
        let text = "Forbidden: not supported on a local node";
        let causes = validate(jobs, &object, None);
        causes.iter().any(|cause| cause.field == field && cause.message == text)
    };
    for (of_pod, list, own, want) in [
        ("Never", "initContainers", "Always", false),
        ("Never", "containers", "Always", true),
        ("Always", "containers", "Always", false),
        ("OnFailure", "containers", "Never", true),
        ("OnFailure", "initContainers", "Never", true),
    ] {
        assert_eq!(refused(of_pod, list, own), want, "{of_pod} {list} {own}");
    }
}

#[test]
fn what_was_stored_before_it_was_refused_may_stay() {
    let claims = resource("", "v1", "persistentvolumeclaims").expect("claims are served");
    let claim = |source: &str, labels: Value| {
        let spec = json!({ "dataSource": { "kind": "VolumeSnapshot", "name": source } });
        json!({ "metadata": { "name": "x", "labels": labels }, "spec": spec })
    };
    let is_refused = |new: &Value, old: Option<&Value>| {
        let causes = validate(claims, new, old);
        causes.iter().any(|cause| cause.field == "spec.dataSource")
    };
    let old = claim("a", json!({}));
    assert!(is_refused(&old, None));
    assert!(!is_refused(&claim("a", json!({ "a": "b" })), Some(&old)));
    assert!(is_refused(&claim("b", json!({})), Some(&old)));
}

/// The table of the documentation, as it follows from the rules.
fn documented() -> String {
    let mut lines =
        vec!["| of | refused | stored with a warning |".to_owned(), "|---|---|---|".to_owned()];
    for (of, rules) in fields().types() {
        let told = |effect: Effect| {
            let rules = rules.iter().filter(|rule| rule.effect == effect);
            let mut names: Vec<String> = rules.flat_map(names).collect();
            names.sort();
            names.join(", ")
        };
        let (refused, warned) = (told(Effect::Refused), told(Effect::Warned));
        if !(refused.is_empty() && warned.is_empty()) {
            let of = of.rsplit('.').next().unwrap_or_default();
            lines.push(format!("| {of} | {refused} | {warned} |"));
        }
    }
    lines.join("\n") + "\n"
}

fn names(rule: &Rule) -> Vec<String> {
    let unless = match &rule.unless {
        None => String::new(),
        Some(Unless::Spec(field, value)) => format!(" (unless `{field}: {value}`)"),
        Some(Unless::Volume(sources)) => format!(" (unless of a `{}`)", sources.join("`, `")),
    };
    match rule.values.is_empty() {
        true => vec![format!("`{}`{unless}", rule.field)],
        false => {
            let values = rule.values.iter();
            values.map(|value| format!("`{}: {value}`{unless}", rule.field)).collect()
        }
    }
}

#[test]
fn the_documentation_lists_what_has_no_effect() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/local.md");
    let text = fs::read_to_string(&path).unwrap();
    let want = documented();
    assert!(text.contains(&want), "docs/local.md must have this table:\n{want}");
}
