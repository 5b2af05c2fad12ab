//! Counters for the people who run the operator. Labels are kinds, verbs and outcomes: bounded sets.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use crate::kind::Kind;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindLabel {
    pub kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReconcileLabels {
    pub kind: String,
    pub outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    pub verb: &'static str,
    pub kind: String,
    /// `2xx`, `4xx`, `5xx` or `error`.
    pub status: &'static str,
}

/// The metrics of a whole operator; clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    reconciles: Family<ReconcileLabels, Counter>,
    duration: Family<KindLabel, Histogram, fn() -> Histogram>,
    depth: Family<KindLabel, Gauge>,
    requests: Family<RequestLabels, Counter>,
    watch_restarts: Family<KindLabel, Counter>,
    leader: Gauge,
}

/// How a pass ended, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Success,
    /// Something is wrong that a person must mend.
    Blocked,
    Retry,
    Panic,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Blocked => "blocked",
            Self::Retry => "retry",
            Self::Panic => "panic",
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            reconciles: Family::default(),
            duration: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.001, 2.0, 15))
            }),
            depth: Family::default(),
            requests: Family::default(),
            watch_restarts: Family::default(),
            leader: Gauge::default(),
        }
    }
}

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("windlass");
        let reconciles = self.reconciles.clone();
        registry.register("reconciles", "Finished passes by kind and outcome", reconciles);
        let duration = self.duration.clone();
        registry.register("reconcile_duration_seconds", "Length of a pass", duration);
        registry.register("queue_depth", "Objects waiting for a worker", self.depth.clone());
        let requests = self.requests.clone();
        registry.register("api_requests", "Requests to the Kubernetes API", requests);
        let restarts = self.watch_restarts.clone();
        registry.register("watch_restarts", "Watches that had to start anew", restarts);
        registry.register("leader", "1 while this operator acts", self.leader.clone());
    }

    pub fn reconciled(&self, kind: &Kind, outcome: Outcome, seconds: f64) {
        let labels = ReconcileLabels { kind: kind.kind.to_string(), outcome: outcome.as_str() };
        self.reconciles.get_or_create(&labels).inc();
        self.duration.get_or_create(&label(kind)).observe(seconds);
    }

    pub fn queue_depth(&self, kind: &Kind, depth: usize) {
        self.depth.get_or_create(&label(kind)).set(i64::try_from(depth).unwrap_or(i64::MAX));
    }

    pub fn requested(&self, labels: &RequestLabels) {
        self.requests.get_or_create(labels).inc();
    }

    pub fn watch_restarted(&self, kind: &Kind) {
        self.watch_restarts.get_or_create(&label(kind)).inc();
    }

    pub fn leading(&self, leading: bool) {
        self.leader.set(i64::from(leading));
    }
}

fn label(kind: &Kind) -> KindLabel {
    KindLabel { kind: kind.kind.to_string() }
}
