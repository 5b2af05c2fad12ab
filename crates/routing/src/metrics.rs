//! What the picker tells about itself, under the old names and the new.

mod buckets;
#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    sync::{PoisonError, RwLock, atomic::AtomicU64},
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Metric, Registry},
};

use crate::config::Named;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Models {
    pub(crate) model_name: String,
    pub(crate) target_model_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failure {
    model_name: String,
    target_model_name: String,
    error_code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Model {
    model_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pool {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pod {
    name: String,
    model_server_pod: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempt {
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Plugin {
    extension_point: &'static str,
    plugin_type: String,
    plugin_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rewritten {
    model_rewrite_name: String,
    model_name: String,
    target_model: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decision {
    model_name: String,
    decision_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    commit: &'static str,
    build_ref: &'static str,
}

type Histograms = Family<Models, Histogram, fn() -> Histogram>;
type Float = Gauge<f64, AtomicU64>;

pub(crate) struct Metrics {
    names: Bounded,
    requests: Family<Models, Counter>,
    errors: Family<Failure, Counter>,
    duration: Histograms,
    request_bytes: Histograms,
    response_bytes: Histograms,
    input_tokens: Histograms,
    output_tokens: Histograms,
    cached_tokens: Histograms,
    time_per_token: Histograms,
    running: Family<Model, Gauge>,
    scheduling: Histogram,
    attempts: Family<Attempt, Counter>,
    plugins: Family<Plugin, Histogram, fn() -> Histogram>,
    prefix_ratio: Histogram,
    prefix_bytes: Histogram,
    rewrites: Family<Rewritten, Counter>,
    decisions: Family<Decision, Counter>,
}

/// How pools are while somebody reads of them. Nobody else who reads at the same time meets these.
#[derive(Default)]
struct Moment {
    kv_cache: Family<Pool, Float>,
    queue: Family<Pool, Gauge>,
    ready: Family<Pool, Gauge>,
    pod_queue: Family<Pod, Gauge>,
    prefix_size: Gauge,
    info: Family<Build, Gauge>,
}

impl Moment {
    fn of(pools: &[PoolFigures]) -> Self {
        let moment = Self::default();
        for pool in pools {
            let name = Pool { name: pool.name.clone() };
            moment.kv_cache.get_or_create(&name).set(pool.kv_cache);
            moment.queue.get_or_create(&name).set(pool.queue);
            moment.ready.get_or_create(&name).set(pool.ready);
            for (endpoint, queue) in &pool.queues {
                let pod = Pod { name: pool.name.clone(), model_server_pod: endpoint.clone() };
                moment.pod_queue.get_or_create(&pod).set(*queue);
            }
        }
        let prefixes = pools.iter().map(|pool| pool.prefixes).sum::<usize>();
        moment.prefix_size.set(i64::try_from(prefixes).unwrap_or(i64::MAX));
        let build = Build { commit: "", build_ref: env!("CARGO_PKG_VERSION") };
        moment.info.get_or_create(&build).set(1);
        moment
    }
}

/// Names that clients give: so many, and then all others are one.
#[derive(Default)]
struct Bounded(RwLock<HashSet<String>>);

const MAX_NAMES: usize = 1_000;

impl Bounded {
    fn name(&self, name: &str) -> String {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if known.contains(name) || name.is_empty() {
            return name.into();
        }
        let full = known.len() >= MAX_NAMES;
        drop(known);
        if full {
            return "other".into();
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_NAMES {
            known.insert(name.into());
        }
        if known.contains(name) { name.into() } else { "other".into() }
    }
}

/// The state of a pool at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PoolFigures {
    pub(crate) name: String,
    pub(crate) kv_cache: f64,
    pub(crate) queue: i64,
    /// Endpoints whose figures are fresh.
    pub(crate) ready: i64,
    pub(crate) queues: Vec<(String, i64)>,
    pub(crate) prefixes: usize,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) seconds: f64,
    pub(crate) response_bytes: u64,
    pub(crate) usage: Option<crate::usage::Usage>,
}

impl Default for Metrics {
    fn default() -> Self {
        let histograms = |buckets| -> Histograms { Family::new_with_constructor(buckets) };
        Self {
            names: Bounded::default(),
            requests: Family::default(),
            errors: Family::default(),
            duration: histograms(buckets::duration),
            request_bytes: histograms(buckets::request_bytes),
            response_bytes: histograms(buckets::response_bytes),
            input_tokens: histograms(buckets::input_tokens),
            output_tokens: histograms(buckets::output_tokens),
            cached_tokens: histograms(buckets::input_tokens),
            time_per_token: histograms(buckets::time_per_token),
            running: Family::default(),
            scheduling: buckets::scheduling(),
            attempts: Family::default(),
            plugins: Family::new_with_constructor(buckets::scheduling),
            prefix_ratio: buckets::ratio(),
            prefix_bytes: buckets::hit_bytes(),
            rewrites: Family::default(),
            decisions: Family::default(),
        }
    }
}

impl Metrics {
    /// The names of a request as labels.
    pub(crate) fn models(&self, incoming: &str, target: &str) -> Models {
        Models { model_name: self.names.name(incoming), target_model_name: self.names.name(target) }
    }

    /// A request was given an endpoint.
    pub(crate) fn began(&self, models: &Models, bytes: usize) {
        self.requests.get_or_create(models).inc();
        self.request_bytes.get_or_create(models).observe(bytes as f64);
        self.running.get_or_create(&Model { model_name: models.model_name.clone() }).inc();
    }

    pub(crate) fn failed(&self, models: &Models, error_code: &'static str) {
        let failure = Failure {
            model_name: models.model_name.clone(),
            target_model_name: models.target_model_name.clone(),
            error_code,
        };
        self.errors.get_or_create(&failure).inc();
    }

    /// Whatever became of it.
    pub(crate) fn closed(&self, models: &Models) {
        self.running.get_or_create(&Model { model_name: models.model_name.clone() }).dec();
    }

    /// To the last byte of its answer.
    pub(crate) fn completed(&self, models: &Models, ended: Ended) {
        self.duration.get_or_create(models).observe(ended.seconds);
        self.response_bytes.get_or_create(models).observe(ended.response_bytes as f64);
        let Some(usage) = ended.usage else { return };
        self.input_tokens.get_or_create(models).observe(usage.prompt as f64);
        self.output_tokens.get_or_create(models).observe(usage.completion as f64);
        self.cached_tokens.get_or_create(models).observe(usage.cached as f64);
        if usage.completion > 0 && ended.seconds > 0.0 {
            let each = ended.seconds / usage.completion as f64;
            self.time_per_token.get_or_create(models).observe(each);
        }
    }

    pub(crate) fn scheduled(&self, success: bool, seconds: f64) {
        let status = if success { "success" } else { "failure" };
        self.attempts.get_or_create(&Attempt { status }).inc();
        self.scheduling.observe(seconds);
    }

    /// What takes the time of one plugin.
    pub(crate) fn timer(&self, extension_point: &'static str, plugin: &Named) -> Histogram {
        self.plugins.get_or_create_owned(&Plugin {
            extension_point,
            plugin_type: plugin.kind.clone(),
            plugin_name: plugin.name.clone(),
        })
    }

    /// How much of a prompt the chosen endpoint knew.
    pub(crate) fn prefix(&self, matched: usize, total: usize, block_bytes: usize) {
        if total > 0 {
            self.prefix_ratio.observe(matched as f64 / total as f64);
            self.prefix_bytes.observe((matched * block_bytes) as f64);
        }
    }

    pub(crate) fn rewritten(&self, rewrite: &str, model: &str, target: &str) {
        let labels = Rewritten {
            model_rewrite_name: rewrite.into(),
            model_name: self.names.name(model),
            target_model: self.names.name(target),
        };
        self.rewrites.get_or_create(&labels).inc();
    }

    pub(crate) fn decided(&self, model: &str, split: bool) {
        let decision_type = if split { "prefill-decode" } else { "decode-only" };
        let model_name = self.names.name(model);
        self.decisions.get_or_create(&Decision { model_name, decision_type }).inc();
    }

    /// All of it in the text form of Prometheus.
    pub(crate) fn text(&self, pools: &[PoolFigures]) -> String {
        let mut registry = Registry::default();
        self.register(&Moment::of(pools), &mut Twice { registry: &mut registry });
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }

    fn register(&self, moment: &Moment, to: &mut Twice<'_>) {
        to.objective("request", "Requests that were given an endpoint", &self.requests);
        to.objective("request_error", "Requests that failed", &self.errors);
        to.objective("request_duration_seconds", "From request to end of answer", &self.duration);
        to.objective("request_sizes", "Bytes of requests", &self.request_bytes);
        to.objective("response_sizes", "Bytes of answers", &self.response_bytes);
        to.objective("input_tokens", "Tokens of prompts", &self.input_tokens);
        to.objective("output_tokens", "Tokens of answers", &self.output_tokens);
        to.objective("prompt_cached_tokens", "Tokens the engine had cached", &self.cached_tokens);
        let help = "Duration divided by the tokens of the answer";
        to.objective("normalized_time_per_output_token_seconds", help, &self.time_per_token);
        to.objective("running_requests", "Requests that are not over", &self.running);
        to.pool("average_kv_cache_utilization", "Mean use of the caches", &moment.kv_cache);
        to.pool("average_queue_size", "Mean number of waiting requests", &moment.queue);
        to.pool("ready_pods", "Endpoints whose figures are fresh", &moment.ready);
        to.pool("per_pod_queue_size", "Waiting requests of each endpoint", &moment.pod_queue);
        to.extension("scheduler_e2e_duration_seconds", "Length of a decision", &self.scheduling);
        to.extension("scheduler_attempts", "Decisions by outcome", &self.attempts);
        to.extension("plugin_duration_seconds", "Length of a plugin's work", &self.plugins);
        to.extension("prefix_indexer_size", "Known blocks of prompts", &moment.prefix_size);
        to.extension("prefix_indexer_hit_ratio", "Known part of prompts", &self.prefix_ratio);
        to.extension("prefix_indexer_hit_bytes", "Known bytes of prompts", &self.prefix_bytes);
        to.extension("model_rewrite_decisions", "Model names changed by a rule", &self.rewrites);
        to.extension("info", "The program", &moment.info);
        let help = "Requests by whether another endpoint does the prefill";
        to.under("llm_d_inference_scheduler", "pd_decision", help, &self.decisions);
    }
}

/// Registers everything under its old name and the new.
struct Twice<'r> {
    registry: &'r mut Registry,
}

impl Twice<'_> {
    fn under<M: Metric + Clone>(&mut self, prefix: &str, name: &str, help: &str, metric: &M) {
        for prefix in [prefix, "llm_d_epp"] {
            self.registry.register(format!("{prefix}_{name}"), help, metric.clone());
        }
    }

    fn objective<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: &M) {
        self.under("inference_objective", name, help, metric);
    }

    fn pool<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: &M) {
        self.under("inference_pool", name, help, metric);
    }

    fn extension<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: &M) {
        self.under("inference_extension", name, help, metric);
    }
}
