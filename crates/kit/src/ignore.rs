//! `.kitignore`: which files are not packed, by the rules of `.dockerignore`.

use regex::Regex;

pub const FILE: &str = ".kitignore";

#[derive(Debug, Default)]
pub struct Ignore {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    pattern: Regex,
    /// Whether it takes something in again.
    keeps: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot use line {line} of .kitignore: {text:?} is no pattern")]
pub struct Invalid {
    pub line: usize,
    pub text: String,
}

impl Ignore {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
        let rules = lines.filter_map(|(line, text)| rule(line + 1, text).transpose());
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    /// The last rule that means the path, or a directory above it, decides.
    pub fn has(&self, path: &str) -> bool {
        let means = |rule: &Rule| parents(path).any(|path| rule.pattern.is_match(path));
        let last = self.rules.iter().rev().find(|rule| means(rule));
        last.is_some_and(|rule| !rule.keeps)
    }

    /// Whether nothing below an ignored directory can come back.
    pub fn is_final(&self) -> bool {
        self.rules.iter().all(|rule| !rule.keeps)
    }
}

/// The path itself, then the directories above it.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(parent, _)| parent))
}

fn rule(line: usize, text: &str) -> Result<Option<Rule>, Invalid> {
    if text.starts_with('#') {
        return Ok(None);
    }
    let trimmed = text.trim();
    let (keeps, pattern) = match trimmed.strip_prefix('!') {
        Some(rest) => (true, rest.trim()),
        None => (false, trimmed),
    };
    let elements = pattern.split('/').filter(|element| !matches!(*element, "" | "."));
    let pattern = elements.collect::<Vec<_>>().join("/");
    if pattern.is_empty() {
        return Ok(None);
    }
    let invalid = || Invalid { line, text: text.to_owned() };
    let pattern = expression(&pattern).and_then(|text| Regex::new(&text).ok());
    Ok(Some(Rule { pattern: pattern.ok_or_else(invalid)?, keeps }))
}

/// `*` and `?` stay within an element, `**` does not.
fn expression(pattern: &str) -> Option<String> {
    let mut text = String::from("^");
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => match rest.next_if_eq(&'/') {
                Some(_) => text.push_str("(?:.*/)?"),
                None => text.push_str(".*"),
            },
            '*' => text.push_str("[^/]*"),
            '?' => text.push_str("[^/]"),
            '[' => class(&mut rest, &mut text)?,
            '\\' => text.push_str(&regex::escape(&rest.next()?.to_string())),
            other => text.push_str(&regex::escape(&other.to_string())),
        }
    }
    text.push('$');
    Some(text)
}

/// A set of characters in brackets.
fn class(rest: &mut impl Iterator<Item = char>, text: &mut String) -> Option<()> {
    text.push('[');
    let mut is_first = true;
    loop {
        match rest.next()? {
            ']' if !is_first => break,
            '^' if is_first => text.push('^'),
            '-' => text.push('-'),
            '\\' => text.push_str(&regex::escape(&rest.next()?.to_string())),
            other => text.push_str(&regex::escape(&other.to_string())),
        }
        is_first = false;
    }
    text.push(']');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rule_that_means_a_path_decides() {
        let text = "# a comment\n*.log\n!keep.log\n/cache/\n**/tmp\nb?r\ndoc[a-c].md\n  \n.\n";
        let ignore = Ignore::parse(text).unwrap();
        for (path, is_ignored) in [
            ("a.log", true),
            ("d/a.log", false),
            ("keep.log", false),
            ("cache", true),
            ("cache/x/y", true),
            ("a/cache", false),
            ("tmp", true),
            ("a/b/tmp/c", true),
            ("bar", true),
            ("b/r", false),
            ("docb.md", true),
            ("docd.md", false),
        ] {
            assert_eq!(ignore.has(path), is_ignored, "{path}");
        }
        assert!(!ignore.is_final());
    }

    #[test]
    fn a_pattern_that_makes_no_sense_is_named() {
        for text in ["ok\n[a", "ok\na\\", "ok\n[z-a]"] {
            assert_eq!(Ignore::parse(text).unwrap_err().line, 2, "{text:?}");
        }
    }
}
