//! From meaning to changes: what to apply, what to delete, when to look again.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use windlass_api::aim::template::TemplateKind;
use windlass_api::foreign::serving_runtime::{
    ClusterServingRuntime, ClusterServingRuntimeSpec, ServingRuntime,
};
use windlass_engine::kind::TypedScope;
use windlass_engine::plan::{Ownership, Plan, Strategy, When};

use super::compose::{Observed, Outcome};
use super::discovery::lacks_inputs;
use super::fetch::home;
use super::objects::job::{Question, job};
use super::objects::runtime::{self, Served};
use super::usage::Usage;
use crate::aim::Settings;
use crate::aim::catalogue::Image;

/// Pods of Jobs are not watched; while one runs, what keeps it from running is looked for.
const LOOK_AT_PODS: Duration = Duration::from_secs(15);

const NAME_TAKEN: Duration = Duration::from_secs(5);
/// What is stored decides what comes next, and our own writes wake nobody.
const STORED: Duration = Duration::from_secs(1);
/// Not everything that may be refused is watched, such as rights.
const READ_AGAIN: Duration = Duration::from_secs(30);

pub(super) fn plan<K: TemplateKind<Scope: TypedScope>>(
    settings: &Settings,
    template: &K,
    observed: &Observed,
) -> Plan {
    let mut plan = Plan::default();
    let home = home(settings, template);
    let namespace = template.meta().namespace.as_deref();
    match observed.usage {
        Usage::Used => {}
        Usage::UnusedFor(left) => plan.requeue_after(left),
        Usage::Unused => {
            plan.delete_known(template, When::AfterApply);
            return plan;
        }
    }
    for job in &observed.in_the_way {
        plan.delete::<Job>(Some(home), job, When::BeforeApply);
    }
    match &observed.outcome {
        Outcome::Starting if observed.in_the_way.is_empty() => {
            ask(&mut plan, home, template, observed);
            // A namesake may have been faster, and its Job is no event for this template.
            plan.requeue_after(NAME_TAKEN);
        }
        Outcome::Running { .. } => plan.requeue_after(LOOK_AT_PODS),
        Outcome::Waiting { left, .. } => plan.requeue_after(*left),
        Outcome::JobFailed | Outcome::ParseFailed { .. } if observed.is_news() => {
            plan.requeue_after(STORED);
        }
        Outcome::Discovered if !may_serve(template, observed) => plan.requeue_after(STORED),
        Outcome::Unread { error: Some(_), .. } => plan.requeue_after(READ_AGAIN),
        _ => {}
    }
    if let (Some(image), false) =
        (&observed.image, matches!(observed.outcome, Outcome::Unread { .. }))
    {
        serve(&mut plan, namespace, template, observed, image);
    }
    plan
}

fn ask<K: TemplateKind>(plan: &mut Plan, home: &str, template: &K, observed: &Observed) {
    let (Some(image), Some(wanted)) = (&observed.image, &observed.wanted) else { return };
    let job = job(Question {
        name: &wanted.job,
        template: template.meta().name.as_deref().unwrap_or_default(),
        namespace: home,
        image: &image.spec.image,
        parameters: &template.common().parameters,
        env: template.env(),
        service_account: observed.runs_with.service_account.as_deref(),
        pull_secrets: &observed.runs_with.pull_secrets,
        inputs: &wanted.attempt,
    });
    plan.add(&job, Ownership::Owned, Strategy::CreateOnce);
}

/// What runs by an answer goes with it, in the pass that finds it: services build on what is stored, and
/// KServe would start their pods by the runtime of before. Only until it is stored to what an answer is
/// one, nothing but what runs tells of it, and must stay as it is until the next one is stored.
fn may_serve<K: TemplateKind>(template: &K, observed: &Observed) -> bool {
    match observed.outcome {
        _ if !lacks_inputs(template) => true,
        Outcome::Answered => true,
        Outcome::Discovered => observed.is_stored(template),
        _ => false,
    }
}

fn serve<K: TemplateKind>(
    plan: &mut Plan,
    namespace: Option<&str>,
    template: &K,
    observed: &Observed,
    image: &Image,
) {
    if !observed.answer.is_given || !observed.serves_runtime || !may_serve(template, observed) {
        return;
    }
    let served = Served {
        template: template.meta().name.as_deref().unwrap_or_default(),
        namespace,
        aim_image_name: &template.common().aim_image_name,
        image: &image.spec.image,
        sources: &observed.answer.sources,
        profile: observed.answer.profile.as_ref(),
        pull_secrets: &observed.runs_with.pull_secrets,
    };
    let (metadata, spec) = (runtime::metadata(served), runtime::spec(served));
    match namespace {
        Some(_) => plan.apply(&ServingRuntime { metadata, spec }),
        None => {
            plan.apply(&ClusterServingRuntime { metadata, spec: ClusterServingRuntimeSpec(spec) })
        }
    }
}
