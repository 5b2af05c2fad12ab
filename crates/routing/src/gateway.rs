//! From an HTTP request to a backend, by the routes of the Gateway API.
//!
//! `listed` (the objects of the API) → `assemble` (what requests go by) and `status` (what is said of the
//! objects). `spec` (what routes say) → `route` (compiled, or why not) → `table` (which rule a request
//! meets) → `backends` (who answers) and `rewrite` (what the request becomes). All of that is pure, but
//! for `turns` (whose turn it is).
//! `proxy` passes the request on over `upstream` and the answer back as a `stream`; `listen` takes
//! requests in.

pub mod assemble;
pub mod backends;
pub mod listed;
pub mod listen;
pub mod parent;
pub mod proxy;
pub mod rewrite;
pub mod route;
pub mod spec;
pub mod status;
pub mod stream;
pub mod table;
pub mod turns;
pub mod upstream;

pub use backends::Backends;
pub use proxy::{Proxy, Routing};
pub use route::Route;
pub use table::Table;
