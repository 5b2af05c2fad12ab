//! Where a request for a model goes.
//!
//! `body` (a scanned request body) and `endpoint` (who could serve, and how busy each is) →
//! `picker` (pure: configuration, snapshot, request → decision). `scrape` keeps the figures of the
//! endpoints fresh; whoever serves HTTP or ext-proc is an adapter around [`Picker`].

pub mod body;
pub mod config;
pub mod endpoint;
pub mod gateway;
pub mod picker;
pub mod scrape;

mod hash;
mod json;
mod metrics;
mod prefix;
mod prompt;
mod random;
mod scan;
mod score;
mod usage;

pub use body::Body;
pub use config::Config;
pub use endpoint::Endpoint;
pub use picker::{Open, Picked, Picker, Refused, Request};
