//! The router: requests to calls of the registry, answers to bytes.
