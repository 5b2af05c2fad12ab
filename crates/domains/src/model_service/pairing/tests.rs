use serde_json::json;
use windlass_api::model::model_service::ModelService;
use windlass_engine::fetch::Fetched;

use super::*;
use crate::model_service::fetch::Answers;
use crate::model_service::fixture::{
    Pods, body, deleted, edited, fresh, has, live, names, plan_of, pool, settled, split_with,
    with_pods,
};

fn split() -> ModelService {
    split_with(json!({}))
}

/// Another model: both roles have to change.
fn other_model(service: &ModelService) -> ModelService {
    edited(service, json!({ "model": { "image": "registry.example.com/models/qwen3-32b:v2" } }))
}

/// The cluster while `service` is rolled out behind a pool of decode pods.
fn rolling(service: &ModelService, decode: Pods, prefill: Pods) -> Answers {
    let mut narrow = pool(&fresh(service));
    narrow.spec.selector.match_labels = names().pool_selector(Some(Role::Decode));
    Answers {
        decode: Fetched::Found(with_pods(live(service, Role::Decode), decode)),
        prefill: Fetched::Found(with_pods(live(service, Role::Prefill), prefill)),
        pool: Some(Fetched::Found(narrow)),
        ..settled(service)
    }
}

/// Whether the plan has the pool of decode pods only.
fn is_apart(service: &ModelService, answers: Answers) -> bool {
    let plan = plan_of(service, answers);
    let pool = body(&plan, "InferencePool", names().name());
    pool["spec"]["selector"]["matchLabels"].get(ROLE_LABEL).is_some()
}

#[test]
fn at_rest_the_pool_has_both_roles() {
    assert!(!is_apart(&split(), settled(&split())));
    let plan = plan_of(&split(), settled(&split()));
    assert!(has(&plan, "Deployment", &names().role(Role::Decode)));
}

#[test]
fn a_new_service_starts_with_both_roles() {
    let plan = fresh(&split());
    assert!(has(&plan, "Deployment", &names().role(Role::Prefill)));
    let selector = &body(&plan, "InferencePool", names().name())["spec"]["selector"];
    assert!(selector["matchLabels"].get(ROLE_LABEL).is_none());
}

#[test]
fn before_both_roles_change_the_pool_is_narrowed_and_nothing_else_done_to_them() {
    let next = other_model(&split());
    let plan = plan_of(&next, settled(&split()));
    let selector = &body(&plan, "InferencePool", names().name())["spec"]["selector"];
    assert_eq!(selector["matchLabels"][ROLE_LABEL], "decode");
    assert!(!has(&plan, "Deployment", &names().role(Role::Decode)));
    assert!(!has(&plan, "Deployment", &names().role(Role::Prefill)));
    assert_eq!(deleted(&plan), [""; 0]);
}

#[test]
fn with_the_pool_narrow_both_templates_change_at_once() {
    let next = other_model(&split());
    let cluster = rolling(&split(), Pods::all(2), Pods::all(1));
    let plan = plan_of(&next, cluster);
    for role in [Role::Decode, Role::Prefill] {
        let deployment = body(&plan, "Deployment", &names().role(role)).to_string();
        assert!(deployment.contains("qwen3-32b:v2"), "{role:?}");
    }
    let selector = &body(&plan, "InferencePool", names().name())["spec"]["selector"];
    assert_eq!(selector["matchLabels"][ROLE_LABEL], "decode");
}

#[test]
fn the_roles_meet_again_only_when_both_have_been_rolled_out() {
    let service = split();
    let old_left = Pods { total: 3, updated: 2, ready: 2 };
    let half = Pods { total: 2, updated: 1, ready: 2 };
    for (what, decode, prefill, apart) in [
        ("both begin", half, Pods::ready(0, 1), true),
        ("decode is done", Pods::all(2), Pods::ready(0, 1), true),
        ("prefill is done", half, Pods::all(1), true),
        ("an old decode pod is left", old_left, Pods::all(1), true),
        ("new pods are not ready", Pods::ready(1, 2), Pods::all(1), true),
        ("both are done", Pods::all(2), Pods::all(1), false),
    ] {
        assert_eq!(is_apart(&service, rolling(&service, decode, prefill)), apart, "{what}");
    }
}

#[test]
fn a_change_that_the_controller_has_not_seen_is_not_complete() {
    let service = split();
    let mut cluster = rolling(&service, Pods::all(2), Pods::all(1));
    if let Fetched::Found(prefill) = &mut cluster.prefill {
        prefill.metadata.generation = Some(2);
    }
    assert!(is_apart(&service, cluster));
}

/// As it is in the middle of a change of both roles.
fn halfway() -> [Pods; 2] {
    [Pods { total: 3, updated: 1, ready: 2 }, Pods { total: 2, updated: 1, ready: 1 }]
}

#[test]
fn a_pool_that_is_deleted_in_the_middle_of_a_change_comes_back_narrow() {
    let service = split();
    let [decode, prefill] = halfway();
    for (decode, prefill) in [(decode, prefill), (decode, Pods::all(1)), (Pods::all(2), prefill)] {
        let cluster =
            Answers { pool: Some(Fetched::Missing), ..rolling(&service, decode, prefill) };
        assert!(is_apart(&service, cluster.clone()));
        let plan = plan_of(&service, cluster);
        assert!(has(&plan, "Deployment", &names().role(Role::Decode)), "nothing is held back");
    }
    let mut unseen = rolling(&service, Pods::all(2), Pods::all(1));
    unseen.pool = Some(Fetched::Missing);
    for deployment in [&mut unseen.decode, &mut unseen.prefill] {
        if let Fetched::Found(deployment) = deployment {
            deployment.metadata.generation = Some(2);
        }
    }
    assert!(is_apart(&service, unseen));
}

#[test]
fn a_pool_that_somebody_widens_in_the_middle_of_a_change_is_narrowed_again() {
    let service = split();
    let [decode, prefill] = halfway();
    let wide = Some(Fetched::Found(pool(&fresh(&service))));
    let cluster = Answers { pool: wide, ..rolling(&service, decode, prefill) };
    assert!(is_apart(&service, cluster.clone()));
    let plan = plan_of(&service, cluster);
    assert!(has(&plan, "Deployment", &names().role(Role::Decode)), "nothing is held back");
}

#[test]
fn a_change_that_the_operator_before_us_began_is_ended_apart() {
    let service = split();
    let [decode, prefill] = halfway();
    let wide = Some(Fetched::Found(pool(&fresh(&service))));
    let mut cluster = Answers { pool: wide, ..rolling(&service, decode, prefill) };
    for deployment in [&mut cluster.decode, &mut cluster.prefill] {
        if let Fetched::Found(deployment) = deployment {
            deployment.metadata.annotations = None;
        }
    }
    assert!(is_apart(&service, cluster));
}

#[test]
fn pods_that_are_started_or_scaled_separate_nothing() {
    let service = split();
    let wide = || Some(Fetched::Found(pool(&fresh(&service))));
    for (what, decode, prefill) in [
        ("none yet", Pods::all(0), Pods::all(0)),
        ("they start", Pods::ready(0, 2), Pods::ready(0, 1)),
        ("there will be more", Pods::all(1), Pods::all(0)),
    ] {
        for pool in [wide(), Some(Fetched::Missing)] {
            let cluster = Answers { pool, ..rolling(&service, decode, prefill) };
            assert!(!is_apart(&service, cluster), "{what}");
        }
    }
    // Of a new number the controller hears a moment later.
    let mut scaled = Answers { pool: wide(), ..rolling(&service, Pods::all(2), Pods::all(1)) };
    for deployment in [&mut scaled.decode, &mut scaled.prefill] {
        if let Fetched::Found(deployment) = deployment {
            deployment.metadata.generation = Some(2);
        }
    }
    assert!(!is_apart(&service, scaled));
    // New Deployments have not been looked at by anybody.
    let mut new = Answers { pool: Some(Fetched::Missing), ..settled(&service) };
    for deployment in [&mut new.decode, &mut new.prefill] {
        if let Fetched::Found(deployment) = deployment {
            deployment.status = None;
        }
    }
    assert!(!is_apart(&service, new));
}

#[test]
fn another_change_on_the_way_keeps_them_apart() {
    let next = other_model(&split());
    assert!(is_apart(&next, rolling(&split(), Pods::all(2), Pods::all(1))));
}

#[test]
fn a_change_of_one_role_separates_nothing() {
    let next = edited(&split(), json!({ "decode": { "nodeSelector": { "zone": "a" } } }));
    let plan = plan_of(&next, settled(&split()));
    assert!(has(&plan, "Deployment", &names().role(Role::Decode)));
    assert!(!is_apart(&next, settled(&split())));
}

#[test]
fn prefill_pods_that_join_old_decode_pods_wait_for_new_ones() {
    let alone = split_with(json!({ "prefill": null }));
    let joined = edited(&alone, json!({ "prefill": { "replicas": 1 } }));
    assert!(!is_apart(&joined, settled(&alone)), "decode pods are as they were");
    let changed = edited(&joined, json!({ "engine": { "args": ["--other"] } }));
    assert!(is_apart(&changed, settled(&alone)));
}

#[test]
fn without_prefill_the_pool_is_whole_again() {
    let alone = edited(&split(), json!({ "prefill": null }));
    let cluster = rolling(&split(), Pods::all(2), Pods::ready(0, 1));
    let plan = plan_of(&alone, cluster);
    let selector = &body(&plan, "InferencePool", names().name())["spec"]["selector"];
    assert!(selector["matchLabels"].get(ROLE_LABEL).is_none());
    assert_eq!(deleted(&plan), ["Deployment qwen3-32b-prefill"]);
}

#[test]
fn without_the_api_of_pools_nothing_waits() {
    let next = other_model(&split());
    let cluster = Answers { pool: None, legacy_pool: None, ..settled(&split()) };
    let plan = plan_of(&next, cluster);
    assert!(has(&plan, "Deployment", &names().role(Role::Decode)));
    assert!(has(&plan, "Deployment", &names().role(Role::Prefill)));
}
