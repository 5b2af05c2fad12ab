//! What engines say, in their words.

use serde_json::{Value, json};

pub(crate) fn completion(model: &str, tokens: u64) -> Value {
    let text: String = (0..tokens).map(token).collect();
    json!({
        "id": "cmpl-1", "object": "text_completion", "model": model,
        "choices": [{"index": 0, "text": text, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1},
    })
}

/// One token of a streamed answer.
pub(crate) fn chunk(model: &str, at: u64) -> String {
    json!({
        "id": "cmpl-1", "object": "text_completion", "model": model,
        "choices": [{"index": 0, "text": token(at), "finish_reason": null}],
    })
    .to_string()
}

fn token(at: u64) -> String {
    format!("token{at} ")
}

/// Those figures of vLLM that pickers read.
pub(crate) fn metrics(model: &str, running: usize) -> String {
    let name = model.replace(['"', '\\', '\n'], "");
    format!(
        "# TYPE vllm:num_requests_running gauge\n\
         vllm:num_requests_running{{engine=\"0\",model_name=\"{name}\"}} {running}\n\
         # TYPE vllm:num_requests_waiting gauge\n\
         vllm:num_requests_waiting{{engine=\"0\",model_name=\"{name}\"}} 0\n\
         # TYPE vllm:kv_cache_usage_perc gauge\n\
         vllm:kv_cache_usage_perc{{engine=\"0\",model_name=\"{name}\"}} 0\n\
         # TYPE vllm:cache_config_info gauge\n\
         vllm:cache_config_info{{block_size=\"16\",num_gpu_blocks=\"2048\"}} 1\n"
    )
}
