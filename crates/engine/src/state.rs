//! The overall state of an object, and how it follows from its components and errors.

mod engine;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use engine::{
    Assessment, Decision, Failure, FailureWords, Manual, Phase, Retry, Told, Verdict, decide,
    decide_manual, evaluate, evaluate_manual,
};

use crate::error::{Category, Error};

/// From best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    Running,
    Ready,
    Progressing,
    Starting,
    Pending,
    Degraded,
    NotAvailable,
    /// Terminal: never derived from an error, only ever stated.
    Failed,
}

impl State {
    /// Higher is better.
    pub fn rank(self) -> u8 {
        match self {
            Self::Running => 7,
            Self::Ready => 6,
            Self::Progressing => 5,
            Self::Starting => 4,
            Self::Pending => 3,
            Self::Degraded => 2,
            Self::NotAvailable => 1,
            Self::Failed => 0,
        }
    }

    pub fn is_error(self) -> bool {
        matches!(self, Self::Degraded | Self::NotAvailable | Self::Failed)
    }

    pub fn is_ready(self) -> bool {
        matches!(self, Self::Running | Self::Ready)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Ready => "Ready",
            Self::Progressing => "Progressing",
            Self::Starting => "Starting",
            Self::Pending => "Pending",
            Self::Degraded => "Degraded",
            Self::NotAvailable => "NotAvailable",
            Self::Failed => "Failed",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Never fails: a word we do not know ranks lowest, so it cannot pass for health.
impl FromStr for State {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "Running" => Self::Running,
            "Ready" => Self::Ready,
            "Progressing" => Self::Progressing,
            "Starting" => Self::Starting,
            "Pending" => Self::Pending,
            "Degraded" => Self::Degraded,
            "NotAvailable" => Self::NotAvailable,
            _ => Self::Failed,
        })
    }
}

/// The item in the worst state; the first of equals.
pub fn worst<T>(items: impl IntoIterator<Item = T>, state: impl Fn(&T) -> State) -> Option<T> {
    select(items, |new, old| state(new).rank() < state(old).rank())
}

/// The item in the best state; the first of equals.
pub fn best<T>(items: impl IntoIterator<Item = T>, state: impl Fn(&T) -> State) -> Option<T> {
    select(items, |new, old| state(new).rank() > state(old).rank())
}

fn select<T>(items: impl IntoIterator<Item = T>, beats: impl Fn(&T, &T) -> bool) -> Option<T> {
    items.into_iter().reduce(|chosen, item| if beats(&item, &chosen) { item } else { chosen })
}

/// The state of a component that states none of its own.
pub fn derive_state(errors: &[Error]) -> State {
    let waits = |error: &Error| error.category == Category::MissingDownstream;
    match errors {
        [] => State::Ready,
        errors if errors.iter().all(waits) => State::Progressing,
        _ => State::Degraded,
    }
}
