//! What the answers mean: the spec judged, and what of the live objects is to stay.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::foreign::http_route::ParentReference;
use windlass_api::model::model_service::{ModelService, Role as RoleSpec};
use windlass_engine::fetch::Fetched;
use windlass_engine::object::controller;

use super::epp_config::ConfigFile;
use super::fetch::Answers;
use super::names::{Names, Role};
use super::objects::{Blueprint, Pods, epp_deployment, http_route, serving_deployment};
use super::pairing::{self, Pairing, Seen};
use super::replicas;
use super::revision::{self, Marks};
use super::settings::{Provider, Settings};
use super::validate::{Rule, Wanted, validate};

/// Everything that plan, health and status speak of.
#[derive(Clone, Debug)]
pub struct Observed {
    pub(super) now: Timestamp,
    pub(super) names: Names,
    pub(super) answers: Answers,
    pub(super) meaning: Result<Meaning, Refusal>,
}

/// Why nothing is done for a service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    InvalidSpec(Rule),
    /// Another service has what this one would make.
    #[error(
        "{kind} {name} belongs to {owner}: the names of both services give the same name of the \
         endpoint picker; rename one of them"
    )]
    Conflict { kind: &'static str, name: String, owner: String },
}

/// What a valid spec means in this cluster.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    pub(super) wanted: Wanted,
    pub(super) decode: Workload,
    pub(super) prefill: Option<Workload>,
    pub(super) epp: Workload,
    pub(super) epp_config: ConfigFile,
    pub(super) pairing: Pairing,
    /// The gateway to be reached through, if any.
    pub(super) gateway: Option<ParentReference>,
    pub(super) mesh: bool,
    pub(super) cluster_rbac: ClusterRbac,
}

/// What a Deployment of ours is to be.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) marks: Marks,
    pub(super) template: PodTemplateSpec,
    /// `None` where others decide.
    pub(super) replicas: Option<i32>,
    /// Whether the live Deployment is of the same revision.
    is_wanted: bool,
}

impl Workload {
    /// Whether a live Deployment is what is wanted, its pods aside.
    pub(super) fn is_carried_out_by(&self, live: &Deployment) -> bool {
        self.is_wanted && self.replicas.is_none_or(|size| size == replicas::size(live))
    }
}

/// The endpoint picker's rights in the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClusterRbac {
    NotWanted,
    Wanted,
    /// The name is taken by something that is not ours.
    Conflict(String),
}

pub(super) fn compose(
    settings: &Settings,
    service: &ModelService,
    answers: Answers,
    now: Timestamp,
) -> Observed {
    let names = Names::of(service, &settings.version);
    let meaning = validate(service, &names, settings)
        .map_err(Refusal::InvalidSpec)
        .and_then(|wanted| check_owner(service, &names, &answers).map(|()| wanted))
        .map(|wanted| mean(settings, service, &names, wanted, &answers));
    Observed { now, names, answers, meaning }
}

fn mean(
    settings: &Settings,
    service: &ModelService,
    names: &Names,
    wanted: Wanted,
    answers: &Answers,
) -> Meaning {
    let spec = &service.spec;
    let blueprint = Blueprint { names, spec, wanted: &wanted, settings };
    let epp_config = ConfigFile::new(settings.epp_dialect, spec.prefill.is_some());
    let decode = serving(blueprint, Role::Decode, &spec.decode, &answers.decode);
    let prefill =
        spec.prefill.as_ref().map(|pods| serving(blueprint, Role::Prefill, pods, &answers.prefill));
    let pairing = match (&prefill, &answers.pool) {
        (Some(prefill), Some(pool)) => pairing::decide(
            seen(&decode, &answers.decode),
            seen(prefill, &answers.prefill),
            pool.found().filter(|pool| stays(&pool.metadata)),
        ),
        _ => Pairing::Paired,
    };
    Meaning {
        decode,
        prefill,
        epp: picker(blueprint, epp_config, &answers.epp),
        epp_config,
        pairing,
        gateway: http_route::parent(names, spec, settings),
        mesh: settings.provider == Provider::Istio,
        cluster_rbac: cluster_rbac(names, wanted.cluster_rbac, answers),
        wanted,
    }
}

fn serving(
    blueprint: Blueprint<'_>,
    role: Role,
    spec: &RoleSpec,
    answer: &Fetched<Deployment>,
) -> Workload {
    let pods = Pods { blueprint, role, spec };
    let template = serving_deployment::template(pods);
    workload(template, revision::marks_of_role(pods), spec.replicas, live(answer))
}

fn picker(blueprint: Blueprint<'_>, file: ConfigFile, answer: &Fetched<Deployment>) -> Workload {
    let template = epp_deployment::template(blueprint, file);
    let marks = revision::marks_of_picker(blueprint, file);
    workload(template, marks, blueprint.wanted.epp.replicas, live(answer))
}

fn workload(
    mut template: PodTemplateSpec,
    mut marks: Marks,
    size: i32,
    live: Option<&Deployment>,
) -> Workload {
    let is_wanted =
        live.is_some_and(|live| revision::keep_live_form(&mut marks, &mut template, live));
    let replicas = replicas::field(size, live);
    Workload { marks, template, replicas, is_wanted }
}

fn seen<'a>(workload: &Workload, answer: &'a Fetched<Deployment>) -> Seen<'a> {
    Seen { live: live(answer), is_wanted: workload.is_wanted }
}

/// A Deployment on its way out is as good as gone.
pub(super) fn live(answer: &Fetched<Deployment>) -> Option<&Deployment> {
    answer.found().filter(|deployment| stays(&deployment.metadata))
}

pub(super) fn stays(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_none()
}

/// Two names may give one name of the endpoint picker; who came second must not touch it.
pub(super) fn check_owner(
    service: &ModelService,
    names: &Names,
    answers: &Answers,
) -> Result<(), Refusal> {
    let metadata = [
        ("ServiceAccount", answers.epp_account.found().map(|object| &object.metadata)),
        ("Deployment", answers.epp.found().map(|object| &object.metadata)),
        ("Service", answers.epp_service.found().map(|object| &object.metadata)),
    ];
    for (kind, metadata) in metadata {
        let Some(owner) = metadata.and_then(controller) else { continue };
        // An object of an earlier service of the same name is about to go.
        let other = owner.name != names.name() || owner.kind != "ModelService";
        if other && Some(&owner.uid) != service.metadata.uid.as_ref() {
            let owner = format!("{} {}", owner.kind, owner.name);
            return Err(Refusal::Conflict { kind, name: names.epp().to_owned(), owner });
        }
    }
    Ok(())
}

/// `<namespace>-<picker>` may be made up in two ways, so the labels have to agree too.
fn cluster_rbac(names: &Names, wanted: bool, answers: &Answers) -> ClusterRbac {
    if !wanted {
        return ClusterRbac::NotWanted;
    }
    let foreign = |metadata: Option<&ObjectMeta>| {
        metadata.is_some_and(|metadata| !is_of_this_service(names, metadata))
    };
    let role = answers.cluster_role.found().map(|role| &role.metadata);
    let binding = answers.cluster_role_binding.found().map(|binding| &binding.metadata);
    for (kind, metadata) in [("ClusterRole", role), ("ClusterRoleBinding", binding)] {
        if foreign(metadata) {
            let text = format!(
                "{kind} {} belongs to another service whose namespace and name make up the same \
                 text; the endpoint picker cannot check who reads its metrics",
                names.cluster_rbac()
            );
            return ClusterRbac::Conflict(text);
        }
    }
    ClusterRbac::Wanted
}

pub(super) fn is_of_this_service(names: &Names, metadata: &ObjectMeta) -> bool {
    let none = BTreeMap::new();
    names.is_of_this_service(metadata.labels.as_ref().unwrap_or(&none))
}
