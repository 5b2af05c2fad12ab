//! Whose turn it is, where requests are shared among several by their weights.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Of a circle of 2⁶⁴, the part that is left by the golden section. A sequence of such steps is as even
/// as one can be at any length, and every second, third or tenth of its numbers is nearly so: clients
/// that take turns do not each get another backend. Where each gets one number of many, and of just as
/// many as a Fibonacci number says, its own go round slowly and are even only after as many rounds.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Numbers that look like chance and are shared out more evenly than chance would: of any so many, as
/// many lie in a part of the circle as the part is large, to a few. Clones go on together.
#[derive(Clone, Debug)]
pub struct Turns(Arc<AtomicU64>);

impl Turns {
    pub fn new(start: u64) -> Self {
        Self(Arc::new(AtomicU64::new(start)))
    }

    pub fn next(&self) -> u64 {
        self.0.fetch_add(STEP, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept_to_a_few_requests_from_any_start_and_for_every_client() {
        for start in (0..64).map(|n: u64| n.wrapping_mul(0xD134_2543_DE82_EF95)) {
            for (every, percent) in [(1, 1), (1, 20), (1, 50), (2, 50), (3, 20), (7, 90), (10, 10)]
            {
                let turns = Turns::new(start);
                let below = (u128::from(u64::MAX) * percent / 100) as u64;
                let all = (0..2000 * every).map(|_| turns.next()).step_by(every);
                let share = all.filter(|number| *number < below).count();
                let off = share.abs_diff(20 * percent as usize);
                assert!(off <= 4, "{off} off at {percent} % for one of {every}");
            }
        }
    }

    #[test]
    fn clones_go_on_together() {
        let one = Turns::new(0);
        let other = one.clone();
        let first = one.next();
        assert_ne!(other.next(), first);
        assert_ne!(one.next(), first);
    }
}
