//! How the answer is to be chosen.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    ops::RangeInclusive,
};

use windlass_inference::{Model, sample::Sampling};

use super::Body;
use crate::serve::refused::Refused;

impl Body {
    pub(super) fn sampling(&self, model: &Model) -> Result<Sampling, Refused> {
        let top_k = match self.top_k {
            // vLLM has it so.
            None | Some(-1) => 0,
            Some(top_k) => usize::try_from(top_k)
                .map_err(|_| Refused::bad("top_k", "top_k must be -1, 0 or a number of tokens"))?,
        };
        let top_p = within("top_p", self.top_p, 1.0, 0.0..=1.0)?;
        if top_p == 0.0 {
            return Err(Refused::bad("top_p", "top_p must be over 0"));
        }
        let repetition_penalty =
            within("repetition_penalty", self.repetition_penalty, 1.0, f32::MIN_POSITIVE..=100.0)?;
        Ok(Sampling {
            temperature: within("temperature", self.temperature, 1.0, 0.0..=100.0)?,
            top_p,
            top_k,
            min_p: within("min_p", self.min_p, 0.0, 0.0..=1.0)?,
            seed: self.seed.map_or_else(any_seed, i64::cast_unsigned),
            repetition_penalty,
            frequency_penalty: within(
                "frequency_penalty",
                self.frequency_penalty,
                0.0,
                -2.0..=2.0,
            )?,
            presence_penalty: within("presence_penalty", self.presence_penalty, 0.0, -2.0..=2.0)?,
            bias: self.bias(model)?,
        })
    }

    fn bias(&self, model: &Model) -> Result<Vec<(u32, f32)>, Refused> {
        let entry = |(token, bias): (&String, &f32)| {
            let known = |token: &u32| (*token as usize) < model.tokenizer.size();
            let token = token.parse().ok().filter(known);
            let bias = Some(*bias).filter(|bias| (-100.0..=100.0).contains(bias));
            token.zip(bias).ok_or_else(|| {
                Refused::bad("logit_bias", "logit_bias must be from tokens to -100 to 100")
            })
        };
        // A token may be written in several ways, but has one bias.
        let biases = self.logit_bias.iter().flatten().map(entry);
        Ok(biases.collect::<Result<BTreeMap<_, _>, _>>()?.into_iter().collect())
    }
}

fn within(
    param: &str,
    given: Option<f32>,
    usual: f32,
    range: RangeInclusive<f32>,
) -> Result<f32, Refused> {
    let value = given.unwrap_or(usual);
    if range.contains(&value) {
        return Ok(value);
    }
    let (from, to) = range.into_inner();
    Err(Refused::bad(param, format!("{param} must be from {from} to {to}")))
}

/// Another one each time; nothing secret rests on it.
fn any_seed() -> u64 {
    RandomState::new().hash_one(0)
}
