//! The API as its clients see it, asked as a tower service: no sockets but in `tls`.
//!
//! - `objects`: create, update, patch and read single objects
//! - `lists`: pages, versions and selectors
//! - `watches`: events, bookmarks and what has fallen off
//! - `deletion`: finalizers, policies, owners, namespaces
//! - `custom`: definitions and their objects
//! - `rights`: roles and who holds them
//! - `faults`: what no client should send
//! - `tls`: the listener

mod api;
mod custom;
mod deletion;
mod faults;
mod lists;
mod objects;
mod rights;
mod tls;
mod watches;
