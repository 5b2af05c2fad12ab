//! Chance that can be repeated.

/// SplitMix64. One for each request, so that decisions do not depend on who asked before.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Random {
    /// The generator of the request with this number.
    pub(crate) fn of(seed: u64, request: u64) -> Self {
        let mut start = Self(seed ^ request.wrapping_mul(STEP));
        Self(start.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Zero if the bound is.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Neither 0 nor 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// A version 4 UUID.
    pub(crate) fn uuid(&mut self) -> String {
        let high = self.next() & !0xF000 | 0x4000;
        let low = self.next() & !(0b11 << 62) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xFFFF,
            high & 0xFFFF,
            low >> 48,
            low & 0xFFFF_FFFF_FFFF
        )
    }
}

/// From the system; from the clock where it has none to give.
pub(crate) fn system_seed() -> u64 {
    getrandom::u64().unwrap_or_else(|_| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(STEP, |since| since.as_nanos() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_even_and_repeats() {
        let mut counts = [0; 3];
        for request in 0..9_000 {
            counts[Random::of(7, request).below(3)] += 1;
        }
        // Three standard deviations: 3 × √(9000 × 1/3 × 2/3).
        assert!(counts.iter().all(|count| (2_866..=3_134).contains(count)), "{counts:?}");
        assert_eq!(Random::of(7, 1).next(), Random::of(7, 1).next());
        assert_eq!(Random::of(7, 1).below(0), 0);
    }

    #[test]
    fn ids_are_of_version_four() {
        let id = Random::of(1, 1).uuid();
        let dashes: Vec<usize> = id.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((id.len(), dashes), (36, vec![8, 13, 18, 23]));
        assert_eq!(&id[14..15], "4");
        assert!("89ab".contains(&id[19..20]), "{id}");
    }
}
