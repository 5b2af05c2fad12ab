//! Amounts of resources as Kubernetes writes them: `500m`, `1Gi`, `2e3`.

use std::fmt;

/// Kept in billionths, which is the finest that Kubernetes keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Number,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

const NANO: i128 = 1_000_000_000;
/// Larger amounts are cut to this one, as Kubernetes does.
const MAX: i128 = i64::MAX as i128 * NANO;
/// More digits than this cannot matter to a number of at most `MAX` billionths; with a binary suffix
/// there is room for fewer.
const MAX_DIGITS: usize = 30;
const MAX_BINARY_DIGITS: usize = 19;

impl Quantity {
    pub fn parse(text: &str) -> Result<Quantity, Error> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(Error::Number);
        }
        let (base, exponent, format) = scale(suffix)?;
        let nano = amount(whole, fraction, base, exponent);
        // Below one, binary suffixes would only lose digits.
        let format = if format == Format::Binary && nano < NANO { Format::Decimal } else { format };
        Ok(Quantity { nano: if negative { -nano } else { nano }, format })
    }

    pub fn nano(self) -> i128 {
        self.nano
    }

    /// Rounded up to thousandths, as amounts in requests and limits are.
    pub fn to_milli(self) -> Quantity {
        let milli = NANO / 1000;
        let rest = self.nano.rem_euclid(milli);
        let up = if rest == 0 { 0 } else { milli - rest };
        Quantity { nano: self.nano + up, format: self.format }
    }
}

fn scale(suffix: &str) -> Result<(i128, i64, Format), Error> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(power) = binary.iter().position(|name| *name == suffix) {
        return Ok((2, 10 * (power as i64 + 1), Format::Binary));
    }
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    if let Some(power) = decimal.iter().position(|name| *name == suffix) {
        return Ok((10, 3 * (power as i64 - 3), Format::Decimal));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(Error::Suffix)?;
    let exponent: i64 = exponent.parse().map_err(|_| Error::Suffix)?;
    Ok((10, exponent, Format::Exponent))
}

/// In billionths, rounded up, cut to `MAX`.
fn amount(whole: &str, fraction: &str, base: i128, exponent: i64) -> i128 {
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() && fraction.is_empty() {
        return 0;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let kept = digits.len().min(if base == 2 { MAX_BINARY_DIGITS } else { MAX_DIGITS });
    let (head, tail) = digits.split_at(kept);
    let mut mantissa: i128 = head.parse().unwrap_or(MAX);
    if tail.bytes().any(|digit| digit != b'0') {
        mantissa += 1;
    }
    let mut power = tail.len() as i64 - fraction.len() as i64 + 9;
    if base == 2 {
        mantissa = mantissa.checked_mul(1 << exponent.clamp(0, 60)).unwrap_or(i128::MAX / 2);
    } else {
        power = power.saturating_add(exponent);
    }
    if power >= 0 {
        let factor = u32::try_from(power).ok().and_then(|power| 10_i128.checked_pow(power));
        factor.and_then(|factor| mantissa.checked_mul(factor)).map_or(MAX, |nano| nano.min(MAX))
    } else {
        let divisor = u32::try_from(-power).ok().and_then(|power| 10_i128.checked_pow(power));
        // Something asked for stays something.
        divisor.map_or(1, |divisor| (mantissa + (divisor - 1)) / divisor).min(MAX)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<std::cmp::Ordering> {
        self.nano.partial_cmp(&other.nano)
    }
}

/// The canonical form.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        let whole = self.nano / NANO;
        if self.format == Format::Binary && self.nano % NANO == 0 && whole.abs() >= 1024 {
            let (number, power) = reduce(whole, 1024, 6);
            return write!(f, "{number}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
        }
        let (number, power) = reduce(self.nano, 1000, 9);
        if self.format == Format::Exponent {
            return match 3 * (power as i64 - 3) {
                0 => write!(f, "{number}"),
                exponent => write!(f, "{number}e{exponent}"),
            };
        }
        write!(f, "{number}{}", ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][power])
    }
}

/// Takes the factor out as often as it goes in, at most `limit` times.
fn reduce(mut number: i128, factor: i128, limit: usize) -> (i128, usize) {
    let mut power = 0;
    while power < limit && number % factor == 0 {
        number /= factor;
        power += 1;
    }
    (number, power)
}
