//! Which rule a request meets: over all routes the most particular match, and of equal ones the oldest.

use std::sync::Arc;

use http::{HeaderMap, Method};

use super::route::{Backend, Hostname, Matcher, Pattern, Route, Rule};

/// A request as routes see it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// With or without a port.
    pub host: &'a str,
    pub method: &'a Method,
    pub path: &'a str,
    pub query: &'a str,
    pub headers: &'a HeaderMap,
}

/// All routes that are in effect.
#[derive(Clone, Debug, Default)]
pub struct Table {
    routes: Vec<Arc<Route>>,
}

/// A request and the rule for it.
#[derive(Clone, Debug)]
pub struct Met {
    pub route: Arc<Route>,
    rule: usize,
    matched: usize,
}

/// What makes a match more particular than another: the greater one is chosen.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// An exact name, then the longest one with a star.
    host: (bool, usize),
    path: (PathKind, usize),
    method: bool,
    headers: usize,
    query: usize,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum PathKind {
    Regex,
    Prefix,
    Exact,
}

impl Table {
    pub fn new(mut routes: Vec<Arc<Route>>) -> Self {
        let age = |route: &Arc<Route>| {
            (route.created.clone(), route.namespace.clone(), route.name.clone())
        };
        routes.sort_by_cached_key(age);
        Self { routes }
    }

    pub fn find(&self, asked: &Asked<'_>) -> Option<Met> {
        let host = host_of(asked.host);
        let mut best: Option<(Rank, Met)> = None;
        for route in &self.routes {
            let Some(named) = route.host_rank(&host) else { continue };
            for (rule, spec) in route.rules.iter().enumerate() {
                for (matched, matcher) in spec.matches.iter().enumerate() {
                    if !matcher.matches(asked) {
                        continue;
                    }
                    let rank = matcher.rank(named);
                    // What comes first stays where nothing is more particular.
                    if best.as_ref().is_none_or(|(known, _)| rank > *known) {
                        best = Some((rank, Met { route: route.clone(), rule, matched }));
                    }
                }
            }
        }
        best.map(|(_, met)| met)
    }
}

impl Met {
    pub fn rule(&self) -> Option<&Rule> {
        self.route.rules.get(self.rule)
    }

    /// What was replaced by a rewrite of the prefix.
    pub fn prefix(&self) -> &str {
        match self.rule().and_then(|rule| rule.matches.get(self.matched)) {
            Some(Matcher { path: Pattern::Prefix(prefix), .. }) => prefix,
            _ => "",
        }
    }
}

/// In lower case, without the port and the dot at its end.
fn host_of(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.trim_end_matches('.').to_ascii_lowercase()
}

impl Route {
    /// How particular the name is by which it is meant. Without names it is meant by all.
    fn host_rank(&self, host: &str) -> Option<(bool, usize)> {
        if self.hostnames.is_empty() {
            return Some((false, 0));
        }
        let named = self.hostnames.iter().filter(|name| name.matches(host));
        let rank = |name: &Hostname| match name {
            Hostname::Exact(name) => (true, name.len()),
            Hostname::Wildcard(rest) => (false, rest.len()),
        };
        named.map(rank).max()
    }
}

impl Matcher {
    fn matches(&self, asked: &Asked<'_>) -> bool {
        self.path.matches(asked.path)
            && self.method.as_ref().is_none_or(|method| method == asked.method)
            && self.headers.iter().all(|(name, text)| {
                let mut values = asked.headers.get_all(name).iter();
                values.any(|value| value.to_str().is_ok_and(|value| text.matches(value)))
            })
            && self.query.iter().all(|(name, text)| {
                // Of several under one name the first counts.
                parameter(asked.query, name).is_some_and(|value| text.matches(&value))
            })
    }

    fn rank(&self, host: (bool, usize)) -> Rank {
        let path = match &self.path {
            Pattern::Exact(path) => (PathKind::Exact, path.len()),
            Pattern::Prefix(prefix) => (PathKind::Prefix, prefix.len()),
            Pattern::Regex(regex) => (PathKind::Regex, regex.as_str().len()),
        };
        let (headers, query) = (self.headers.len(), self.query.len());
        Rank { host, path, method: self.method.is_some(), headers, query }
    }
}

impl Pattern {
    pub fn matches(&self, path: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == path,
            Self::Prefix(prefix) => path
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            Self::Regex(regex) => regex.is_match(path),
        }
    }
}

fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut named = pairs.filter(|(key, _)| decoded(key) == name);
    named.next().map(|(_, value)| decoded(value))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        let escaped = (byte == b'%').then(|| rest.as_slice().first_chunk::<2>()).flatten();
        let escaped = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, escaped) {
            (_, Some(value)) => {
                bytes.push(value);
                rest.nth(1);
            }
            (b'+', None) => bytes.push(b' '),
            (other, None) => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Rule {
    /// Who of the backends is to answer the next request.
    pub fn next_backend(&self) -> Option<&Backend> {
        let scaled = u128::from(self.turns.next()) * u128::from(total(&self.backends));
        by_weight(&self.backends, (scaled >> 64) as u64)
    }
}

fn total(backends: &[Backend]) -> u64 {
    backends.iter().map(|backend| u64::from(backend.weight)).sum()
}

/// One of the backends by its weight, for a number that is any with equal chance. Nothing if all have
/// none.
pub fn by_weight(backends: &[Backend], random: u64) -> Option<&Backend> {
    let mut left = random.checked_rem(total(backends))?;
    backends.iter().find(|backend| {
        let weight = u64::from(backend.weight);
        let is_it = left < weight;
        left = left.saturating_sub(weight);
        is_it
    })
}

#[cfg(test)]
mod tests;
