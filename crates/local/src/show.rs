//! How objects are shown: tables, discovery and OpenAPI.

mod age;
mod cells;
mod discovery;
mod openapi;
mod path;
mod table;
#[cfg(test)]
mod tests;

pub use discovery::{
    Discovery, aggregated, api_group, api_group_list, api_resource_list, api_versions,
};
pub use openapi::{document as openapi_document, index as openapi_index};
pub use table::{Include, columns, partial_metadata, rows, table};
