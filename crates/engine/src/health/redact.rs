//! Takes secrets out of texts that containers and nodes have written, before others get to read them.
//!
//! Conditions and events may be read by more people than logs. What is no secret may fall victim;
//! the words around it stay.

#[cfg(test)]
mod tests;

const HIDDEN: &str = "***";

/// A name that ends like this, separators aside, has a secret for its value.
const NAMES: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "token",
    "secret",
    "apikey",
    "accesskey",
    "accesskeyid",
    "secretkey",
    "privatekey",
    "credential",
    "signature",
    "authorization",
];

/// Beginnings of tokens, and how much must follow for it to be one.
const PREFIXES: [(&str, usize); 9] = [
    ("hf_", 8),
    ("sk-", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghs_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("AKIA", 12),
    ("ASIA", 12),
];

/// Shorter than this, what follows a colon is rather a word of the sentence.
const SHORTEST_AFTER_COLON: usize = 6;

/// Shorter than this, what follows `Bearer` is rather a word of the sentence.
const SHORTEST_BEARER: usize = 8;

/// The text with its secrets replaced.
pub fn redact(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("://") {
            clean.push_str("://");
            rest = skip_user(after, &mut clean);
        } else if is_inner(first) {
            let (word, after) = split_where(rest, |c| !is_inner(c));
            rest = after;
            push_word(word, &mut rest, &mut clean);
        } else {
            clean.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    clean
}

fn is_inner(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Name and password in front of a host.
fn skip_user<'a>(after: &'a str, clean: &mut String) -> &'a str {
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>');
    let (authority, _) = split_where(after, is_end);
    match authority.rfind('@') {
        Some(at) => {
            clean.push_str(HIDDEN);
            &after[at..]
        }
        None => after,
    }
}

/// A word, and what follows it where that is a secret.
fn push_word(word: &str, rest: &mut &str, clean: &mut String) {
    if is_token(word) {
        clean.push_str(HIDDEN);
        return;
    }
    clean.push_str(word);
    let secret = if word.eq_ignore_ascii_case("bearer") {
        bearer(rest)
    } else if is_secret_name(word) {
        value(word, rest)
    } else {
        None
    };
    if let Some(secret) = secret {
        let text = *rest;
        clean.push_str(&text[..secret.start]);
        clean.push_str(HIDDEN);
        *rest = &text[secret.end..];
    }
}

/// By its shape alone.
fn is_token(word: &str) -> bool {
    let word = word.trim_end_matches('.');
    let known = PREFIXES.iter().any(|(prefix, least)| {
        word.strip_prefix(prefix).is_some_and(|rest| {
            let solid = prefix.starts_with('g') || prefix.starts_with("sk");
            let fits = |c: char| c.is_ascii_alphanumeric() || (solid && matches!(c, '_' | '-'));
            rest.len() >= *least && rest.chars().all(fits)
        })
    });
    // A signed web token: three parts, of which the first begins with `{"` in base 64.
    known || (word.starts_with("eyJ") && word.split('.').count() == 3 && word.len() > 40)
}

fn is_secret_name(word: &str) -> bool {
    let name: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    // `sig` is how one cloud signs its addresses.
    NAMES.iter().any(|known| name.ends_with(known)) || name == "sig"
}

fn bearer(rest: &str) -> Option<std::ops::Range<usize>> {
    let start = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let (token, _) = split_where(&rest[start..], |c| !is_inner(c) && !matches!(c, '+' | '/' | '='));
    (start > 0 && token.len() >= SHORTEST_BEARER).then_some(start..start + token.len())
}

/// Where the value of a name lies in the text behind it: `name=value`, `"name": "value"`,
/// `--name value`.
fn value(name: &str, rest: &str) -> Option<std::ops::Range<usize>> {
    let blanks = |at: usize| rest.len() - rest[at..].trim_start_matches([' ', '\t']).len();
    let after_name = usize::from(rest.starts_with(['"', '\'']));
    let separator_at = blanks(after_name);
    let separator = rest[separator_at..].chars().next().filter(|c| matches!(c, '=' | ':'));
    let is_argument = name.starts_with('-') && separator_at > after_name;
    let mut start = match separator {
        Some(_) => blanks(separator_at + 1),
        None if is_argument && !rest[separator_at..].starts_with('-') => separator_at,
        None => return None,
    };
    let quote = rest[start..].chars().next().filter(|c| matches!(c, '"' | '\''));
    start += usize::from(quote.is_some());
    let is_end = |c: char| match quote {
        Some(quote) => c == quote || c == '\n',
        None => c.is_whitespace() || "&;,)]}<>\"'\\".contains(c),
    };
    let (first, _) = split_where(&rest[start..], is_end);
    let mut end = start + first.len();
    // `Authorization: Basic …` has its secret one word further on.
    if ["bearer", "basic", "token"].iter().any(|scheme| first.eq_ignore_ascii_case(scheme)) {
        let next = blanks(end);
        end = next + split_where(&rest[next..], is_end).0.len();
    }
    let by_colon = separator == Some(':') && quote.is_none();
    // `volume "secret" : …` is a sentence; so is a short word after a colon.
    let is_sentence = by_colon && (separator_at > after_name || end - start < SHORTEST_AFTER_COLON);
    (end > start && !is_sentence).then_some(start..end)
}

fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}
