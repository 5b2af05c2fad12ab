//! The formulas: what each scorer gives an endpoint, and how endpoints are taken by their totals.

use std::collections::{HashMap, VecDeque};

use crate::{
    config::By,
    endpoint::{Load, Lora},
    random::Random,
};

/// The fewer of something, the better, relative to the endpoints compared.
pub(crate) fn relative(counts: &[u32]) -> Vec<f64> {
    let min = counts.iter().copied().min().unwrap_or(0);
    let max = counts.iter().copied().max().unwrap_or(0);
    let score = |count: &u32| match max - min {
        0 => 1.0,
        range => f64::from(max - count) / f64::from(range),
    };
    counts.iter().map(score).collect()
}

pub(crate) fn kv_cache(load: Load) -> f64 {
    1.0 - load.kv
}

pub(crate) fn load_aware(waiting: u32, threshold: u32) -> f64 {
    if waiting == 0 {
        return 0.5;
    }
    let threshold = threshold.max(1);
    0.5 * (1.0 - f64::from(waiting.min(threshold)) / f64::from(threshold))
}

pub(crate) fn lora(model: &str, lora: Option<&Lora>) -> f64 {
    let Some(lora) = lora else { return 0.0 };
    let named = |adapters: &[String]| adapters.iter().any(|adapter| adapter == model);
    if named(&lora.running) {
        1.0
    } else if lora.running.len() + lora.waiting.len() < lora.max {
        0.8
    } else if named(&lora.waiting) {
        0.6
    } else {
        0.0
    }
}

/// `most` is the largest number of open requests in the whole pool.
pub(crate) fn active_requests(open: u32, most: u32, idle: u32, busy: f64) -> f64 {
    if open <= idle {
        return 1.0;
    }
    busy * (f64::from(most.saturating_sub(open)) / f64::from(most.max(1)))
}

/// For a prompt that nobody knows: endpoints by slot, and the slots that were sent such prompts,
/// the oldest first. Those never used come first, then those used longest ago.
pub(crate) fn no_hit(slots: &[usize], used: &VecDeque<usize>) -> Vec<f64> {
    let Some(last) = slots.len().checked_sub(1).filter(|last| *last > 0) else {
        return vec![1.0; slots.len()];
    };
    let positions: HashMap<usize, usize> =
        used.iter().enumerate().map(|(position, slot)| (*slot, position)).collect();
    let unused = slots.iter().filter(|slot| !positions.contains_key(slot)).count();
    let mut next_unused = 0;
    let score = |slot: &usize| {
        let rank = positions.get(slot).map_or_else(
            || {
                next_unused += 1;
                next_unused - 1
            },
            |position| unused + position,
        );
        (1.0 - rank as f64 / last as f64).max(0.0)
    };
    slots.iter().map(score).collect()
}

/// Blocks that match, of all blocks. With a weight, the length of the match counts too.
pub(crate) fn prefix(matched: u32, total: usize, block: usize, weight: f64, scale: f64) -> f64 {
    if total == 0 {
        return 0.0;
    }
    let part = f64::from(matched) / total as f64;
    if weight == 0.0 {
        return part;
    }
    let length = (f64::from(matched) * block as f64 / scale).min(1.0);
    weight * length * length + (1.0 - weight) * part
}

/// What a scorer adds to the total.
pub(crate) fn weighted(score: f64, weight: f64) -> f64 {
    if score.is_nan() { 0.0 } else { weight * score.clamp(0.0, 1.0) }
}

/// The numbers of the best endpoints, the best first.
pub(crate) fn choose(by: By, totals: &[f64], count: usize, random: &mut Random) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..totals.len()).collect();
    random.shuffle(&mut chosen);
    match by {
        By::Random => {}
        By::MaxScore => chosen.sort_by(|left, right| totals[*right].total_cmp(&totals[*left])),
        By::WeightedRandom if totals.iter().all(|total| *total <= 0.0 || total.is_nan()) => {}
        By::WeightedRandom => {
            let mut key = |total: &f64| {
                let chance = random.fraction();
                if *total > 0.0 { chance.powf(1.0 / total) } else { 0.0 }
            };
            let keys: Vec<f64> = totals.iter().map(&mut key).collect();
            chosen.sort_by(|left, right| keys[*right].total_cmp(&keys[*left]));
        }
    }
    chosen.truncate(count.max(1));
    chosen
}

#[cfg(test)]
mod tests;
