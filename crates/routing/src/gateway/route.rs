//! A route that can be looked up: patterns compiled, filters known, durations read.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use regex::Regex;

use super::spec::{
    BackendSpec, FilterSpec, HeaderSpec, MatchSpec, ModifierSpec, PathChangeSpec, RedirectSpec,
    RouteSpec, RuleSpec, ValueSpec,
};
use super::turns::Turns;
use crate::random;

/// What the route asks for and this gateway does not have, or what makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule {rule}: {what}")]
pub struct Unsupported {
    pub rule: usize,
    pub what: String,
}

#[derive(Clone, Debug)]
pub struct Route {
    pub namespace: String,
    pub name: String,
    /// When it was made, as the API writes it. The older one wins.
    pub created: String,
    pub hostnames: Vec<Hostname>,
    pub rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hostname {
    Exact(String),
    /// With what follows the star, from its dot on.
    Wildcard(String),
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub matches: Vec<Matcher>,
    pub filters: Vec<Filter>,
    pub backends: Vec<Backend>,
    /// Until the last byte of the answer.
    pub request_timeout: Option<Duration>,
    /// Of one try.
    pub backend_timeout: Option<Duration>,
    pub turns: Turns,
}

#[derive(Clone, Debug)]
pub struct Matcher {
    pub path: Pattern,
    pub method: Option<Method>,
    pub headers: Vec<(HeaderName, Text)>,
    pub query: Vec<(String, Text)>,
}

#[derive(Clone, Debug)]
pub enum Pattern {
    Exact(String),
    /// Whole elements, without a slash at the end.
    Prefix(String),
    Regex(Regex),
}

#[derive(Clone, Debug)]
pub enum Text {
    Exact(String),
    Regex(Regex),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub port: Option<u16>,
    pub weight: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    Rewrite { hostname: Option<HeaderValue>, path: Option<PathChange> },
    RequestHeaders(Modifier),
    ResponseHeaders(Modifier),
    Redirect(Redirect),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathChange {
    Full(String),
    Prefix(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modifier {
    pub set: Vec<(HeaderName, HeaderValue)>,
    pub add: Vec<(HeaderName, HeaderValue)>,
    pub remove: Vec<HeaderName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    pub scheme: Option<String>,
    pub hostname: Option<String>,
    pub path: Option<PathChange>,
    pub port: Option<u16>,
    pub status: StatusCode,
}

impl Route {
    pub fn compile(
        namespace: &str,
        name: &str,
        created: &str,
        spec: &RouteSpec,
    ) -> Result<Self, Unsupported> {
        let rule = |(rule, spec): (usize, &RuleSpec)| {
            self::rule(namespace, spec).map_err(|what| Unsupported { rule, what })
        };
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            created: created.to_owned(),
            hostnames: spec.hostnames.iter().map(|name| Hostname::of(name)).collect(),
            rules: spec.rules.iter().enumerate().map(rule).collect::<Result<_, _>>()?,
        })
    }
}

impl Hostname {
    pub fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        match name.strip_prefix('*') {
            Some(rest) => Self::Wildcard(rest.to_owned()),
            None => Self::Exact(name),
        }
    }

    /// A star stands for one label or more.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(name) => name == host,
            Self::Wildcard(rest) => {
                host.strip_suffix(rest.as_str()).is_some_and(|star| !star.is_empty())
            }
        }
    }
}

fn rule(namespace: &str, spec: &RuleSpec) -> Result<Rule, String> {
    let all = [MatchSpec::default()];
    let matches = if spec.matches.is_empty() { &all[..] } else { &spec.matches };
    let rule = Rule {
        matches: matches.iter().map(matcher).collect::<Result<_, _>>()?,
        filters: spec.filters.iter().map(filter).collect::<Result<_, _>>()?,
        backends: backends(namespace, &spec.backend_refs)?,
        request_timeout: timeout(spec.timeouts.request.as_deref())?,
        backend_timeout: timeout(spec.timeouts.backend_request.as_deref())?,
        turns: Turns::new(random::system_seed()),
    };
    let needs_prefix = rule.filters.iter().any(changes_prefix);
    let has_prefix = |matcher: &Matcher| matches!(matcher.path, Pattern::Prefix(_));
    if needs_prefix && !rule.matches.iter().all(has_prefix) {
        return Err("ReplacePrefixMatch needs matches of type PathPrefix".to_owned());
    }
    Ok(rule)
}

fn changes_prefix(filter: &Filter) -> bool {
    let path = match filter {
        Filter::Rewrite { path, .. } => path,
        Filter::Redirect(redirect) => &redirect.path,
        Filter::RequestHeaders(_) | Filter::ResponseHeaders(_) => &None,
    };
    matches!(path, Some(PathChange::Prefix(_)))
}

fn matcher(spec: &MatchSpec) -> Result<Matcher, String> {
    let path = spec.path.clone().unwrap_or_default();
    let value = path.value.unwrap_or_else(|| "/".to_owned());
    let path = match path.type_.as_deref().unwrap_or("PathPrefix") {
        "Exact" => Pattern::Exact(value),
        "PathPrefix" => Pattern::Prefix(value.trim_end_matches('/').to_owned()),
        "RegularExpression" => Pattern::Regex(whole(&value)?),
        other => return Err(format!("paths of type {other} are not supported")),
    };
    let method = spec.method.as_deref().map(|method| {
        Method::from_bytes(method.as_bytes()).map_err(|_| format!("{method:?} is no method"))
    });
    let header = |spec: &ValueSpec| Ok::<_, String>((header_name(&spec.name)?, text(spec)?));
    let query = |spec: &ValueSpec| Ok::<_, String>((spec.name.clone(), text(spec)?));
    let mut headers: Vec<(HeaderName, Text)> = Vec::new();
    for (name, text) in spec.headers.iter().map(header).collect::<Result<Vec<_>, _>>()? {
        // Of several for one header only the first counts.
        if headers.iter().all(|(known, _)| *known != name) {
            headers.push((name, text));
        }
    }
    Ok(Matcher {
        path,
        method: method.transpose()?,
        headers,
        query: spec.query_params.iter().map(query).collect::<Result<_, _>>()?,
    })
}

fn text(spec: &ValueSpec) -> Result<Text, String> {
    match spec.type_.as_deref().unwrap_or("Exact") {
        "Exact" => Ok(Text::Exact(spec.value.clone())),
        "RegularExpression" => Ok(Text::Regex(whole(&spec.value)?)),
        other => Err(format!("values of type {other} are not supported")),
    }
}

impl Text {
    pub fn matches(&self, value: &str) -> bool {
        match self {
            Self::Exact(text) => text == value,
            Self::Regex(regex) => regex.is_match(value),
        }
    }
}

/// Matches the whole value, as gateways do.
fn whole(pattern: &str) -> Result<Regex, String> {
    Regex::new(&format!("^(?:{pattern})$"))
        .map_err(|_| format!("{pattern:?} is no regular expression of a bearable size"))
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name:?} is no name of a header"))
}

fn filter(spec: &FilterSpec) -> Result<Filter, String> {
    let without = || format!("the filter {} has no settings", spec.type_);
    match spec.type_.as_str() {
        "URLRewrite" => {
            let rewrite = spec.url_rewrite.as_ref().ok_or_else(without)?;
            let hostname = rewrite.hostname.as_deref().map(|host| {
                HeaderValue::from_str(host).map_err(|_| format!("{host:?} is no hostname"))
            });
            Ok(Filter::Rewrite {
                hostname: hostname.transpose()?,
                path: rewrite.path.as_ref().map(path_change).transpose()?,
            })
        }
        "RequestHeaderModifier" => {
            let modifier = spec.request_header_modifier.as_ref().ok_or_else(without)?;
            Ok(Filter::RequestHeaders(self::modifier(modifier)?))
        }
        "ResponseHeaderModifier" => {
            let modifier = spec.response_header_modifier.as_ref().ok_or_else(without)?;
            Ok(Filter::ResponseHeaders(self::modifier(modifier)?))
        }
        "RequestRedirect" => {
            Ok(Filter::Redirect(redirect(spec.request_redirect.as_ref().ok_or_else(without)?)?))
        }
        other => Err(format!("filters of type {other} are not supported")),
    }
}

fn redirect(spec: &RedirectSpec) -> Result<Redirect, String> {
    let code = spec.status_code.unwrap_or(302);
    let status = StatusCode::from_u16(code).ok().filter(StatusCode::is_redirection);
    Ok(Redirect {
        scheme: spec.scheme.clone(),
        hostname: spec.hostname.clone(),
        path: spec.path.as_ref().map(path_change).transpose()?,
        port: spec.port,
        status: status.ok_or_else(|| format!("{code} is no status of a redirect"))?,
    })
}

fn path_change(spec: &PathChangeSpec) -> Result<PathChange, String> {
    match (spec.type_.as_str(), &spec.replace_full_path, &spec.replace_prefix_match) {
        ("ReplaceFullPath", Some(path), _) => Ok(PathChange::Full(path.clone())),
        ("ReplacePrefixMatch", _, Some(path)) => Ok(PathChange::Prefix(path.clone())),
        (other, ..) => Err(format!("a change of paths of type {other:?} is not supported")),
    }
}

fn modifier(spec: &ModifierSpec) -> Result<Modifier, String> {
    let header = |spec: &HeaderSpec| {
        let value = HeaderValue::from_str(&spec.value);
        let value = value.map_err(|_| format!("{:?} is no value of a header", spec.value))?;
        Ok::<_, String>((header_name(&spec.name)?, value))
    };
    Ok(Modifier {
        set: spec.set.iter().map(header).collect::<Result<_, _>>()?,
        add: spec.add.iter().map(header).collect::<Result<_, _>>()?,
        remove: spec.remove.iter().map(|name| header_name(name)).collect::<Result<_, _>>()?,
    })
}

fn backends(namespace: &str, specs: &[BackendSpec]) -> Result<Vec<Backend>, String> {
    if specs.iter().any(|spec| !spec.filters.is_empty()) {
        return Err("filters of a backend are not supported".to_owned());
    }
    Ok(specs.iter().map(|spec| backend(namespace, spec)).collect())
}

fn backend(namespace: &str, spec: &BackendSpec) -> Backend {
    Backend {
        group: spec.group.clone().unwrap_or_default(),
        kind: spec.kind.clone().unwrap_or_else(|| "Service".to_owned()),
        namespace: spec.namespace.clone().unwrap_or_else(|| namespace.to_owned()),
        name: spec.name.clone(),
        port: spec.port,
        weight: spec.weight.unwrap_or(1),
    }
}

/// All that the rules refer to, whether they make sense or not.
pub(super) fn referenced(namespace: &str, spec: &RouteSpec) -> Vec<Backend> {
    let refs = spec.rules.iter().flat_map(|rule| &rule.backend_refs);
    refs.map(|spec| backend(namespace, spec)).collect()
}

/// No time at all means for ever.
fn timeout(text: Option<&str>) -> Result<Option<Duration>, String> {
    let Some(text) = text else { return Ok(None) };
    let read = duration(text).ok_or_else(|| format!("{text:?} is no duration"))?;
    Ok(Some(read).filter(|time| !time.is_zero()))
}

/// As the Gateway API writes it: whole numbers of hours, minutes, seconds and milliseconds, such as `1h30m`.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u32 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, after) = rest.split_at_checked(end)?;
        let unit = match unit {
            "h" => Duration::from_secs(3600),
            "m" => Duration::from_secs(60),
            "s" => Duration::from_secs(1),
            "ms" => Duration::from_millis(1),
            _ => return None,
        };
        total = total.checked_add(unit.checked_mul(number)?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests;
