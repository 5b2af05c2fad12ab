//! Group `aim.silogen.ai`: models served from a catalogue of images, by templates of how to serve
//! them.
//!
//! Most kinds come in two scopes that share their types; what only the namespaced one has is added
//! by its own spec. The definitions restrict no manifest that has been accepted so far.
//!
//! Fields that the schema requires are still read where they are missing, as empty: no definition
//! requires `spec`.

pub mod cache;
pub mod image;
pub mod runtime_config;
pub mod service;
pub mod template;

pub mod parameters;
pub mod reference;

mod absent;
mod fields;

#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::schema;

/// The API group; also the domain of the labels.
pub const GROUP: &str = "aim.silogen.ai";

/// Name of the runtime config that counts where none is named.
pub const DEFAULT_RUNTIME_CONFIG: &str = "default";

/// The definitions of the group.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        runtime_config::cluster_crd(),
        runtime_config::crd(),
        image::cluster_crd(),
        image::crd(),
        template::cluster_crd(),
        template::crd(),
        service::crd(),
        cache::template_cache_crd(),
        cache::model_cache_crd(),
    ]
}

/// A derived definition as it is to be installed. Names are free, as they have always been.
fn finish_crd(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    crd.spec.names.categories = Some(["aim", "all"].map(str::to_owned).to_vec());
    schema::finish_crd(crd, None, |root| root.required = None)
}
