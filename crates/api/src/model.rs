//! Group `model.otterscale.io`: models on their way into a registry.

pub mod artifact;
