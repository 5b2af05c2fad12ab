//! What is to be imported, judged by how it is named.

use std::path::PathBuf;

use clap::ValueEnum;
use windlass_kit::{classify, hub::Repository, web::Address};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Tool {
    Hf,
    Git,
    Http,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    Folder(PathBuf),
    Hub(Hub),
    File(Address),
    Git(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hub {
    pub(super) repository: Repository,
    /// Revision and path, where only one is meant.
    pub(super) file: Option<(String, String)>,
}

impl Source {
    pub(super) fn of(text: &str, tool: Option<Tool>, endpoint: &str) -> anyhow::Result<Self> {
        match tool {
            None if text.starts_with(['.', '/']) => Ok(Self::Folder(text.into())),
            None => Self::guess(text, endpoint),
            Some(Tool::Hf) => hub(text, endpoint),
            Some(Tool::Http) => Ok(Self::File(Address::parse(text)?)),
            // The hub has all its repositories for git too.
            Some(Tool::Git) if !text.starts_with(['.', '/']) => {
                match Repository::parse(text, endpoint) {
                    Ok(known) if !text.contains("://") => {
                        let endpoint = endpoint.trim_end_matches('/');
                        Ok(Self::Git(format!("{endpoint}/{}", known.name())))
                    }
                    _ => Ok(Self::Git(text.to_owned())),
                }
            }
            Some(Tool::Git) => Ok(Self::Git(text.to_owned())),
        }
    }

    fn guess(text: &str, endpoint: &str) -> anyhow::Result<Self> {
        let known = hub(text, endpoint);
        if known.is_ok() {
            return known;
        }
        let is_git = text.contains("://") || is_of_ssh(text);
        match Address::parse(text) {
            Ok(address) if classify::is_file_name(address.name()) => Ok(Self::File(address)),
            _ if is_git => Ok(Self::Git(text.to_owned())),
            _ => known,
        }
    }
}

fn hub(text: &str, endpoint: &str) -> anyhow::Result<Source> {
    if let Some((repository, revision, path)) = Repository::parse_file(text, endpoint) {
        return Ok(Source::Hub(Hub { repository, file: Some((revision, path)) }));
    }
    Ok(Source::Hub(Hub { repository: Repository::parse(text, endpoint)?, file: None }))
}

/// `git@host:path`, as ssh has it.
fn is_of_ssh(text: &str) -> bool {
    let host = text.split_once(':').map_or("", |(host, _)| host);
    host.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
        && !host.contains('/')
        && !text.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_from_where_it_comes() {
        const HUB: &str = "https://hub.example.com";
        let hub_file = format!("{HUB}/org/tiny/resolve/v1/m.gguf");
        for (text, tool, want) in [
            ("./model", None, "folder ./model"),
            ("/model", None, "folder /model"),
            ("org/tiny", None, "hub org/tiny"),
            ("https://huggingface.co/org/tiny", None, "hub org/tiny"),
            (&hub_file, None, "hub org/tiny v1 m.gguf"),
            ("https://h.example.com/a/m.gguf", None, "file https://h.example.com/a/m.gguf"),
            (
                "https://h.example.com/a/data.tar.gz?x=y",
                None,
                "file https://h.example.com/a/data.tar.gz",
            ),
            (
                "https://h.example.com/org/llama.cpp",
                None,
                "git https://h.example.com/org/llama.cpp",
            ),
            ("https://h.example.com/org/tiny.git", None, "git https://h.example.com/org/tiny.git"),
            ("git@h.example.com:org/tiny", None, "git git@h.example.com:org/tiny"),
            ("ssh://h.example.com/org/tiny", None, "git ssh://h.example.com/org/tiny"),
            ("org/tiny", Some(Tool::Git), "git https://hub.example.com/org/tiny"),
            ("/srv/tiny", Some(Tool::Git), "git /srv/tiny"),
            ("https://h.example.com/x", Some(Tool::Http), "file https://h.example.com/x"),
            ("tiny", None, "error"),
            ("https://h.example.com/", Some(Tool::Http), "error"),
            ("https://h.example.com/org/tiny", Some(Tool::Hf), "error"),
        ] {
            let told = match Source::of(text, tool, HUB) {
                Ok(Source::Folder(place)) => format!("folder {}", place.display()),
                Ok(Source::Hub(Hub { repository, file: None })) => {
                    format!("hub {}", repository.name())
                }
                Ok(Source::Hub(Hub { repository, file: Some((revision, path)) })) => {
                    format!("hub {} {revision} {path}", repository.name())
                }
                Ok(Source::File(address)) => format!("file {address}"),
                Ok(Source::Git(address)) => format!("git {address}"),
                Err(_) => "error".to_owned(),
            };
            assert_eq!(told, want, "{text}");
        }
    }
}
