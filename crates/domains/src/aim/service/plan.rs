//! From meaning to changes: what to apply, what to delete, when to look again.

use std::time::Duration;

use windlass_api::aim::service::AimService;
use windlass_api::foreign::http_route::HttpRoute;
use windlass_engine::plan::{Ownership, Plan, Strategy, When};

use super::compose::{Child, Observed};
use super::objects::derived_template::derived_template;
use super::objects::http_route::http_route;
use super::objects::inference_service::inference_service;
use super::resolution::{Outcome, Outdated};

/// Not everything that keeps us from reading goes by itself, and no event tells of its end.
const READ_AGAIN: Duration = Duration::from_secs(30);

/// No event tells that another service has no use for a template any more.
const FREE_AGAIN: Duration = Duration::from_secs(30);

pub(super) fn plan(service: &AimService, observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    if !observed.unread.is_empty() {
        plan.requeue_after(READ_AGAIN);
        return plan;
    }
    if observed.inference_service.is_unread() || observed.route.is_unread() {
        plan.requeue_after(READ_AGAIN);
    }
    let namespace = service.metadata.namespace.as_deref();
    let name = service.metadata.name.as_deref().unwrap_or_default();
    if let Some(Outcome::Unmade(unmade)) = observed.resolution.as_ref().map(|found| &found.outcome)
    {
        let template = derived_template(namespace, &unmade.name, &unmade.spec);
        plan.add(&template, Ownership::Shared, Strategy::CreateOnce);
    }
    match observed.resolution.as_ref().and_then(|found| found.outdated.as_ref()) {
        // Its end wakes the service, which then makes it anew.
        Some(Outdated::Goes(template)) => plan.delete_known(&**template, When::BeforeApply),
        Some(Outdated::Stays) => plan.requeue_after(FREE_AGAIN),
        None => {}
    }
    apply_children(&mut plan, service, observed);
    if observed.stray_route {
        plan.delete::<HttpRoute>(namespace, name, When::AfterApply);
    }
    plan
}

/// What exists stays as it is where something is missing that it was made of.
fn apply_children(plan: &mut Plan, service: &AimService, observed: &Observed) {
    let Some(served) = observed.served() else { return };
    if !matches!(observed.inference_service, Child::Unserved) {
        plan.apply(&inference_service(service, served, observed));
    }
    let Some(routing) = &observed.routing else { return };
    if let (Some(gateway), Ok(path)) = (&routing.gateway, &routing.path)
        && !matches!(observed.route, Child::Unserved)
    {
        plan.apply(&http_route(service, served, gateway, path));
    }
}
