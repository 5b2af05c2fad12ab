//! Which children come, stay and go.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::foreign::inference_pool::InferencePool;
use windlass_api::model::model_service::ModelService;
use windlass_engine::domain::{Cleanup, Domain};
use windlass_engine::fetch::Fetched;
use windlass_engine::kind::{Kind, ObjectKey};
use windlass_engine::plan::{Look, Plan, Removal, When};

use crate::model_service::fetch::Answers;
use crate::model_service::fixture::{
    UID, account, base, body, deleted, domain, edited, empty_cluster, fresh, has, live_epp, made,
    named, names, now, observe, owner, plan_as, plan_of, pool, seen, service_with, settings,
    settled, split_with, written,
};
use crate::model_service::names::Names;
use crate::model_service::{Provider, Settings};

fn with_pool() -> ModelService {
    service_with(json!({ "inferencePool": { "endpointPicker": { "replicas": 3 } } }))
}

/// The cluster-scoped children of a service as we make them.
fn cluster_rbac(service: &ModelService) -> (ClusterRole, ClusterRoleBinding) {
    let plan = fresh(service);
    let name = names().cluster_rbac();
    let unowned = |kind: &str| {
        let mut value = made(&plan, kind, &name);
        value["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        value
    };
    (
        serde_json::from_value(unowned("ClusterRole")).unwrap(),
        serde_json::from_value(unowned("ClusterRoleBinding")).unwrap(),
    )
}

fn with_cluster_rbac(answers: Answers, rbac: (ClusterRole, ClusterRoleBinding)) -> Answers {
    Answers {
        cluster_role: Fetched::Found(rbac.0),
        cluster_role_binding: Fetched::Found(rbac.1),
        ..answers
    }
}

#[test]
fn s04_without_prefill_its_objects_go_and_the_configuration_returns() {
    let split = split_with(json!({}));
    let alone = edited(&split, json!({ "prefill": null }));
    let monitor = made(&fresh(&split), "PodMonitor", "qwen3-32b-prefill");
    let cluster = Answers {
        prefill_monitor: Some(Fetched::Found(serde_json::from_value(monitor).unwrap())),
        ..settled(&split)
    };
    let plan = plan_of(&alone, cluster);
    assert_eq!(deleted(&plan), ["Deployment qwen3-32b-prefill", "PodMonitor qwen3-32b-prefill"]);
    let data = &body(&plan, "ConfigMap", "qwen3-32b-epp-config")["data"];
    assert!(data.get("default-plugins.yaml").is_some() && data.get("pd-config.yaml").is_none());
}

#[test]
fn s10_without_any_gateway_the_route_goes() {
    let route: HttpRoute =
        serde_json::from_value(made(&fresh(&base()), "HTTPRoute", "qwen3-32b")).unwrap();
    let cluster = Answers { route: Some(Fetched::Found(route)), ..settled(&base()) };
    let settings = Settings { default_gateway_name: String::new(), ..settings() };
    let plan = plan_as(&settings, &seen(base()), cluster);
    assert!(!has(&plan, "HTTPRoute", "qwen3-32b"));
    assert_eq!(deleted(&plan), ["HTTPRoute qwen3-32b"]);
}

#[test]
fn s11_monitors_that_are_switched_off_go() {
    let service = service_with(json!({
        "inferencePool": { "endpointPicker": {} },
        "monitoring": { "podMonitor": { "enabled": true } },
    }));
    let plan = fresh(&service);
    let pod = made(&plan, "PodMonitor", "qwen3-32b-decode");
    let picker = made(&plan, "ServiceMonitor", "qwen3-32b-epp");
    let cluster = Answers {
        decode_monitor: Some(Fetched::Found(serde_json::from_value(pod).unwrap())),
        service_monitor: Some(Fetched::Found(serde_json::from_value(picker).unwrap())),
        ..settled(&service)
    };
    let off = edited(&service, json!({ "monitoring": { "podMonitor": { "enabled": false } } }));
    assert_eq!(
        deleted(&plan_of(&off, cluster)),
        ["PodMonitor qwen3-32b-decode", "ServiceMonitor qwen3-32b-epp"]
    );
}

#[test]
fn s14_without_the_mesh_its_rule_goes() {
    let rule = made(&fresh(&base()), "DestinationRule", "qwen3-32b-epp");
    let rule = serde_json::from_value(rule).unwrap();
    let cluster = Answers { rule: Some(Fetched::Found(rule)), ..settled(&base()) };
    let settings = Settings { provider: Provider::None, ..settings() };
    let plan = plan_as(&settings, &seen(base()), cluster);
    assert_eq!(deleted(&plan), ["DestinationRule qwen3-32b-epp"]);
}

#[test]
fn m04_a_pool_under_the_old_name_goes_only_if_it_is_ours() {
    let legacy = |name: &str, uid: &str| {
        let mut pool: InferencePool = pool(&fresh(&base()));
        pool.metadata.name = Some("qwen3-32b-epp".to_owned());
        pool.metadata.owner_references = Some(vec![owner(name, uid)]);
        Answers { legacy_pool: Some(Fetched::Found(pool)), ..settled(&base()) }
    };
    let ours = legacy("qwen3-32b", UID);
    assert_eq!(deleted(&plan_of(&seen(base()), ours)), ["InferencePool qwen3-32b-epp"]);
    let theirs = legacy("qwen3-32b-epp", "other");
    assert_eq!(deleted(&plan_of(&seen(base()), theirs)), [""; 0]);
}

/// Nobody tells a service of the end of another.
fn assert_looks_again_soon(plan: &Plan) {
    let delay = plan.requeue_after.unwrap();
    assert!(delay <= Duration::from_secs(10), "{delay:?}");
}

#[test]
fn m05_who_comes_second_to_a_name_of_the_picker_touches_nothing() {
    let mut epp = live_epp(&base());
    epp.metadata.owner_references = Some(vec![owner("qwen3.32b", "other")]);
    let cluster = Answers { epp: Fetched::Found(epp), ..empty_cluster() };
    let plan = plan_of(&base(), cluster.clone());
    assert_eq!(written(&plan), [""; 0]);
    assert_eq!(deleted(&plan), [""; 0]);
    assert_looks_again_soon(&plan);
    let refusal = observe(&base(), cluster).meaning.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "Deployment qwen3-32b-epp belongs to ModelService qwen3.32b: the names of both services \
         give the same name of the endpoint picker; rename one of them"
    );
}

#[test]
fn m05_what_an_earlier_service_of_the_same_name_left_is_no_conflict() {
    let mut epp = live_epp(&base());
    epp.metadata.owner_references = Some(vec![owner("qwen3-32b", "earlier")]);
    let cluster = Answers { epp: Fetched::Found(epp), ..empty_cluster() };
    assert!(observe(&base(), cluster).meaning.is_ok());
}

#[test]
fn m05_cluster_rbac_of_another_service_is_left_alone() {
    // `ml-serving-qwen3` + `32b` makes up the same text as `ml-serving` + `qwen3-32b`.
    let other = Names::of(&named("32b", "ml-serving-qwen3"), "test").cluster_metadata();
    let (mut role, mut binding) = cluster_rbac(&with_pool());
    for metadata in [&mut role.metadata, &mut binding.metadata] {
        metadata.labels.clone_from(&other.labels);
    }
    let cluster = with_cluster_rbac(settled(&with_pool()), (role, binding));
    let plan = plan_of(&seen(with_pool()), cluster.clone());
    assert!(!has(&plan, "ClusterRole", &names().cluster_rbac()));
    assert!(has(&plan, "Deployment", "qwen3-32b-decode"));
    assert_eq!(deleted(&plan), [""; 0]);
    assert_looks_again_soon(&plan);
    let observed = observe(&seen(with_pool()), cluster);
    assert!(matches!(domain().cleanup(&with_pool(), &observed), Cleanup::Done));
}

#[test]
fn s15_cluster_rbac_goes_before_the_service_does() {
    let cluster = with_cluster_rbac(settled(&with_pool()), cluster_rbac(&with_pool()));
    let observed = observe(&with_pool(), cluster);
    let Cleanup::Pending(plan) = domain().cleanup(&with_pool(), &observed) else { panic!() };
    let name = names().cluster_rbac();
    assert_eq!(
        deleted(&plan),
        [format!("ClusterRole {name}"), format!("ClusterRoleBinding {name}")]
    );
    assert_eq!(written(&plan), [""; 0]);
    let observed = observe(&with_pool(), settled(&with_pool()));
    assert!(matches!(domain().cleanup(&with_pool(), &observed), Cleanup::Done));
}

#[test]
fn s15_cluster_rbac_of_the_operator_before_us_is_removed() {
    let (mut role, mut binding) = cluster_rbac(&with_pool());
    for metadata in [&mut role.metadata, &mut binding.metadata] {
        let labels = metadata.labels.as_mut().unwrap();
        labels.retain(|key, _| key.starts_with("app.kubernetes.io/"));
        labels.insert("app.kubernetes.io/version".to_owned(), "v1.0.1".to_owned());
    }
    let cluster = with_cluster_rbac(settled(&with_pool()), (role, binding));
    let observed = observe(&with_pool(), cluster);
    let Cleanup::Pending(plan) = domain().cleanup(&with_pool(), &observed) else { panic!() };
    assert_eq!((plan.apply.len(), plan.delete.len()), (0, 2));
}

#[test]
fn m05_the_end_of_who_came_second_takes_nothing_from_the_first() {
    let (mut role, mut binding) = cluster_rbac(&with_pool());
    for metadata in [&mut role.metadata, &mut binding.metadata] {
        metadata.labels.as_mut().unwrap().retain(|key, _| key.starts_with("app.kubernetes.io/"));
    }
    let mut epp = live_epp(&with_pool());
    epp.metadata.owner_references = Some(vec![owner("qwen3.32b", "other")]);
    let cluster = Answers { epp: Fetched::Found(epp), ..empty_cluster() };
    let observed = observe(&with_pool(), with_cluster_rbac(cluster, (role, binding)));
    assert!(matches!(domain().cleanup(&with_pool(), &observed), Cleanup::Done));
}

#[test]
fn cluster_rbac_that_is_no_longer_wanted_goes() {
    let cluster = with_cluster_rbac(settled(&with_pool()), cluster_rbac(&with_pool()));
    let plain = edited(&with_pool(), json!({ "inferencePool": null }));
    let plan = plan_of(&plain, cluster);
    let name = names().cluster_rbac();
    let both = [format!("ClusterRole {name}"), format!("ClusterRoleBinding {name}")];
    assert_eq!(deleted(&plan), both);
}

#[test]
fn the_token_secret_is_made_once_for_each_generation() {
    let service = seen(with_pool());
    let secret = names().token_secret();
    let plan = plan_of(&service, settled(&service));
    assert!(!has(&plan, "Secret", &secret), "the picker's Deployment tells that there is one");
    let next = edited(&service, json!({ "decode": { "replicas": 3 } }));
    let plan = plan_of(&next, settled(&service));
    assert!(has(&plan, "Secret", &secret));
    let mark = &body(&plan, "Deployment", names().epp())["metadata"]["annotations"];
    assert_eq!(mark["model.otterscale.io/token-secret"], "2");
    assert!(mark.get("model.otterscale.io/token-secret-uid").is_none());
    let plan = plan_of(&next, with_our_token(&service));
    let mark = &body(&plan, "Deployment", names().epp())["metadata"]["annotations"];
    assert_eq!(mark["model.otterscale.io/token-secret-uid"], "token");
}

/// As after a pass that made the token Secret.
fn with_our_token(service: &ModelService) -> Answers {
    let mut epp = live_epp(service);
    let uid = ("model.otterscale.io/token-secret-uid".to_owned(), "token".to_owned());
    epp.metadata.annotations.get_or_insert_default().extend([uid]);
    Answers { epp: Fetched::Found(epp), ..settled(service) }
}

/// Whoever deletes the Deployment, or takes its labels off, does not make us forget whose the Secret is.
#[test]
fn the_picker_s_service_knows_the_token_too() {
    let service = seen(with_pool());
    let note = json!({ "metadata": {
        "annotations": { "model.otterscale.io/token-secret-uid": "token" } } });
    let noting = Fetched::Found(serde_json::from_value(note).unwrap());
    let cluster =
        || Answers { epp: Fetched::Missing, epp_service: noting.clone(), ..settled(&service) };
    let plan = plan_of(&service, cluster());
    for kind in ["Deployment", "Service"] {
        let marks = &body(&plan, kind, names().epp())["metadata"]["annotations"];
        assert_eq!(marks["model.otterscale.io/token-secret-uid"], "token", "{kind}");
    }
    let plain = edited(&service, json!({ "inferencePool": null }));
    let plan = plan_of(&plain, cluster());
    assert_eq!(plan.delete, [token_removal(When::BeforeApply)]);
    assert!(body(&plan, "Service", names().epp())["metadata"].get("annotations").is_none());
}

/// One of them may not have been written; nobody can tell which is out of date.
#[test]
fn uids_that_differ_are_both_kept_and_both_tried() {
    let service = seen(with_pool());
    let note = json!({ "metadata": {
        "annotations": { "model.otterscale.io/token-secret-uid": "other" } } });
    let noting = Fetched::Found(serde_json::from_value(note).unwrap());
    let cluster = || Answers { epp_service: noting.clone(), ..with_our_token(&service) };
    let plan = plan_of(&service, cluster());
    for (kind, uid) in [("Deployment", "token"), ("Service", "other")] {
        let marks = &body(&plan, kind, names().epp())["metadata"]["annotations"];
        assert_eq!(marks["model.otterscale.io/token-secret-uid"], uid, "{kind}");
    }
    let plain = edited(&service, json!({ "inferencePool": null }));
    let gone = plan_of(&plain, cluster()).delete;
    let how: Vec<_> = gone.into_iter().map(|removal| removal.how).collect();
    let known = |uid: &str| Look::Known { uid: uid.to_owned() };
    assert_eq!(how, [known("other"), known("token")]);
}

/// With account and Deployment gone the Service still knows that there was a token.
#[test]
fn a_token_is_known_to_be_gone_by_what_the_service_keeps() {
    let service = seen(with_pool());
    let note = json!({ "metadata": {
        "annotations": { "model.otterscale.io/token-secret-uid": "token" } } });
    let noting = Fetched::Found(serde_json::from_value(note).unwrap());
    let cluster = Answers {
        epp: Fetched::Missing,
        epp_account: Fetched::Missing,
        epp_service: noting,
        ..settled(&service)
    };
    let plan = plan_of(&service, cluster);
    assert_eq!(plan.delete, [token_removal(When::BeforeApply)]);
    assert_eq!(account(&plan).unwrap().secrets, None);
}

/// Nobody knows then which Secret would be there: the swept one of the old account, or a new one.
#[test]
fn a_new_account_waits_for_the_sweep_of_a_token_whose_uid_is_unknown() {
    let service = seen(with_pool());
    let silent = |age: Duration| {
        let mut account = ServiceAccount { secrets: None, ..account(&fresh(&service)).unwrap() };
        let made = now() - age;
        account.metadata.creation_timestamp = Some(Time(made));
        Answers { epp_account: Fetched::Found(account), ..settled(&service) }
    };
    let plan = plan_of(&service, silent(Duration::from_secs(20)));
    assert_eq!(plan.requeue_after, Some(Duration::from_secs(40)));
    assert!(!has(&plan, "Secret", &names().token_secret()));
    assert_eq!(account(&plan).unwrap().secrets, None);

    let plan = plan_of(&service, silent(Duration::from_secs(60)));
    assert!(has(&plan, "Secret", &names().token_secret()));
    assert!(account(&plan).unwrap().secrets.is_some());
}

fn token_removal(when: When) -> Removal {
    let key = ObjectKey::new(names().namespace(), &names().token_secret());
    Removal { kind: Kind::of::<Secret>(), key, when, how: Look::Known { uid: "token".to_owned() } }
}

#[test]
fn the_token_secret_is_replaced_with_the_account_that_it_speaks_for() {
    let service = seen(with_pool());
    let cluster = Answers { epp_account: Fetched::Missing, ..with_our_token(&service) };
    let plan = plan_of(&service, cluster);
    assert_eq!(plan.delete, [token_removal(When::BeforeApply)]);
    assert!(!has(&plan, "Secret", &names().token_secret()), "there must be an account first");
    let made = account(&plan).unwrap();
    assert_eq!(made.secrets, None, "a stop at this point must not lose the token");

    let cluster = Answers { epp_account: Fetched::Found(made), ..settled(&service) };
    let plan = plan_of(&service, cluster);
    let uid = &body(&plan, "Secret", &names().token_secret())["metadata"]["annotations"]["kubernetes.io/service-account.uid"];
    assert_eq!(uid, "account");
    let unmarked = Answers { epp_account: Fetched::Missing, ..empty_cluster() };
    assert_eq!(deleted(&plan_of(&service, unmarked)), [""; 0], "there was none yet");
}

/// The control plane takes the name of a deleted Secret off its account.
#[test]
fn m10_a_deleted_token_secret_is_made_again_before_the_account_tells_of_it() {
    let service = seen(with_pool());
    let silent = ServiceAccount { secrets: None, ..account(&fresh(&service)).unwrap() };
    let cluster = Answers { epp_account: Fetched::Found(silent), ..settled(&service) };
    let plan = plan_of(&service, cluster);
    let first: Vec<_> = plan.tiers()[0].iter().map(|desired| &desired.key.name).collect();
    assert_eq!(first, [&names().token_secret()]);
    let named = &body(&plan, "ServiceAccount", names().epp())["secrets"];
    assert_eq!(*named, json!([{ "name": names().token_secret() }]));

    let foreign = Fetched::Found(ServiceAccount::default());
    let plan = plan_of(&service, Answers { epp_account: foreign, ..settled(&service) });
    assert!(!has(&plan, "Secret", &names().token_secret()), "no token of a foreign account");
}

#[test]
fn the_token_secret_goes_before_the_mark_that_tells_of_it() {
    let plain = edited(&with_pool(), json!({ "inferencePool": null }));
    let plan = plan_of(&plain, with_our_token(&with_pool()));
    assert_eq!(plan.delete, [token_removal(When::BeforeApply)]);
    let mark = &body(&plan, "Deployment", names().epp())["metadata"]["annotations"];
    assert!(mark.get("model.otterscale.io/token-secret").is_none());
}

/// It may be of the operator before us or of somebody else; the former goes with the service.
#[test]
fn m14_a_secret_that_was_there_before_us_stays() {
    let plain = edited(&with_pool(), json!({ "inferencePool": null }));
    assert_eq!(deleted(&plan_of(&plain, settled(&with_pool()))), [""; 0]);
    let no_account = Answers { epp_account: Fetched::Missing, ..settled(&with_pool()) };
    assert_eq!(deleted(&plan_of(&seen(with_pool()), no_account)), [""; 0]);
}

#[test]
fn m16_an_invalid_spec_changes_nothing() {
    let invalid = edited(&base(), json!({ "prefill": { "replicas": 1 } }));
    let plan = plan_of(&invalid, settled(&base()));
    assert_eq!((plan.apply.len(), plan.delete.len(), plan.requeue_after), (0, 0, None));
}

/// Otherwise each pass that writes would have to compare everything once more.
#[test]
fn what_was_just_made_changes_no_plan() {
    for service in [base(), split_with(json!({}))] {
        let first = fresh(&service);
        let second = plan_of(&service, settled(&service));
        for (first, second) in first.apply.iter().zip(&second.apply) {
            assert_eq!(first, second);
        }
        assert_eq!(first, second);
    }
}
