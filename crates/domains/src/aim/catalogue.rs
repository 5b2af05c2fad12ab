//! The images of the catalogue: those of a namespace before those of the cluster.

use windlass_api::aim::image::{AimClusterImage, AimImage, AimImageSpec};
use windlass_api::aim::reference::{ResolvedReference, Scope};
use windlass_engine::error::Error;
use windlass_engine::fetch::{Fetched, Reader, get};

/// Answers of the API as they came.
#[derive(Clone, Debug)]
pub(super) struct Images {
    /// Not asked for on behalf of what belongs to the cluster.
    pub(super) namespaced: Fetched<AimImage>,
    pub(super) cluster: Fetched<AimClusterImage>,
}

/// An entry of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Image {
    pub(super) spec: AimImageSpec,
    pub(super) reference: ResolvedReference,
}

/// Without a namespace only the cluster's images count.
pub(super) async fn fetch(reader: &dyn Reader, namespace: Option<&str>, name: &str) -> Images {
    if name.is_empty() {
        return Images { namespaced: Fetched::Missing, cluster: Fetched::Missing };
    }
    let namespaced = match namespace {
        Some(_) => get(reader, namespace, name).await,
        None => Fetched::Missing,
    };
    Images { namespaced, cluster: get(reader, None, name).await }
}

impl Images {
    /// The image that counts; nothing if there is none.
    pub(super) fn resolve(&self) -> Result<Option<Image>, Error> {
        if let Fetched::Failed(error) = &self.namespaced {
            return Err(error.clone());
        }
        if let Some(image) = self.namespaced.found() {
            let reference = ResolvedReference {
                name: image.metadata.name.clone(),
                namespace: image.metadata.namespace.clone(),
                scope: Some(Scope::Namespace.as_str().to_owned()),
                kind: Some("AIMImage".to_owned()),
                uid: image.metadata.uid.clone(),
            };
            return Ok(Some(Image { spec: image.spec.clone(), reference }));
        }
        match &self.cluster {
            Fetched::Failed(error) => Err(error.clone()),
            Fetched::Missing => Ok(None),
            Fetched::Found(image) => {
                let reference = ResolvedReference {
                    name: image.metadata.name.clone(),
                    namespace: None,
                    scope: Some(Scope::Cluster.as_str().to_owned()),
                    kind: Some("AIMClusterImage".to_owned()),
                    uid: image.metadata.uid.clone(),
                };
                Ok(Some(Image { spec: image.spec.0.clone(), reference }))
            }
        }
    }

    /// The template for services that name none. An image that names none leaves it to the cluster's.
    pub(super) fn default_template(&self) -> Option<&str> {
        let of = |spec: &AimImageSpec| !spec.default_service_template.trim().is_empty();
        let own = self.namespaced.found().map(|image| &image.spec);
        let cluster = self.cluster.found().map(|image| &image.spec.0);
        let spec = own.filter(|spec| of(spec)).or(cluster.filter(|spec| of(spec)))?;
        Some(spec.default_service_template.trim())
    }
}

#[cfg(test)]
mod tests;
