//! Durations as Go programs write them: `1m30s`, or an integer of nanoseconds.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// A duration as the user wrote it.
///
/// It is kept unparsed because the API server may hold objects that an older schema let in; they
/// must still be readable so that their status can name the mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GoDuration {
    Nanoseconds(i64),
    Text(String),
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The text does not follow the grammar.
    Syntax(String),
    /// The value does not fit into 64 bits of nanoseconds.
    Overflow(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(text) => write!(f, "{text:?} is not a duration such as 10s or 1m30s"),
            Self::Overflow(text) => write!(f, "{text:?} is longer than any duration"),
        }
    }
}

impl std::error::Error for Error {}

impl GoDuration {
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        Self::Nanoseconds(nanoseconds)
    }

    /// The signed number of nanoseconds.
    pub fn nanoseconds(&self) -> Result<i64, Error> {
        match self {
            Self::Nanoseconds(nanoseconds) => Ok(*nanoseconds),
            Self::Text(text) => parse(text),
        }
    }
}

impl From<&str> for GoDuration {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl JsonSchema for GoDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GoDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // The bound keeps the estimated cost of the rules on this field small.
        json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": 64 })
    }
}

const UNITS: [(&str, i128); 8] = [
    // Longest first, so that `ms` is not read as `m`.
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Digits of a fraction beyond this point are far below a nanosecond of an hour and are dropped,
/// which keeps the arithmetic in 128 bits.
const FRACTION_DIGITS: usize = 18;

fn parse(text: &str) -> Result<i64, Error> {
    let syntax = || Error::Syntax(text.to_owned());
    let overflow = || Error::Overflow(text.to_owned());

    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if unsigned == "0" {
        return Ok(0);
    }
    if unsigned.is_empty() {
        return Err(syntax());
    }

    let mut rest = unsigned;
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (whole, after_whole) = split_digits(rest);
        let (fraction, after_number) = match after_whole.strip_prefix('.') {
            Some(after_point) => split_digits(after_point),
            None => ("", after_whole),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(syntax());
        }
        let (unit, after_unit) = UNITS
            .iter()
            .find_map(|(name, size)| after_number.strip_prefix(name).map(|after| (*size, after)))
            .ok_or_else(syntax)?;

        // Nineteen digits hold every value that fits; more cannot.
        if whole.trim_start_matches('0').len() > 19 {
            return Err(overflow());
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| syntax())? };
        total += whole * unit;

        let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS)];
        if !fraction.is_empty() {
            let digits: i128 = fraction.parse().map_err(|_| syntax())?;
            total += digits * unit / 10_i128.pow(fraction.len() as u32);
        }
        if total > i128::from(i64::MAX) {
            return Err(overflow());
        }
        rest = after_unit;
    }

    let signed = if negative { -total } else { total };
    i64::try_from(signed).map_err(|_| overflow())
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}
