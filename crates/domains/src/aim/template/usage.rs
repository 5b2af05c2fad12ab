//! Whether a derived template is still of use. It has no owner, so it goes when no service wants it and
//! no server runs by it.

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::aim::service::AimService;
use windlass_api::aim::template::{AimServiceTemplate, TemplateKind};
use windlass_api::foreign::inference_service::InferenceService;
use windlass_api::foreign::serving_runtime::ServingRuntime;
use windlass_engine::fetch::{Fetched, Reader, Selector, get, list, list_now};
use windlass_engine::kind::Kind;
use windlass_engine::object::is_controlled_by;

use crate::aim::derived::{is_derived, is_wanted_by};
use crate::aim::names;

/// A derived template is made for a service that this controller may not have seen yet.
const GRACE: Duration = Duration::from_secs(60);
/// Servers are not watched on behalf of templates.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Who may need a derived template.
#[derive(Clone, Debug)]
pub(super) struct Users {
    services: Fetched<Vec<AimService>>,
    /// Asked for only if no service wants it.
    servers: Fetched<Vec<InferenceService>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    Used,
    /// Nobody wants it; to be looked at again after this time.
    UnusedFor(Duration),
    Unused,
}

/// Nothing for templates that are not derived.
pub(super) async fn fetch<K: TemplateKind>(reader: &dyn Reader, template: &K) -> Option<Users> {
    if !is_derived(template.meta()) {
        return None;
    }
    let namespace = template.meta().namespace.as_deref();
    let name = template.meta().name.as_deref().unwrap_or_default();
    if let Some(user) = known_user(reader, template).await {
        let services = Fetched::Found(vec![user]);
        return Some(Users { services, servers: Fetched::Missing });
    }
    // A cache that is behind, or empty for a while, must not cost a template.
    Some(Users {
        services: list_now(reader, namespace, &Selector::default()).await,
        servers: servers(reader, namespace, name).await,
    })
}

async fn servers(
    reader: &dyn Reader,
    namespace: Option<&str>,
    template: &str,
) -> Fetched<Vec<InferenceService>> {
    if !reader.serves(&Kind::of::<InferenceService>()) {
        return Fetched::Missing;
    }
    let by_template = Selector::label(names::TEMPLATE_LABEL, &names::sanitize(template));
    list_now(reader, namespace, &by_template).await
}

/// Whether anything is served by what a template was told: its runtime is there, or a server.
pub(in crate::aim) async fn is_served(
    reader: &dyn Reader,
    template: &AimServiceTemplate,
) -> Fetched<bool> {
    let metadata = &template.metadata;
    let namespace = metadata.namespace.as_deref();
    let runtimes: Fetched<Vec<ServingRuntime>> = match reader.serves(&Kind::of::<ServingRuntime>())
    {
        true => list_now(reader, namespace, &Selector::default()).await,
        false => Fetched::Missing,
    };
    let servers = servers(reader, namespace, metadata.name.as_deref().unwrap_or_default()).await;
    if let Some(error) = runtimes.error().or(servers.error()) {
        return Fetched::Failed(error.clone());
    }
    let mut runtimes = runtimes.found().into_iter().flatten();
    let has_runtime = runtimes.any(|runtime| is_controlled_by(&runtime.metadata, metadata));
    Fetched::Found(has_runtime || servers.found().is_some_and(|servers| !servers.is_empty()))
}

/// A service that wants the template. It is asked for by its name, so that the template is woken when
/// it changes its mind, and not with each change of any service.
async fn known_user<K: TemplateKind>(reader: &dyn Reader, template: &K) -> Option<AimService> {
    let namespace = template.meta().namespace.as_deref();
    let known: Fetched<Vec<AimService>> = list(reader, namespace, &Selector::default()).await;
    let wanting = known.found()?.iter().filter(|service| wants(service, template));
    let name = wanting.filter_map(|service| service.metadata.name.as_deref()).min()?;
    let user: Fetched<AimService> = get(reader, namespace, name).await;
    user.found().filter(|service| wants(service, template)).cloned()
}

pub(super) fn usage<K: TemplateKind>(template: &K, users: Option<&Users>, now: Timestamp) -> Usage {
    let Some(users) = users else { return Usage::Used };
    let Some(services) = users.services.found() else { return Usage::Used };
    let is_wanted = services.iter().any(|service| wants(service, template));
    if is_wanted || users.servers.error().is_some() {
        return Usage::Used;
    }
    if users.servers.found().is_some_and(|servers| !servers.is_empty()) {
        return Usage::UnusedFor(LOOK_AGAIN);
    }
    let made = template.meta().creation_timestamp.as_ref().map_or(now, |time| time.0);
    let age = Duration::try_from(now.duration_since(made)).unwrap_or_default();
    match GRACE.checked_sub(age).filter(|left| !left.is_zero()) {
        Some(left) => Usage::UnusedFor(left),
        None => Usage::Unused,
    }
}

fn wants<K: TemplateKind>(service: &AimService, template: &K) -> bool {
    let name = template.meta().name.as_deref().unwrap_or_default();
    is_wanted_by(service, name)
}
