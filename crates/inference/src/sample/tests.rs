use super::*;

fn drawn(sampling: Sampling, logits: &[f32], times: usize) -> Vec<u32> {
    let draw = |seed: usize| {
        let sampling = Sampling { seed: seed as u64, ..sampling.clone() };
        Sampler::new(sampling, &[]).next(&mut logits.to_vec()).unwrap()
    };
    (0..times).map(draw).collect()
}

fn share(drawn: &[u32], token: u32) -> f64 {
    drawn.iter().filter(|drawn| **drawn == token).count() as f64 / drawn.len() as f64
}

#[test]
fn without_temperature_the_most_likely_token_is_next() {
    let mut sampler = Sampler::new(Sampling::default(), &[]);
    assert_eq!(sampler.next(&mut [0.1, 3.0, 2.0]), Some(1));
    assert_eq!(sampler.next(&mut [f32::NAN, -3.0, f32::NAN]), Some(1));
    assert_eq!(sampler.next(&mut []), None);
}

#[test]
fn tokens_come_as_often_as_they_are_likely() {
    let warm = Sampling { temperature: 1.0, ..Sampling::default() };
    // Three times as likely.
    let drawn_warm = drawn(warm.clone(), &[3.0_f32.ln(), 0.0], 4000);
    assert!((share(&drawn_warm, 0) - 0.75).abs() < 0.03, "{}", share(&drawn_warm, 0));
    let hot = Sampling { temperature: 100.0, ..warm.clone() };
    assert!((share(&drawn(hot, &[3.0_f32.ln(), 0.0], 4000), 0) - 0.5).abs() < 0.03);
    let cold = Sampling { temperature: 0.1, ..warm };
    assert!(share(&drawn(cold, &[3.0_f32.ln(), 0.0], 1000), 0) > 0.99);
}

#[test]
fn only_the_likely_ones_are_drawn_if_asked_for() {
    let logits: Vec<f32> = [0.5_f32, 0.3, 0.15, 0.05].iter().map(|share| share.ln()).collect();
    let warm = Sampling { temperature: 1.0, ..Sampling::default() };
    for (sampling, want) in [
        (Sampling { top_k: 1, ..warm.clone() }, &[0][..]),
        (Sampling { top_k: 2, ..warm.clone() }, &[0, 1]),
        (Sampling { top_k: 99, ..warm.clone() }, &[0, 1, 2, 3]),
        (Sampling { top_p: 0.0, ..warm.clone() }, &[0]),
        (Sampling { top_p: 0.4, ..warm.clone() }, &[0]),
        (Sampling { top_p: 0.7, ..warm.clone() }, &[0, 1]),
        (Sampling { top_p: 0.9, ..warm.clone() }, &[0, 1, 2]),
        (Sampling { top_k: 3, top_p: 0.6, ..warm.clone() }, &[0, 1]),
        (Sampling { min_p: 0.25, ..warm.clone() }, &[0, 1, 2]),
    ] {
        let mut drawn = drawn(sampling.clone(), &logits, 500);
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, want, "{sampling:?}");
    }
}

#[test]
fn equal_seeds_give_equal_answers() {
    let answer = |seed: u64| {
        let sampling = Sampling { temperature: 1.0, seed, ..Sampling::default() };
        let mut sampler = Sampler::new(sampling, &[]);
        (0..32).map(|_| sampler.next(&mut [0.0; 50]).unwrap()).collect::<Vec<u32>>()
    };
    assert_eq!(answer(7), answer(7));
    assert_ne!(answer(7), answer(8));
}

#[test]
fn penalties_lead_to_other_tokens() {
    let next = |sampling: Sampling, prompt: &[u32], logits: [f32; 3]| {
        let mut sampler = Sampler::new(sampling, prompt);
        [(); 3].map(|()| sampler.next(&mut logits.clone()).unwrap())
    };
    let plain = Sampling::default();
    assert_eq!(next(plain.clone(), &[], [3.0, 2.0, 0.0]), [0, 0, 0]);
    let once = Sampling { presence_penalty: 1.5, ..plain.clone() };
    assert_eq!(next(once.clone(), &[], [3.0, 2.0, 0.0]), [0, 1, 0]);
    // The answer counts for these, the prompt does not.
    assert_eq!(next(once, &[0], [3.0, 2.0, 0.0]), [0, 1, 0]);
    let each = Sampling { frequency_penalty: 1.1, ..plain.clone() };
    assert_eq!(next(each, &[], [3.0, 2.9, 2.5]), [0, 1, 2]);
    let repeated = Sampling { repetition_penalty: 2.0, ..plain.clone() };
    assert_eq!(next(repeated.clone(), &[0], [3.0, 2.0, 0.0])[0], 1);
    // What is unlikely becomes less likely, not more.
    assert_eq!(next(repeated, &[0], [-1.0, -1.5, -9.0])[0], 1);
    let biased = Sampling { bias: vec![(2, 9.0), (99, 9.0)], ..plain };
    assert_eq!(next(biased, &[], [3.0, 2.0, 0.0])[0], 2);
}
