//! What the targets of `fuzz/` reach of the request decoder; for nobody else.

use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;

use super::body;
use crate::registry::reread_token;

/// The body of a request of this media type, if it can be read.
pub fn body(media_type: &'static str, bytes: &[u8]) -> Option<Value> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    let format = body::format(&headers).ok()?;
    Some(body::parse(format, bytes).ok()?.value)
}

/// A continue token as it would be handed out, or why it is none.
pub fn token(text: &str) -> Result<String, String> {
    reread_token(text).map_err(|error| error.to_string())
}
