//! Kubernetes quantities (`500m`, `16Gi`, `1e3`), compared by value.

/// A quantity as a whole number of 10⁻⁹ units, the finest step that Kubernetes keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nano(i128);

impl Nano {
    /// Rounded up to whole units.
    pub fn ceil(self) -> i128 {
        self.0.div_euclid(UNIT) + i128::from(self.0.rem_euclid(UNIT) != 0)
    }

    pub fn is_positive(self) -> bool {
        self.0 > 0
    }
}

const UNIT: i128 = 1_000_000_000;

pub fn equal(left: &str, right: &str) -> bool {
    matches!((parse(left), parse(right)), (Some(left), Some(right)) if left == right)
}

/// `None` for what is no quantity or does not fit.
pub fn parse(text: &str) -> Option<Nano> {
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let (negative, number) = match number.as_bytes().first()? {
        b'-' => (true, &number[1..]),
        b'+' => (false, &number[1..]),
        _ => (false, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let scale = Scale::parse(suffix)?;
    // Past nine decimals nothing is left to tell apart, except under a large multiplier; those
    // digits are kept by scaling before dividing.
    let fraction = &fraction[..fraction.len().min(18)];
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let mantissa = if negative { -mantissa } else { mantissa };
    let scaled = scale.apply(mantissa)?;
    let divisor = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some(Nano(scaled.checked_div(divisor)?))
}

enum Scale {
    /// Units of 10⁻⁹ times a power of 1024.
    Binary(u32),
    /// A power of ten, relative to one unit.
    Decimal(i32),
}

impl Scale {
    fn parse(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(1),
            "Mi" => Self::Binary(2),
            "Gi" => Self::Binary(3),
            "Ti" => Self::Binary(4),
            "Pi" => Self::Binary(5),
            "Ei" => Self::Binary(6),
            _ => Self::Decimal(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
        })
    }

    fn apply(&self, mantissa: i128) -> Option<i128> {
        match *self {
            Self::Binary(power) => {
                mantissa.checked_mul(UNIT)?.checked_mul(1024_i128.checked_pow(power)?)
            }
            Self::Decimal(power) if power >= -9 => {
                mantissa.checked_mul(10_i128.checked_pow(u32::try_from(power + 9).ok()?)?)
            }
            Self::Decimal(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
