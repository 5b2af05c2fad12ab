//! `bench kit`: a model packed, pushed, pulled and unpacked, beside what the machine can do at all.
//!
//! [`data`] makes the model, [`limits`] hashes and copies it, [`program`] runs the commands, [`wire`]
//! counts what they send, [`others`] is what is no large model, and [`report`] is what comes out.
//! [`client`] measures with a registry that does nothing ([`sink`]) and a hub of this machine ([`hub`]),
//! both by [`serve`].

mod arguments;
#[cfg(feature = "bench")]
mod client;
#[cfg(feature = "bench")]
mod data;
#[cfg(feature = "bench")]
mod hub;
#[cfg(feature = "bench")]
mod limits;
#[cfg(feature = "bench")]
mod others;
#[cfg(feature = "bench")]
mod program;
#[cfg(feature = "bench")]
mod report;
#[cfg(feature = "bench")]
mod run;
#[cfg(feature = "bench")]
mod serve;
#[cfg(feature = "bench")]
mod sink;
#[cfg(feature = "bench")]
mod wire;

pub(super) use arguments::Arguments;
#[cfg(feature = "bench")]
pub(super) use run::run;
