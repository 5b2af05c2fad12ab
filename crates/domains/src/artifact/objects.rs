//! The children, one file each.

pub(super) mod claim;
pub(super) mod job;
mod script;

#[cfg(test)]
mod tests;
