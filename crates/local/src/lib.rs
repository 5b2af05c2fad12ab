//! A cluster in a process: a Kubernetes-compatible API with its store on disk.
//!
//! `store` (objects and their history) ← `registry` (verbs, apply, deletion) ← `http` (the router) ←
//! `controllers` (what acts upon objects) and `node` (what runs pods). It serves any custom resource and
//! knows none of ours.

pub mod apply;
pub mod auth;
pub mod builtin;
pub mod controllers;
pub mod crd;
pub mod directories;
pub mod error;
pub mod http;
pub mod node;
pub mod patch;
pub mod protobuf;
pub mod registry;
pub mod selector;
pub mod show;
pub mod store;
pub mod types;
