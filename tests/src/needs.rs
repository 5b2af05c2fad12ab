//! What a scenario needs of a cluster, and what becomes of it where that is missing.
//!
//! A scenario that cannot run says so aloud and in the file that `WINDLASS_TEST_NOTES` names, by which
//! `cargo xtask test` counts it as what it is: not passed.

use std::path::PathBuf;

pub use crate::note::note;

/// Where scenarios run. Their source is built once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    RealApi,
    Embedded,
}

impl Tier {
    /// By the name of the test binary.
    pub const fn of(binary: &str) -> Tier {
        match binary.as_bytes() {
            b"embedded" => Tier::Embedded,
            _ => Tier::RealApi,
        }
    }
}

/// What not every cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// KServe's own controller, with its webhooks.
    Kserve,
    /// The real kubectl, where the scenario is about it or types what no client has a call for.
    Kubectl,
}

impl Need {
    /// Why the embedded API cannot have it; `None` if it can.
    fn missing(self) -> Option<String> {
        match self {
            Need::Kserve => Some("waits for webhooks, which KServe's controller is".into()),
            Need::Kubectl => xtask::cluster::find_kubectl().err().map(|error| format!("{error:#}")),
        }
    }
}

/// Whether this tier can have all of it; says aloud what it cannot.
pub(crate) fn met(tier: Tier, needs: &[Need]) -> bool {
    // The real API server has what it needs or is missing as a whole.
    let missing = match tier {
        Tier::RealApi => None,
        Tier::Embedded => needs.iter().find_map(|need| need.missing()),
    };
    missing.as_deref().map(note).is_none()
}

/// The real kubectl, for tests beside the scenarios; says aloud that it is missing.
pub fn kubectl() -> Option<PathBuf> {
    match xtask::cluster::find_kubectl() {
        Ok(found) => Some(found),
        Err(reason) if xtask::test::required("real-api") => panic!("{reason:#}"),
        Err(reason) => {
            note(&format!("{reason:#}"));
            None
        }
    }
}
