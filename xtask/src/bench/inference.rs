//! `bench inference`: how fast `windlass serve` answers with a small model, beside what others reach with
//! the same file on the same kind of machine.
//!
//! [`model`] fetches the file, [`asked`] is a request and when its parts came, [`run`] puts it together.

mod arguments;
#[cfg(feature = "bench")]
mod asked;
#[cfg(feature = "bench")]
mod model;
#[cfg(feature = "bench")]
mod run;

pub(super) use arguments::Arguments;
#[cfg(feature = "bench")]
pub(super) use run::run;
