//! `bench api`: the embedded API server beside kube-apiserver and etcd, under the same load.
//!
//! [`servers`] starts both, each as processes of its own, [`load`] applies, [`fanout`] watches, and
//! [`report`] is what comes out.

mod arguments;
#[cfg(feature = "bench")]
mod fanout;
#[cfg(feature = "bench")]
mod load;
#[cfg(feature = "bench")]
mod objects;
#[cfg(feature = "bench")]
mod report;
#[cfg(feature = "bench")]
mod run;
#[cfg(feature = "bench")]
mod servers;

pub(super) use arguments::Arguments;
#[cfg(feature = "bench")]
pub(super) use run::run;
