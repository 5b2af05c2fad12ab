//! The children as struct literals, one function per object.

pub(super) mod autoscaler;
pub(super) mod deployment;
pub(super) mod route;
pub(super) mod service;

#[cfg(test)]
mod tests;
