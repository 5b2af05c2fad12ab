//! Which profiles run, and what their results mean.

use std::{net::SocketAddr, sync::Arc};

use super::{Inner, Refused, cycle::Cycle, view::View};
use crate::{
    config::{Decider, Dialect, Handler},
    endpoint::Member,
    random::Random,
};

/// What came of it.
pub(super) struct Scheduled {
    /// Never empty.
    pub(super) destinations: Vec<SocketAddr>,
    /// Who stands behind each destination.
    pub(super) endpoints: Vec<Arc<Member>>,
    /// Who else works on the request.
    pub(super) prefill: Option<Arc<Member>>,
    pub(super) prefill_header: Option<SocketAddr>,
    pub(super) rank_header: Option<SocketAddr>,
}

impl Scheduled {
    pub(super) fn to(address: SocketAddr, member: Arc<Member>) -> Self {
        Self {
            destinations: vec![address],
            endpoints: vec![member],
            prefill: None,
            prefill_header: None,
            rank_header: None,
        }
    }
}

/// The name by which scorers know the endpoint of the first stage.
const PREFILL: &str = "prefill";

pub(super) fn run(
    inner: &Inner,
    view: &View<'_>,
    candidates: &[Arc<Member>],
    members: &[Arc<Member>],
    random: &mut Random,
) -> Result<Scheduled, Refused> {
    let mut cycle = Cycle::new(inner, view, candidates, members, random);
    let (primary, prefill) = match &inner.config.handler {
        Handler::Single { .. } => (single(&mut cycle)?, None),
        Handler::Disaggregated { decode, prefill, decider, .. } => {
            let decoders = named(&mut cycle, decode).ok_or_else(|| {
                inner.refuse_unscheduled("failed to find available decode workers")
            })?;
            let first = decoders.first().copied();
            let split = first.is_some_and(|first| splits(&cycle, *decider, first));
            inner.metrics.decided(&view.model, split);
            let chosen = if split { named(&mut cycle, prefill) } else { None };
            (decoders, chosen.map(|chosen| (prefill.as_str(), chosen)))
        }
    };
    let first_stage = prefill.as_ref().and_then(|(_, chosen)| chosen.first().copied());
    let remembered = prefill.as_ref().filter(|(name, _)| *name == PREFILL).and(first_stage);
    cycle.remember(primary.first().copied(), remembered);
    let member = |number: &usize| candidates.get(*number).cloned();
    let endpoints: Vec<Arc<Member>> = primary.iter().filter_map(member).collect();
    let prefill_member = first_stage.as_ref().and_then(member);
    let asked =
        prefill.as_ref().filter(|(name, _)| inner.config.prefill_header.as_deref() == Some(*name));
    Ok(Scheduled {
        destinations: destinations(&inner.config.handler, &endpoints),
        rank_header: rank(&inner.config.handler, &endpoints),
        prefill_header: asked.and(prefill_member.as_ref()).map(|member| member.endpoint.address),
        prefill: prefill_member,
        endpoints,
    })
}

fn single(cycle: &mut Cycle<'_>) -> Result<Vec<usize>, Refused> {
    cycle.run(0).ok_or_else(|| {
        let name = cycle.inner.config.profiles.first().map(|profile| profile.name.as_str());
        let name = name.unwrap_or_default();
        cycle.inner.refuse_unscheduled(&format!("failed to run scheduler profile '{name}'"))
    })
}

fn named(cycle: &mut Cycle<'_>, name: &str) -> Option<Vec<usize>> {
    let mut profiles = cycle.inner.config.profiles.iter();
    let profile = profiles.position(|profile| profile.name == name)?;
    cycle.run(profile)
}

/// Whether another endpoint does the prefill.
fn splits(cycle: &Cycle<'_>, decider: Decider, decode: usize) -> bool {
    let dialect = cycle.inner.config.dialect;
    let tokens = cycle.view.input.tokens(dialect);
    decide(decider, dialect, tokens, cycle.cached_tokens(decode))
}

fn decide(decider: Decider, dialect: Dialect, tokens: usize, cached: Option<usize>) -> bool {
    let Decider::PrefixBased { non_cached, prompt } = decider else { return true };
    let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
    if non_cached <= 0 {
        return dialect == Dialect::Gaie;
    }
    let Some(cached) = cached.and_then(|cached| i64::try_from(cached).ok()) else { return false };
    tokens >= prompt && tokens >= non_cached && tokens.saturating_sub(cached) >= non_cached
}

fn primary_port(handler: &Handler) -> Option<u16> {
    let (Handler::Single { primary_port } | Handler::Disaggregated { primary_port, .. }) = handler;
    Some(*primary_port).filter(|port| *port > 0)
}

fn destinations(handler: &Handler, endpoints: &[Arc<Member>]) -> Vec<SocketAddr> {
    let address = |member: &Arc<Member>| {
        let mut address = member.endpoint.address;
        address.set_port(primary_port(handler).unwrap_or(address.port()));
        address
    };
    endpoints.iter().map(address).collect()
}

/// The rank that was chosen, when another port is the way to it.
fn rank(handler: &Handler, endpoints: &[Arc<Member>]) -> Option<SocketAddr> {
    primary_port(handler)?;
    endpoints.first().map(|member| member.endpoint.address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stage_moves_when_enough_is_not_cached() {
        let based = |non_cached, prompt| Decider::PrefixBased { non_cached, prompt };
        use Dialect::{Gaie, LlmD};
        for (decider, dialect, tokens, cached, want) in [
            (Decider::Always, Gaie, 0, None, true),
            (based(0, 0), Gaie, 0, None, true),
            (based(0, 0), LlmD, 9_999, Some(0), false),
            (based(16, 0), Gaie, 15, Some(0), false),
            (based(16, 0), Gaie, 16, Some(0), true),
            (based(16, 0), Gaie, 256, None, false),
            (based(16, 0), Gaie, 271, Some(256), false),
            (based(16, 0), Gaie, 272, Some(256), true),
            (based(16, 0), Gaie, 256, Some(256), false),
            (based(16, 100), LlmD, 99, Some(0), false),
            (based(16, 100), LlmD, 100, Some(0), true),
        ] {
            assert_eq!(
                decide(decider, dialect, tokens, cached),
                want,
                "{decider:?} {tokens} {cached:?}"
            );
        }
    }
}
