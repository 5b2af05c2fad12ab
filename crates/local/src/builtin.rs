//! The kinds that are served without a definition: which they are, and how their objects are read,
//! filled in, changed and checked on the way to the store.
//!
//! The order is [`decode`], [`default`], [`on_create`] or [`on_update`], [`validate`].

pub(crate) mod causes;
mod create;
mod decode;
mod defaults;
pub mod fields;
pub(crate) mod object;
mod qos;
pub mod quantity;
mod resources;
pub mod time;
mod unsupported;
mod validate;
mod warnings;

#[cfg(test)]
mod tests;

pub(crate) use create::is_open;
pub use create::{
    Context, Error, account_name, grace_period, on_create, on_status_update, on_update,
    wants_address,
};
pub use decode::{Decoded, Unfit, decode, decode_kind, decode_metadata};
pub(crate) use decode::{printed, zero};
pub use defaults::default;
pub use resources::{RESOURCES, Resource, Storage, Subresource, UNMADE, resource};
pub use validate::{metadata as validate_metadata, validate};
pub(crate) use validate::{refused_growth, selectors};
pub use warnings::warnings;
