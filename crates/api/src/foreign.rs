//! Kinds of other projects: only the fields that Windlass writes or reads, which is also what
//! server-side apply wants to be sent.

pub mod http_route;
