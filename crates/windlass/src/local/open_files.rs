//! How many files this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for thousands of clients. There is no more than that because programs of pods inherit it, and
/// some of them go through every number that a file might have.
const ENOUGH: u64 = 65_536;

/// Each client is an open file, and most systems begin with 1,024 where more is had for the asking.
pub(super) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(ENOUGH, |most| most.min(ENOUGH));
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        tracing::warn!(%error, "cannot have more files open");
    }
}
