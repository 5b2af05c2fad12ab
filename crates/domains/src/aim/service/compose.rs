//! What the answers mean for a service.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::aim::service::AimService;
use windlass_api::aim::template::{ModelSource, Phase};
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::foreign::inference_service::InferenceService;
use windlass_engine::error::Error;
use windlass_engine::fetch::Fetched;
use windlass_engine::object::{controller, is_controlled_by};

use super::fetch::Answers;
use super::resolution::{self, Resolution, Template};
use super::routing::{self, Routing};
use crate::aim::Settings;
use crate::aim::catalogue::{Image, Images};
use crate::aim::runtime_config::Resolved;

/// Everything that plan, health and status speak of.
#[derive(Clone, Debug)]
pub struct Observed {
    /// What could not be read of all that the children are made of. Then nothing is changed: what is
    /// seen may not be what is there.
    pub(super) unread: Vec<Error>,
    /// `None` if it could not be found out.
    pub(super) resolution: Option<Resolution>,
    pub(super) image: Catalogued,
    pub(super) config: Resolved,
    /// `None` while it is disabled.
    pub(super) routing: Option<Routing>,
    pub(super) inference_service: Child<InferenceService>,
    pub(super) route: Child<HttpRoute>,
    /// Whether the service has a route that is not to be there any more.
    pub(super) stray_route: bool,
}

/// The image of the template.
#[derive(Clone, Debug)]
pub(super) enum Catalogued {
    Found(Box<Image>),
    /// In these words.
    Missing(String),
    /// Not looked for, or not read.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) enum Child<T> {
    /// The API does not know the kind.
    Unserved,
    Absent,
    /// It may or may not be there. As we write it under its one name whatever it holds, that halts
    /// nothing; but nothing is known of it.
    Unread(Error),
    Present(T),
}

/// What an InferenceService is made of, beside the service itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served<'a> {
    pub(super) template: &'a Template,
    pub(super) source: &'a ModelSource,
}

pub(super) fn compose(settings: &Settings, service: &AimService, answers: Answers) -> Observed {
    let mut unread = Vec::new();
    let resolution = match resolution::resolve(service, &answers.templates) {
        Ok(resolution) => Some(resolution),
        Err(error) => {
            unread.push(error);
            None
        }
    };
    let image = catalogued(resolution.as_ref(), answers.images.as_ref(), &mut unread);
    let config = answers.configs.resolve(settings.resolution);
    if let Resolved::Failed(error) = &config {
        unread.push(error.clone());
    }
    let inference_service = child(service, answers.inference_service, |found| &found.metadata);
    let route = child(service, answers.route, |found| &found.metadata);
    let of_config = config.config().and_then(|config| config.spec.common.routing.as_ref());
    let has_template = resolution.as_ref().is_some_and(|found| found.template().is_some());
    let routing = routing::routing(service, of_config, has_template);
    let owned =
        route.present().is_some_and(|route| is_controlled_by(&route.metadata, &service.metadata));
    let stray_route = owned
        && !routing.as_ref().is_some_and(Routing::is_complete)
        && knows_routing(service, resolution.as_ref(), &config, routing.is_some());
    Observed { unread, resolution, image, config, routing, inference_service, route, stray_route }
}

/// Whether there is to be no route because somebody says so, and not because it is unknown who would
/// say. What is missing to routing that is enabled may be the runtime config's to say.
fn knows_routing(
    service: &AimService,
    resolution: Option<&Resolution>,
    config: &Resolved,
    enabled: bool,
) -> bool {
    let names_config = resolution::config_name(service, None).is_some();
    let has_template = resolution.is_some_and(|resolution| resolution.spec().is_some());
    let has_config = matches!(config, Resolved::Found(_) | Resolved::Nothing);
    let says_so_itself = service.spec.routing.is_some() && !enabled;
    says_so_itself || (has_config && (names_config || has_template))
}

fn catalogued(
    resolution: Option<&Resolution>,
    images: Option<&Images>,
    unread: &mut Vec<Error>,
) -> Catalogued {
    let spec = resolution.and_then(Resolution::spec);
    let Some(((spec, namespace), images)) = spec.zip(images) else { return Catalogued::Unknown };
    let name = &spec.aim_image_name;
    match (images.resolve(), namespace) {
        (Ok(Some(image)), _) => Catalogued::Found(Box::new(image)),
        (Ok(None), Some(namespace)) => Catalogued::Missing(format!(
            "AIMImage \"{name}\" not found in namespace \"{namespace}\""
        )),
        (Ok(None), None) => Catalogued::Missing(format!("AIMClusterImage \"{name}\" not found")),
        (Err(error), _) => {
            unread.push(error);
            Catalogued::Unknown
        }
    }
}

/// What another service of the same name left behind, or what somebody else made, is not this
/// service's; and of what is about to go only the one that comes after it counts.
fn child<T>(
    service: &AimService,
    answer: Option<Fetched<T>>,
    metadata: impl Fn(&T) -> &ObjectMeta,
) -> Child<T> {
    let counts = |found: &T| {
        let metadata = metadata(found);
        let is_ours =
            controller(metadata).is_none() || is_controlled_by(metadata, &service.metadata);
        is_ours && metadata.deletion_timestamp.is_none()
    };
    match answer {
        None => Child::Unserved,
        Some(Fetched::Found(found)) if counts(&found) => Child::Present(found),
        Some(Fetched::Found(_) | Fetched::Missing) => Child::Absent,
        Some(Fetched::Failed(error)) => Child::Unread(error),
    }
}

impl<T> Child<T> {
    pub(super) fn present(&self) -> Option<&T> {
        match self {
            Self::Present(child) => Some(child),
            Self::Unserved | Self::Absent | Self::Unread(_) => None,
        }
    }

    pub(super) fn is_unread(&self) -> bool {
        matches!(self, Self::Unread(_))
    }
}

impl Observed {
    pub(super) fn template(&self) -> Option<&Template> {
        self.resolution.as_ref()?.template()
    }

    pub(super) fn image(&self) -> Option<&Image> {
        match &self.image {
            Catalogued::Found(image) => Some(image),
            Catalogued::Missing(_) | Catalogued::Unknown => None,
        }
    }

    /// `None` as long as something is missing without which no InferenceService makes sense.
    pub(super) fn served(&self) -> Option<Served<'_>> {
        let template = self.template().filter(|template| template.is(Phase::Available))?;
        let has_config = matches!(self.config, Resolved::Found(_) | Resolved::Nothing);
        let source = template.primary_source().filter(|_| has_config && self.unread.is_empty())?;
        Some(Served { template, source })
    }
}
