//! placeholder

pub mod conditions;
pub mod error;
pub mod events;
pub mod health;
pub mod labels;
pub mod names;
pub mod state;
