//! The decision.
//!
//! It does no I/O and takes the time from its caller. The adapters around it (the gateway,
//! ext-proc) make three calls: [`Picker::pick`], then on the [`Open`] request what the answer
//! brings, and its end.

mod admission;
mod cycle;
mod filter;
mod headers;
mod open;
mod schedule;
#[cfg(test)]
mod tests;
mod view;

use std::{
    net::SocketAddr,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::sync::Notify;

pub use admission::{Objectives, Rewrite, RewriteRule};
pub use headers::withheld;
pub use open::{Cause, Open};

use crate::{
    body::Body,
    config::{Config, Dialect},
    endpoint::{Endpoint, Member, Pool},
    metrics::{Metrics, Models, PoolFigures},
    prefix::Index,
    random::{self, Random},
};

#[derive(Clone, Debug)]
pub struct Settings {
    /// Restores the odd manners of the Go picker that clients may have come to expect.
    pub go_compat: bool,
    /// For decisions that can be repeated. Otherwise the system gives one.
    pub seed: Option<u64>,
    /// Whether [`Request::subset`] is honoured.
    pub subset: bool,
    /// How often the figures are read while requests flow.
    pub refresh: Duration,
    /// The name of the pool, for its metrics.
    pub pool: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            go_compat: false,
            seed: None,
            subset: true,
            refresh: Duration::from_millis(50),
            pool: String::new(),
        }
    }
}

/// What is counted, by one picker or by all pickers of a process. A clone counts the same.
#[derive(Clone, Default)]
pub struct Counters(Arc<Metrics>);

impl Counters {
    /// All of it in the text form of Prometheus, with how the pools of those names are at the moment.
    pub fn text<'a>(
        &self,
        pools: impl IntoIterator<Item = (String, &'a Picker)>,
        now: Instant,
    ) -> String {
        let figures = |(name, picker): (_, &Picker)| picker.pool_figures(name, picker.since(now));
        self.0.text(&pools.into_iter().map(figures).collect::<Vec<_>>())
    }
}

/// The picker of one pool. A clone is the same picker.
#[derive(Clone)]
pub struct Picker(Arc<Inner>);

struct Inner {
    config: Config,
    settings: Settings,
    seed: u64,
    requests: AtomicU64,
    /// Times are kept as what has passed since then.
    began: Instant,
    pool: Pool,
    /// One for each producer.
    prefixes: Vec<Index>,
    /// One for each scorer; most keep nothing.
    used: Vec<cycle::Used>,
    timers: cycle::Timers,
    timeouts: open::Timeouts,
    objectives: ArcSwap<Objectives>,
    rewrites: ArcSwap<Vec<Rewrite>>,
    activity: Activity,
    metrics: Arc<Metrics>,
}

/// What the scraper goes by.
struct Activity {
    /// When the last request came, in nanoseconds.
    last: AtomicU64,
    /// How often figures are read at the moment, in nanoseconds.
    rhythm: AtomicU64,
    woken: Notify,
}

/// After this long without a request the pool is at rest.
pub(crate) const RESTS_AFTER: Duration = Duration::from_secs(5);

/// Figures older than this do not make an endpoint count as ready in the metrics.
const FRESH: Duration = Duration::from_secs(2);

/// A request as the picker sees it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub path: &'a str,
    pub headers: &'a HeaderMap,
    /// `None` if the request ended with its headers.
    pub body: Option<&'a Body>,
    /// The only addresses (`ip:port`) to choose from. `None`: the whole pool.
    pub subset: Option<&'a [String]>,
    pub now: Instant,
}

/// Where the request goes.
pub struct Picked {
    /// Never empty; the best first, the rest are for retries.
    pub destinations: Vec<SocketAddr>,
    /// For the request to the endpoint, overwriting what the client sent.
    pub set_headers: Vec<(HeaderName, HeaderValue)>,
    /// Headers of the client that must not go on.
    pub remove_headers: Vec<HeaderName>,
    /// The model name goes to the engine under another name.
    pub model_edit: Option<ModelEdit>,
    /// To be kept until the answer has ended.
    pub open: Open,
}

/// Bytes of the body to replace. `Content-Length` in `set_headers` is already the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEdit {
    pub range: Range<usize>,
    pub text: Bytes,
}

/// The request cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {code} - {message}", prefix(*.dialect))]
pub struct Refused {
    pub status: StatusCode,
    /// `BadRequest`, `ServiceUnavailable`, `InferencePoolResourceExhausted` or `Internal`.
    pub code: &'static str,
    pub message: String,
    /// For the header `x-llm-d-request-dropped-reason`.
    pub dropped: Option<&'static str>,
    pub dialect: Dialect,
}

fn prefix(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Gaie => "inference gateway:",
        Dialect::LlmD => "inference error:",
    }
}

impl Refused {
    /// As text/plain for the client.
    pub fn body(&self) -> String {
        self.to_string()
    }
}

impl Picker {
    pub fn new(config: Config, settings: Settings) -> Self {
        Self::counting(config, settings, &Counters::default())
    }

    /// One that counts together with others.
    pub fn counting(config: Config, settings: Settings, counters: &Counters) -> Self {
        let activity = Activity {
            last: AtomicU64::new(0),
            rhythm: AtomicU64::new(nanos(settings.refresh)),
            woken: Notify::new(),
        };
        let metrics = counters.0.clone();
        Self(Arc::new(Inner {
            timers: cycle::Timers::of(&config, &metrics),
            seed: settings.seed.unwrap_or_else(random::system_seed),
            requests: AtomicU64::new(0),
            began: Instant::now(),
            pool: Pool::default(),
            prefixes: config.producers.iter().map(|_| Index::default()).collect(),
            used: config.scorers.iter().map(|_| cycle::Used::default()).collect(),
            timeouts: open::Timeouts::of(&config),
            objectives: ArcSwap::default(),
            rewrites: ArcSwap::default(),
            activity,
            metrics,
            config,
            settings,
        }))
    }

    /// The ready endpoints of the pool, all of them. Those that stay keep their figures.
    pub fn set_endpoints(&self, endpoints: Vec<Endpoint>) {
        let changed = self.0.pool.replace(endpoints, |state| {
            self.0.prefixes.iter().for_each(|index| index.clear(state.slot));
            self.0.used.iter().for_each(|used| used.forget(state.slot));
        });
        if changed {
            self.0.activity.woken.notify_waiters();
        }
    }

    /// As they were last set.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let snapshot = self.0.pool.snapshot();
        snapshot.members.iter().map(|member| member.endpoint.clone()).collect()
    }

    /// The priorities of the pool's InferenceObjectives, by name.
    pub fn set_objectives(&self, objectives: Objectives) {
        self.0.objectives.store(Arc::new(objectives));
    }

    /// The InferenceModelRewrites of the pool.
    pub fn set_rewrites(&self, rewrites: Vec<Rewrite>) {
        self.0.rewrites.store(Arc::new(rewrites));
    }

    pub fn pick(&self, request: &Request<'_>) -> Result<Picked, Refused> {
        self.0.notice(request.now);
        self.0.timeouts.expire(request.now);
        let number = self.0.requests.fetch_add(1, Relaxed);
        let mut random = Random::of(self.0.seed, number);
        let everyone = self.0.pool.snapshot();
        let members = &everyone.members;
        let candidates = self.0.candidates(members, request.subset);
        let Some(body) = request.body else {
            return self.without_body(request, members, &candidates, &mut random);
        };
        let metrics = &self.0.metrics;
        let limit = self.0.kept_bytes(&candidates);
        let view = view::read(&self.0, request, body, limit, &mut random)
            .inspect_err(|refused| metrics.failed(&Models::default(), refused.code))?;
        let models = metrics.models(&view.incoming, &view.model);
        let scheduled = self
            .schedule(&view, request.now, &candidates, members, &mut random)
            .inspect_err(|refused| metrics.failed(&models, refused.code))?;
        metrics.began(&models, body.len());
        Ok(Picked {
            destinations: scheduled.destinations.clone(),
            set_headers: headers::set(
                request,
                &scheduled,
                view.length(request.headers, body),
                &mut random,
            ),
            remove_headers: headers::removed(request.headers, &scheduled),
            model_edit: view.model_edit,
            open: Open::begin(self, &scheduled, Some(models), request.now),
        })
    }

    fn schedule(
        &self,
        view: &view::View<'_>,
        now: Instant,
        candidates: &[Arc<Member>],
        members: &[Arc<Member>],
        random: &mut Random,
    ) -> Result<schedule::Scheduled, Refused> {
        if view.priority < 0 && self.0.is_saturated(candidates, now) {
            return Err(self.0.refuse_saturated());
        }
        if candidates.is_empty() {
            return Err(self.0.refuse_no_candidates());
        }
        // Only measured: no decision depends on the clock.
        let before = Instant::now();
        let scheduled = schedule::run(&self.0, view, candidates, members, random);
        self.0.metrics.scheduled(scheduled.is_ok(), before.elapsed().as_secs_f64());
        scheduled
    }

    /// Nothing is known of what is asked for, so chance decides.
    fn without_body(
        &self,
        request: &Request<'_>,
        members: &[Arc<Member>],
        candidates: &[Arc<Member>],
        random: &mut Random,
    ) -> Result<Picked, Refused> {
        let inner = &self.0;
        let from = if inner.settings.go_compat { members } else { candidates };
        let decode = |member: &&Arc<Member>| {
            inner.settings.go_compat || filter::decodes(&member.endpoint, inner.config.dialect)
        };
        let mut fit: Vec<&Arc<Member>> = from.iter().filter(decode).collect();
        if fit.is_empty() {
            fit = from.iter().collect();
        }
        let Some(chosen) = fit.get(random.below(fit.len())) else {
            return Err(inner.refuse_empty_pool());
        };
        let address = chosen.endpoint.address;
        let scheduled = schedule::Scheduled::to(address, (*chosen).clone());
        let open = Open::begin(self, &scheduled, None, request.now);
        Ok(Picked {
            destinations: vec![address],
            set_headers: headers::set(request, &scheduled, None, random),
            remove_headers: headers::removed(request.headers, &scheduled),
            model_edit: None,
            open,
        })
    }

    /// All that is counted, in the text form of Prometheus.
    pub fn metrics(&self, now: Instant) -> String {
        Counters(self.0.metrics.clone()).text([(self.0.settings.pool.clone(), self)], now)
    }

    fn pool_figures(&self, name: String, now: Duration) -> PoolFigures {
        let snapshot = self.0.pool.snapshot();
        let members = &snapshot.members;
        let loads: Vec<_> = members.iter().map(|member| member.state.load()).collect();
        let count = loads.len().max(1);
        let fresh = |member: &&Arc<Member>| {
            member.state.updated().is_some_and(|at| now.saturating_sub(at) <= FRESH)
        };
        let endpoint = |member: &Arc<Member>| member.endpoint.name.clone();
        let waiting = loads.iter().map(|load| i64::from(load.waiting));
        PoolFigures {
            name,
            kv_cache: loads.iter().map(|load| load.kv).sum::<f64>() / count as f64,
            queue: waiting.clone().sum::<i64>() / i64::try_from(count).unwrap_or(i64::MAX),
            ready: i64::try_from(members.iter().filter(fresh).count()).unwrap_or(i64::MAX),
            queues: members.iter().map(endpoint).zip(waiting).collect(),
            prefixes: self.0.prefixes.iter().map(Index::hashes).sum(),
        }
    }

    pub(crate) fn members(&self) -> Vec<Arc<Member>> {
        self.0.pool.snapshot().members.clone()
    }

    /// Since the picker began.
    pub(crate) fn since(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.0.began)
    }

    /// Whether no request has come for a while.
    pub(crate) fn rests(&self, now: Instant) -> bool {
        let last = self.0.activity.last.load(Relaxed);
        last == 0 || self.since(now).saturating_sub(Duration::from_nanos(last)) > RESTS_AFTER
    }

    /// Becomes ready with the first request after a rest, and when the endpoints change.
    pub(crate) fn woken(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.activity.woken.notified()
    }

    /// How often the figures are read from now on.
    pub(crate) fn set_rhythm(&self, interval: Duration) {
        self.0.activity.rhythm.store(nanos(interval), Relaxed);
    }
}

impl Inner {
    /// A request has come.
    fn notice(&self, now: Instant) {
        let now = nanos(now.saturating_duration_since(self.began)).max(1);
        let before = self.activity.last.swap(now, Relaxed);
        if before == 0 || now.saturating_sub(before) > nanos(RESTS_AFTER) {
            self.activity.woken.notify_waiters();
        }
    }

    /// Those that the subset allows. It is compared by address, whatever the port.
    fn candidates(&self, members: &[Arc<Member>], subset: Option<&[String]>) -> Vec<Arc<Member>> {
        let Some(subset) = subset.filter(|_| self.settings.subset) else { return members.to_vec() };
        let address = |item: &String| {
            let address = item.rsplit_once(':').map_or(item.as_str(), |(address, _)| address);
            let address = address.strip_prefix('[').unwrap_or(address);
            address.strip_suffix(']').unwrap_or(address).parse().ok()
        };
        let allowed: Vec<std::net::IpAddr> = subset.iter().filter_map(address).collect();
        let fits = |member: &&Arc<Member>| allowed.contains(&member.endpoint.address.ip());
        members.iter().filter(fits).cloned().collect()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
