//! The node: pods as processes of this machine.

pub mod addresses;
pub mod bubblewrap;
pub mod command;
pub mod environment;
pub mod events;
pub mod images;
pub mod limits;
pub mod logs;
pub mod places;
pub mod pod;
pub mod probes;
pub mod process;
pub mod processes;
pub mod record;
pub mod recovery;
pub mod services;
pub mod sources;
pub mod translate;
pub mod volumes;
