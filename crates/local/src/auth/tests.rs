//! Tests of users, tokens and rights.
