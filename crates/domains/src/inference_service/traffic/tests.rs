use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::serving::zerfoo_inference_service::{Routing, TrafficMode};

use super::split::{Size, by_pods};
use super::*;
use crate::inference_service::fixture::{
    Pods, drained_since, held_by, live, names, now, service_with, stable_service, wanted,
};
use crate::inference_service::names::Track;
use crate::inference_service::objects::route;

const OLD: &str = "llama3-8b-q4";
const NEW: &str = "llama3-8b-q8";
const DRAIN: Duration = Duration::from_secs(30);
const PRIMARY: Reach = Reach::Only(Track::Primary);
const CANARY: Reach = Reach::Only(Track::Canary);

/// A small cluster to change from test to test.
#[derive(Clone, Default)]
struct World {
    routes: bool,
    primary: Option<Deployment>,
    canary: Option<Deployment>,
    service: Option<Service>,
    route: Option<HttpRoute>,
    route_accepted: bool,
}

impl World {
    fn decide(&self, spec: Value) -> Traffic {
        self.decide_at(spec, now())
    }

    fn decide_at(&self, spec: Value, now: Timestamp) -> Traffic {
        let seen = Seen {
            mode: if self.routes { TrafficMode::Gateway } else { TrafficMode::Replicas },
            primary: self.primary.as_ref(),
            canary: self.canary.as_ref(),
            service: self.service.as_ref(),
            route: self.route.as_ref(),
            route_accepted: self.route_accepted,
        };
        decide(&wanted(&service_with(spec)), &names(), seen, DRAIN, now)
    }
}

fn primary(model: &str, pods: Pods) -> Option<Deployment> {
    Some(live(Track::Primary, model, pods))
}

fn canary(model: &str, pods: Pods) -> Option<Deployment> {
    Some(live(Track::Canary, model, pods))
}

fn route_with(weights: Option<(i32, i32)>) -> Option<HttpRoute> {
    let routing =
        Routing { parent_refs: Vec::new(), hostnames: Vec::new(), path_prefix: "/".to_owned() };
    Some(route::route(&names(), &routing, weights))
}

fn starting(wanted: i32) -> Pods {
    Pods { wanted, updated: wanted, available: 0 }
}

fn share(traffic: &Traffic) -> i32 {
    traffic.canary.as_ref().map_or(0, |canary| canary.share)
}

fn phase(traffic: &Traffic) -> Option<CanaryPhase> {
    traffic.canary.as_ref().map(|canary| canary.phase)
}

fn canary_size(traffic: &Traffic) -> i32 {
    traffic.canary.as_ref().map_or(0, |canary| canary.replicas)
}

#[test]
fn without_a_canary_everything_goes_to_the_primary() {
    for routes in [false, true] {
        let traffic = World { routes, ..World::default() }.decide(json!({}));
        assert_eq!((traffic.primary, traffic.reach), (Replicas::Set(2), PRIMARY));
        assert_eq!((traffic.canary.as_ref(), traffic.weights()), (None, None));
    }
}

#[test]
fn k06_a_gateway_sends_nothing_before_the_canary_is_available() {
    let spec = json!({ "canary": { "modelRef": NEW, "weight": 20 } });
    for (canary, weights, available) in [
        (None, (100, 0), false),
        (canary(NEW, starting(2)), (100, 0), false),
        (canary(NEW, Pods { wanted: 2, updated: 2, available: 1 }), (80, 20), true),
    ] {
        let world = World { routes: true, canary, ..World::default() };
        let traffic = world.decide(spec.clone());
        assert_eq!(traffic.weights(), Some(weights));
        assert_eq!((traffic.primary, traffic.reach), (Replicas::Set(2), PRIMARY));
        assert_eq!(traffic.canary.map(|canary| canary.available), Some(available));
    }
}

#[test]
fn k07_a_weight_changes_nothing_but_the_weight() {
    let world = World { routes: true, canary: canary(NEW, Pods::all(2)), ..World::default() };
    let at = |weight: i32| world.decide(json!({ "canary": { "modelRef": NEW, "weight": weight } }));
    let (mut before, after) = (at(20), at(50));
    assert_eq!((before.weights(), after.weights()), (Some((80, 20)), Some((50, 50))));
    if let Some(canary) = &mut before.canary {
        (canary.weight, canary.share) = (50, 50);
    }
    assert_eq!(before, after);
}

#[test]
fn a_gateway_canary_has_its_own_size_or_the_primary_s() {
    for (canary, want) in [
        (json!({ "modelRef": NEW, "weight": 20 }), 2),
        (json!({ "modelRef": NEW, "weight": 20, "replicas": 1 }), 1),
        (json!({ "modelRef": NEW, "weight": 20, "replicas": 5 }), 5),
    ] {
        let world = World { routes: true, ..World::default() };
        assert_eq!(
            canary_size(&world.decide(json!({ "canary": canary.clone() }))),
            want,
            "{canary}"
        );
    }
}

#[test]
fn k08_replicas_mode_split() {
    for (total, weight, want) in [
        (10, 20, (8, 2, 20)),
        (2, 20, (1, 1, 50)),
        (3, 50, (1, 2, 67)),
        (1, 20, (1, 1, 50)),
        (4, 99, (1, 4, 80)),
        (10, 1, (9, 1, 10)),
        (100, 33, (67, 33, 33)),
    ] {
        let split = by_pods(weight, Size::Fixed(total));
        assert_eq!((split.primary, split.canary, split.share), want, "{total} {weight}");
        assert_eq!(split.reach, Reach::Both);
        let world = World { canary: canary(NEW, Pods::all(want.1)), ..World::default() };
        let traffic = world
            .decide(json!({ "replicas": total, "canary": { "modelRef": NEW, "weight": weight } }));
        assert_eq!(traffic.primary, Replicas::Set(want.0), "{total} {weight}");
        assert_eq!((canary_size(&traffic), share(&traffic)), (want.1, want.2), "{total} {weight}");
    }
}

#[test]
fn k08_no_number_of_pods_is_too_large_to_split() {
    let most = i32::MAX;
    for (size, weight, want) in [
        (Size::Fixed(most), 50, (1_073_741_823, 1_073_741_824, 50)),
        (Size::Fixed(most), 99, (21_474_836, 2_126_008_811, 99)),
        (Size::Scaled { primary: most, max: most }, 50, (most, most, 50)),
        (Size::Scaled { primary: most, max: most }, 99, (most, most, 50)),
    ] {
        let split = by_pods(weight, size);
        assert_eq!((split.primary, split.canary, split.share), want, "{size:?} {weight}");
    }
    let world = World {
        primary: primary(OLD, Pods::all(most)),
        canary: canary(NEW, Pods::all(most)),
        service: Some(stable_service(Reach::Both)),
        ..World::default()
    };
    let spec = json!({ "replicas": most, "canary": { "modelRef": NEW, "weight": 100 } });
    assert_eq!(world.decide(spec).canary.unwrap().effective, 50);
}

#[test]
fn k08_replicas_mode_at_the_ends() {
    for (weight, want) in [(0, (1, 0, PRIMARY)), (100, (3, 100, CANARY))] {
        let world = World { canary: canary(NEW, Pods::all(1)), ..World::default() };
        let traffic =
            world.decide(json!({ "replicas": 3, "canary": { "modelRef": NEW, "weight": weight } }));
        assert_eq!((canary_size(&traffic), share(&traffic), traffic.reach), want, "{weight}");
        assert_eq!(traffic.primary, Replicas::Set(3), "{weight}");
    }
}

#[test]
fn k08_no_pod_is_taken_from_the_primary_before_the_canary_answers() {
    for weight in [0, 20, 100] {
        for canary in [None, canary(NEW, starting(3))] {
            let world = World { canary, ..World::default() };
            let traffic = world
                .decide(json!({ "replicas": 3, "canary": { "modelRef": NEW, "weight": weight } }));
            assert_eq!((traffic.primary, traffic.reach), (Replicas::Set(3), PRIMARY), "{weight}");
            assert_eq!(share(&traffic), 0, "{weight}");
        }
    }
}

#[test]
fn k09_replicas_mode_follows_the_autoscaler() {
    for (live_primary, weight, want) in [
        (8, 20, (2, 20)),
        (10, 50, (10, 50)),
        (10, 99, (10, 50)),
        (2, 1, (1, 33)),
        (6, 0, (1, 0)),
        (6, 100, (6, 100)),
    ] {
        let scaled = live(Track::Primary, OLD, Pods::all(live_primary));
        let world = World {
            primary: Some(held_by(scaled, "kube-controller-manager")),
            canary: canary(NEW, Pods::all(1)),
            ..World::default()
        };
        let traffic = world.decide(json!({
            "minReplicas": 2, "maxReplicas": 10,
            "canary": { "modelRef": NEW, "weight": weight },
        }));
        assert_eq!((canary_size(&traffic), share(&traffic)), want, "{live_primary} {weight}");
        assert_eq!(traffic.primary, Replicas::LeftAlone);
    }
}

#[test]
fn k10_a_promoted_canary_carries_all_traffic_until_the_primary_is_complete() {
    let promoted = json!({ "modelRef": NEW, "replicas": 3 });
    let rolling = [
        // Not even changed yet, but complete with the old model.
        primary(OLD, Pods::all(3)),
        primary(NEW, Pods { wanted: 3, updated: 1, available: 3 }),
        primary(NEW, Pods { wanted: 3, updated: 3, available: 2 }),
        None,
    ];
    for (routes, reach) in [(true, PRIMARY), (false, CANARY)] {
        for primary in rolling.clone() {
            let world =
                World { routes, primary, canary: canary(NEW, Pods::all(1)), ..World::default() };
            let traffic = world.decide(promoted.clone());
            assert_eq!(phase(&traffic), Some(CanaryPhase::Promoting));
            assert_eq!(traffic.weights(), Some((0, 100)));
            assert_eq!((traffic.primary, traffic.reach), (Replicas::Set(3), reach));
            // Scaled up to carry the load.
            assert_eq!(canary_size(&traffic), 3);
        }
    }
}

#[test]
fn k10_a_generation_that_the_controller_has_not_seen_is_not_complete() {
    let mut unseen = live(Track::Primary, NEW, Pods::all(2));
    unseen.metadata.generation = Some(2);
    let world =
        World { primary: Some(unseen), canary: canary(NEW, Pods::all(2)), ..World::default() };
    assert_eq!(phase(&world.decide(json!({ "modelRef": NEW }))), Some(CanaryPhase::Promoting));
}

#[test]
fn k10_a_larger_canary_keeps_its_size_and_an_autoscaled_primary_sets_the_measure() {
    let primary = primary(OLD, Pods::all(7));
    let world = World { primary, canary: canary(NEW, Pods::all(4)), ..World::default() };
    for (spec, want) in [
        (json!({ "modelRef": NEW, "replicas": 3 }), 4),
        (json!({ "modelRef": NEW, "replicas": 3, "minReplicas": 2, "maxReplicas": 10 }), 7),
    ] {
        assert_eq!(canary_size(&world.decide(spec.clone())), want, "{spec}");
    }
}

#[test]
fn k10_an_unavailable_canary_cannot_help() {
    let world = World {
        primary: primary(OLD, Pods::all(2)),
        canary: canary(NEW, starting(1)),
        ..World::default()
    };
    let traffic = world.decide(json!({ "modelRef": NEW }));
    assert_eq!(phase(&traffic), Some(CanaryPhase::Promoting));
    assert_eq!((share(&traffic), traffic.reach), (0, PRIMARY));
    assert_eq!(canary_size(&traffic), 1);
}

#[test]
fn k10_once_the_primary_is_complete_the_canary_is_drained() {
    let world = World {
        primary: primary(NEW, Pods::all(2)),
        canary: canary(NEW, Pods::all(2)),
        ..World::default()
    };
    let traffic = world.decide(json!({ "modelRef": NEW }));
    assert_eq!(phase(&traffic), Some(CanaryPhase::Draining));
    assert_eq!((traffic.reach, traffic.weights()), (PRIMARY, Some((100, 0))));
}

#[test]
fn k10_a_primary_that_stumbles_during_the_drain_does_not_call_the_traffic_back() {
    let world = World {
        primary: primary(NEW, Pods { wanted: 2, updated: 2, available: 1 }),
        canary: canary(NEW, Pods::all(2)).map(|canary| drained_since(canary, now())),
        ..World::default()
    };
    let traffic = world.decide(json!({ "modelRef": NEW }));
    assert_eq!((phase(&traffic), traffic.reach), (Some(CanaryPhase::Draining), PRIMARY));
}

#[test]
fn k11_a_rolled_back_canary_loses_its_traffic_at_once() {
    for routes in [false, true] {
        let world = World {
            routes,
            primary: primary(OLD, Pods::all(1)),
            canary: canary(NEW, Pods::all(3)),
            service: Some(stable_service(Reach::Both)),
            ..World::default()
        };
        let traffic = world.decide(json!({}));
        assert_eq!(phase(&traffic), Some(CanaryPhase::Draining));
        assert_eq!((traffic.primary, traffic.reach), (Replicas::Set(2), PRIMARY));
        assert_eq!(traffic.weights(), Some((100, 0)));
        assert_eq!(canary_size(&traffic), 3);
    }
}

#[test]
fn the_drain_begins_when_the_live_objects_send_nothing_more() {
    let settled = stable_service(PRIMARY);
    for (routes, service, route, accepted, begins) in [
        (false, Some(stable_service(Reach::Both)), None, false, false),
        (false, Some(stable_service(CANARY)), None, false, false),
        (false, None, None, false, false),
        (false, Some(settled.clone()), None, false, true),
        (true, Some(settled.clone()), route_with(Some((80, 20))), true, false),
        (true, Some(settled.clone()), route_with(Some((100, 0))), false, false),
        (true, Some(stable_service(Reach::Both)), route_with(None), true, false),
        (true, Some(settled.clone()), route_with(Some((100, 0))), true, true),
        (true, Some(settled), route_with(None), true, true),
    ] {
        let world = World {
            routes,
            primary: primary(OLD, Pods::all(2)),
            canary: canary(NEW, Pods::all(2)),
            service,
            route,
            route_accepted: accepted,
        };
        let traffic = world.decide(json!({}));
        let started = traffic.canary.and_then(|canary| canary.drain_started);
        assert_eq!(started, begins.then(now), "{routes} {accepted}");
        assert_eq!(traffic.again, begins.then_some(DRAIN), "{routes} {accepted}");
    }
}

#[test]
fn the_drain_is_measured_from_the_cluster_and_not_from_memory() {
    let world = World {
        primary: primary(OLD, Pods::all(2)),
        canary: canary(NEW, Pods::all(2)).map(|canary| drained_since(canary, now())),
        ..World::default()
    };
    for (seconds, left) in [(0, Some(30)), (12, Some(18)), (29, Some(1)), (30, None), (300, None)] {
        let later = now() + SignedDuration::from_secs(seconds);
        let traffic = world.decide_at(json!({}), later);
        assert_eq!(traffic.again, left.map(Duration::from_secs), "{seconds}");
        let started = traffic.canary.and_then(|canary| canary.drain_started);
        assert_eq!(started, left.map(|_| now()), "{seconds}");
    }
}

#[test]
fn a_drain_that_began_in_the_future_or_at_no_time_begins_anew() {
    let tomorrow = now() + SignedDuration::from_hours(24);
    let from_the_future = drained_since(live(Track::Canary, NEW, Pods::all(2)), tomorrow);
    let mut unreadable = drained_since(live(Track::Canary, NEW, Pods::all(2)), tomorrow);
    for value in unreadable.metadata.annotations.iter_mut().flat_map(|map| map.values_mut()) {
        if value.starts_with("20") {
            *value = "yesterday".to_owned();
        }
    }
    for canary in [from_the_future, unreadable] {
        let world = World {
            primary: primary(OLD, Pods::all(2)),
            canary: Some(canary),
            service: Some(stable_service(PRIMARY)),
            ..World::default()
        };
        let traffic = world.decide(json!({}));
        assert_eq!(traffic.canary.and_then(|canary| canary.drain_started), Some(now()));
    }
}

#[test]
fn a_canary_that_comes_back_is_no_longer_drained() {
    let world = World {
        canary: canary(NEW, Pods::all(2)).map(|canary| drained_since(canary, now())),
        ..World::default()
    };
    let traffic = world.decide(json!({ "canary": { "modelRef": NEW, "weight": 50 } }));
    assert_eq!(phase(&traffic), Some(CanaryPhase::Active));
    assert_eq!(traffic.canary.and_then(|canary| canary.drain_started), None);
}

proptest! {
    #[test]
    fn a_split_by_pods_leaves_somebody_on_both_sides(total in 1..500_i32, weight in 0..=100_i32) {
        let split = by_pods(weight, Size::Fixed(total));
        prop_assert!(split.primary >= 1);
        prop_assert!((1..=total).contains(&split.canary));
        prop_assert!((0..=100).contains(&split.share));
        // At most one pod more than asked for, and only where one each is all there is; the ends
        // have both tracks in full.
        let both = if (1..=99).contains(&weight) { total + 1 } else { 2 * total };
        prop_assert!(split.primary + split.canary <= both);
    }

    #[test]
    fn a_larger_weight_never_means_a_smaller_canary(
        primary in 1..500_i32,
        max in 1..500_i32,
        weight in 0..100_i32,
    ) {
        for size in [Size::Fixed(primary), Size::Scaled { primary, max: max.max(primary) }] {
            let (less, more) = (by_pods(weight, size), by_pods(weight + 1, size));
            prop_assert!(less.share <= more.share, "{size:?}");
        }
    }

    #[test]
    fn a_drain_never_takes_longer_than_it_should(elapsed in -100_000..100_000_i64) {
        let started = now() - SignedDuration::from_secs(elapsed);
        let world = World {
            primary: primary(OLD, Pods::all(2)),
            canary: canary(NEW, Pods::all(2)).map(|canary| drained_since(canary, started)),
            service: Some(stable_service(PRIMARY)),
            ..World::default()
        };
        let traffic = world.decide(json!({}));
        prop_assert!(traffic.again.is_none_or(|again| again <= DRAIN && !again.is_zero()));
        prop_assert_eq!(traffic.canary.is_none(), elapsed >= 30);
    }
}
