use serde_json::json;

use super::*;

fn field<'a>(of: Typed<'a>, path: &[&str]) -> (&'a Field, Typed<'a>) {
    let mut found = None;
    let mut at = of;
    for name in path {
        let inner = match at.form() {
            Form::List { items, .. } => at.at(*items),
            _ => at,
        };
        let Form::Struct(of) = inner.form() else { panic!("{name}: no struct") };
        let field = &of.fields[*name];
        at = of_field(inner, field);
        found = Some(field);
    }
    (found.unwrap(), at)
}

fn of_field<'a>(typed: Typed<'a>, field: &Field) -> Typed<'a> {
    typed.at(field.form)
}

#[test]
fn every_kind_in_scope_has_metadata_or_is_a_plain_body() {
    for (version, kind) in [
        ("v1", "Pod"),
        ("v1", "Secret"),
        ("v1", "Endpoints"),
        ("v1", "Binding"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
        ("autoscaling/v1", "Scale"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("discovery.k8s.io/v1", "EndpointSlice"),
        ("coordination.k8s.io/v1", "Lease"),
        ("events.k8s.io/v1", "Event"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("policy/v1", "Eviction"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
    ] {
        let typed = builtin().kind(version, kind).unwrap_or_else(|| panic!("{version} {kind}"));
        let (_, metadata) = field(typed, &["metadata"]);
        assert_eq!(
            builtin().name(metadata.id),
            Some("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
            "{kind}"
        );
    }
    assert!(builtin().kind("v1", "Status").is_some());
    assert!(builtin().kind("v1", "Widget").is_none());
}

#[test]
fn container_ports_are_keyed_by_port_and_protocol() {
    let pod = builtin().kind("v1", "Pod").unwrap();
    let (ports, form) = field(pod, &["spec", "containers", "ports"]);
    let Form::List { kind: ListKind::Map { keys }, .. } = form.form() else {
        panic!("no list map")
    };
    assert_eq!(keys, &["containerPort", "protocol"]);
    assert_eq!(ports.strategy.merge_key.as_deref(), Some("containerPort"));
    assert!(ports.strategy.merge);
    let (protocol, _) = field(pod, &["spec", "containers", "ports", "protocol"]);
    assert_eq!(protocol.default, Some(json!("TCP")));
    let (volumes, _) = field(pod, &["spec", "volumes"]);
    assert!(volumes.strategy.merge && volumes.strategy.retain_keys);
}

#[test]
fn embedded_messages_keep_both_numbers() {
    let pod = builtin().kind("v1", "Pod").unwrap();
    let (name, _) = field(pod, &["spec", "volumes", "name"]);
    assert_eq!((name.within, name.number), (None, Some(1)));
    let (path, _) = field(pod, &["spec", "volumes", "hostPath"]);
    assert_eq!((path.within, path.number), (Some(2), Some(1)));
}

#[test]
fn the_zero_object_holds_what_go_always_prints() {
    let zero = builtin().kind("apps/v1", "Deployment").unwrap().zero();
    assert_eq!(
        zero["spec"],
        json!({
            "selector": null,
            "strategy": {},
            "template": {"metadata": {}, "spec": {"containers": null}},
        })
    );
    assert_eq!(zero["status"], json!({}));
    assert_eq!(builtin().kind("v1", "ConfigMap").unwrap().zero(), json!({"metadata": {}}));
}

#[test]
fn descriptions_and_allowed_values_are_there_when_asked_for() {
    let name = "io.k8s.api.core.v1.ContainerPort";
    assert!(builtin().description(name, None).unwrap().contains("port"));
    assert!(builtin().description(name, Some("protocol")).unwrap().contains("TCP"));
    assert_eq!(builtin().allowed(name, "protocol"), ["SCTP", "TCP", "UDP"]);
    assert!(builtin().description("io.k8s.None", None).is_none());
}

#[test]
fn a_type_that_refers_to_itself_can_be_imported() {
    let mut types = Types::default();
    let crd = builtin().kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let id = types.import(crd);
    let copy = Typed { types: &types, id };
    let path = ["spec", "versions", "schema", "openAPIV3Schema", "properties"];
    assert!(matches!(field(copy, &path).1.form(), Form::Map { .. }));
    assert_eq!(copy.zero(), crd.zero());
}
