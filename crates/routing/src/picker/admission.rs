//! What is decided before endpoints are compared: priority, another model name, a full pool.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use http::StatusCode;

use super::{Inner, Refused};
use crate::{
    config::{Dialect, Saturation},
    endpoint::{Load, Member},
    random::Random,
};

/// From the name of an InferenceObjective to its priority.
pub type Objectives = BTreeMap<String, i32>;

/// An InferenceModelRewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    pub name: String,
    /// As Kubernetes writes it, which sorts by time.
    pub created: String,
    pub rules: Vec<RewriteRule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewriteRule {
    /// Exact names. None at all: any model.
    pub models: Vec<String>,
    /// Names with their weights.
    pub targets: Vec<(String, u32)>,
}

/// The rewrite that fits, and the name that the model goes by from then on. Exact rules go before
/// those for any model, and among equals the oldest object.
pub(super) fn rewritten<'r>(
    rewrites: &'r [Rewrite],
    model: &str,
    random: &mut Random,
) -> Option<(&'r str, &'r str)> {
    let rules =
        rewrites.iter().flat_map(|rewrite| rewrite.rules.iter().map(move |rule| (rewrite, rule)));
    let fitting = rules.filter_map(|(rewrite, rule)| {
        let exact = rule.models.iter().any(|name| name == model);
        (exact || rule.models.is_empty()).then_some((!exact, rewrite, rule))
    });
    let (_, rewrite, rule) =
        fitting.min_by_key(|(generic, rewrite, _)| (*generic, &rewrite.created))?;
    weighted(&rule.targets, random).map(|target| (rewrite.name.as_str(), target))
}

/// Chance by weight; without any weight all are alike.
fn weighted<'r>(targets: &'r [(String, u32)], random: &mut Random) -> Option<&'r str> {
    let sum: usize = targets.iter().map(|(_, weight)| *weight as usize).sum();
    if sum == 0 {
        return targets.get(random.below(targets.len())).map(|(name, _)| name.as_str());
    }
    let mut left = random.below(sum);
    let hit = targets.iter().find(|(_, weight)| match left.checked_sub(*weight as usize) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    hit.map(|(name, _)| name.as_str())
}

/// At 1 and above an endpoint is full. One whose figures are old counts as just full.
pub(super) fn fullness(load: Load, fresh: bool, limits: &Saturation) -> f64 {
    if !fresh {
        return 1.0;
    }
    (f64::from(load.waiting) / limits.queue_depth).max(load.kv / limits.kv_cache)
}

/// The mean must be at 1, and unless the Go manner is asked for no endpoint below it.
pub(super) fn saturated(fullness: &[f64], go_compat: bool) -> bool {
    if fullness.is_empty() {
        return true;
    }
    let mean = fullness.iter().sum::<f64>() / fullness.len() as f64;
    mean >= 1.0 && (go_compat || fullness.iter().all(|one| *one >= 1.0))
}

/// How old figures may be: one hiccup of the scraper must not shed requests.
const LEAST_STALENESS: Duration = Duration::from_millis(500);
const GO_STALENESS: Duration = Duration::from_millis(200);

impl Inner {
    pub(super) fn is_saturated(&self, candidates: &[Arc<Member>], now: Instant) -> bool {
        let limits = &self.config.saturation;
        let rhythm = Duration::from_nanos(self.activity.rhythm.load(Relaxed));
        let staleness = limits.staleness.unwrap_or(if self.settings.go_compat {
            GO_STALENESS
        } else {
            (rhythm * 4).max(LEAST_STALENESS)
        });
        let now = now.saturating_duration_since(self.began);
        let of = |member: &Arc<Member>| {
            let updated = member.state.updated();
            let fresh = updated.is_some_and(|at| now.saturating_sub(at) <= staleness);
            fullness(member.state.load(), fresh, limits)
        };
        let fullness: Vec<f64> = candidates.iter().map(of).collect();
        saturated(&fullness, self.settings.go_compat)
    }

    fn refuse(&self, status: StatusCode, code: &'static str, message: String) -> Refused {
        let code = match (self.config.dialect, code) {
            (Dialect::LlmD, "InferencePoolResourceExhausted") => "ResourceExhausted",
            _ => code,
        };
        Refused { status, code, message, dropped: None, dialect: self.config.dialect }
    }

    pub(super) fn refuse_bad_request(&self, message: String) -> Refused {
        self.refuse(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// A message that quotes the refusal of a part.
    pub(super) fn refuse_prompt(&self, why: &str) -> Refused {
        let inner = self.refuse_bad_request(why.to_owned());
        self.refuse_bad_request(format!("failed to extract request data: {inner}"))
    }

    pub(super) fn refuse_saturated(&self) -> Refused {
        let message = "system saturated, sheddable request dropped".to_owned();
        let code = "InferencePoolResourceExhausted";
        Refused {
            dropped: Some("rejected-saturated"),
            ..self.refuse(StatusCode::TOO_MANY_REQUESTS, code, message)
        }
    }

    pub(super) fn refuse_no_candidates(&self) -> Refused {
        self.refuse_no_endpoint("failed to find candidate pods for serving the request".into())
    }

    /// For a request without body.
    pub(super) fn refuse_empty_pool(&self) -> Refused {
        let message = "no pods available in datastore".to_owned();
        if self.settings.go_compat {
            return self.refuse(StatusCode::INTERNAL_SERVER_ERROR, "Internal", message);
        }
        self.refuse_no_endpoint(message)
    }

    /// The filters left nobody.
    pub(super) fn refuse_unscheduled(&self, why: &str) -> Refused {
        let message = format!("failed to find target pod: {why}");
        if self.settings.go_compat {
            let code = "InferencePoolResourceExhausted";
            return Refused {
                dropped: Some("rejected-no-endpoints"),
                ..self.refuse(StatusCode::TOO_MANY_REQUESTS, code, message)
            };
        }
        self.refuse_no_endpoint(message)
    }

    fn refuse_no_endpoint(&self, message: String) -> Refused {
        Refused {
            dropped: Some("rejected-no-endpoints"),
            ..self.refuse(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
        }
    }
}

#[cfg(test)]
mod tests;
