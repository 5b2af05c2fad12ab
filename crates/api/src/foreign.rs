//! Kinds of other projects: only the fields that Windlass writes or reads, which is also what
//! server-side apply wants to be sent.

pub mod destination_rule;
pub mod http_route;
pub mod inference_pool;
pub mod inference_service;
pub mod pod_monitor;
pub mod service_monitor;
pub mod serving_runtime;
