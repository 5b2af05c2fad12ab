//! Label and field selectors.

mod fields;
mod labels;
#[cfg(test)]
mod tests;

pub use fields::{Fields, Selectable};
pub use labels::Labels;

/// Why a selector is refused, in the words clients know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(crate) String);
