//! A request from its decision to its end.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::AcqRel},
    },
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{Picker, headers, schedule::Scheduled};
use crate::{
    config::{Config, Scorer},
    endpoint::{Member, State},
    metrics::{Ended, Models},
    usage::Probe,
};

/// A request that was sent to an endpoint. Dropping it counts as [`Cause::Aborted`].
pub struct Open {
    picker: Picker,
    counted: Arc<Counted>,
    /// Destinations with who stands behind them.
    endpoints: Vec<(SocketAddr, Arc<Member>)>,
    served: usize,
    /// `None` for a request without body, which is not counted by model.
    models: Option<Models>,
    began: Instant,
    probe: Probe,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Completed,
    /// The client has gone, or the endpoint failed.
    Aborted,
}

/// The endpoints that count the request as theirs until it is closed, once.
struct Counted {
    states: Vec<Arc<State>>,
    closed: AtomicBool,
}

impl Counted {
    fn close(&self) {
        if !self.closed.swap(true, AcqRel) {
            self.states.iter().for_each(|state| state.end());
        }
    }
}

/// Requests that stop counting after a while, whether they have ended or not.
pub(super) struct Timeouts {
    /// `None` if nobody looks at the counts.
    after: Option<Duration>,
    queue: Mutex<VecDeque<(Instant, Arc<Counted>)>>,
}

impl Timeouts {
    pub(super) fn of(config: &Config) -> Self {
        let timeout = |scorer: &Scorer| match scorer {
            Scorer::ActiveRequests { timeout, .. } => Some(*timeout),
            _ => None,
        };
        Self { after: config.scorers.iter().find_map(timeout), queue: Mutex::default() }
    }

    fn add(&self, counted: &Arc<Counted>, now: Instant) {
        let Some(until) = self.after.and_then(|after| now.checked_add(after)) else { return };
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back((until, counted.clone()));
    }

    /// Closes what is overdue.
    pub(super) fn expire(&self, now: Instant) {
        if self.after.is_none() {
            return;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while queue.front().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, counted)) = queue.pop_front() {
                counted.close();
            }
        }
    }
}

impl Open {
    pub(super) fn begin(
        picker: &Picker,
        scheduled: &Scheduled,
        models: Option<Models>,
        now: Instant,
    ) -> Self {
        let first = scheduled.endpoints.first().into_iter().chain(&scheduled.prefill);
        let states: Vec<Arc<State>> = first.map(|member| member.state.clone()).collect();
        states.iter().for_each(|state| state.begin());
        let counted = Arc::new(Counted { states, closed: AtomicBool::new(false) });
        picker.0.timeouts.add(&counted, now);
        let endpoints = scheduled.destinations.iter().copied().zip(scheduled.endpoints.clone());
        Self {
            picker: picker.clone(),
            counted,
            endpoints: endpoints.collect(),
            served: 0,
            models,
            began: now,
            probe: Probe::default(),
            bytes: 0,
        }
    }

    /// The endpoint that answers, when it is not the first of the list.
    pub fn served_by(&mut self, endpoint: SocketAddr) {
        let position = self.endpoints.iter().position(|(address, _)| *address == endpoint);
        self.served = position.unwrap_or(self.served);
    }

    /// The headers of the answer have come. Returns those to set for the client.
    pub fn on_headers(
        &mut self,
        status: StatusCode,
        _headers: &HeaderMap,
        _now: Instant,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let mut set = Vec::new();
        if let Some(models) = self.models.as_ref().filter(|_| !status.is_success()) {
            self.picker.0.metrics.failed(models, "ModelServerError");
        }
        let Some((address, member)) = self.endpoints.get(self.served) else { return set };
        let config = &self.picker.0.config;
        let mut put = |name, text: &str| {
            set.extend(HeaderValue::from_str(text).ok().map(|value| (name, value)));
        };
        if config.scorers.contains(&Scorer::Session) {
            put(headers::SESSION, &BASE64_STANDARD.encode(member.endpoint.full_name()));
        }
        if config.served_verifier {
            put(headers::TEST_SERVED, &address.to_string());
        }
        set
    }

    /// A chunk of the answer. It only looks for figures of use.
    pub fn on_chunk(&mut self, chunk: &[u8], _now: Instant) {
        self.bytes += chunk.len() as u64;
        if self.models.is_some() {
            self.probe.feed(chunk);
        }
    }

    pub fn done(self, cause: Cause, now: Instant) {
        if let Some(models) = self.models.as_ref().filter(|_| cause == Cause::Completed) {
            let ended = Ended {
                seconds: now.saturating_duration_since(self.began).as_secs_f64(),
                response_bytes: self.bytes,
                usage: self.probe.usage(),
            };
            self.picker.0.metrics.completed(models, ended);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.counted.close();
        if let Some(models) = &self.models {
            self.picker.0.metrics.closed(models);
        }
    }
}
