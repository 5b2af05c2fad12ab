use super::*;
use crate::model_service::fixture::{base, held_by, live};
use crate::model_service::names::Role;

/// A Deployment of the base, two pods, as we have made it.
fn ours() -> Deployment {
    live(&base(), Role::Decode)
}

fn scaled(mut deployment: Deployment, size: i32) -> Deployment {
    deployment.spec.as_mut().unwrap().replicas = Some(size);
    deployment
}

fn unmarked(mut deployment: Deployment) -> Deployment {
    deployment.metadata.annotations = None;
    deployment
}

#[test]
fn m07_the_spec_decides_until_somebody_else_does() {
    let hpa = |deployment| held_by(deployment, "kube-controller-manager", "scale");
    for (what, wanted, live, want) in [
        ("new", 2, None, Some(2)),
        ("ours alone", 2, Some(ours()), Some(2)),
        ("an edit of the spec", 3, Some(ours()), Some(3)),
        ("scaled by an autoscaler", 2, Some(hpa(scaled(ours(), 5))), None),
        ("scaled, and then the spec changed", 4, Some(hpa(scaled(ours(), 5))), Some(4)),
        ("scaled by hand", 2, Some(held_by(scaled(ours(), 1), "kubectl-edit", "")), None),
        ("scaled to zero by hand", 2, Some(scaled(ours(), 0)), None),
        ("brought back from zero by the spec", 3, Some(scaled(ours(), 0)), Some(3)),
    ] {
        assert_eq!(field(wanted, live.as_ref()), want, "{what}");
    }
}

#[test]
fn what_the_operator_before_us_holds_is_ours() {
    let taken_over = |deployment| unmarked(held_by(deployment, "manager", ""));
    assert_eq!(field(2, Some(&taken_over(scaled(ours(), 1)))), Some(2));
    let scaled_before = held_by(taken_over(scaled(ours(), 5)), "kube-controller-manager", "scale");
    assert_eq!(field(2, Some(&scaled_before)), None);
}
