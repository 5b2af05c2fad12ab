//! Pods as real processes: the API and the node in this process, `sh` as most images and `program` as
//! the others.

mod autoscaling;
mod disk;
mod ends;
mod jobs;
mod node;
mod probes;
mod program;
mod recovery;
mod starts;
mod users;
