use super::*;

#[test]
fn the_least_busy_endpoint_is_chosen() {
    let bench = Bench::new(Config::default()).loads(&[(3, 0.2), (0, 0.1), (10, 0.2)]);
    let picked = bench.pick(&prompt_of("test1"));
    assert_eq!(name(&picked), "B");
    assert_eq!(header(&picked, "x-gateway-destination-endpoint"), Some("10.0.0.2:8000"));
    let length = prompt_of("test1").to_string().len().to_string();
    assert_eq!(header(&picked, "content-length"), Some(length.as_str()));
    assert_eq!(header(&picked, "x-request-id").map(str::len), Some(36));
    assert!(picked.model_edit.is_none() && picked.remove_headers.is_empty());
}

#[test]
fn equal_endpoints_share_the_requests() {
    let run = || {
        let bench = Bench::new(Config::default()).loads(&[(0, 0.0); 3]);
        (0..9_000).map(|_| bench.names("test1")).collect::<Vec<_>>()
    };
    let first = run();
    for name in ["A", "B", "C"] {
        let count = first.iter().filter(|other| *other == name).count();
        assert!((2_866..=3_134).contains(&count), "{name}: {count}");
    }
    assert_eq!(first, run(), "the same seed decides the same");
}

#[test]
fn a_known_prefix_weighs_against_load() {
    let prompt = "x".repeat(128);
    // With equal load A may get the prompt first; then its load changes.
    for (kv, want) in [(0.5, "A"), (0.65, "B")] {
        let bench = Bench::new(Config::default()).loads(&[(0, 0.0), (9, 0.9)]);
        assert_eq!(bench.names(&prompt), "A");
        bench.set(0, 4, kv);
        bench.set(1, 0, 0.1);
        assert_eq!(bench.names(&prompt), want, "{kv}");
    }
}

#[test]
fn a_shorter_match_can_win() {
    let bench = Bench::new(Config::default()).loads(&[(0, 0.0), (9, 0.9), (9, 0.9)]);
    let prompt: String = ["a", "b", "c", "d"].map(|letter| letter.repeat(64)).concat();
    assert_eq!(bench.names(&prompt[..192]), "A");
    for (index, waiting, kv) in [(0, 9, 0.9), (1, 0, 0.0), (2, 9, 0.9)] {
        bench.set(index, waiting, kv);
    }
    // B scores 4, A with its one matching block no more than 3.
    assert_eq!(bench.names(&prompt[..64]), "B");
    for (index, waiting, kv) in [(0, 1, 0.3), (1, 0, 0.3), (2, 0, 0.9)] {
        bench.set(index, waiting, kv);
    }
    // 3.65, 4.15, 2.2
    assert_eq!(bench.names(&prompt), "B");
}

#[test]
fn a_cache_that_reports_too_much_counts_as_full() {
    let bench = Bench::new(Config::default()).loads(&[(0, 1.3), (0, 0.99)]);
    assert_eq!(bench.names("x"), "B");
}

#[test]
fn another_salt_or_model_knows_nothing() {
    let prompt = "a".repeat(130);
    let mut body = prompt_of(&prompt);
    let bench = Bench::new(Config::default()).loads(&[(0, 0.0), (9, 0.9)]);
    assert_eq!(name(&bench.pick(&body)), "A");
    bench.set(0, 1, 0.0);
    bench.set(1, 0, 0.0);
    assert_eq!(name(&bench.pick(&body)), "A");
    body["cache_salt"] = json!("s");
    assert_eq!(name(&bench.pick(&body)), "B");
    body = prompt_of(&prompt);
    body["model"] = json!("other");
    assert_eq!(name(&bench.pick(&body)), "B");
}

#[test]
fn blocks_have_the_size_that_the_endpoints_tell() {
    let bench = Bench::new(Config::default()).loads(&[(0, 0.0), (9, 0.9)]);
    let cache = Cache { block_size: 32, blocks: 1 };
    bench.picker.members().iter().for_each(|member| member.state.set_cache(cache));
    assert_eq!(bench.names(&"x".repeat(200)), "A");
    // One block of 128 bytes, and room for one.
    assert_eq!(bench.picker.0.prefixes[0].len(), 1);
    assert_eq!(bench.names(&"y".repeat(300)), "A");
    assert_eq!(bench.picker.0.prefixes[0].len(), 1);
}

#[test]
fn an_endpoint_that_leaves_is_forgotten_at_once() {
    let bench = Bench::new(Config::default()).loads(&[(0, 0.0)]);
    bench.names(&"x".repeat(640));
    assert_eq!(bench.picker.0.prefixes[0].len(), 10);
    let bench = bench.loads(&[]);
    assert_eq!(bench.picker.0.prefixes[0].len(), 0);
}

#[test]
fn several_endpoints_can_be_named_best_first() {
    let text = "plugins:\n- type: queue-scorer\n- {type: max-score-picker, parameters: {maxNumOfEndpoints: 2}}\n";
    let bench = Bench::config(text).loads(&[(9, 0.0), (1, 0.0), (5, 0.0)]);
    let picked = bench.pick(&prompt_of("x"));
    assert_eq!(name(&picked), "BC");
    let destination = header(&picked, "x-gateway-destination-endpoint");
    assert_eq!(destination, Some("10.0.0.2:8000,10.0.0.3:8000"));
}

#[test]
fn a_session_stays_with_its_endpoint() {
    let mut bench =
        Bench::config("plugins:\n- type: session-affinity-scorer\n").loads(&[(0, 0.0); 3]);
    bench.header("x-session-token", "bnMvQw==");
    for _ in 0..20 {
        let mut picked = bench.pick(&prompt_of("x"));
        assert_eq!(name(&picked), "C");
        let set = picked.open.on_headers(StatusCode::OK, &HeaderMap::new(), bench.now);
        assert_eq!(set, [(headers::SESSION, HeaderValue::from_static("bnMvQw=="))]);
    }
    for token in ["garbage!", "bnMvWg=="] {
        bench.header("x-session-token", token);
        let names: std::collections::BTreeSet<_> = (0..100).map(|_| bench.names("x")).collect();
        assert_eq!(names.len(), 3, "{token}");
    }
}

#[test]
fn the_token_is_that_of_the_endpoint_that_served() {
    let text = "plugins:\n- type: session-affinity-scorer\n- {type: max-score-picker, parameters: {maxNumOfEndpoints: 2}}\n";
    let mut bench = Bench::config(text).loads(&[(0, 0.0); 2]);
    bench.header("x-session-token", "bnMvQg==");
    let mut picked = bench.pick(&prompt_of("x"));
    assert_eq!(name(&picked), "BA");
    picked.open.served_by(picked.destinations[1]);
    let set = picked.open.on_headers(StatusCode::OK, &HeaderMap::new(), bench.now);
    assert_eq!(set[0].1, "bnMvQQ==");
}

#[test]
fn adapters_draw_their_requests() {
    let bench = Bench::config("plugins:\n- type: lora-affinity-scorer\n").loads(&[(0, 0.0); 2]);
    let lora = Lora { running: vec!["m".into()], waiting: Vec::new(), max: 1 };
    bench.picker.members()[1].state.set_lora(lora);
    assert!((0..20).all(|_| bench.names("x") == "B"));
}

#[test]
fn open_requests_count_until_they_end_or_time_out() {
    let mut bench =
        Bench::config("plugins:\n- type: active-request-scorer\n").loads(&[(0, 0.0); 2]);
    let first = bench.pick(&prompt_of("x"));
    let second = bench.pick(&prompt_of("x"));
    assert_ne!(name(&first), name(&second));
    let busy = name(&second);
    first.open.done(Cause::Completed, bench.now);
    assert!((0..20).all(|_| bench.names("x") != busy));
    let open = |bench: &Bench| -> u32 {
        bench.picker.members().iter().map(|member| member.state.open()).sum()
    };
    assert_eq!(open(&bench), 1);
    bench.now += Duration::from_secs(120);
    bench.names("x");
    assert_eq!(open(&bench), 0);
    drop(second);
    assert_eq!(open(&bench), 0);
}

#[test]
fn cold_prompts_are_spread_by_turns() {
    let text = "plugins:\n- type: prefix-cache-scorer\n- type: no-hit-lru-scorer\nschedulingProfiles:\n- name: p\n  plugins:\n  - pluginRef: prefix-cache-scorer\n    weight: 0.1\n  - pluginRef: no-hit-lru-scorer\n";
    let bench = Bench::config(text).loads(&[(0, 0.0); 3]);
    let names: String = (0..6).map(|turn| bench.names(&format!("{turn}").repeat(64))).collect();
    assert_eq!(names, "ABCABC");
    // A prompt that is known goes where it is known, and takes nobody's turn.
    assert_eq!(bench.names(&"1".repeat(64)), "B");
    assert_eq!(bench.names(&"7".repeat(64)), "A");
}

#[test]
fn the_busiest_of_a_list_of_prompts_counts_all_of_them() {
    let bench = Bench::new(Config::default()).loads(&[(0, 0.0), (9, 0.9)]);
    let two = json!({"model": "m", "prompt": ["a".repeat(64), "b".repeat(128)]});
    assert_eq!(name(&bench.pick(&two)), "A");
    assert_eq!(bench.picker.0.prefixes[0].len(), 3);
    bench.set(0, 1, 0.0);
    bench.set(1, 0, 0.0);
    assert_eq!(bench.names(&"b".repeat(128)), "A");
}
