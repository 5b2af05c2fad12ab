//! Pods as real processes: the API and the node in this process, `sh` as every image.

mod ends;
mod node;
mod probes;
mod recovery;
mod starts;
