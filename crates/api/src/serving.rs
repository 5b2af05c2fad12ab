//! Group `serving.zerfoo.com`: a model served with autoscaling and a canary.

pub mod zerfoo_inference_service;

/// The API group; also the domain of the labels and annotations.
pub const GROUP: &str = "serving.zerfoo.com";
