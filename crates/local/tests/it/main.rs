//! The API as its clients see it, asked as a tower service: no sockets but in `tls`.
//!
//! - `pods`: real processes of a node
//! - `objects`: create, update, patch and read single objects
//! - `lists`: pages, versions and selectors
//! - `logs`: what containers said
//! - `watches`: events, bookmarks and what has fallen off
//! - `deletion`: finalizers, policies, owners, namespaces
//! - `custom`: definitions and their objects
//! - `rights`: roles and who holds them
//! - `workloads`: what acts upon Deployments, ReplicaSets and Jobs
//! - `faults`: what no client should send
//! - `load`: what is made to take long
//! - `requests`: any request at all
//! - `tls`: the listener
//! - `services`, `autoscaling`, `claims`, `binding`, `kserve`: what controllers do about objects

// All of this runs only inside tests, where failing loudly is the point.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod api;
mod autoscaling;
mod binding;
mod claims;
mod controlled;
mod custom;
mod deletion;
mod faults;
mod kserve;
mod lists;
mod load;
mod logs;
mod objects;
mod pods;
mod requests;
mod rights;
mod services;
mod tls;
mod watches;
mod workloads;
