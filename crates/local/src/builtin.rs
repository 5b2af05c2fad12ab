//! The kinds that are served without a definition: which they are, and how their objects are read,
//! filled in, changed and checked on the way to the store.

mod resources;

pub use resources::{RESOURCES, Resource, Storage, Subresource, resource};
