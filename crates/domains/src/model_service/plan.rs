//! From meaning to changes: what to apply, what to delete, when to look again.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::foreign::destination_rule::DestinationRule;
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::foreign::inference_pool::InferencePool;
use windlass_api::foreign::pod_monitor::PodMonitor;
use windlass_api::foreign::service_monitor::ServiceMonitor;
use windlass_api::model::model_service::ModelService;
use windlass_engine::domain::Cleanup;
use windlass_engine::fetch::Fetched;
use windlass_engine::kind::ObjectKey;
use windlass_engine::object::is_controlled_by;
use windlass_engine::plan::{Ownership, Plan, Strategy, When};

use super::compose::{self, ClusterRbac, Meaning, Observed, Refusal, live, stays};
use super::epp_config::ConfigFile;
use super::fetch::is_stuck_on_its_node;
use super::names::{Role, TOKEN_UID_ANNOTATION};
use super::objects::{
    Blueprint, Pods, destination_rule, epp_cluster_role, epp_config_map, epp_deployment, epp_role,
    epp_service, epp_service_account, epp_token_secret, http_route, inference_pool, pod_monitor,
    service_monitor, serving_deployment,
};
use super::settings::Settings;

/// Events of pods are not watched; while one may come that explains a pod, they are read again.
const EXPLAIN_AGAIN: Duration = Duration::from_secs(30);

/// The end of what stands in the way is told to the service that it belongs to, not to this one. A
/// look costs no request: all of it is in the watch caches.
const CONFLICT_AGAIN: Duration = Duration::from_secs(10);

/// The control plane sweeps the Secrets of accounts that have gone within seconds.
const SWEEP: Duration = Duration::from_secs(60);

pub(super) fn plan(settings: &Settings, object: &ModelService, observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    match &observed.meaning {
        Ok(meaning) => {
            let wanted = &meaning.wanted;
            let names = &observed.names;
            let blueprint = Blueprint { names, spec: &object.spec, wanted, settings };
            apply_roles(&mut plan, blueprint, meaning);
            apply_picker(&mut plan, blueprint, object, observed, meaning);
            apply_cluster_rbac(&mut plan, observed, meaning);
            apply_traffic(&mut plan, blueprint, observed, meaning);
            apply_monitors(&mut plan, blueprint, observed, meaning);
            remove(&mut plan, object, observed, meaning);
        }
        // Nothing is changed, and nothing removed, on behalf of a spec that makes no sense.
        Err(Refusal::InvalidSpec(_)) => return plan,
        Err(Refusal::Conflict { .. }) => plan.requeue_after(CONFLICT_AGAIN),
    }
    let pods = [&observed.answers.pods, &observed.answers.epp_pods];
    if pods.into_iter().filter_map(Fetched::found).flatten().any(is_stuck_on_its_node) {
        plan.requeue_after(EXPLAIN_AGAIN);
    }
    plan
}

fn apply_roles(plan: &mut Plan, blueprint: Blueprint<'_>, meaning: &Meaning) {
    // The pool first: see the module `pairing`.
    if meaning.pairing.holds() {
        return;
    }
    let prefill = blueprint.spec.prefill.as_ref().zip(meaning.prefill.as_ref());
    let roles = [
        Some((Role::Decode, &blueprint.spec.decode, &meaning.decode)),
        prefill.map(|(spec, workload)| (Role::Prefill, spec, workload)),
    ];
    for (role, spec, workload) in roles.into_iter().flatten() {
        let pods = Pods { blueprint, role, spec };
        plan.apply(&serving_deployment::serving_deployment(pods, workload));
    }
}

fn apply_picker(
    plan: &mut Plan,
    blueprint: Blueprint<'_>,
    object: &ModelService,
    observed: &Observed,
    meaning: &Meaning,
) {
    let Blueprint { names, wanted, .. } = blueprint;
    let file: ConfigFile = meaning.epp_config;
    apply_account(plan, blueprint, object, observed);
    plan.apply(&epp_config_map::epp_config_map(names, file));
    plan.apply(&epp_role::epp_role(names, wanted.epp.replicas));
    plan.apply(&epp_role::epp_role_binding(names));
    let secret = names.token_secret();
    let known = TokenUids::of(observed);
    let uid = known.of_service().filter(|_| wanted.token_secret);
    let service = epp_service::epp_service(names, wanted.epp.port, uid.as_deref());
    plan.apply_with_uid_of::<Secret>(&service, &secret, TOKEN_UID_ANNOTATION);
    let (generation, uid) = (generation(object), known.of_deployment());
    let token = wanted.token_secret.then_some(epp_deployment::Token { generation, uid });
    let deployment = epp_deployment::epp_deployment(blueprint, &meaning.epp, token);
    plan.apply_with_uid_of::<Secret>(&deployment, &secret, TOKEN_UID_ANNOTATION);
}

/// The picker's account and its token. Whether there is a token Secret cannot be read: that it was
/// made is kept on the picker's Deployment, that it was deleted is seen on the account. So that a
/// stop at any point loses none, the account tells of a Secret only when one is there or when the
/// Deployment does not tell yet.
fn apply_account(
    plan: &mut Plan,
    blueprint: Blueprint<'_>,
    object: &ModelService,
    observed: &Observed,
) {
    let Blueprint { names, wanted, .. } = blueprint;
    let account = observed.answers.epp_account.found();
    let uid = account.and_then(|account| account.metadata.uid.as_deref());
    let secret = epp_token_secret::epp_token_secret(names, uid);
    // Its account first; the token then follows in the next look.
    let ours = account.filter(|live| is_controlled_by(&live.metadata, &object.metadata));
    let silent = ours.filter(|live| !epp_service_account::tells_of_token(names, live));
    let sweep = silent.and_then(|live| until_swept(observed, live));
    let tells = wanted.token_secret && !token_is_gone(observed) && sweep.is_none();
    if let Some(left) = sweep.filter(|_| wanted.token_secret) {
        plan.requeue_after(left);
    }
    if tells && silent.is_some() {
        plan.create_blind_first(&secret);
    } else if tells && token_generation(observed) != Some(generation(object)) {
        plan.add(&secret, Ownership::Owned, Strategy::CreateBlind);
    }
    plan.apply(&epp_service_account::epp_service_account(names, tells));
}

/// A token ends with its account. The control plane removes its Secret some time later.
fn token_is_gone(observed: &Observed) -> bool {
    let had_one = || token_mark(observed).is_some() || !TokenUids::of(observed).all().is_empty();
    observed.answers.epp_account.is_missing() && had_one()
}

/// How long the Secret of an account that has gone may still be there. Where its uid is known we have
/// deleted it ourselves. Otherwise a new account that told of it would go on telling: the control plane
/// takes the name of a Secret off the very account only that it was made for.
fn until_swept(observed: &Observed, account: &ServiceAccount) -> Option<Duration> {
    if !TokenUids::of(observed).all().is_empty() {
        return None;
    }
    token_mark(observed)?;
    let made = account.metadata.creation_timestamp.as_ref()?.0;
    let age = Duration::try_from(observed.now.duration_since(made)).unwrap_or_default();
    SWEEP.checked_sub(age).filter(|left| !left.is_zero())
}

/// Before the API server has seen it, it has none.
fn generation(object: &ModelService) -> i64 {
    object.metadata.generation.unwrap_or_default()
}

/// The uid of the token Secret is kept in two places, because one of them may get lost. If they differ
/// one is out of date, nobody knows which, and each keeps its own until there is a new one for both.
struct TokenUids {
    service: Option<String>,
    deployment: Option<String>,
}

impl TokenUids {
    fn of(observed: &Observed) -> Self {
        let service = observed.answers.epp_service.found();
        let notes = service.and_then(|service| service.metadata.annotations.as_ref());
        Self {
            service: notes.and_then(|notes| notes.get(TOKEN_UID_ANNOTATION)).cloned(),
            deployment: token_mark(observed).and_then(|token| token.uid),
        }
    }

    fn of_service(&self) -> Option<String> {
        self.service.clone().or_else(|| self.deployment.clone())
    }

    fn of_deployment(&self) -> Option<String> {
        self.deployment.clone().or_else(|| self.service.clone())
    }

    fn all(self) -> BTreeSet<String> {
        self.service.into_iter().chain(self.deployment).collect()
    }
}

fn token_generation(observed: &Observed) -> Option<i64> {
    token_mark(observed).map(|token| token.generation)
}

fn token_mark(observed: &Observed) -> Option<epp_deployment::Token> {
    live(&observed.answers.epp).and_then(epp_deployment::token_mark)
}

fn apply_cluster_rbac(plan: &mut Plan, observed: &Observed, meaning: &Meaning) {
    match &meaning.cluster_rbac {
        ClusterRbac::NotWanted => {}
        ClusterRbac::Wanted => {
            plan.apply_claimed(&cluster_role(observed));
            plan.apply_claimed(&cluster_role_binding(observed));
        }
        ClusterRbac::Conflict(_) => plan.requeue_after(CONFLICT_AGAIN),
    }
}

fn cluster_role(observed: &Observed) -> ClusterRole {
    epp_cluster_role::epp_cluster_role(&observed.names)
}

fn cluster_role_binding(observed: &Observed) -> ClusterRoleBinding {
    epp_cluster_role::epp_cluster_role_binding(&observed.names)
}

fn apply_traffic(
    plan: &mut Plan,
    blueprint: Blueprint<'_>,
    observed: &Observed,
    meaning: &Meaning,
) {
    let Blueprint { names, spec, wanted, .. } = blueprint;
    let answers = &observed.answers;
    if answers.pool.is_some() {
        let pool = inference_pool::inference_pool(blueprint, meaning.pairing.only());
        // A label that somebody adds would leave the pool without pods.
        plan.add(&pool, Ownership::Owned, Strategy::ApplyWhole(inference_pool::SELECTOR));
    }
    if let Some(gateway) = meaning.gateway.clone().filter(|_| answers.route.is_some()) {
        plan.apply(&http_route::http_route(names, spec, gateway));
    }
    if meaning.mesh && answers.rule.is_some() {
        plan.apply(&destination_rule::destination_rule(names, wanted.epp.port));
    }
}

fn apply_monitors(
    plan: &mut Plan,
    blueprint: Blueprint<'_>,
    observed: &Observed,
    meaning: &Meaning,
) {
    let Blueprint { names, wanted, settings, .. } = blueprint;
    let answers = &observed.answers;
    let pod_monitors = wanted.pod_monitors.as_ref().filter(|_| answers.decode_monitor.is_some());
    if let Some(monitoring) = pod_monitors {
        plan.apply(&pod_monitor::pod_monitor(names, Role::Decode, monitoring));
        if meaning.prefill.is_some() {
            plan.apply(&pod_monitor::pod_monitor(names, Role::Prefill, monitoring));
        }
    }
    if wanted.service_monitor && answers.service_monitor.is_some() {
        let auth = settings.metrics_endpoint_auth;
        plan.apply(&service_monitor::service_monitor(names, auth));
    }
}

/// Only what was seen: a pass at rest asks for nothing.
fn remove(plan: &mut Plan, object: &ModelService, observed: &Observed, meaning: &Meaning) {
    let Observed { names, answers, .. } = observed;
    let (namespace, wanted) = (names.namespace(), &meaning.wanted);
    let (decode, prefill) = (names.role(Role::Decode), names.role(Role::Prefill));
    let after = When::AfterApply;
    if meaning.prefill.is_none() {
        if live(&answers.prefill).is_some() {
            plan.delete::<Deployment>(namespace, &prefill, after);
        }
        if is_there(answers.prefill_monitor.as_ref()) {
            plan.delete::<PodMonitor>(namespace, &prefill, after);
        }
    } else if wanted.pod_monitors.is_none() && is_there(answers.prefill_monitor.as_ref()) {
        plan.delete::<PodMonitor>(namespace, &prefill, after);
    }
    if wanted.pod_monitors.is_none() && is_there(answers.decode_monitor.as_ref()) {
        plan.delete::<PodMonitor>(namespace, &decode, after);
    }
    if !wanted.service_monitor && is_there(answers.service_monitor.as_ref()) {
        plan.delete::<ServiceMonitor>(namespace, names.epp(), after);
    }
    if meaning.gateway.is_none() && is_there(answers.route.as_ref()) {
        plan.delete::<HttpRoute>(namespace, names.name(), after);
    }
    if !meaning.mesh && is_there(answers.rule.as_ref()) {
        plan.delete::<DestinationRule>(namespace, names.epp(), after);
    }
    let legacy = answers.legacy_pool.as_ref().and_then(Fetched::found);
    if legacy.is_some_and(|pool| {
        stays(&pool.metadata) && is_controlled_by(&pool.metadata, &object.metadata)
    }) {
        plan.delete::<InferencePool>(namespace, names.epp(), after);
    }
    // One that we did not make, be it of the operator before us, goes with its owner.
    if token_is_gone(observed) || !wanted.token_secret {
        for uid in TokenUids::of(observed).all() {
            // Before the mark goes that tells of it, and before another one takes its name.
            let key = ObjectKey::new(namespace, &names.token_secret());
            plan.delete_blind::<Secret>(key, uid, When::BeforeApply);
        }
    }
    if meaning.cluster_rbac == ClusterRbac::NotWanted {
        remove_cluster_rbac(plan, observed);
    }
}

fn is_there<T>(answer: Option<&Fetched<T>>) -> bool {
    answer.is_some_and(|answer| answer.found().is_some())
}

/// Whether there was something to remove.
fn remove_cluster_rbac(plan: &mut Plan, observed: &Observed) -> bool {
    let Observed { names, answers, .. } = observed;
    let name = names.cluster_rbac();
    let ours = |metadata: &&ObjectMeta| compose::is_of_this_service(names, metadata);
    let role = answers.cluster_role.found().map(|role| &role.metadata).filter(ours);
    let binding = answers.cluster_role_binding.found().map(|live| &live.metadata).filter(ours);
    if role.is_some() {
        plan.delete::<ClusterRole>(None, &name, When::AfterApply);
    }
    if binding.is_some() {
        plan.delete::<ClusterRoleBinding>(None, &name, When::AfterApply);
    }
    role.is_some() || binding.is_some()
}

/// Everything in the namespace goes by itself; what is outside of it does not. Who came second to a
/// name has nothing there, whatever the labels of the operator before us let one believe.
pub(super) fn cleanup(object: &ModelService, observed: &Observed) -> Cleanup {
    let mut plan = Plan::default();
    if compose::check_owner(object, &observed.names, &observed.answers).is_err() {
        return Cleanup::Done;
    }
    if remove_cluster_rbac(&mut plan, observed) { Cleanup::Pending(plan) } else { Cleanup::Done }
}
