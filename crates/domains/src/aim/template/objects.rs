//! The children of a template.

pub(super) mod job;
pub(super) mod runtime;
