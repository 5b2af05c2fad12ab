//! How any object is reconciled; knows no domain noun.
//!
//! Data flows one way: API object → [`fetch`] (the only reads) → compose → [`plan`] (pure) →
//! [`state`] → [`apply`] (the only writes) → [`conditions`] and status (one patch, only if changed) →
//! [`report`], [`metrics`]. A kind says what it means by implementing [`domain::Domain`];
//! [`controller`] runs it.

pub mod domain;
pub mod pipeline;

pub mod apply;
pub mod conditions;
pub mod events;
pub mod fetch;
pub mod health;
pub mod plan;
pub mod report;
pub mod runtime_config;
pub mod state;
pub mod status;

pub mod compare;
mod finalize;

pub mod apis;
mod asked;
pub mod cache;
pub mod controller;
pub mod lease;
mod looked;
pub mod metrics;
pub mod queue;
pub mod reader;
pub mod watch;

pub mod bytes;
pub mod error;
pub mod gpu;
pub mod image;
pub mod kind;
pub mod labels;
pub mod names;
pub mod object;
pub mod quantity;
