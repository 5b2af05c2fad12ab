//! How objects are shown: tables, discovery and OpenAPI.

mod age;
mod cells;
mod discovery;
mod path;
mod table;
#[cfg(test)]
mod tests;

pub use discovery::aggregated;
pub use table::{Include, columns, partial_metadata, rows, table};
