use proptest::prelude::*;

use super::*;

fn default() -> Bench {
    Bench::new(Config::default())
}

const NO_CANDIDATE: &str =
    "inference gateway: ServiceUnavailable - failed to find candidate pods for serving the request";

#[test]
fn the_subset_limits_the_choice() {
    let mut bench = default().loads(&[(0, 0.0), (0, 0.0), (50, 0.9)]);
    for (subset, want) in [
        (&["10.0.0.3:8000"][..], Some("C")),
        (&["10.0.0.3:1"], Some("C")),
        (&[], None),
        (&["10.0.0.99:8000"], None),
        (&["nonsense", ""], None),
    ] {
        bench.subset = Some(subset.iter().map(ToString::to_string).collect());
        match want {
            Some(want) => assert_eq!(bench.names("x"), want, "{subset:?}"),
            None => {
                let got = refused(bench.try_pick(&prompt_of("x")));
                assert_eq!(got, (503, NO_CANDIDATE.into()), "{subset:?}");
            }
        }
    }
    let address: SocketAddr = "[fd00::1]:8000".parse().unwrap();
    let endpoint = Endpoint {
        namespace: "ns".into(),
        name: "six".into(),
        address,
        metrics: address,
        labels: BTreeMap::new(),
    };
    bench.picker.set_endpoints(vec![endpoint]);
    bench.subset = Some(vec!["[fd00::1]:8000".into()]);
    let picked = bench.pick(&prompt_of("x"));
    assert_eq!(header(&picked, "x-gateway-destination-endpoint"), Some("[fd00::1]:8000"));
}

#[test]
fn an_empty_pool_serves_nobody() {
    let bench = default();
    let got = bench.try_pick(&prompt_of("x")).err().unwrap();
    assert_eq!((got.body(), got.dropped), (NO_CANDIDATE.into(), Some("rejected-no-endpoints")));
}

#[test]
fn requests_without_body_go_anywhere_that_serves() {
    let mut bench = default().roles(&["prefill", "decode"]);
    bench.path = "/v1/models";
    for _ in 0..20 {
        let picked = bench.try_bytes(None).unwrap_or_else(|refused| panic!("{refused}"));
        assert_eq!(name(&picked), "B");
        assert_eq!(header(&picked, "content-length"), None);
    }
    let bench = default();
    let text = "no pods available in datastore";
    let ours = format!("inference gateway: ServiceUnavailable - {text}");
    assert_eq!(refused(bench.try_bytes(None)), (503, ours));
    let bench = Bench::with(Config::default(), Settings { go_compat: true, ..Settings::default() });
    let theirs = format!("inference gateway: Internal - {text}");
    assert_eq!(refused(bench.try_bytes(None)), (500, theirs));
}

#[test]
fn bodies_that_cannot_be_used_are_refused() {
    let bench = default().loads(&[(0, 0.0)]);
    let json = "inference gateway: BadRequest - Error unmarshaling request body";
    let model = "inference gateway: BadRequest - model not found in request body";
    let prompt = "inference gateway: BadRequest - failed to extract request data: inference gateway: BadRequest - invalid completions request: must have prompt field";
    for (body, want) in [
        ("no healthy upstream", json),
        ("", json),
        ("[]", json),
        ("{\"model\":\"m\"", json),
        ("null", model),
        ("{\"model\":1}", model),
        ("{\"hello\":\"world\"}", model),
        ("{\"model\":\"m\"}", prompt),
        ("{\"model\":\"m\",\"prompt\":5}", prompt),
    ] {
        assert_eq!(refused(bench.try_bytes(Some(body.as_bytes()))), (400, want.into()), "{body}");
    }
}

#[test]
fn paths_that_are_not_known_are_routed() {
    let body = json!({"model": "m", "input": "x"});
    let list = json!({"model": "m", "prompt": ["a", "b"]});
    let mut bench = default().loads(&[(0, 0.0)]);
    assert_eq!(name(&bench.pick(&list)), "A");
    bench.path = "/v1/embeddings";
    assert_eq!(name(&bench.pick(&body)), "A");
    assert!(bench.try_bytes(Some(b"--boundary\r\n")).is_ok());
    let settings = Settings { go_compat: true, ..Settings::default() };
    let mut bench = Bench::with(Config::default(), settings).loads(&[(0, 0.0)]);
    assert_eq!(refused(bench.try_pick(&list)).0, 400);
    bench.path = "/v1/embeddings";
    assert_eq!(refused(bench.try_pick(&body)).0, 400);
}

#[test]
fn chats_need_messages_that_can_be_read() {
    let mut bench = default().loads(&[(0, 0.0)]);
    bench.path = "/v1/chat/completions";
    for (content, want) in [(json!(5), false), (Value::Null, true), (json!("x"), true)] {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": content}]});
        assert_eq!(bench.try_pick(&body).is_ok(), want, "{body}");
    }
    assert_eq!(refused(bench.try_pick(&json!({"model": "m", "messages": []}))).0, 400);
}

#[test]
fn the_path_may_be_in_a_header() {
    let mut bench = default().loads(&[(0, 0.0)]);
    bench.path = "";
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    assert_eq!(refused(bench.try_pick(&chat)).0, 400);
    bench.header("x-forwarded-path", "/v1/chat/completions");
    assert!(bench.try_pick(&chat).is_ok());
}

#[test]
fn another_model_name_is_spliced_into_the_body() {
    let mut bench = default().loads(&[(0, 0.0)]);
    bench.header("x-gateway-model-name-rewrite", "t\"x");
    let text = br#"{"seed":12345678901234567890, "model" : "m\u0061x","prompt":"x"}"#;
    let mut body = Body::default();
    // Split inside the name.
    body.push(Bytes::copy_from_slice(&text[..42]));
    body.push(Bytes::copy_from_slice(&text[42..]));
    let request = Request {
        path: bench.path,
        headers: &bench.headers,
        body: Some(&body),
        subset: None,
        now: bench.now,
    };
    let picked = bench.picker.pick(&request).unwrap_or_else(|refused| panic!("{refused}"));
    let edit = picked.model_edit.clone().unwrap();
    let sent = [&text[..edit.range.start], &edit.text, &text[edit.range.end..]].concat();
    let want = br#"{"seed":12345678901234567890, "model" : "t\"x","prompt":"x"}"#;
    assert_eq!(sent, want);
    assert_eq!(header(&picked, "content-length"), Some(want.len().to_string().as_str()));
    let removed = picked.remove_headers;
    assert_eq!(removed, ["x-gateway-model-name-rewrite"]);
}

#[test]
fn rules_for_model_names_go_before_the_header() {
    let mut bench = default().loads(&[(0, 0.0)]);
    bench.header("x-llm-d-model-name-rewrite", "asked");
    let edit = |bench: &Bench| bench.pick(&prompt_of("x")).model_edit.map(|edit| edit.text);
    assert_eq!(edit(&bench), Some(Bytes::from_static(b"\"asked\"")));
    let rule = RewriteRule { models: vec!["m".into()], targets: vec![("ruled".into(), 1)] };
    let rewrite = Rewrite { name: "r".into(), created: String::new(), rules: vec![rule] };
    bench.picker.set_rewrites(vec![rewrite]);
    assert_eq!(edit(&bench), Some(Bytes::from_static(b"\"ruled\"")));
    bench.picker.set_rewrites(Vec::new());
    bench.header("x-llm-d-model-name-rewrite", "m");
    assert_eq!(edit(&bench), None);
}

#[test]
fn unimportant_requests_are_shed_when_the_pool_is_full() {
    let shed = "inference gateway: InferencePoolResourceExhausted - system saturated, sheddable request dropped";
    for (go_compat, first) in [(false, true), (true, false)] {
        let settings = Settings { go_compat, ..Settings::default() };
        let mut bench = Bench::with(Config::default(), settings).loads(&[(10, 0.1), (0, 0.1)]);
        bench.picker.set_objectives(BTreeMap::from([("low".into(), -1)]));
        bench.header("x-gateway-inference-objective", "low");
        assert_eq!(bench.try_pick(&prompt_of("x")).is_ok(), first, "{go_compat}");
        bench.set(1, 6, 0.1);
        assert_eq!(refused(bench.try_pick(&prompt_of("x"))), (429, shed.into()), "{go_compat}");
        bench.header("x-gateway-inference-objective", "unknown");
        assert!(bench.try_pick(&prompt_of("x")).is_ok(), "{go_compat}");
    }
}

#[test]
fn old_figures_count_as_full() {
    let mut bench = default().loads(&[(0, 0.0)]);
    bench.picker.set_objectives(BTreeMap::from([("low".into(), -1)]));
    bench.header("x-llm-d-inference-objective", "low");
    bench.now += Duration::from_millis(499);
    assert!(bench.try_pick(&prompt_of("x")).is_ok());
    bench.now += Duration::from_millis(2);
    assert_eq!(refused(bench.try_pick(&prompt_of("x"))).0, 429);
    // While the scraper takes its time, so does this.
    bench.picker.set_rhythm(Duration::from_secs(1));
    assert!(bench.try_pick(&prompt_of("x")).is_ok());
}

#[test]
fn control_headers_end_here() {
    let mut bench = default().loads(&[(0, 0.0)]);
    let names = [
        "x-gateway-inference-objective",
        "x-llm-d-inference-objective",
        "x-gateway-inference-fairness-id",
        "x-llm-d-inference-fairness-id",
        "x-gateway-model-name-rewrite",
        "x-llm-d-model-name-rewrite",
        "x-gateway-destination-endpoint-subset",
        "x-gateway-destination-endpoint-served",
        "x-prefiller-host-port",
        "x-data-parallel-host-port",
        "x-encoder-hosts-ports",
        "x-kv-cache-source-host-port",
    ];
    names.iter().for_each(|name| bench.header(name, "m"));
    bench.header("x-request-id", "given");
    bench.header("x-gateway-destination-endpoint", "1.2.3.4:5");
    let picked = bench.pick(&prompt_of("x"));
    assert_eq!(picked.remove_headers, names);
    assert_eq!(header(&picked, "x-request-id"), None);
    assert_eq!(header(&picked, "x-gateway-destination-endpoint"), Some("10.0.0.1:8000"));
    let withheld = withheld(&bench.headers);
    assert_eq!(withheld.len(), names.len() + 1, "where nothing is set, this one too: {withheld:?}");
}

#[test]
fn tests_can_name_the_endpoints() {
    let text = "plugins:\n- type: header-based-testing-filter\n- type: destination-endpoint-served-verifier\n- {type: max-score-picker, parameters: {maxNumOfEndpoints: 9}}\nschedulingProfiles:\n- name: conformance-profile\n  plugins:\n  - pluginRef: header-based-testing-filter\n";
    let mut bench = Bench::config(text).loads(&[(0, 0.0); 3]);
    let failure =
        "failed to find target pod: failed to run scheduler profile 'conformance-profile'";
    let none = format!("inference gateway: ServiceUnavailable - {failure}");
    assert_eq!(refused(bench.try_pick(&prompt_of("x"))), (503, none.clone()));
    for (header, want) in [
        ("10.0.0.3", Some("C")),
        ("10.0.0.2:8000, 10.0.0.2", Some("B")),
        ("10.0.0.2:1", None),
        (" , ", None),
    ] {
        bench.header("test-epp-endpoint-selection", header);
        match want {
            Some(want) => {
                let mut picked = bench.pick(&prompt_of("x"));
                assert_eq!(name(&picked), want, "{header}");
                let set = picked.open.on_headers(StatusCode::OK, &HeaderMap::new(), bench.now);
                assert_eq!(set[0].0, "x-conformance-test-served-endpoint");
                assert_eq!(set[0].1, picked.destinations[0].to_string());
            }
            None => assert_eq!(refused(bench.try_pick(&prompt_of("x"))), (503, none.clone())),
        }
    }
}

#[test]
fn a_cut_body_is_routed_by_what_is_there() {
    let bench = default().loads(&[(0, 0.0), (9, 0.9)]);
    let mut headers = HeaderMap::new();
    headers.insert("x-gateway-model-name-rewrite", "t".parse().unwrap());
    let text = format!("{{\"model\":\"m\",\"prompt\":\"{}", "x".repeat(640));
    let mut body = Body::from(Bytes::from(text));
    body.cut();
    let request = Request {
        path: "/v1/completions",
        headers: &headers,
        body: Some(&body),
        subset: None,
        now: bench.now,
    };
    let picked = bench.picker.pick(&request).unwrap_or_else(|refused| panic!("{refused}"));
    assert_eq!(name(&picked), "A");
    let edit = ModelEdit { range: 9..12, text: Bytes::from_static(b"\"t\"") };
    assert_eq!((header(&picked, "content-length"), &picked.model_edit), (None, &Some(edit)));
    assert_eq!(bench.picker.0.prefixes[0].len(), 10);
}

#[test]
fn the_length_of_a_cut_body_follows_its_model_name() {
    let mut bench = default().loads(&[(0, 0.0)]);
    let mut body = Body::from(Bytes::from_static(b"{\"model\":\"m\",\"prompt\":\"x"));
    body.cut();
    for (name, length, want) in [
        ("longer", Some("1000"), Some("1005")),
        ("longer", None, None),
        ("m", Some("1000"), None),
        ("longer", Some("nonsense"), None),
    ] {
        bench.headers.clear();
        bench.header("x-gateway-model-name-rewrite", name);
        length.into_iter().for_each(|length| bench.header("content-length", length));
        let picked = bench.try_body(Some(&body)).unwrap_or_else(|refused| panic!("{refused}"));
        assert_eq!(header(&picked, "content-length"), want, "{name} {length:?}");
        assert_eq!(picked.model_edit.is_some(), name != "m");
    }
}

#[test]
fn a_name_that_was_not_seen_cannot_be_replaced() {
    let mut bench = default().loads(&[(0, 0.0)]);
    let cut = |text: &'static str| {
        let mut body = Body::from(Bytes::from_static(text.as_bytes()));
        body.cut();
        body
    };
    let late = cut("{\"prompt\":\"x");
    let model = "inference gateway: BadRequest - model not found in request body";
    assert!(bench.try_body(Some(&late)).is_ok(), "nobody wants another name");
    bench.header("x-gateway-model-name-rewrite", "t");
    assert_eq!(refused(bench.try_body(Some(&late))), (400, model.into()));
    bench.headers.clear();
    let rule = RewriteRule { models: Vec::new(), targets: vec![("t".into(), 1)] };
    let rewrite = Rewrite { name: "r".into(), created: String::new(), rules: vec![rule] };
    bench.picker.set_rewrites(vec![rewrite]);
    assert_eq!(refused(bench.try_body(Some(&late))), (400, model.into()));
    bench.path = "/v1/audio/transcriptions";
    assert!(bench.try_body(Some(&cut("--boundary\r\n"))).is_ok(), "nobody knows its form");
}

#[test]
fn the_first_request_after_a_rest_wakes_the_scraper() {
    use std::future::Future;
    let mut bench = default().loads(&[(0, 0.0)]);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(bench.picker.rests(bench.now));
    for (later, wakes) in [(0, true), (4, false), (6, true)] {
        bench.now += Duration::from_secs(later);
        let mut woken = std::pin::pin!(bench.picker.woken());
        assert!(woken.as_mut().poll(&mut context).is_pending());
        bench.names("x");
        assert_eq!(woken.as_mut().poll(&mut context).is_ready(), wakes, "{later}");
        assert!(!bench.picker.rests(bench.now));
    }
}

#[test]
fn what_happened_can_be_counted() {
    let mut bench = default().loads(&[(3, 0.25), (0, 0.75)]);
    bench.header("x-gateway-model-name-rewrite", "t");
    let mut picked = bench.pick(&prompt_of("x"));
    let shows = |line: &str| {
        let text = bench.picker.metrics(bench.now);
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    };
    let models = "model_name=\"m\",target_model_name=\"t\"";
    shows("inference_objective_running_requests{model_name=\"m\"} 1");
    shows(&format!("inference_objective_request_total{{{models}}} 1"));
    shows("inference_pool_average_kv_cache_utilization{name=\"\"} 0.5");
    shows("inference_pool_average_queue_size{name=\"\"} 1");
    shows("inference_pool_ready_pods{name=\"\"} 2");
    shows("inference_pool_per_pod_queue_size{name=\"\",model_server_pod=\"A\"} 3");
    picked.open.on_headers(StatusCode::OK, &HeaderMap::new(), bench.now);
    picked.open.on_chunk(b"{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}", bench.now);
    picked.open.done(Cause::Completed, bench.now + Duration::from_secs(2));
    shows("inference_objective_running_requests{model_name=\"m\"} 0");
    shows(&format!("inference_objective_request_duration_seconds_sum{{{models}}} 2.0"));
    shows(&format!("inference_objective_output_tokens_sum{{{models}}} 4.0"));
    let mut failing = bench.pick(&prompt_of("x"));
    failing.open.on_headers(StatusCode::BAD_GATEWAY, &HeaderMap::new(), bench.now);
    drop(failing);
    shows(&format!(
        "inference_objective_request_error_total{{{models},error_code=\"ModelServerError\"}} 1"
    ));
    assert!(bench.try_bytes(Some(b"{")).is_err());
    shows(
        "inference_objective_request_error_total{model_name=\"\",target_model_name=\"\",error_code=\"BadRequest\"} 1",
    );
    shows("inference_objective_running_requests{model_name=\"m\"} 0");
    shows("inference_extension_scheduler_attempts_total{status=\"success\"} 2");
    for (point, kind) in [("Scorer", "queue-scorer"), ("Picker", "max-score-picker")] {
        let labels =
            format!("extension_point=\"{point}\",plugin_type=\"{kind}\",plugin_name=\"{kind}\"");
        shows(&format!("inference_extension_plugin_duration_seconds_count{{{labels}}} 2"));
    }
}

proptest! {
    #[test]
    fn no_request_makes_the_picker_fail(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        near in r#"\{"(model|prompt|messages|input|items|tools)":("[a-z\\]{0,9}"|\[[0-9,{}"a-z:]{0,12}\]|null|5)(,"(model|prompt|messages|content)":("m"|\["a"\]|\{\}))?\}"#,
        path in prop_oneof![
            Just("/v1/completions"), Just("/v1/chat/completions"), Just("/v1/responses"),
            Just("/v1/conversations"), Just("/other"), Just("")
        ],
        cut in any::<bool>(),
    ) {
        let mut bench = default().loads(&[(0, 0.0), (1, f64::NAN)]);
        bench.path = path;
        for text in [&bytes[..], near.as_bytes()] {
            let mut body = Body::from(Bytes::copy_from_slice(text));
            if cut {
                body.cut();
            }
            let request = Request { path, headers: &bench.headers, body: Some(&body), subset: None, now: bench.now };
            let _ = bench.picker.pick(&request);
        }
    }
}
