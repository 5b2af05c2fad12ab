use super::*;
use crate::inference_service::fixture::{Pods, held_by, live};
use crate::inference_service::names::Track;

const BOUNDS: Bounds = Bounds { min: 2, max: 10 };

fn deployment(replicas: i32) -> Deployment {
    live(Track::Primary, "llama3-8b-q4", Pods::all(replicas))
}

#[test]
fn without_an_autoscaler_the_spec_decides() {
    for live in [None, Some(deployment(1)), Some(held_by(deployment(7), "kubectl"))] {
        assert_eq!(primary(5, None, live.as_ref()), Replicas::Set(5));
    }
}

#[test]
fn with_an_autoscaler_a_new_deployment_starts_within_its_bounds() {
    for (fixed, want) in [(1, 2), (2, 2), (5, 5), (50, 10)] {
        assert_eq!(primary(fixed, Some(BOUNDS), None), Replicas::Set(want), "{fixed}");
    }
}

#[test]
fn a_size_that_only_we_hold_is_echoed_within_the_bounds() {
    for (size, want) in [(1, 2), (4, 4), (12, 10)] {
        assert_eq!(
            primary(3, Some(BOUNDS), Some(&deployment(size))),
            Replicas::Set(want),
            "{size}"
        );
    }
}

#[test]
fn k12_a_size_held_by_the_autoscaler_is_left_alone() {
    for manager in ["kube-controller-manager", "kubectl"] {
        let scaled = held_by(deployment(7), manager);
        assert_eq!(primary(2, Some(BOUNDS), Some(&scaled)), Replicas::LeftAlone);
        assert_eq!(primary(2, Some(BOUNDS), Some(&scaled)).field(), None);
    }
}

#[test]
fn other_managers_of_other_fields_do_not_count() {
    let mut deployment = deployment(4);
    for entry in deployment.metadata.managed_fields.iter_mut().flatten() {
        entry.manager = Some("kube-controller-manager".to_owned());
        entry.fields_v1.as_mut().unwrap().0 =
            serde_json::json!({ "f:status": { "f:replicas": {} }, "f:spec": { "f:paused": {} } });
    }
    assert_eq!(primary(2, Some(BOUNDS), Some(&deployment)), Replicas::Set(4));
}

#[test]
fn a_deployment_that_was_scaled_to_zero_stays_there() {
    assert_eq!(primary(2, Some(BOUNDS), Some(&deployment(0))), Replicas::LeftAlone);
    // Without an autoscaler the spec decides, and it asks for at least one.
    assert_eq!(primary(2, None, Some(&deployment(0))), Replicas::Set(2));
}
