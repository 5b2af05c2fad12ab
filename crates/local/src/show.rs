//! How objects are shown: tables, discovery and OpenAPI.
