use proptest::prelude::*;
use serde_json::json;

use super::*;

const EXAMPLE: &str = r#"[{"filename": "tiny-lm-mi300x-latency.yaml",
  "profile": {"model": "acme/tiny-lm-7b", "quantized_model": "acme/tiny-lm-7b-fp8",
    "metadata": {"engine": "vllm", "gpu": "MI300X", "precision": "fp8", "gpu_count": 2, "metric": "latency"},
    "engine_args": {"tensor-parallel-size": 2, "max-model-len": 8192},
    "env_vars": {"VLLM_USE_V1": "1"}},
  "models": [{"name": "acme/tiny-lm-7b-fp8", "source": "hf://acme/tiny-lm-7b-fp8", "size_gb": 12.55}]}]"#;

fn example() -> Discovered {
    let text = |text: &str| Some(text.to_owned());
    Discovered {
        sources: vec![Source {
            name: "acme/tiny-lm-7b-fp8".to_owned(),
            uri: "hf://acme/tiny-lm-7b-fp8".to_owned(),
            size: "13475459891".to_owned(),
        }],
        profile: Profile {
            engine_args: Some(json!({"tensor-parallel-size": 2, "max-model-len": 8192})),
            env_vars: BTreeMap::from([("VLLM_USE_V1".to_owned(), "1".to_owned())]),
            metadata: Metadata {
                engine: text("vllm"),
                gpu: text("MI300X"),
                gpu_count: Some(2),
                metric: text("latency"),
                precision: text("fp8"),
            },
        },
    }
}

fn of(log: &str) -> Result<Discovered, Error> {
    parse(log.as_bytes())
}

/// The name of the first model, for logs that need nothing else.
fn model(log: &str) -> Option<String> {
    Some(of(log).ok()?.sources.first()?.name.clone())
}

#[test]
fn g18_the_example_is_read() {
    assert_eq!(of(EXAMPLE), Ok(example()));
    assert_eq!(of(&format!("[INFO] scanning\n[1/2] a\n{EXAMPLE}\n")), Ok(example()));
}

#[test]
fn g18_no_results_and_no_array_are_told_apart() {
    for (log, want) in [
        ("[]", "discovery output contains empty array"),
        (" [ ]\n", "discovery output contains empty array"),
        ("null", "discovery output contains empty array"),
        ("", "failed to parse discovery JSON: no valid JSON array found in logs"),
        ("{}", "failed to parse discovery JSON: no valid JSON array found in logs"),
        ("[1]", "failed to parse discovery JSON: no valid JSON array found in logs"),
        ("[INFO] done\n[]\n", "failed to parse discovery JSON: no valid JSON array found in logs"),
    ] {
        assert_eq!(of(log).unwrap_err().to_string(), want, "{log:?}");
    }
}

#[test]
fn w19_brackets_after_the_result_do_no_harm() {
    for after in
        ["[INFO] done", "]", "]]]", "[", "[{", "[]", "[{\"a\": [", "[{\"level\": \"info\"}]"]
    {
        assert_eq!(of(&format!("{EXAMPLE}\n{after}\n")), Ok(example()), "{after}");
        assert_eq!(of(&format!("{after}\n{EXAMPLE}\n{after}")), Ok(example()), "{after}");
    }
}

#[test]
fn w19_only_the_end_of_a_long_log_counts() {
    let noise = "x".repeat(LOG_LIMIT_BYTES);
    assert_eq!(of(&format!("{noise}\n{EXAMPLE}\n")), Ok(example()));
    assert_eq!(of(&format!("{EXAMPLE}\n{noise}")), Err(Error::NoArray));
}

#[test]
fn the_last_of_several_results_counts() {
    let doc = |name: &str| format!(r#"[{{"models": [{{"name": "{name}"}}]}}]"#);
    let (a, b) = (doc("a"), doc("b"));
    assert_eq!(model(&format!("{a}\n{b}")).as_deref(), Some("b"));
    assert_eq!(model(&format!("{a} {b}\n[]\n[7]")).as_deref(), Some("b"));
    assert_eq!(model(&format!(r#"{a} [{{"models": 7}}]"#)).as_deref(), Some("a"));
    assert_eq!(model(&format!(r#"{{"results": {b}}}"#)).as_deref(), Some("b"));
}

#[test]
fn only_the_first_element_counts_but_all_must_fit() {
    let two = r#"[{"models": [{"name": "a"}]}, {"models": [{"name": "b"}]}]"#;
    assert_eq!(model(two).as_deref(), Some("a"));
    assert_eq!(of(r#"[{"models": [{"name": "a"}]}, {"models": "b"}]"#), Err(Error::NoArray));
    assert_eq!(of(r#"[{"models": []}, 1]"#), Err(Error::NoArray));
}

#[test]
fn keys_in_any_case_and_null_for_unset() {
    let log = r#"[{"Models": [{"NAME": "a", "Source": null, "SIZE_GB": 1}, null], "extra": [1],
        "profile": {"Metadata": {"GPU_Count": null, "engine": ""}, "env_vars": {"A": null}}}]"#;
    let got = of(log).unwrap();
    let source = |name: &str, size: &str| Source {
        name: name.to_owned(),
        uri: String::new(),
        size: size.to_owned(),
    };
    assert_eq!(got.sources, [source("a", "1Gi"), source("", "0")]);
    assert_eq!(got.profile.env_vars["A"], "");
    assert_eq!(got.profile.metadata, Metadata::default());
    assert_eq!(got.profile.engine_args, None);
    assert_eq!(of("[null]"), Ok(Discovered::default()));
    assert_eq!(of("[{}]"), Ok(Discovered::default()));
}

#[test]
fn values_of_wrong_types_reject_the_whole() {
    for element in [
        r#"{"filename": 1}"#,
        r#"{"profile": []}"#,
        r#"{"profile": {"model": 1}}"#,
        r#"{"profile": {"quantized_model": {}}}"#,
        r#"{"profile": {"metadata": "x"}}"#,
        r#"{"profile": {"metadata": {"engine": 1}}}"#,
        r#"{"profile": {"metadata": {"gpu_count": "2"}}, "models": [{"name": "a"}]}"#,
        r#"{"profile": {"metadata": {"gpu_count": 2.0}}}"#,
        r#"{"profile": {"metadata": {"gpu_count": 2147483648}}}"#,
        r#"{"profile": {"engine_args": [1]}}"#,
        r#"{"profile": {"env_vars": {"A": 1}}}"#,
        r#"{"models": {}}"#,
        r#"{"models": ["a"]}"#,
        r#"{"models": [{"size_gb": "1"}]}"#,
        r#"{"models": [{"size_gb": 1e999}]}"#,
    ] {
        assert_eq!(of(&format!("[{element}]")), Err(Error::NoArray), "{element}");
        assert_eq!(of(&format!("noise\n[{element}]\nnoise")), Err(Error::NoArray), "{element}");
    }
}

#[test]
fn what_is_left_of_a_cut_result_is_none() {
    for cut in 1..EXAMPLE.len() {
        assert_eq!(of(&EXAMPLE[..cut]), Err(Error::NoArray), "{cut}");
        assert_eq!(of(&EXAMPLE[cut..]), Err(Error::NoArray), "{cut}");
    }
}

#[test]
fn broken_utf8_is_replaced() {
    let mut log = b"\xff\xfe\n[{\"models\": [{\"name\": \"a".to_vec();
    log.extend(b"\xff\"}]}]\n\xff");
    assert_eq!(parse(&log).unwrap().sources[0].name, "a\u{fffd}");
}

#[test]
fn sizes_are_binary_quantities() {
    for (gib, want) in [
        (0.5, "512Mi"),
        (15.0, "15Gi"),
        (140.25, "143616Mi"),
        (12.55, "13475459891"),
        (0.0, "0"),
        (-0.5, "-512Mi"),
        (1000.0 / 1_073_741_824.0, "1000"),
        (1.0 / 1_048_576.0, "1Ki"),
        (1024.0, "1Ti"),
        (1_073_741_824.0, "1Ei"),
        (f64::MAX, "9223372036854775807"),
    ] {
        assert_eq!(quantity(gib), want, "{gib}");
    }
}

/// Bytes parsed while searching a log.
fn work(log: &str) -> u64 {
    let mut effort = Effort::for_a_log_of(log.len());
    let all = effort.left;
    search::last_result(log, &mut effort);
    all - effort.left
}

#[test]
fn an_honest_log_is_parsed_once() {
    let log = format!("{}{EXAMPLE}\n[INFO] done\n", "[INFO] [a] {b} [{'c': 1}]\n".repeat(1000));
    assert!(work(&log) < log.len() as u64, "{}", work(&log));
    assert_eq!(of(&log), Ok(example()));
}

#[test]
fn w19_bombs_end_within_the_budget() {
    let size = 1 << 18;
    for part in ["[", "]", "[[]", "\"", "[ ", "[\"", "{"] {
        assert_eq!(work(&part.repeat(size)), 0, "{part}");
    }
    for part in ["[{", "[{\"a\":", "[{\"a\":[", "{\"a\":[", "[{\"a\":1},", "[{\"", "[{\"a\":\""] {
        let bomb = part.repeat(size / part.len());
        assert!(work(&bomb) <= (4 * size as u64).max(1 << 20), "{part}");
        assert_eq!(of(&bomb), Err(Error::NoArray), "{part}");
    }
    // What is longer than any result is given up, and not taken for one.
    let one_string = format!("[{{\"a\": \"{}", "x".repeat(2 * MAX_ELEMENT));
    assert_eq!(work(&one_string), MAX_ELEMENT as u64);
    let large = format!(r#"[{{"models": [{}{{}}]}}]"#, "{},".repeat(MAX_ELEMENT / 3));
    assert_eq!(of(&large), Err(Error::TooLong));
    let message = "failed to parse discovery JSON: a result has more than 1048576 bytes";
    assert_eq!(Error::TooLong.to_string(), message);
}

/// An image may know thousands of ways to be served. Only the first counts, but all are its answer.
#[test]
fn an_answer_may_be_as_long_as_the_log() {
    let element = EXAMPLE.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap();
    let other = format!(",\n{}", element.replace("tiny-lm-7b", "other"));
    let count = (LOG_LIMIT_BYTES - 2 * EXAMPLE.len()) / other.len();
    let others = other.repeat(count);
    let answer = format!("[{element}{others}]");
    assert!(answer.len() > 30 * (128 << 10) && answer.len() < LOG_LIMIT_BYTES, "{}", answer.len());
    assert_eq!(of(&answer), Ok(example()));
    let noisy = format!("[INFO] scanning\n{answer}\n[INFO] done\n");
    assert_eq!(of(&noisy), Ok(example()));
    assert!(work(&noisy) <= noisy.len() as u64, "{}", work(&noisy));
    let misfit = format!("[{element}{others},{{\"models\": 7}}]");
    assert_eq!(of(&misfit), Err(Error::NoArray), "all must fit");
}

/// One result with a long list of arguments.
#[test]
fn a_single_result_may_be_long() {
    let args: Vec<String> = (0..20_000).map(|n| format!("\"argument-{n}\": {n}")).collect();
    let answer = format!(r#"[{{"profile": {{"engine_args": {{{}}}}}}}]"#, args.join(","));
    assert!(answer.len() > 3 * (128 << 10), "{}", answer.len());
    let read = of(&answer).unwrap().profile.engine_args.unwrap();
    assert_eq!(read.as_object().unwrap().len(), 20_000);
}

/// An answer that no object can hold would be asked for again and again.
#[test]
fn w19_what_could_not_be_stored_is_refused() {
    let models = |count: usize| format!(r#"[{{"models":[{}]}}]"#, vec!["{}"; count].join(","));
    assert_eq!(of(&models(20_000)).unwrap().sources.len(), 20_000);
    assert_eq!(of(&models(60_000)), Err(Error::TooMuch));
    let names: Vec<String> = (0..40_000).map(|n| format!("\"v{n}\":\"\"")).collect();
    let variables = format!(r#"[{{"profile":{{"env_vars":{{{}}}}}}}]"#, names.join(","));
    assert_eq!(of(&variables), Err(Error::TooMuch));
    let profile = |field: &str, value: &str| format!(r#"[{{"profile":{{"{field}":{value}}}}}]"#);
    // What takes more room in the store than in the log.
    let marks = format!(r#"{{"A":"{}"}}"#, "<".repeat(180_000));
    let controls = format!(r#"{{"{}":""}}"#, r"\u0001".repeat(90_000));
    let numbers = format!(r#"{{"a":[{}]}}"#, vec!["1e20"; 60_000].join(","));
    for (field, value) in [("env_vars", marks), ("env_vars", controls), ("engine_args", numbers)] {
        assert_eq!(of(&profile(field, &value)).err(), Some(Error::TooMuch), "{value:.20}");
    }
}

#[test]
fn a_spent_budget_keeps_what_was_found() {
    let log = format!("{EXAMPLE}\n{}", "[{\"a\":".repeat(100));
    let effort = |left| Effort { left, too_long: false };
    let mut little = effort(EXAMPLE.len() as u64 + 10);
    assert_eq!(search::last_result(&log, &mut little), Some(example()));
    assert_eq!(little.left, 0);
    assert_eq!(search::last_result(&log, &mut effort(10)), None);
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(log in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = parse(&log);
    }

    #[test]
    fn any_json_like_text_is_parsed_within_the_budget(
        log in r#"([\[\]{}",:\\ \n]|null|1|"a":|"models":){0,300}"#,
    ) {
        let _ = of(&log);
        let _ = search::last_result(&log, &mut Effort { left: 20, too_long: false });
    }

    #[test]
    fn a_result_is_found_among_any_lines(
        before in "([^\\[\\]\n]{0,40}\n){0,20}",
        after in "(\n[^\\[\\]\n]{0,40}){0,20}",
    ) {
        prop_assert_eq!(of(&format!("{before}{EXAMPLE}{after}")), Ok(example()));
    }
}
