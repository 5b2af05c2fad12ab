//! AIM: a catalogue of images, templates that say how one of them is served, and services that ask
//! for it.
//!
//! ```text
//! image ─ template ─ discovery Job ─ model sources, profile ─ ServingRuntime
//!                                          └──── service ─ InferenceService, HTTPRoute
//! ```

pub mod service;
pub mod template;

mod catalogue;
mod derived;
mod runtime_config;

mod discovery_log;
mod names;
mod route_path;
mod settings;

pub use settings::{DEFAULT_DISCOVERY_PATIENCE, DEFAULT_OPERATOR_NAMESPACE, Resolution, Settings};
