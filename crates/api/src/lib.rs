//! What a user may write: the custom resources as Rust types, and the parts of foreign kinds that
//! Windlass reads or writes.
//!
//! Nothing here performs I/O. Types stay close to the wire: a value that can be stored can be
//! read, and judging it is the domains' work, so that an old object with a bad value still gets a
//! status that says so.

pub mod aim;
pub mod model;
pub mod serving;

pub mod duration;
pub mod foreign;
mod schema;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Every definition that an installation needs, in the order it may be applied.
///
/// Take definitions from here and not from the derived `crd()`: rules that a derive cannot express
/// are added on the way.
pub fn crds() -> Vec<CustomResourceDefinition> {
    [serving::crds(), model::crds(), aim::crds()].into_iter().flatten().collect()
}
