//! One run of a profile: filters, scores, choice.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use prometheus_client::metrics::histogram::Histogram;

use super::{Inner, filter, headers, view::View};
use crate::{
    config::{Config, Decider, Dialect, Handler, Limit, Producer, Profile, Scorer},
    endpoint::{Load, Member},
    metrics::Metrics,
    prefix::{Blocks, Matches},
    random::Random,
    score,
};

/// The slots that were sent prompts nobody knew, the oldest first.
#[derive(Default)]
pub(super) struct Used(Mutex<VecDeque<usize>>);

impl Used {
    fn lock(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget(&self, slot: usize) {
        self.lock().retain(|other| *other != slot);
    }

    fn touch(&self, slot: usize, size: usize) {
        let mut used = self.lock();
        used.retain(|other| *other != slot);
        used.push_back(slot);
        while used.len() > size {
            used.pop_front();
        }
    }
}

/// Where the time of each plugin is counted.
pub(super) struct Timers {
    profiles: Vec<ProfileTimers>,
    scorers: Vec<Histogram>,
}

struct ProfileTimers {
    filters: Vec<Histogram>,
    choice: Histogram,
}

impl Timers {
    pub(super) fn of(config: &Config, metrics: &Metrics) -> Self {
        let profile = |profile: &Profile| ProfileTimers {
            filters: profile.filter_names.iter().map(|own| metrics.timer("Filter", own)).collect(),
            choice: metrics.timer("Picker", &profile.choice_name),
        };
        Self {
            profiles: config.profiles.iter().map(profile).collect(),
            scorers: config.scorer_names.iter().map(|own| metrics.timer("Scorer", own)).collect(),
        }
    }
}

/// Only measures: no decision depends on it.
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn lap(&mut self, timer: &Histogram) {
        let now = Instant::now();
        timer.observe(now.duration_since(self.0).as_secs_f64());
        self.0 = now;
    }
}

/// What one producer knows of the prompt.
pub(super) struct Seen {
    pub(super) blocks: Blocks,
    chains: Vec<Vec<u64>>,
    matches: Matches,
    /// Hashes that the score looks at.
    total: usize,
}

pub(super) struct Cycle<'a> {
    pub(super) inner: &'a Inner,
    pub(super) view: &'a View<'a>,
    pub(super) candidates: &'a [Arc<Member>],
    /// All of the pool.
    pub(super) members: &'a [Arc<Member>],
    pub(super) random: &'a mut Random,
    /// One for each producer, once it has looked.
    seen: Vec<Option<Seen>>,
    /// Scorers for which nobody knew the prompt.
    cold: Vec<usize>,
}

/// Tokens of a prompt that are indexed for a decider.
const INDEXED_TOKENS: usize = 131_072;

impl<'a> Cycle<'a> {
    pub(super) fn new(
        inner: &'a Inner,
        view: &'a View<'a>,
        candidates: &'a [Arc<Member>],
        members: &'a [Arc<Member>],
        random: &'a mut Random,
    ) -> Self {
        let seen = inner.config.producers.iter().map(|_| None).collect();
        let mut cycle = Self { inner, view, candidates, members, random, seen, cold: Vec::new() };
        if inner.config.prepare_data {
            let first = candidates.first();
            (0..inner.config.producers.len()).for_each(|producer| cycle.look(producer, first));
        }
        cycle
    }

    /// The numbers of the endpoints taken, the best first. `None` if no endpoint fits.
    pub(super) fn run(&mut self, profile: usize) -> Option<Vec<usize>> {
        let inner = self.inner;
        let timers = inner.timers.profiles.get(profile)?;
        let profile = inner.config.profiles.get(profile)?;
        let mut clock = Clock::start();
        let mut fit: Vec<usize> = (0..self.candidates.len()).collect();
        for (filter, timer) in profile.filters.iter().zip(&timers.filters) {
            let (dialect, headers) = (inner.config.dialect, self.view.headers);
            fit = filter::pass(filter, dialect, headers, self.candidates, fit);
            clock.lap(timer);
        }
        if fit.is_empty() {
            return None;
        }
        let mut totals = vec![0.0; fit.len()];
        for (scorer, weight) in &profile.scorers {
            for (total, score) in totals.iter_mut().zip(self.scores(*scorer, &fit)) {
                *total += score::weighted(score, *weight);
            }
            if let Some(timer) = inner.timers.scorers.get(*scorer) {
                clock.lap(timer);
            }
        }
        let chosen =
            score::choose(profile.choice.by, &totals, profile.choice.endpoints, self.random);
        clock.lap(&timers.choice);
        Some(chosen.into_iter().filter_map(|number| fit.get(number).copied()).collect())
    }

    fn scores(&mut self, scorer: usize, fit: &[usize]) -> Vec<f64> {
        let Some(kind) = self.inner.config.scorers.get(scorer) else { return Vec::new() };
        let candidates = self.candidates;
        let endpoints = || fit.iter().filter_map(|number| candidates.get(*number));
        let loads = |of: fn(Load) -> u32| -> Vec<u32> {
            endpoints().map(|member| of(member.state.load())).collect()
        };
        match kind {
            Scorer::Queue => score::relative(&loads(|load| load.waiting)),
            Scorer::Running => score::relative(&loads(|load| load.running)),
            Scorer::KvCache => {
                endpoints().map(|member| score::kv_cache(member.state.load())).collect()
            }
            Scorer::LoadAware { threshold } => endpoints()
                .map(|member| score::load_aware(member.state.load().waiting, *threshold))
                .collect(),
            Scorer::Lora => endpoints()
                .map(|member| score::lora(&self.view.model, member.state.lora().as_deref()))
                .collect(),
            Scorer::Session => self.sessions(fit),
            Scorer::ActiveRequests { idle, busy, .. } => {
                let most = self.members.iter().map(|member| member.state.open()).max();
                let most = most.unwrap_or(0);
                endpoints()
                    .map(|member| score::active_requests(member.state.open(), most, *idle, *busy))
                    .collect()
            }
            Scorer::NoHitLru { .. } => self.no_hits(scorer, fit),
            Scorer::Prefix { producer, length_weight, length_scale } => {
                self.look(*producer, fit.first().and_then(|number| candidates.get(*number)));
                self.prefixes(*producer, fit, *length_weight, *length_scale)
            }
        }
    }

    fn sessions(&self, fit: &[usize]) -> Vec<f64> {
        let token = headers::one(self.view.headers, &headers::SESSION);
        let named = token.and_then(|token| BASE64_STANDARD.decode(token).ok());
        let score = |number: &usize| {
            let own = self.candidates.get(*number).map(|member| member.endpoint.full_name());
            match (&named, own) {
                (Some(named), Some(own)) if own.as_bytes() == named => 1.0,
                _ => 0.0,
            }
        };
        fit.iter().map(score).collect()
    }

    fn no_hits(&mut self, scorer: usize, fit: &[usize]) -> Vec<f64> {
        let known = self.seen.iter().flatten().next();
        let hit = known.is_some_and(|seen| seen.matches.scored.iter().any(|count| *count > 0));
        if hit {
            return vec![0.5; fit.len()];
        }
        self.cold.push(scorer);
        let slots = fit.iter().filter_map(|number| self.candidates.get(*number));
        let slots: Vec<usize> = slots.map(|member| member.state.slot).collect();
        self.inner
            .used
            .get(scorer)
            .map(|used| score::no_hit(&slots, &used.lock()))
            .unwrap_or_default()
    }

    /// Unless it has looked already with blocks of this size.
    fn look(&mut self, producer: usize, first: Option<&Arc<Member>>) {
        let (Some(config), Some(index)) =
            (self.inner.config.producers.get(producer), self.inner.prefixes.get(producer))
        else {
            return;
        };
        let size = block_size(config, self.inner.config.dialect, first);
        let (blocks, scored) = self.inner.blocks(config, size);
        let slot = &mut self.seen[producer];
        if slot.as_ref().is_some_and(|seen| seen.blocks == blocks) {
            return;
        }
        let view = self.view;
        let chain = |part| blocks.chain(part, &view.model, &view.salt);
        let chains: Vec<Vec<u64>> = view.input.parts.iter().map(chain).collect();
        let matches = index.matches(&chains, scored);
        let total = chains.iter().map(|chain| chain.len().min(scored)).sum();
        *slot = Some(Seen { blocks, chains, matches, total });
    }

    fn prefixes(&self, producer: usize, fit: &[usize], weight: f64, scale: f64) -> Vec<f64> {
        let Some(Some(seen)) = self.seen.get(producer) else { return Vec::new() };
        let score = |number: &usize| {
            let slot = self.candidates.get(*number).map_or(usize::MAX, |member| member.state.slot);
            let matched = seen.matches.scored.get(slot).copied().unwrap_or(0);
            score::prefix(matched, seen.total, seen.blocks.size, weight, scale)
        };
        fit.iter().map(score).collect()
    }

    /// Tokens of the prompt that this endpoint has seen. `None` if nobody has looked.
    pub(super) fn cached_tokens(&self, number: usize) -> Option<usize> {
        if !self.inner.config.prepare_data {
            return None;
        }
        let seen = self.seen.iter().flatten().next_back()?;
        let slot = self.candidates.get(number)?.state.slot;
        let matched = seen.matches.all.get(slot).copied().unwrap_or(0);
        Some(matched as usize * seen.blocks.size)
    }

    /// The request goes to these: they will know the prompt.
    pub(super) fn remember(&self, primary: Option<usize>, prefill: Option<usize>) {
        if let Some(member) = primary.and_then(|number| self.candidates.get(number)) {
            for seen in self.seen.iter().flatten() {
                let matched = seen.matches.scored.get(member.state.slot).copied().unwrap_or(0);
                self.inner.metrics.prefix(matched as usize, seen.total, seen.blocks.bytes());
            }
        }
        let endpoints = [primary, prefill].into_iter().flatten();
        for member in endpoints.filter_map(|number| self.candidates.get(number)) {
            let state = &member.state;
            for (producer, seen) in self.seen.iter().enumerate() {
                let (Some(seen), Some(config), Some(index)) = (
                    seen,
                    self.inner.config.producers.get(producer),
                    self.inner.prefixes.get(producer),
                ) else {
                    continue;
                };
                let own = state.cache().blocks as usize;
                let capacity = if config.auto_tune && own > 0 { own } else { config.lru_capacity };
                let hashes = seen.chains.iter().flatten().copied();
                index.insert(state.slot, capacity, hashes, || !state.is_gone());
            }
            for scorer in &self.cold {
                if let (Some(Scorer::NoHitLru { size }), Some(used)) =
                    (self.inner.config.scorers.get(*scorer), self.inner.used.get(*scorer))
                    && !state.is_gone()
                {
                    used.touch(state.slot, *size);
                }
            }
        }
    }
}

/// In tokens.
fn block_size(producer: &Producer, dialect: Dialect, first: Option<&Arc<Member>>) -> usize {
    let told = first.map_or(0, |member| member.state.cache().block_size as usize);
    let size = if producer.auto_tune && told > 0 { told } else { producer.block_tokens };
    match dialect {
        Dialect::Gaie => size,
        Dialect::LlmD => size.max(64),
    }
}

impl Inner {
    /// How prompts are cut, and how many of the blocks count for the score.
    fn blocks(&self, producer: &Producer, size: usize) -> (Blocks, usize) {
        let dialect = self.config.dialect;
        let size = size.max(1);
        let scored = match producer.max {
            Limit::Blocks(blocks) => blocks,
            Limit::Tokens(tokens) => tokens.div_ceil(size),
            Limit::None => usize::MAX,
        };
        let decider = matches!(
            self.config.handler,
            Handler::Disaggregated { decider: Decider::PrefixBased { .. }, .. }
        );
        // Otherwise a prompt longer than what scores look at would always be prefilled elsewhere.
        let whole = decider && self.config.prepare_data && !self.settings.go_compat;
        let max = if whole { scored.max(INDEXED_TOKENS / size) } else { scored };
        (Blocks { dialect, size, max }, scored)
    }

    /// How many bytes of a prompt anybody looks at.
    pub(super) fn kept_bytes(&self, candidates: &[Arc<Member>]) -> usize {
        let told = candidates.iter().map(|member| member.state.cache().block_size as usize).max();
        let bytes = |producer: &Producer| {
            let told = told.filter(|_| producer.auto_tune).unwrap_or(0);
            let size = producer.block_tokens.max(told);
            let size = if self.config.dialect == Dialect::LlmD { size.max(64) } else { size };
            let (blocks, _) = self.blocks(producer, size);
            blocks.bytes().saturating_mul(blocks.max)
        };
        self.config.producers.iter().map(bytes).max().unwrap_or(0)
    }
}
