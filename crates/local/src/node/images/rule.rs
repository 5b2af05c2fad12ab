//! One rule, and how it is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::Deserialize;

use super::{glob, reference::Reference};

/// What stands for images of a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A pattern over the normal form of the name, tag and digest included.
    #[serde(rename = "match")]
    pub pattern: String,
    /// The rule is for containers whose command starts with these words, which are dropped.
    #[serde(default)]
    pub command: Vec<String>,
    /// What is run. The rest of the container's command and its arguments follow.
    pub argv: Vec<String>,
    /// The arguments of containers that give none.
    #[serde(default)]
    pub cmd: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables that are taken from the user's own environment. Nothing else is.
    #[serde(default)]
    pub inherit: BTreeSet<String>,
    #[serde(default)]
    pub path: PathMode,
}

/// How the paths of mounts come to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathMode {
    /// They are rewritten in what the process is told.
    #[default]
    Translate,
    /// They are bound inside a sandbox.
    Bwrap,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("line {line}: {why}")]
    Toml { line: usize, why: String },
    #[error("rule {number}: {why}")]
    Rule { number: usize, why: String },
    #[error("rule {0:?}: write it as <image pattern>=<program> [argument]...")]
    Flag(String),
}

/// A placeholder that has no value for this container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the image rule {rule:?} asks for port {port:?}, which the container does not name")]
pub struct Unfilled {
    pub rule: String,
    pub port: String,
}

/// What the words in braces stand for.
#[derive(Clone, Copy, Debug)]
pub struct Placeholders<'a> {
    /// `{windlass}`: the running program.
    pub windlass: &'a Path,
    /// `{podIP}`
    pub pod_ip: &'a str,
    /// `{state}`: the directory of the user's files.
    pub state: &'a Path,
    /// `{name}`: of the image, see [`Reference::name`].
    pub name: &'a str,
    /// `{port:<name>}`
    pub ports: &'a BTreeMap<String, u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    image: Vec<Rule>,
}

impl Rule {
    /// All rules of a file, in their order.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, Unreadable> {
        let document: Document = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            Unreadable::Toml {
                line: before.matches('\n').count() + 1,
                why: error.message().to_owned(),
            }
        })?;
        for (at, rule) in document.image.iter().enumerate() {
            rule.check().map_err(|why| Unreadable::Rule { number: at + 1, why })?;
        }
        Ok(document.image)
    }

    /// A rule of the command line: `<image pattern>=<program> [argument]...`, parted by blanks.
    pub fn parse_flag(text: &str) -> Result<Self, Unreadable> {
        let (pattern, argv) =
            text.split_once('=').ok_or_else(|| Unreadable::Flag(text.to_owned()))?;
        let rule = Self {
            pattern: pattern.trim().to_owned(),
            command: Vec::new(),
            argv: argv.split_whitespace().map(str::to_owned).collect(),
            cmd: Vec::new(),
            env: BTreeMap::new(),
            inherit: BTreeSet::new(),
            path: PathMode::default(),
        };
        match rule.check() {
            Ok(()) => Ok(rule),
            Err(_) => Err(Unreadable::Flag(text.to_owned())),
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.pattern.is_empty() {
            return Err("match must not be empty".into());
        }
        if self.argv.first().is_none_or(String::is_empty) {
            return Err(format!("argv of {:?} must name a program", self.pattern));
        }
        let words = self.argv.iter().chain(&self.cmd).chain(self.env.values());
        for text in words.clone().chain(self.env.keys()).chain(&self.inherit) {
            if text.contains('\0') {
                return Err(format!("{text:?} of {:?} holds a zero byte", self.pattern));
            }
        }
        if let Some(name) =
            self.env.keys().chain(&self.inherit).find(|name| name.is_empty() || name.contains('='))
        {
            return Err(format!("{name:?} of {:?} cannot name a variable", self.pattern));
        }
        for text in words {
            for part in parts(text) {
                if let Part::Unknown(word) = part {
                    return Err(format!(
                        "{word} of {:?} is unknown: there are {{windlass}}, {{podIP}}, {{state}}, \
                         {{name}} and {{port:<name>}}",
                        self.pattern
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether it is about this image, whatever is to be run.
    pub(super) fn names(&self, reference: &Reference) -> bool {
        reference.forms().iter().any(|form| glob::matches(&self.pattern, form))
    }

    pub(super) fn fits(&self, reference: &Reference, command: &[String]) -> bool {
        command.starts_with(&self.command) && self.names(reference)
    }

    /// `text` of this rule with its placeholders filled.
    pub fn fill(&self, text: &str, given: Placeholders<'_>) -> Result<String, Unfilled> {
        let mut filled = String::new();
        for part in parts(text) {
            match part {
                Part::Text(text) | Part::Unknown(text) => filled.push_str(text),
                Part::Windlass => filled.push_str(&given.windlass.to_string_lossy()),
                Part::State => filled.push_str(&given.state.to_string_lossy()),
                Part::PodIp => filled.push_str(given.pod_ip),
                Part::Name => filled.push_str(given.name),
                Part::Port(name) => match given.ports.get(name) {
                    Some(port) => filled.push_str(&port.to_string()),
                    None => {
                        let (rule, port) = (self.pattern.clone(), name.to_owned());
                        return Err(Unfilled { rule, port });
                    }
                },
            }
        }
        Ok(filled)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Windlass,
    PodIp,
    State,
    Name,
    Port(&'a str),
    /// Looks like a placeholder and is none.
    Unknown(&'a str),
}

/// Cuts at placeholders. Braces around anything but a word are text, such as JSON.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, opened) = rest.split_at(start);
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        let end = opened.find('}').map(|end| &opened[1..end]);
        let Some((word, part)) = end.and_then(|word| Some((word, placeholder(opened, word)?)))
        else {
            parts.push(Part::Text(&opened[..1]));
            rest = &opened[1..];
            continue;
        };
        parts.push(part);
        rest = &opened[word.len() + 2..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
}

fn placeholder<'a>(opened: &'a str, word: &'a str) -> Option<Part<'a>> {
    let letters = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic());
    Some(match word {
        "windlass" => Part::Windlass,
        "podIP" => Part::PodIp,
        "state" => Part::State,
        "name" => Part::Name,
        word => match word.split_once(':') {
            Some(("port", name)) if !name.is_empty() && !name.contains(['{', '"', ' ']) => {
                Part::Port(name)
            }
            Some((first, _)) if letters(first) && !word.contains(['{', '"', ' ']) => {
                Part::Unknown(&opened[..word.len() + 2])
            }
            None if letters(word) => Part::Unknown(&opened[..word.len() + 2]),
            _ => return None,
        },
    })
}
