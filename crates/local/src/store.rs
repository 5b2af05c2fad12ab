//! Objects, their versions and their history, durable on disk.
