//! What pickers read, by the names of vLLM.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use windlass_inference::engine::{Figures, Reason};

use super::answer::name;

/// Of `vllm:cache_config_info`: pickers keep as many prompts in mind as fit.
const BLOCK: usize = 16;
const FIRST_TOKEN: [f64; 21] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0,
];
const EACH_TOKEN: [f64; 13] =
    [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];
const WHOLE: [f64; 17] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 120.0, 240.0, 960.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Finished {
    finished_reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CacheConfig {
    block_size: usize,
    num_gpu_blocks: usize,
}

type Level = Gauge<f64, AtomicU64>;

pub(super) struct Metrics {
    registry: Registry,
    running: Level,
    waiting: Level,
    cache: Level,
    prompt_tokens: Counter,
    answer_tokens: Counter,
    finished: Family<Finished, Counter>,
    first_token: Histogram,
    each_token: Histogram,
    whole: Histogram,
}

impl Metrics {
    /// `room` is for so many tokens.
    pub(super) fn new(model: &str, room: usize) -> Self {
        let labels = [("engine", "0"), ("model_name", model)];
        let labels = labels.map(|(name, value)| (name.into(), value.to_owned().into()));
        let mut metrics = Self {
            registry: Registry::with_labels(labels.into_iter()),
            running: Level::default(),
            waiting: Level::default(),
            cache: Level::default(),
            prompt_tokens: Counter::default(),
            answer_tokens: Counter::default(),
            finished: Family::default(),
            first_token: Histogram::new(FIRST_TOKEN),
            each_token: Histogram::new(EACH_TOKEN),
            whole: Histogram::new(WHOLE),
        };
        metrics.register(room);
        metrics
    }

    fn register(&mut self, room: usize) {
        let Self { registry, running, waiting, cache, .. } = self;
        registry.register("vllm:num_requests_running", "Requests computed now", running.clone());
        registry.register("vllm:num_requests_waiting", "Requests in the queue", waiting.clone());
        // The newer name and the older.
        for name in ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"] {
            registry.register(name, "Share of the room for tokens in use", cache.clone());
        }
        let config = Family::<CacheConfig, Gauge>::default();
        let num_gpu_blocks = room / BLOCK;
        config.get_or_create(&CacheConfig { block_size: BLOCK, num_gpu_blocks }).set(1);
        registry.register("vllm:cache_config_info", "Room for tokens", config);
        let (prompt, answer) = (self.prompt_tokens.clone(), self.answer_tokens.clone());
        registry.register("vllm:prompt_tokens", "Tokens of prompts computed", prompt);
        registry.register("vllm:generation_tokens", "Tokens of answers", answer);
        let finished = self.finished.clone();
        registry.register("vllm:request_success", "Answers, by why they ended", finished);
        for (name, help, histogram) in [
            ("vllm:time_to_first_token_seconds", "Until the first token", &self.first_token),
            ("vllm:time_per_output_token_seconds", "Between tokens", &self.each_token),
            ("vllm:e2e_request_latency_seconds", "Until the last token", &self.whole),
        ] {
            registry.register(name, help, histogram.clone());
        }
    }

    pub(super) fn first_token(&self, after: Duration) {
        self.first_token.observe(after.as_secs_f64());
    }

    pub(super) fn finished(
        &self,
        reason: Reason,
        after: Duration,
        since_first: Option<Duration>,
        tokens: usize,
    ) {
        self.finished.get_or_create(&Finished { finished_reason: name(reason) }).inc();
        self.whole.observe(after.as_secs_f64());
        if let Some(time) = since_first.filter(|_| tokens > 1) {
            self.each_token.observe(time.as_secs_f64() / (tokens - 1) as f64);
        }
    }

    pub(super) fn text(&self, figures: Figures) -> Result<String, std::fmt::Error> {
        self.running.set(figures.running as f64);
        self.waiting.set(figures.waiting as f64);
        self.cache.set(figures.cache_usage);
        // Two scrapes at once may overtake each other; a counter never goes back.
        let raise = |counter: &Counter, to: u64| {
            counter.inner().fetch_max(to, std::sync::atomic::Ordering::Relaxed);
        };
        raise(&self.prompt_tokens, figures.prompt_tokens);
        raise(&self.answer_tokens, figures.answer_tokens);
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
