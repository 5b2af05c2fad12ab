//! placeholder

pub mod conditions;
pub mod error;
pub mod health;
pub mod names;
pub mod state;
