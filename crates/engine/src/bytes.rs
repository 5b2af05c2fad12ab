//! Sizes in bytes: as people read them, and as claims ask for them.

#[cfg(test)]
mod tests;

use crate::error::Error;

/// Room left beside the data when nobody says how much.
pub const DEFAULT_HEADROOM_PERCENT: u32 = 10;

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const GIB: u128 = 1 << 30;
const LARGEST: i64 = 7 << 60;

/// Binary units with at most one decimal; fails for sizes below zero or above 7 EiB.
pub fn format_bytes(size: i64) -> Result<String, Error> {
    if !(0..=LARGEST).contains(&size) {
        let text = format!("a size is between 0 and 7 EiB, not {size} bytes");
        return Err(Error::invalid_spec("InvalidSize", text));
    }
    let power = size.max(1).ilog2() / 10;
    let unit = UNITS.get(power as usize).copied().unwrap_or("EiB");
    // Division by a power of two is exact, so only the printing rounds.
    let number = size as f64 / (1_i64 << (10 * power)) as f64;
    let text = format!("{number:.1}");
    Ok(format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text)))
}

/// The size of a claim for data of this size, in whole GiB, at least one.
pub fn claim_gib(size: u64, headroom_percent: u32) -> u64 {
    let padded = u128::from(size) * (100 + u128::from(headroom_percent)) / 100;
    u64::try_from(padded.div_ceil(GIB).max(1)).unwrap_or(u64::MAX)
}

/// The same as a Kubernetes quantity.
pub fn claim_quantity(size: u64, headroom_percent: u32) -> String {
    format!("{}Gi", claim_gib(size, headroom_percent))
}
