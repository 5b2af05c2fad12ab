//! The JSON inside a continue token: read or refused, and what was read is handed out the same.
#![no_main]

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use libfuzzer_sys::fuzz_target;
use windlass_local::http::fuzzing;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        drop(fuzzing::token(text));
    }
    let Ok(printed) = fuzzing::token(&URL_SAFE_NO_PAD.encode(data)) else { return };
    assert_eq!(fuzzing::token(&printed).as_ref(), Ok(&printed));
});
