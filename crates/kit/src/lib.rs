//! Models as OCI artifacts: what stands in a Kitfile becomes layers, a config and a manifest.
//!
//! `kitfile` (what the user wrote) and `context` (which files there are) → `layer` (the bytes of each
//! layer, known before they are read) → `manifest` (ModelKit or ModelPack). Equal input gives equal
//! bytes, whoever packs it and when.

pub mod classify;
pub mod context;
pub mod digest;
pub mod digests;
pub mod hub;
pub mod ignore;
pub mod kitfile;
pub mod layer;
pub mod lock;
pub mod manifest;
pub mod pack;
pub mod pull;
pub mod push;
pub mod reference;
pub mod registry;
pub mod remote;
pub mod store;
pub mod tar;
pub mod unpack;
pub mod verify;
pub mod web;
pub mod wheel;

mod fetch;
mod json;
mod left_over;
mod whole;

pub use digest::Digest;
pub use kitfile::Kitfile;
pub use reference::Reference;
