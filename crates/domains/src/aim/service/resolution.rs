//! Which template a service gets: the one it names, else the one its image names, else none; and
//! with overrides one that is like it but for them.

use windlass_api::aim::reference::{ResolvedReference, Scope};
use windlass_api::aim::service::AimService;
use windlass_api::aim::template::{
    AimClusterServiceTemplate, AimServiceTemplate, AimServiceTemplateSpec, ModelSource, Phase,
    ProfileMetadata, TemplateSpec, TemplateStatus,
};
use windlass_engine::error::Error;
use windlass_engine::fetch::Fetched;

use super::derivation;
use super::fetch::Templates;
use crate::aim::catalogue::Images;
use crate::aim::derived::is_derived;
use crate::aim::template::is_hopeless;

/// What came of looking for a template.
#[derive(Clone, Debug)]
pub(super) struct Resolution {
    /// The template that service or image name; with overrides it is only the model of the one that
    /// is used.
    pub(super) base: Option<String>,
    pub(super) outcome: Outcome,
    /// A derived template that is not as the service would have it, and will not come to an answer.
    pub(super) outdated: Option<Outdated>,
}

#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Found(Box<Template>),
    Unmade(Box<Unmade>),
    Missing,
}

#[derive(Clone, Debug)]
pub(super) enum Outdated {
    /// It has to go so that it can be made anew.
    Goes(Box<AimServiceTemplate>),
    /// Another service wants it as it is, or something is served by what it was told once.
    Stays,
}

/// A template of either kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template {
    pub(super) name: String,
    /// `None` if it belongs to the cluster.
    pub(super) namespace: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) spec: TemplateSpec,
    pub(super) status: TemplateStatus,
}

/// A template that a service with overrides needs and that does not exist yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unmade {
    pub(super) name: String,
    pub(super) spec: AimServiceTemplateSpec,
    /// Of the template that it is made from.
    pub(super) base_namespace: Option<String>,
}

/// The template that the service itself names.
pub(super) fn named_template(service: &AimService) -> Option<&str> {
    given(service.spec.template_ref.as_deref())
}

pub(super) fn base_name(service: &AimService, images: &Images) -> Result<Option<String>, Error> {
    if let Some(name) = named_template(service) {
        return Ok(Some(name.to_owned()));
    }
    if let Some(error) = images.namespaced.error() {
        return Err(error.clone());
    }
    match (images.default_template(), images.cluster.error()) {
        (Some(name), _) => Ok(Some(name.to_owned())),
        (None, Some(error)) => Err(error.clone()),
        (None, None) => Ok(None),
    }
}

/// The runtime config that counts: what the service leaves open is its template's to say.
pub(super) fn config_name<'a>(
    service: &'a AimService,
    template: Option<&'a TemplateSpec>,
) -> Option<&'a str> {
    let of_template = || given(template?.runtime_config_name.as_deref());
    given(service.spec.runtime_config_name.as_deref()).or_else(of_template)
}

fn given(name: Option<&str>) -> Option<&str> {
    name.map(str::trim).filter(|name| !name.is_empty())
}

pub(super) fn resolve(service: &AimService, answers: &Templates) -> Result<Resolution, Error> {
    let base = base_name(service, &answers.images)?;
    let outcome = match (&base, &service.spec.overrides) {
        (None, _) => Outcome::Missing,
        (Some(_), None) => match base_template(answers)? {
            Some((template, _)) => Outcome::found(template),
            None => Outcome::Missing,
        },
        (Some(base), Some(_)) => derived(service, base, answers)?,
    };
    let outdated = outdated(service, answers).map(|existing| {
        let may_be_served = !matches!(answers.is_served, Fetched::Found(false));
        match may_be_served || is_wanted_by_another(service, base.as_deref(), answers, existing) {
            true => Outdated::Stays,
            false => Outdated::Goes(Box::new(existing.clone())),
        }
    });
    Ok(Resolution { base, outcome, outdated })
}

/// Whether the derived template has the second name: it had it before, or the first is that of one
/// which was made for another base, by the image or the parameters in it. What serves already, what
/// somebody wrote, and what has no base any more is used as it is.
pub(super) fn goes_by(service: &AimService, answers: &Templates, second: &str) -> bool {
    let resolved = found_before(service);
    if resolved == Some(second) {
        return true;
    }
    let existing = answers.derived.found().filter(|found| is_derived(&found.metadata));
    let existing = existing.filter(|found| resolved != found.metadata.name.as_deref());
    let base = base_template(answers).ok().flatten();
    existing.zip(base).is_some_and(|(existing, (_, model))| {
        let wanted = derivation::derive(service, &model);
        !derivation::is_for_the_same(&existing.spec.common, &wanted.common)
    })
}

fn is_found(resolved: &ResolvedReference) -> bool {
    let scope = resolved.scope.as_deref();
    [Scope::Namespace, Scope::Cluster].iter().any(|found| scope == Some(found.as_str()))
}

/// The template of the namespace that the service reports to have found.
fn found_before(service: &AimService) -> Option<&str> {
    let resolved = service.status.as_ref()?.resolved_template.as_ref()?;
    let found = resolved.scope.as_deref() == Some(Scope::Namespace.as_str());
    resolved.name.as_deref().filter(|_| found)
}

/// The derived template, where it is not as the service would have it by now and, as it is, nothing will
/// come of it. A service whose pull secrets were wrong can be mended only so. What has an answer that
/// counts, or may get one, stays.
pub(super) fn outdated<'a>(
    service: &AimService,
    answers: &'a Templates,
) -> Option<&'a AimServiceTemplate> {
    let existing = answers.derived.found()?;
    let metadata = &existing.metadata;
    if !is_derived(metadata)
        || metadata.deletion_timestamp.is_some()
        || !is_hopeless(existing.status.as_ref())
    {
        return None;
    }
    let (_, model) = base_template(answers).ok()??;
    let wanted = derivation::derive(service, &model);
    (!derivation::is_same(&existing.spec, &wanted)).then_some(existing)
}

/// Whether another service wants the template as it is, or that is unknown. One that would have it
/// otherwise too does not keep it: whichever makes it anew is then the one that wants it so.
fn is_wanted_by_another(
    service: &AimService,
    base: Option<&str>,
    answers: &Templates,
    existing: &AimServiceTemplate,
) -> bool {
    let Some(services) = answers.services.found() else { return true };
    let Ok(Some((_, model))) = base_template(answers) else { return true };
    let mut others = services.iter().filter(|other| {
        other.metadata.name != service.metadata.name && other.metadata.deletion_timestamp.is_none()
    });
    let name = existing.metadata.name.as_deref();
    let would_make_it = |other: &AimService| {
        derivation::is_same(&existing.spec, &derivation::derive(other, &model))
    };
    others.any(|other| {
        let status = other.status.as_ref();
        let resolved = status.and_then(|status| status.resolved_template.as_ref());
        let is_resolved = resolved.is_some_and(|resolved| resolved.name.as_deref() == name);
        let image = &existing.spec.common.aim_image_name;
        match (named_template(other), &other.spec.overrides) {
            (named, _) if named.is_some() && named == name => true,
            (_, None) => is_resolved,
            (named, Some(_)) if named.is_some() && named == base => would_make_it(other),
            // It may have found one that is as its own would be.
            (Some(_), Some(_)) => is_resolved,
            // Its base is the image's to say, which is not asked on behalf of another. What it has found
            // tells as much.
            (None, Some(_)) => {
                let has_found = resolved.is_some_and(is_found);
                let may_find = !has_found && other.spec.aim_image_name == *image;
                (is_resolved || may_find) && would_make_it(other)
            }
        }
    })
}

fn derived(service: &AimService, base: &str, answers: &Templates) -> Result<Outcome, Error> {
    // However it runs by now: it may be shared, and what it says may have been served for long. One that
    // is outdated counts until it is gone.
    if let Some(existing) = read(&answers.derived)? {
        return Ok(Outcome::found(existing.into()));
    }
    let Some((model, model_spec)) = base_template(answers)? else {
        return Ok(Outcome::Missing);
    };
    let spec = derivation::derive(service, &model_spec);
    let own = read(&answers.all_own)?.into_iter().flatten();
    let own = own.filter(|template| derivation::is_same(&template.spec, &spec));
    if let Some(template) = first_choice(service, base, own.map(Template::from)) {
        return Ok(Outcome::found(template));
    }
    let cluster = read(&answers.all_cluster)?.into_iter().flatten();
    let cluster = cluster.filter(|template| derivation::is_same_common(&template.spec, &spec));
    Ok(match first_choice(service, base, cluster.map(Template::from)) {
        Some(template) => Outcome::found(template),
        None => {
            let base_namespace = model.namespace;
            let name = answers.derived_name.clone();
            Outcome::Unmade(Box::new(Unmade { name, spec, base_namespace }))
        }
    })
}

/// Of templates that are all the same the one that was chosen before, else the base, else the first by
/// name: one more that is the same must not move a service that runs.
fn first_choice(
    service: &AimService,
    base: &str,
    templates: impl Iterator<Item = Template>,
) -> Option<Template> {
    let before = service.status.as_ref().and_then(|status| status.resolved_template.as_ref());
    let before = before.and_then(|template| template.name.as_deref());
    templates.min_by_key(|template| {
        let name = template.name.clone();
        (before != Some(name.as_str()), name != base, name)
    })
}

/// With its whole spec, of which one of the cluster has only the common part.
fn base_template(answers: &Templates) -> Result<Option<(Template, AimServiceTemplateSpec)>, Error> {
    if let Some(own) = read(&answers.own_base)? {
        return Ok(Some((own.into(), own.spec.clone())));
    }
    Ok(read(&answers.cluster_base)?.map(|cluster| {
        let common = cluster.spec.common.clone();
        (cluster.into(), AimServiceTemplateSpec { common, ..Default::default() })
    }))
}

fn read<T>(answer: &Fetched<T>) -> Result<Option<&T>, Error> {
    match answer {
        Fetched::Found(value) => Ok(Some(value)),
        Fetched::Missing => Ok(None),
        Fetched::Failed(error) => Err(error.clone()),
    }
}

impl Outcome {
    fn found(template: Template) -> Self {
        Self::Found(Box::new(template))
    }
}

impl Resolution {
    pub(super) fn template(&self) -> Option<&Template> {
        match &self.outcome {
            Outcome::Found(template) => Some(template),
            Outcome::Unmade(_) | Outcome::Missing => None,
        }
    }

    /// What the template says or will say, and the namespace whose images count for it: that of the
    /// base as long as there is only that.
    pub(super) fn spec(&self) -> Option<(&TemplateSpec, Option<&str>)> {
        match &self.outcome {
            Outcome::Found(template) => Some((&template.spec, template.namespace.as_deref())),
            Outcome::Unmade(unmade) => {
                Some((&unmade.spec.common, unmade.base_namespace.as_deref()))
            }
            Outcome::Missing => None,
        }
    }

    /// As the service reports it. One that does not exist is reported too, by the name under which
    /// it is missed.
    pub(super) fn reference(&self, service: &AimService) -> ResolvedReference {
        match &self.outcome {
            Outcome::Found(template) => template.reference(),
            Outcome::Unmade(unmade) => ResolvedReference {
                namespace: service.metadata.namespace.clone(),
                ..unknown(&unmade.name)
            },
            Outcome::Missing => match &self.base {
                Some(base) => unknown(base),
                None => unknown(missed_name(service)),
            },
        }
    }
}

/// What is reported where nothing could be found out.
pub(super) fn unresolved(service: &AimService) -> ResolvedReference {
    unknown(missed_name(service))
}

fn missed_name(service: &AimService) -> &str {
    let own_name = || service.metadata.name.as_deref().unwrap_or_default();
    named_template(service).unwrap_or_else(own_name)
}

fn unknown(name: &str) -> ResolvedReference {
    ResolvedReference {
        name: Some(name.to_owned()),
        scope: Some(Scope::Unknown.as_str().to_owned()),
        kind: Some("AIMServiceTemplate".to_owned()),
        ..Default::default()
    }
}

impl Template {
    pub(super) fn is(&self, phase: Phase) -> bool {
        self.status.status.as_deref() == Some(phase.as_str())
    }

    /// The first that can be fetched at all.
    pub(super) fn primary_source(&self) -> Option<&ModelSource> {
        self.status.model_sources.iter().find(|source| !source.source_uri.is_empty())
    }

    pub(super) fn profile(&self) -> Option<&ProfileMetadata> {
        self.status.profile.as_ref()?.metadata.as_ref()
    }

    fn reference(&self) -> ResolvedReference {
        let (scope, kind) = match self.namespace {
            Some(_) => (Scope::Namespace, "AIMServiceTemplate"),
            None => (Scope::Cluster, "AIMClusterServiceTemplate"),
        };
        ResolvedReference {
            name: Some(self.name.clone()),
            namespace: self.namespace.clone(),
            scope: Some(scope.as_str().to_owned()),
            kind: Some(kind.to_owned()),
            uid: self.uid.clone(),
        }
    }
}

impl From<&AimServiceTemplate> for Template {
    fn from(template: &AimServiceTemplate) -> Self {
        let metadata = &template.metadata;
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            namespace: Some(metadata.namespace.clone().unwrap_or_default()),
            uid: metadata.uid.clone(),
            spec: template.spec.common.clone(),
            status: template.status.clone().unwrap_or_default(),
        }
    }
}

impl From<&AimClusterServiceTemplate> for Template {
    fn from(template: &AimClusterServiceTemplate) -> Self {
        Self {
            name: template.metadata.name.clone().unwrap_or_default(),
            namespace: None,
            uid: template.metadata.uid.clone(),
            spec: template.spec.common.clone(),
            status: template.status.clone().unwrap_or_default(),
        }
    }
}
