use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service, ServiceAccount},
        rbac::v1::{ClusterRole, Role, RoleBinding},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::*;

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), namespace: Some("ns".into()), ..Default::default() }
}

#[test]
fn objects_are_applied_in_the_order_of_their_dependencies() {
    let mut plan = Plan::default();
    plan.apply(&Service { metadata: named("s"), ..Default::default() });
    plan.apply(&Deployment { metadata: named("b"), ..Default::default() });
    plan.apply(&Deployment { metadata: named("a"), ..Default::default() });
    plan.apply(&PersistentVolumeClaim { metadata: named("p"), ..Default::default() });
    plan.apply(&ConfigMap { metadata: named("c"), ..Default::default() });
    plan.apply(&RoleBinding { metadata: named("rb"), ..Default::default() });
    plan.apply(&Role { metadata: named("r"), ..Default::default() });
    plan.apply(&ServiceAccount { metadata: named("sa"), ..Default::default() });
    plan.create_blind_first(&Secret { metadata: named("s"), ..Default::default() });
    let order: Vec<Vec<_>> = plan
        .tiers()
        .into_iter()
        .map(|tier| tier.into_iter().map(|d| d.key.name.as_str()).collect())
        .collect();
    let sorted =
        [vec!["s"], vec!["sa"], vec!["r"], vec!["rb", "c"], vec!["p"], vec!["a", "b", "s"]];
    assert_eq!(order, sorted);
}

#[test]
fn an_applied_body_names_its_type_and_holds_no_nulls_and_no_status() {
    let deployment =
        Deployment { metadata: named("a"), status: Some(Default::default()), ..Default::default() };
    let desired = Desired::new(&deployment, Ownership::Owned, Strategy::Apply).unwrap();
    let text = desired.body.to_string();
    assert_eq!(desired.body["apiVersion"], "apps/v1");
    assert_eq!(desired.body["kind"], "Deployment");
    assert!(!text.contains("null") && desired.body.get("status").is_none(), "{text}");
}

#[test]
fn kinds_that_refuse_changes_are_mended_in_their_own_way() {
    for (kind, want) in [
        (Kind::of::<Job>(), Strategy::Recreate),
        (Kind::of::<RoleBinding>(), Strategy::RecreateFor("roleRef")),
        (Kind::of::<PersistentVolumeClaim>(), Strategy::CreateOnce),
        (Kind::of::<Deployment>(), Strategy::Apply),
        (Kind::of::<ClusterRole>(), Strategy::Apply),
    ] {
        assert_eq!(Strategy::of(&kind), want, "{kind}");
    }
}

#[test]
fn the_sooner_requeue_wins() {
    let mut plan = Plan::default();
    for seconds in [30, 5, 60] {
        plan.requeue_after(Duration::from_secs(seconds));
    }
    assert_eq!(plan.requeue_after, Some(Duration::from_secs(5)));
}

#[test]
fn labels_survive_erasure() {
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let map = ConfigMap {
        metadata: ObjectMeta { labels: Some(labels), ..named("x") },
        ..Default::default()
    };
    let desired = Desired::new(&map, Ownership::Shared, Strategy::Apply).unwrap();
    assert_eq!(desired.body["metadata"]["labels"]["a"], "b");
}

#[test]
fn a_failed_write_holds_up_only_what_builds_on_it() {
    use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
    let mut plan = Plan::default();
    plan.apply(&HorizontalPodAutoscaler { metadata: named("h"), ..Default::default() });
    plan.apply(&Deployment { metadata: named("d"), ..Default::default() });
    plan.apply(&Service { metadata: named("s"), ..Default::default() });
    plan.apply(&ConfigMap { metadata: named("c"), ..Default::default() });
    let reach: Vec<_> = plan.apply.iter().map(Desired::holds_up).collect();
    assert_eq!(reach, [HoldsUp::Nothing, HoldsUp::Deletes, HoldsUp::Later, HoldsUp::Later]);
}

#[test]
fn an_object_keeps_note_of_what_is_made_blindly_beside_it() {
    let mut plan = Plan::default();
    plan.apply_with_uid_of::<Secret>(
        &Deployment { metadata: named("d"), ..Default::default() },
        "s",
        "example.com/uid",
    );
    let note = UidNote {
        kind: Kind::of::<Secret>(),
        key: ObjectKey::new(Some("ns"), "s"),
        annotation: "example.com/uid",
    };
    assert_eq!(plan.apply[0].note, Some(note));
}
