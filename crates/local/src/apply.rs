//! Server-side apply and the ownership of fields.
