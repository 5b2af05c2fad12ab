//! A model from its file to its answers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

mod engine;
mod files;
mod network;
mod plain;
mod tiny;

use std::sync::Arc;

use windlass_inference::Model;

fn model() -> Arc<Model> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    tiny::Tiny::default().write(&path);
    Arc::new(Model::load(&path).unwrap())
}
