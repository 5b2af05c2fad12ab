//! Tests of the built-in kinds.
