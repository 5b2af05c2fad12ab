//! Custom resource definitions: their schemas, defaults, rules and versions.
