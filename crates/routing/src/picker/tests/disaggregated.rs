use super::*;

fn config() -> Config {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../domains/src/model_service/epp_config/pd-config.yaml"
    );
    Config::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A prefills; B and C decode, C is busier.
fn bench() -> Bench {
    bench_with(Settings::default())
}

fn bench_with(settings: Settings) -> Bench {
    let bench = Bench::with(config(), settings).roles(&["prefill", "decode", "decode"]);
    bench.set(2, 3, 0.0);
    bench
}

const PREFILLER: &str = "x-prefiller-host-port";

fn split(bench: &Bench, prompt: &str) -> bool {
    let picked = bench.pick(&prompt_of(prompt));
    assert_eq!(name(&picked), "B");
    match header(&picked, PREFILLER) {
        Some(address) => {
            assert_eq!(address, "10.0.0.1:8000");
            true
        }
        None => false,
    }
}

#[test]
fn a_cold_prompt_is_prefilled_elsewhere_and_a_known_one_is_not() {
    let bench = bench();
    let prompt = "p".repeat(1024);
    assert!(split(&bench, &prompt));
    assert!(!split(&bench, &prompt));
    let metrics = bench.picker.metrics(bench.now);
    for decision in ["prefill-decode", "decode-only"] {
        let line = format!(
            "llm_d_inference_scheduler_pd_decision_total{{model_name=\"m\",decision_type=\"{decision}\"}} 1\n"
        );
        assert!(metrics.contains(&line), "{metrics}");
    }
    // Both stages know it now.
    assert_eq!(bench.picker.0.prefixes[0].len(), 32);
    assert!(!split(&bench, &format!("{prompt}{}", "q".repeat(60))));
    assert!(split(&bench, &format!("{prompt}{}", "q".repeat(64))));
}

#[test]
fn short_prompts_are_not_worth_a_second_endpoint() {
    assert!(!split(&bench(), &"p".repeat(63)));
    assert!(split(&bench(), &"p".repeat(64)));
}

#[test]
fn long_prompts_are_known_to_their_end() {
    let prompt = "p".repeat(40_960);
    let bench = bench();
    assert!(split(&bench, &prompt) && !split(&bench, &prompt));
    let compat = bench_with(Settings { go_compat: true, ..Settings::default() });
    assert!(split(&compat, &prompt) && split(&compat, &prompt));
}

#[test]
fn without_prefill_endpoints_decoding_goes_on() {
    let bench = Bench::new(config()).roles(&["decode"]);
    let picked = bench.pick(&prompt_of(&"p".repeat(1024)));
    assert_eq!((name(&picked).as_str(), header(&picked, PREFILLER)), ("A", None));
}

#[test]
fn without_decode_endpoints_the_request_is_refused() {
    let message = "failed to find target pod: failed to find available decode workers";
    let bench = Bench::new(config()).roles(&["prefill"]);
    let ours = format!("inference gateway: ServiceUnavailable - {message}");
    assert_eq!(refused(bench.try_pick(&prompt_of("x"))), (503, ours));
    let settings = Settings { go_compat: true, ..Settings::default() };
    let bench = Bench::with(config(), settings).roles(&["prefill"]);
    let theirs = format!("inference gateway: InferencePoolResourceExhausted - {message}");
    assert_eq!(refused(bench.try_pick(&prompt_of("x"))), (429, theirs));
}

#[test]
fn a_client_cannot_name_the_prefill_endpoint() {
    let mut bench = bench();
    bench.header(PREFILLER, "1.2.3.4:80");
    let short = bench.pick(&prompt_of("x"));
    assert_eq!(short.remove_headers, [headers::PREFILLER]);
    assert_eq!(header(&short, PREFILLER), None);
    let long = bench.pick(&prompt_of(&"p".repeat(1024)));
    assert!(long.remove_headers.is_empty());
    assert_eq!(header(&long, PREFILLER), Some("10.0.0.1:8000"));
}

#[test]
fn all_apis_have_a_length() {
    let mut bench = bench();
    bench.path = "/v1/responses";
    let body = |input: &str| json!({"model": "m", "input": input});
    assert_eq!(header(&bench.pick(&body("x")), PREFILLER), None);
    assert!(header(&bench.pick(&body(&"x".repeat(1024))), PREFILLER).is_some());
    bench.path = "/v1/conversations";
    let body = json!({"model": "m", "items": [{"type": "message", "content": "x"}]});
    assert_eq!(name(&bench.pick(&body)), "B");
}

#[test]
fn endpoints_of_both_roles_decode() {
    for (roles, decodes, prefills) in [
        (["", "prefill"], "A", Some("10.0.0.2:8000")),
        (["both", "prefill"], "A", Some("10.0.0.2:8000")),
        (["decode", "both"], "AB", None),
    ] {
        let bench = Bench::new(config()).roles(&roles);
        let picked = bench.pick(&prompt_of(&"p".repeat(1024)));
        assert!(decodes.contains(&name(&picked)), "{roles:?}");
        assert_eq!(header(&picked, PREFILLER), prefills, "{roles:?}");
    }
}

#[test]
fn the_other_dialect_decides_in_its_own_way() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../domains/src/model_service/epp_config/pd-config.llm-d.yaml"
    );
    let config = Config::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let bench = Bench::new(config).roles(&["both"]);
    let prompt = prompt_of(&"p".repeat(1024));
    // One endpoint may do both stages.
    assert_eq!(header(&bench.pick(&prompt), PREFILLER), Some("10.0.0.1:8000"));
    assert_eq!(header(&bench.pick(&prompt), PREFILLER), None);
    let gone = bench.roles(&["prefill"]);
    let (status, text) = refused(gone.try_pick(&prompt));
    assert_eq!(status, 503);
    assert!(text.starts_with("inference error: ServiceUnavailable - failed to find target pod"));
}

#[test]
fn the_rank_is_in_a_header_when_one_port_leads_to_all() {
    let bench =
        Bench::config("plugins:\n- type: data-parallel-profile-handler\n- type: queue-scorer\n")
            .roles(&[""]);
    let pod = crate::endpoint::Pod {
        namespace: "ns".into(),
        name: "p".into(),
        ip: "10.0.0.1".parse().unwrap(),
        labels: BTreeMap::new(),
    };
    bench.picker.set_endpoints(pod.endpoints(&[9000, 9001], None));
    bench.set(0, 5, 0.0);
    let picked = bench.pick(&prompt_of("x"));
    assert_eq!(picked.destinations, ["10.0.0.1:8000".parse().unwrap()]);
    assert_eq!(header(&picked, "x-gateway-destination-endpoint"), Some("10.0.0.1:8000"));
    assert_eq!(header(&picked, "x-data-parallel-host-port"), Some("10.0.0.1:9001"));
}
