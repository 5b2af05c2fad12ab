//! Paths under which services are reached: templates with placeholders, rendered for one service.
//!
//! Placeholders hold JSONPath as kubectl knows it. No crate does that: those there are, even the
//! one that kube brings, follow RFC 9535, where a missing key or a bound past the end is no error
//! and literals do not exist; nor do they know unset fields or a limit of work. The language is
//! small, so it is written here.
//!
//! Templates come from users: what one may cost is bounded, whatever it says.

mod evaluate;
mod fields;
mod jsonpath;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

use evaluate::Work;

const MAX_PATH: usize = 200;
const MAX_SEGMENT: usize = 63;

/// No path gets short enough from here; annotations could make it grow without end.
const MAX_RENDERED: usize = 4096;

/// What an error shows of the user's text.
const MAX_SHOWN: usize = 1024;

/// Starts with a slash, has at most 200 bytes, and segments of `a-z`, `0-9`, `.` and `-` only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoutePath(String);

impl RoutePath {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RoutePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<RoutePath> for String {
    fn from(path: RoutePath) -> Self {
        path.0
    }
}

/// These texts stand in conditions as they are, so causes are part of them and not chained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to evaluate route template {expression:?}: {cause}")]
    Expression { expression: String, cause: evaluate::Error },
    #[error("route template produced an empty path")]
    Empty,
    #[error("route path {path:?} exceeds {MAX_PATH} characters")]
    TooLong { path: String },
}

/// Renders a template for a service, which is given as the API server stores it.
pub(crate) fn render(template: &str, service: &Value) -> Result<RoutePath, Error> {
    let mut work = Work::default();
    let mut text = String::new();
    let mut rest = template;
    while let Some((literal, expression, after)) = next_placeholder(rest) {
        text.push_str(literal);
        let expression = expression.trim();
        let value = value(expression, service, &mut work)
            .map_err(|cause| Error::Expression { expression: shown(expression), cause })?;
        text.push_str(&value);
        rest = after;
        if text.len() > MAX_RENDERED {
            return Err(Error::TooLong { path: shown(&text) });
        }
    }
    text.push_str(rest);
    normalise(&text)
}

/// Where a service is reached when nobody says otherwise.
pub(crate) fn default_path(namespace: &str, uid: &str) -> RoutePath {
    normalise(&format!("/{namespace}/{uid}")).unwrap_or_else(|_| RoutePath("/".to_owned()))
}

/// Text before the first placeholder, its inside, and text after it. Braces without anything
/// between them, and those without a partner, are text.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let mut open = None;
    for (at, byte) in text.bytes().enumerate() {
        match (byte, open) {
            (b'{', _) => open = Some(at),
            (b'}', Some(start)) if start + 1 < at => {
                return Some((&text[..start], &text[start + 1..at], &text[at + 1..]));
            }
            (b'}', _) => open = None,
            _ => {}
        }
    }
    None
}

fn value(expression: &str, service: &Value, work: &mut Work) -> Result<String, evaluate::Error> {
    if let Some(key) = bracketed_key(expression, ".metadata.labels") {
        return Ok(segment(text_of(service, "labels", key).ok_or_else(|| missing("label", key))?));
    }
    // Alone of all values this one may hold slashes that count.
    if let Some(key) = bracketed_key(expression, ".metadata.annotations") {
        let text = text_of(service, "annotations", key);
        return Ok(text.ok_or_else(|| missing("annotation", key))?.trim().to_owned());
    }
    Ok(segment(&evaluate::single(expression, service, work)?))
}

/// The key of an expression that is nothing but this map with a quoted key in brackets.
fn bracketed_key<'e>(expression: &'e str, map: &str) -> Option<&'e str> {
    let quoted = expression.strip_prefix(map)?.strip_prefix('[')?.strip_suffix(']')?;
    let inside = |quote: char| quoted.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"')).filter(|key| !key.contains(['\'', '"']))
}

fn text_of<'s>(service: &'s Value, map: &str, key: &str) -> Option<&'s str> {
    service.get("metadata")?.get(map)?.get(key)?.as_str()
}

fn missing(what: &str, key: &str) -> evaluate::Error {
    evaluate::Error::Evaluation(format!("{what} {:?} not found", shown(key)))
}

fn normalise(text: &str) -> Result<RoutePath, Error> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::Empty);
    }
    let mut path = if text.starts_with('/') { text.to_owned() } else { format!("/{text}") };
    path.truncate(path.trim_end_matches('/').len().max(1));
    if path.len() > MAX_PATH {
        return Err(Error::TooLong { path: shown(&path) });
    }
    // No segment gets longer by this, so the limit holds for the result as well.
    let segments = path.split('/').map(segment).filter(|segment| !segment.is_empty());
    Ok(RoutePath(format!("/{}", segments.collect::<Vec<_>>().join("/"))))
}

/// Lower case; whatever is no letter or digit becomes a dash, save a dot that stands alone.
fn segment(text: &str) -> String {
    let mut segment = String::new();
    let mut mark = None;
    // Go maps each character to one; all but the first of ours would be marks.
    for c in text.trim().chars().filter_map(|c| c.to_lowercase().next()) {
        if matches!(c, 'a'..='z' | '0'..='9') {
            if let Some(mark) = mark.take().filter(|_| !segment.is_empty()) {
                segment.push(mark);
            }
            segment.push(c);
        } else {
            mark = Some(if c == '.' && mark.is_none() { '.' } else { '-' });
        }
    }
    segment.truncate(MAX_SEGMENT);
    segment.truncate(segment.trim_end_matches('-').len());
    segment
}

fn shown(text: &str) -> String {
    if text.len() <= MAX_SHOWN {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_SHOWN)])
}
