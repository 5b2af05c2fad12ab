//! How objects are shown: tables, discovery and OpenAPI.

mod age;
mod cells;
pub mod discovery;
pub mod openapi;
mod path;
mod table;
#[cfg(test)]
mod tests;

pub use table::{Include, columns, partial_metadata, rows, table};
