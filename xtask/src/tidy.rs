//! Rules about the source that the compiler does not check.
//!
//! Each rule is a function from the tracked files to findings. The test at the end of this file
//! runs them on the project itself, so `cargo test` and `cargo xtask check` agree.

mod arrows;
mod borders;
mod contracts;
mod text;

use std::{fmt, fs, io::ErrorKind, path::Path};

use anyhow::{Context, Result, bail};
use xshell::cmd;

use crate::workspace::{metadata, shell_in};

/// A file under version control.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Relative to the root of the checkout, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    /// Counted from one; zero for the file as a whole.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Fails, with all findings, if a rule is broken in the checkout at `root`.
pub fn check(root: &Path) -> Result<()> {
    let findings = findings(root)?;
    if findings.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    bail!("{} broken rules:\n{}", lines.len(), lines.join("\n"))
}

/// All broken rules in the checkout at `root`.
pub fn findings(root: &Path) -> Result<Vec<Finding>> {
    let files = tracked_files(root)?;
    let mut findings = arrows::check(&metadata(root)?);
    for rule in [
        borders::pure_steps,
        borders::domains_apart,
        borders::engine_knows_no_domain,
        text::short_files,
        text::finished,
        text::no_machine_paths,
        contracts::rows_name_tests,
    ] {
        findings.extend(rule(&files));
    }
    Ok(findings)
}

/// The tracked text files. One that is deleted and not yet committed is left out.
pub(crate) fn tracked_files(root: &Path) -> Result<Vec<File>> {
    let shell = shell_in(root)?;
    let listed = cmd!(shell, "git ls-files -z")
        .quiet()
        .read()
        .context("cannot list the tracked files; the rules need a git checkout")?;
    let mut files = Vec::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        match fs::read(root.join(path)) {
            // Binary files are nobody's style.
            Ok(bytes) => {
                if let Ok(text) = String::from_utf8(bytes) {
                    files.push(File { path: path.into(), text });
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
        }
    }
    Ok(files)
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Lines with their numbers, without comments. Text after `//` inside a string is lost too,
    /// which only makes the rules miss, never accuse.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines.map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
    }

    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

/// Whether `word` stands in `text` with no letter, digit or `_` beside it.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// The lines that name `item` of `parent`, as `parent::item` or in a `use parent::{…};`, which may
/// spread over lines.
fn lines_naming(file: &File, parent: &str, item: &str) -> Vec<usize> {
    let code: String = file.code().flat_map(|(_, line)| [line, "\n"]).collect();
    let path = format!("{parent}::");
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let named = code.match_indices(&path).filter(|(at, _)| {
        let rest = &code[at + path.len()..];
        let found = match rest.strip_prefix('{') {
            Some(group) => has_word(group.split(';').next().unwrap_or_default(), item),
            None => rest.strip_prefix(item).is_some_and(|after| !after.starts_with(part)),
        };
        found && !code[..*at].ends_with(part)
    });
    named.map(|(at, _)| code[..at].lines().count().max(1)).collect()
}

#[cfg(test)]
pub(crate) fn file(path: &str, text: &str) -> File {
    File { path: path.into(), text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_project_is_tidy() {
        let findings = findings(&crate::workspace::project_root()).unwrap();
        let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(lines.is_empty(), "{}", lines.join("\n"));
    }

    #[test]
    fn items_are_found_alone_and_in_groups() {
        for (text, want) in [
            ("use kube::Client;", &[1][..]),
            ("\nfn f(c: &kube::Client) {}", &[2]),
            ("use kube::{Api, Client};", &[1]),
            ("\nuse kube::{\n    Api,\n    Client,\n};", &[2]),
            ("use kube::{Api, ResourceExt};\nstruct Client;", &[]),
            ("use kube::ClientError;", &[]),
            ("use my_kube::Client;", &[]),
        ] {
            assert_eq!(lines_naming(&file("a.rs", text), "kube", "Client"), want, "{text}");
        }
    }
}
