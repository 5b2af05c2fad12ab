//! Scenarios on a real API server: what a user would do and see.
