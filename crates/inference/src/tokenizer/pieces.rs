//! The bytes that tokens stand for.

use std::collections::HashMap;

use super::{CONTROL, USER_DEFINED};

/// Byte-level vocabularies write each byte as a character that can be printed.
pub(super) fn byte_level(tokens: &[&str], kind: impl Fn(usize) -> usize) -> Vec<Vec<u8>> {
    let bytes = bytes_by_char();
    let piece = |(id, token): (usize, &&str)| {
        if matches!(kind(id), CONTROL | USER_DEFINED) {
            return token.as_bytes().to_vec();
        }
        let of_char = |c: char| match bytes.get(&c) {
            Some(byte) => vec![*byte],
            None => c.to_string().into_bytes(),
        };
        token.chars().flat_map(of_char).collect()
    };
    tokens.iter().enumerate().map(piece).collect()
}

/// Sentencepiece writes a space as U+2581, and single bytes as `<0x0A>`.
pub(super) fn sentence(tokens: &[&str], kind: impl Fn(usize) -> usize) -> Vec<Vec<u8>> {
    let piece = |(id, token): (usize, &&str)| {
        if matches!(kind(id), CONTROL | USER_DEFINED) {
            return token.as_bytes().to_vec();
        }
        let hex = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => vec![byte],
            None => token.replace('\u{2581}', " ").into_bytes(),
        }
    };
    tokens.iter().enumerate().map(piece).collect()
}

/// The table of GPT-2: what can be printed stands for itself, the rest for characters from U+0100 on.
fn bytes_by_char() -> HashMap<char, u8> {
    let printed = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut others = '\u{100}'..;
    (0..=255)
        .filter_map(|byte| {
            let c = if printed(byte) { Some(char::from(byte)) } else { others.next() };
            Some((c?, byte))
        })
        .collect()
}
