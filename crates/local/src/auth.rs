//! Who asks, and what it may do.
