//! Times as objects carry them.

use jiff::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parsing time {text:?} as {layout:?}: cannot parse {text:?} as {layout:?}")]
pub struct Error {
    text: String,
    layout: &'static str,
}

const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// To seconds, in UTC, as `metav1.Time` prints it.
pub fn seconds(text: &str) -> Result<String, Error> {
    let time = parse(text).ok_or_else(|| Error { text: text.to_owned(), layout: SECONDS })?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// To microseconds, in UTC. It must be given with exactly six decimals.
pub fn micros(text: &str) -> Result<String, Error> {
    let decimals = text
        .get(19..)
        .and_then(|rest| rest.strip_prefix('.'))
        .map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let time = if decimals == 6 { parse(text) } else { None };
    let time = time.ok_or_else(|| Error { text: text.to_owned(), layout: MICROS })?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

/// RFC 3339 and nothing wider.
fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits = bytes.len() > shape.len()
        && shape.iter().zip(bytes).all(|(shape, byte)| match shape {
            b'd' => byte.is_ascii_digit(),
            other => other == byte,
        });
    let zone = text
        .get(19..)?
        .trim_start_matches(['.', ','])
        .trim_start_matches(|c: char| c.is_ascii_digit());
    let zone = zone.as_bytes();
    let zoned = matches!(zone, [b'Z'])
        || matches!(zone, [b'+' | b'-', h1, h2, b':', m1, m2]
            if [h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit()));
    if fits && zoned { text.parse().ok() } else { None }
}
