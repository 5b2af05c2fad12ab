use super::*;

fn rounded(scores: Vec<f64>) -> Vec<f64> {
    scores.into_iter().map(|score| (score * 1000.0).round() / 1000.0).collect()
}

#[test]
fn fewer_waiting_requests_score_higher() {
    for (counts, want) in [
        (&[3, 0, 10][..], &[0.7, 1.0, 0.0][..]),
        (&[2, 2], &[1.0, 1.0]),
        (&[7], &[1.0]),
        (&[0, u32::MAX], &[1.0, 0.0]),
        (&[], &[]),
    ] {
        assert_eq!(relative(counts), want, "{counts:?}");
    }
}

#[test]
fn less_used_caches_score_higher() {
    for (kv, want) in [(0.0, 1.0), (0.25, 0.75), (1.0, 0.0)] {
        assert_eq!(kv_cache(Load { kv, ..Load::default() }), want);
    }
    assert_eq!(weighted(kv_cache(Load { kv: 1.3, ..Load::default() }), 2.0), 0.0);
}

#[test]
fn a_queue_halves_the_load_score() {
    for (waiting, want) in [(0, 0.5), (64, 0.25), (128, 0.0), (500, 0.0)] {
        assert_eq!(load_aware(waiting, 128), want, "{waiting}");
    }
}

#[test]
fn adapters_that_are_there_score_highest() {
    let adapters = |running: &[&str], waiting: &[&str], max| Lora {
        running: running.iter().map(ToString::to_string).collect(),
        waiting: waiting.iter().map(ToString::to_string).collect(),
        max,
    };
    for (lora_of, want) in [
        (Some(adapters(&["x"], &[], 1)), 1.0),
        (Some(adapters(&["y"], &[], 2)), 0.8),
        (Some(adapters(&["y"], &["x"], 2)), 0.6),
        (Some(adapters(&["y", "z"], &[], 2)), 0.0),
        (None, 0.0),
    ] {
        assert_eq!(lora("x", lora_of.as_ref()), want, "{lora_of:?}");
    }
}

#[test]
fn open_requests_are_relative_to_the_busiest() {
    for (open, idle, busy, want) in
        [(2, 0, 1.0, 0.5), (0, 0, 1.0, 1.0), (4, 0, 1.0, 0.0), (2, 2, 1.0, 1.0), (3, 2, 0.8, 0.2)]
    {
        assert_eq!(active_requests(open, 4, idle, busy), want, "{open}");
    }
}

#[test]
fn cold_prompts_go_to_who_was_used_longest_ago() {
    let scores =
        |slots: &[usize], used: &[usize]| rounded(no_hit(slots, &used.iter().copied().collect()));
    // C, D, A, B with A and B used, A longer ago.
    assert_eq!(scores(&[2, 3, 0, 1], &[0, 1]), [1.0, 0.667, 0.333, 0.0]);
    assert_eq!(scores(&[5], &[5]), [1.0]);
    assert_eq!(scores(&[], &[]), [] as [f64; 0]);
    // Others in the list push an endpoint down, but not below zero.
    assert_eq!(scores(&[0, 1], &[7, 8, 9, 0]), [0.0, 1.0]);
}

#[test]
fn prefixes_score_by_their_share_and_their_length() {
    for (matched, total, weight, want) in [
        (0, 0, 0.0, 0.0),
        (3, 4, 0.0, 0.75),
        (4, 4, 1.0, 0.25),
        (4, 4, 0.5, 0.625),
        (4, 8, 0.5, 0.375),
    ] {
        assert_eq!(prefix(matched, total, 64, weight, 512.0), want, "{matched}/{total} {weight}");
    }
    assert_eq!(prefix(100, 100, 64, 1.0, 512.0), 1.0);
}

#[test]
fn scores_are_kept_between_zero_and_one() {
    for (score, want) in
        [(-1.0, 0.0), (0.5, 1.0), (7.0, 2.0), (f64::NAN, 0.0), (f64::INFINITY, 2.0)]
    {
        assert_eq!(weighted(score, 2.0), want, "{score}");
    }
}

#[test]
fn the_highest_total_wins_and_ties_are_even() {
    let mut random = Random::of(1, 1);
    assert_eq!(choose(By::MaxScore, &[1.0, 3.0, 2.0], 2, &mut random), [1, 2]);
    assert_eq!(choose(By::MaxScore, &[1.0], 5, &mut random), [0]);
    assert!(choose(By::MaxScore, &[], 1, &mut random).is_empty());
    let mut counts = [0; 3];
    for request in 0..9_000 {
        counts[choose(By::MaxScore, &[2.0; 3], 1, &mut Random::of(3, request))[0]] += 1;
    }
    assert!(counts.iter().all(|count| (2_866..=3_134).contains(count)), "{counts:?}");
}

#[test]
fn chance_follows_the_weights() {
    let mut counts = [0; 3];
    for request in 0..10_000 {
        counts[choose(By::WeightedRandom, &[3.0, 1.0, 0.0], 1, &mut Random::of(5, request))[0]] +=
            1;
    }
    // Three standard deviations around 7,500.
    assert!((7_370..=7_630).contains(&counts[0]), "{counts:?}");
    assert_eq!(counts[2], 0);
    let mut even = [0; 2];
    for request in 0..1_000 {
        even[choose(By::WeightedRandom, &[0.0, -1.0], 1, &mut Random::of(5, request))[0]] += 1;
    }
    assert!(even.iter().all(|count| (450..=550).contains(count)), "{even:?}");
}
