use super::*;
use crate::usage::Usage;

fn lines(metrics: &Metrics, pool: &PoolFigures) -> Vec<String> {
    metrics.text(std::slice::from_ref(pool)).lines().map(str::to_owned).collect()
}

#[test]
fn a_request_is_counted_under_both_names() {
    let metrics = Metrics::default();
    let models = metrics.models("m", "t");
    metrics.began(&models, 100);
    metrics.decided("m", true);
    metrics.scheduled(true, 0.000_05);
    metrics.prefix(2, 4, 64);
    metrics.rewritten("r", "m", "t");
    metrics.failed(&models, "Internal");
    let usage = Some(Usage { prompt: 10, completion: 4, cached: 8 });
    metrics.completed(&models, Ended { seconds: 2.0, response_bytes: 9, usage });
    metrics.closed(&models);
    let pool = PoolFigures {
        name: "p".into(),
        kv_cache: 0.5,
        queue: 3,
        ready: 2,
        queues: vec![("a-rank-0".into(), 3)],
        prefixes: 7,
    };
    let lines = lines(&metrics, &pool);
    let labels = "model_name=\"m\",target_model_name=\"t\"";
    for want in [
        format!("inference_objective_request_total{{{labels}}} 1"),
        format!("llm_d_epp_request_total{{{labels}}} 1"),
        format!("inference_objective_request_error_total{{{labels},error_code=\"Internal\"}} 1"),
        format!("inference_objective_request_sizes_bucket{{le=\"128.0\",{labels}}} 1"),
        format!("inference_objective_request_duration_seconds_bucket{{le=\"2.0\",{labels}}} 1"),
        format!("inference_objective_input_tokens_bucket{{le=\"8.0\",{labels}}} 0"),
        format!("inference_objective_input_tokens_bucket{{le=\"32778.0\",{labels}}} 1"),
        format!("inference_objective_output_tokens_sum{{{labels}}} 4.0"),
        format!("inference_objective_prompt_cached_tokens_sum{{{labels}}} 8.0"),
        format!("inference_objective_normalized_time_per_output_token_seconds_sum{{{labels}}} 0.5"),
        format!("inference_objective_response_sizes_sum{{{labels}}} 9.0"),
        "inference_objective_running_requests{model_name=\"m\"} 0".into(),
        "inference_pool_average_kv_cache_utilization{name=\"p\"} 0.5".into(),
        "inference_pool_average_queue_size{name=\"p\"} 3".into(),
        "inference_pool_ready_pods{name=\"p\"} 2".into(),
        "inference_pool_per_pod_queue_size{name=\"p\",model_server_pod=\"a-rank-0\"} 3".into(),
        "inference_extension_scheduler_attempts_total{status=\"success\"} 1".into(),
        "inference_extension_scheduler_e2e_duration_seconds_bucket{le=\"0.0001\"} 1".into(),
        "inference_extension_prefix_indexer_size 7".into(),
        "inference_extension_prefix_indexer_hit_ratio_sum 0.5".into(),
        "inference_extension_prefix_indexer_hit_bytes_sum 128.0".into(),
        "inference_extension_model_rewrite_decisions_total{model_rewrite_name=\"r\",model_name=\"m\",target_model=\"t\"} 1".into(),
        "llm_d_inference_scheduler_pd_decision_total{model_name=\"m\",decision_type=\"prefill-decode\"} 1".into(),
    ] {
        assert!(lines.contains(&want), "{want}\n{}", lines.join("\n"));
    }
}

#[test]
fn endpoints_that_have_gone_are_not_shown() {
    let metrics = Metrics::default();
    let pool =
        |name: &str| PoolFigures { queues: vec![(name.into(), 1)], ..PoolFigures::default() };
    metrics.text(&[pool("a")]);
    assert!(!lines(&metrics, &pool("b")).iter().any(|line| line.contains("\"a\"")));
}

#[test]
fn clients_cannot_make_more_and_more_series() {
    let metrics = Metrics::default();
    for number in 0..2_000 {
        metrics.began(&metrics.models(&format!("m{number}"), "t"), 1);
    }
    assert_eq!(metrics.models("m5", "new").target_model_name, "other");
    assert_eq!(metrics.models("m5", "t").model_name, "m5");
    let text = metrics.text(&[]);
    let series = |line: &&str| line.starts_with("inference_objective_request_total{");
    // "t" is one of the names.
    assert_eq!(text.lines().filter(series).count(), 1_000);
}
