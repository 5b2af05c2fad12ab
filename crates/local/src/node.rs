//! The node: pods as processes of this machine.

pub mod bubblewrap;
pub mod command;
pub mod environment;
pub mod images;
pub mod logs;
pub mod places;
pub mod pod;
pub mod record;
pub mod sources;
pub mod translate;
pub mod volumes;
