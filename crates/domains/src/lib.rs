//! What each kind means: how an object of it becomes children, health and status.
//!
//! A domain implements the engine's contract on a small struct that holds its settings. Its steps
//! stand in files of their own, in the order in which data flows: `fetch` reads, `compose` judges,
//! `plan` and `status` speak; only `fetch` waits.

pub mod aim;
pub mod artifact;
pub mod inference_service;
pub mod model_service;

mod http_route;
mod own_image;
