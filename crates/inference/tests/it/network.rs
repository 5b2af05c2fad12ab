//! How tokens are put into steps does not change what comes out.

use windlass_inference::{
    Model,
    network::{Cache, Chunk},
};

const TOKENS: [u32; 9] = [40, 41, 99, 7, 200, 41, 3, 77, 12];

fn cache(model: &Model) -> Cache {
    model.network.cache()
}

fn last(model: &Model, cache: &mut Cache, tokens: &[u32]) -> Vec<f32> {
    let mut chunks = [Chunk { tokens, cache, wants_logits: true }];
    model.network.forward(&mut chunks).unwrap().remove(0)
}

#[track_caller]
fn assert_alike(left: &[f32], right: &[f32]) {
    assert_eq!(left.len(), right.len());
    for (left, right) in left.iter().zip(right) {
        assert!((left - right).abs() < 1e-3, "{left} {right}");
    }
}

#[test]
fn a_prompt_in_parts_is_the_same_prompt() {
    let model = crate::model();
    let whole = last(&model, &mut cache(&model), &TOKENS);
    assert_eq!(whole.len(), model.tokenizer.size());
    for cut in 1..TOKENS.len() {
        let mut cache = cache(&model);
        last(&model, &mut cache, &TOKENS[..cut]);
        assert_eq!(cache.length(), cut);
        assert_alike(&last(&model, &mut cache, &TOKENS[cut..]), &whole);
    }
}

#[test]
fn sequences_in_one_step_know_nothing_of_each_other() {
    let model = crate::model();
    let alone = [&TOKENS[..], &TOKENS[3..5], &TOKENS[2..]]
        .map(|tokens| last(&model, &mut cache(&model), tokens));
    let (mut first, mut second, mut third) = (cache(&model), cache(&model), cache(&model));
    last(&model, &mut first, &TOKENS[..4]);
    let mut chunks = [
        Chunk { tokens: &TOKENS[4..], cache: &mut first, wants_logits: true },
        Chunk { tokens: &[], cache: &mut cache(&model), wants_logits: true },
        Chunk { tokens: &TOKENS[3..5], cache: &mut second, wants_logits: false },
        Chunk { tokens: &TOKENS[2..], cache: &mut third, wants_logits: true },
    ];
    let together = model.network.forward(&mut chunks).unwrap();
    assert_eq!(together.len(), 2);
    assert_alike(&together[0], &alone[0]);
    assert_alike(&together[1], &alone[2]);
}

#[test]
fn order_and_place_of_tokens_matter() {
    let model = crate::model();
    let logits = |tokens: &[u32]| last(&model, &mut cache(&model), tokens);
    let far = |left: &[f32], right: &[f32]| {
        left.iter().zip(right).any(|(left, right)| (left - right).abs() > 0.05)
    };
    assert!(far(&logits(&[40, 41, 42]), &logits(&[41, 40, 42])));
    assert!(far(&logits(&[40, 41, 40, 42]), &logits(&[41, 40, 40, 42])));
}

#[test]
fn a_token_that_is_none_is_refused() {
    let model = crate::model();
    let mut cache = cache(&model);
    let mut chunks = [Chunk { tokens: &[u32::MAX], cache: &mut cache, wants_logits: true }];
    assert!(model.network.forward(&mut chunks).is_err());
    assert!(model.network.forward(&mut []).unwrap().is_empty());
}
