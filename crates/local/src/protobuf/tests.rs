//! Tests of reading protobuf.
