//! `windlass up` and `windlass down` as a user has them: processes, their files, and a client that
//! knows nothing but the kubeconfig.
//!
//! - `devices`: those of the machine, and the pods that ask for them
//! - `disk`: one without room
//! - `ends`: pods and directories that are left, and who is in a hurry
//! - `kills`: what is there after a SIGKILL at any instant
//! - `lifecycle`: start, second start, end, what is left
//! - `refused`: directories, ports and stores that cannot be used
//! - `operator`: what it does there, and by whose rights
//! - `registry`: what is pushed to it, by whom, and how long it stays
//! - `gateway`: requests through it, and what it says of routes; `backend` is who answers them
//! - `routes`: what routes can say, one by one
//! - `pools`: which pod of a pool answers
//! - `third_party`: definitions that are brought, and those that users have
//! - `watches`: a thousand of them
//! - `progress`: what it shows of pods, on a terminal and elsewhere
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

mod backend;
mod devices;
mod disk;
mod ends;
mod gateway;
mod kills;
mod lifecycle;
#[path = "../../../../tests/src/note.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a part of another crate")]
mod note;
mod operator;
mod pools;
mod progress;
mod refused;
mod registry;
mod routes;
mod running;
mod terminal;
mod third_party;
/// As the scenarios wait.
#[path = "../../../../tests/src/wait.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a part of another crate")]
mod wait;
mod watches;
