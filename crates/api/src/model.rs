//! Group `model.otterscale.io`: models packed as OCI artifacts and served by vLLM.

pub mod artifact;
pub mod model_service;
