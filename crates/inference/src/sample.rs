//! Which token is next.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

/// How to choose, in the words of the API. `Default` is the most likely token, always.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// 0: always the most likely one.
    pub temperature: f32,
    /// Of those that have this much of the probability together; 1 for all.
    pub top_p: f32,
    /// Of so many; 0 for all.
    pub top_k: usize,
    /// Of those that are at least this likely, measured by the most likely one.
    pub min_p: f32,
    /// Equal seeds, equal answers.
    pub seed: u64,
    /// Of tokens in the prompt or the answer; 1 for none.
    pub repetition_penalty: f32,
    /// Of tokens in the answer, for each time; and once.
    pub frequency_penalty: f32,
    pub presence_penalty: f32,
    pub bias: Vec<(u32, f32)>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
            seed: 0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            bias: Vec::new(),
        }
    }
}

/// Below this, a temperature is taken for zero: the logits would leave the range of floats.
const COLDEST: f32 = 1e-4;

#[derive(Debug)]
pub struct Sampler {
    sampling: Sampling,
    /// How often each token was in the answer; 0 for one that was only in the prompt.
    seen: HashMap<u32, f32>,
    state: u64,
}

impl Sampler {
    pub fn new(sampling: Sampling, prompt: &[u32]) -> Self {
        let seen = prompt.iter().map(|token| (*token, 0.0)).collect();
        Self { state: sampling.seed, sampling, seen }
    }

    /// Changes the logits as the penalties say. `None` only if there are none.
    pub fn next(&mut self, logits: &mut [f32]) -> Option<u32> {
        self.penalise(logits);
        let token = if self.sampling.temperature < COLDEST {
            greatest(logits)?
        } else {
            self.draw(logits)?
        };
        *self.seen.entry(token).or_default() += 1.0;
        Some(token)
    }

    fn penalise(&self, logits: &mut [f32]) {
        let sampling = &self.sampling;
        for (token, bias) in &sampling.bias {
            if let Some(logit) = logits.get_mut(*token as usize) {
                *logit += bias;
            }
        }
        for (token, times) in &self.seen {
            let Some(logit) = logits.get_mut(*token as usize) else { continue };
            if *logit > 0.0 {
                *logit /= sampling.repetition_penalty;
            } else {
                *logit *= sampling.repetition_penalty;
            }
            if *times > 0.0 {
                *logit -= times * sampling.frequency_penalty + sampling.presence_penalty;
            }
        }
    }

    fn draw(&mut self, logits: &[f32]) -> Option<u32> {
        let choices = choices(&self.sampling, logits)?;
        let total: f32 = choices.iter().map(|choice| choice.weight).sum();
        let mut left = self.uniform() * total;
        for choice in &choices {
            left -= choice.weight;
            if left < 0.0 {
                return Some(choice.token);
            }
        }
        // Sums of floats may be off by a little.
        choices.last().map(|choice| choice.token)
    }

    /// From 0 to 1, without 1: SplitMix64, of which the upper 24 bits fit a float.
    fn uniform(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        (bits >> 40) as f32 / (1_u64 << 24) as f32
    }
}

/// With the weight of the most likely one as 1.
#[derive(Clone, Copy, Debug)]
struct Choice {
    token: u32,
    weight: f32,
}

fn choices(sampling: &Sampling, logits: &[f32]) -> Option<Vec<Choice>> {
    let most = logits[greatest(logits)? as usize];
    let weigh = |(token, logit): (u32, &f32)| {
        let weight = ((logit - most) / sampling.temperature).exp();
        Choice { token, weight }
    };
    let mut choices: Vec<Choice> = (0..).zip(logits).map(weigh).collect();
    choices.retain(|choice| choice.weight >= sampling.min_p && choice.weight > 0.0);
    let likelier =
        |a: &Choice, b: &Choice| b.weight.total_cmp(&a.weight).then(a.token.cmp(&b.token));
    if (1..choices.len()).contains(&sampling.top_k) {
        choices.select_nth_unstable_by(sampling.top_k - 1, likelier);
        choices.truncate(sampling.top_k);
    }
    if sampling.top_p < 1.0 {
        let total: f32 = choices.iter().map(|choice| choice.weight).sum();
        // All that are below this together are not enough to be needed: they need no sorting.
        let needed = (1.0 - sampling.top_p) * total / choices.len() as f32;
        choices.retain(|choice| choice.weight >= needed.min(1.0));
        choices.sort_unstable_by(likelier);
        let mut sum = 0.0;
        let enough = choices.iter().position(|choice| {
            sum += choice.weight;
            sum >= sampling.top_p * total
        });
        choices.truncate(enough.map_or(choices.len(), |at| at + 1));
    }
    Some(choices)
}

/// The first of the greatest; what is no number counts as the least.
fn greatest(logits: &[f32]) -> Option<u32> {
    let mut best = None;
    for (token, logit) in (0..).zip(logits) {
        if best.is_none_or(|(_, most)| *logit > most) {
            best = Some((token, if logit.is_nan() { f32::NEG_INFINITY } else { *logit }));
        }
    }
    best.map(|(token, _)| token)
}
