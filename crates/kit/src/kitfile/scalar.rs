//! What a scalar without quotes means to Go's `yaml.v3`: the bytes of configs depend on it.

use serde_json::{Number, Value};

/// JSON has no word for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unsayable;

pub(super) fn resolve(text: &str) -> Result<Value, Unsayable> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => return Err(Unsayable),
        _ => {}
    }
    if let Some(time) = time(text) {
        return time.map(Value::String);
    }
    let number = match text.as_bytes() {
        [b'.', ..] => float(text),
        [b'0'..=b'9' | b'+' | b'-', ..] => {
            // They may stand anywhere, as in `1_000`.
            let plain = text.replace('_', "");
            let signed = |prefix, radix| signed(plain.strip_prefix(prefix)?, radix);
            integer(&plain)
                .or_else(|| float(&plain))
                .or_else(|| signed("0b", 2))
                .or_else(|| signed("0o", 8))
        }
        _ => None,
    };
    Ok(number.map_or_else(|| text.into(), Value::Number))
}

/// `12`, `0xff`, `0b11`, `0o17` and, as before YAML 1.2, `017`.
fn integer(text: &str) -> Option<Number> {
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.chars().next(), digits),
        None => (None, text),
    };
    let other = |radix, lower, upper| {
        let digits = digits.strip_prefix('0')?.strip_prefix([lower, upper])?;
        Some((radix, digits))
    };
    let (radix, digits) = other(16, 'x', 'X')
        .or_else(|| other(8, 'o', 'O'))
        .or_else(|| other(2, 'b', 'B'))
        .or_else(|| Some((8, digits.strip_prefix('0').filter(|rest| !rest.is_empty())?)))
        .unwrap_or((10, digits));
    let is_digits = digits.starts_with(|c: char| c.is_digit(radix));
    let size = u64::from_str_radix(digits, radix).ok().filter(|_| is_digits)?;
    match sign {
        Some('-') => i64::try_from(-i128::from(size)).ok().map(Number::from),
        Some(_) => i64::try_from(size).ok().map(Number::from),
        None => Some(Number::from(size)),
    }
}

/// An oddity of `yaml.v3`: `0b-11` and `0o-17` are numbers.
fn signed(digits: &str, radix: u32) -> Option<Number> {
    i64::from_str_radix(digits, radix).ok().map(Number::from)
}

/// What is too large for it stays a text.
fn float(text: &str) -> Option<Number> {
    text.parse().ok().and_then(Number::from_f64)
}

/// `2024-01-31`, and a time after it with a zone or, behind a blank, without.
fn time(text: &str) -> Option<Result<String, Unsayable>> {
    let (year, rest) = text.split_once('-')?;
    let is_year = year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit());
    let year: u32 = year.parse().ok().filter(|_| is_year)?;
    let (month, rest) = number(rest)?;
    let (day, rest) = number(rest.strip_prefix('-')?)?;
    if day == 0 || day > days(year, month)? {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}T");
    if rest.is_empty() {
        return Some(Ok(date + "00:00:00Z"));
    }
    let has_zone = rest.starts_with(['T', 't']);
    let rest = match has_zone {
        true => rest.get(1..)?,
        false => rest.strip_prefix(' ')?.trim_start_matches(' '),
    };
    let (hour, rest) = number(rest)?;
    let (minute, rest) = number(rest.strip_prefix(':')?)?;
    let (second, rest) = number(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, rest) = fraction(rest);
    let zone = match has_zone {
        true => zone(rest)?,
        false => rest.is_empty().then(|| Ok("Z".to_owned()))?,
    };
    Some(zone.map(|zone| format!("{date}{hour:02}:{minute:02}:{second:02}{fraction}{zone}")))
}

/// One digit or two.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    Some((digits.parse().ok()?, rest))
}

fn days(year: u32, month: u32) -> Option<u32> {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if is_leap { 29 } else { 28 }),
        _ => None,
    }
}

/// With its dot and without zeros at the end; nothing if there is none.
fn fraction(text: &str) -> (String, &str) {
    let Some(after) = text.strip_prefix(['.', ',']) else { return (String::new(), text) };
    let count = after.bytes().take_while(u8::is_ascii_digit).count();
    let Some((digits, rest)) = after.split_at_checked(count).filter(|_| count > 0) else {
        return (String::new(), text);
    };
    let digits = digits.get(..9).unwrap_or(digits).trim_end_matches('0');
    let fraction = if digits.is_empty() { String::new() } else { format!(".{digits}") };
    (fraction, rest)
}

fn zone(text: &str) -> Option<Result<String, Unsayable>> {
    if text == "Z" {
        return Some(Ok("Z".to_owned()));
    }
    let digits = text.strip_prefix(['+', '-'])?;
    let (hours, minutes) = digits.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    match (number(hours)?.0, number(minutes)?.0) {
        (0, 0) => Some(Ok("Z".to_owned())),
        (hours, minutes) if hours > 24 || minutes > 59 => None,
        (24, _) => Some(Err(Unsayable)),
        _ => Some(Ok(text.to_owned())),
    }
}
