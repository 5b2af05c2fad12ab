//! Request bodies in protobuf, read into JSON.
