//! Flags of `vllm serve`, as ModelServices pass them. What has no meaning here is ignored, aloud.

#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    num::NonZero,
    path::{Path, PathBuf},
};

use clap::{Args, Command};

use crate::{exit::BadInput, operator::logging};

#[derive(Debug, Args)]
#[group(id = "serve")]
pub(crate) struct Flags {
    /// A GGUF file of the Llama family, or a directory with one
    #[arg(value_name = "MODEL", conflicts_with = "model")]
    path: Option<PathBuf>,
    /// The same, as vLLM also has it
    #[arg(long, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Names that requests may use, the first of them in answers; MODEL if not given
    #[arg(long, value_name = "NAME", num_args = 1..)]
    served_model_name: Vec<String>,
    /// Address to listen on; all of this machine unless given, as with vLLM
    #[arg(long, default_value = "0.0.0.0")]
    pub(super) host: String,
    /// 0 for a free one
    #[arg(long, default_value_t = 8000)]
    pub(super) port: u16,
    /// The most tokens of a prompt and its answer, also as 4k (4000) or 4K (4096); what the model can if
    /// not given, or as auto
    #[arg(
        long, value_name = "TOKENS", value_parser = length, allow_negative_numbers = true,
        default_value = "auto", hide_default_value = true
    )]
    pub(super) max_model_len: Length,
    /// How many requests are computed at once; others wait
    #[arg(long, value_name = "REQUESTS", default_value = "8")]
    pub(super) max_num_seqs: NonZero<u16>,
    /// Whoever asks for /v1 must know one of these
    #[arg(long, value_name = "KEY", num_args = 1.., env = "VLLM_API_KEY", hide_env_values = true)]
    pub(super) api_key: Vec<String>,
    /// What [`mark_foreign`] has found.
    #[arg(long, hide = true)]
    pub(super) ignored: Vec<String>,
    #[command(flatten)]
    pub(super) logging: logging::Flags,
}

/// Of prompt and answer together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// What the model can.
    Auto,
    Tokens(usize),
}

impl Length {
    pub(super) fn tokens(self) -> Option<usize> {
        match self {
            Self::Auto => None,
            Self::Tokens(tokens) => Some(tokens),
        }
    }
}

/// Flags that somebody relies on, with what is missing here.
const RELIED_ON: [(&str, &str); 2] =
    [("--ssl-", "it speaks plain HTTP only"), ("--uds", "it listens on a port only")];

impl Flags {
    /// What is ignored must not leave the server open to more than was meant.
    pub(super) fn refuse_what_would_be_missed(&self) -> Result<(), BadInput> {
        for flag in &self.ignored {
            if let Some((_, why)) = RELIED_ON.iter().find(|(start, _)| flag.starts_with(start)) {
                return Err(BadInput(format!("{flag} is not supported: {why}")));
            }
        }
        if self.api_key.iter().any(String::is_empty) {
            return Err(BadInput("an API key (--api-key, VLLM_API_KEY) is empty".to_owned()));
        }
        Ok(())
    }

    /// Whoever can reach the machine can ask.
    pub(super) fn is_open_to_all(&self) -> bool {
        let local = self.host == "localhost"
            || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        self.api_key.is_empty() && !local
    }

    pub(super) fn given(&self) -> anyhow::Result<&Path> {
        let given = self.path.as_deref().or(self.model.as_deref());
        given.ok_or_else(|| BadInput("which model? a GGUF file, or a directory".to_owned()).into())
    }

    pub(super) fn names(&self, given: &Path) -> Vec<String> {
        if self.served_model_name.is_empty() {
            vec![given.display().to_string()]
        } else {
            self.served_model_name.clone()
        }
    }
}

fn length(text: &str) -> Result<Length, String> {
    if matches!(text, "auto" | "-1") {
        return Ok(Length::Auto);
    }
    tokens(text)
        .filter(|tokens| *tokens > 1)
        .map(Length::Tokens)
        .ok_or_else(|| "must be a number of tokens over 1, or auto".to_owned())
}

/// As vLLM reads it: thousands may have a fraction, as 25.6k.
fn tokens(text: &str) -> Option<usize> {
    let end = text.char_indices().next_back()?;
    let (digits, times) = match end {
        (at, 'k') => (&text[..at], 1000),
        (at, 'K') => (&text[..at], 1024),
        (at, 'm') => (&text[..at], 1_000_000),
        (at, 'M') => (&text[..at], 1 << 20),
        _ => (text, 1),
    };
    let Some((whole, fraction)) = digits.split_once('.') else {
        return digits.parse::<usize>().ok()?.checked_mul(times);
    };
    let is_decimal = times % 1000 == 0 && (1..=6).contains(&fraction.len());
    let part = fraction.parse::<usize>().ok().filter(|_| is_decimal)?;
    let part = part.checked_mul(times)? / 10_usize.pow(u32::try_from(fraction.len()).ok()?);
    whole.parse::<usize>().ok()?.checked_mul(times)?.checked_add(part)
}

/// Puts `--ignored=NAME` in place of each flag that `command` does not know, with its value. Names
/// may be written with underscores, as vLLM takes them.
pub(crate) fn mark_foreign(command: &Command, arguments: Vec<OsString>) -> Vec<OsString> {
    let mut marked = Vec::with_capacity(arguments.len());
    let mut rest = arguments.into_iter().peekable();
    while let Some(argument) = rest.next() {
        let Some((name, value)) = argument.to_str().and_then(flag) else {
            marked.push(argument);
            continue;
        };
        if is_known(command, &name) {
            marked.push(match value {
                Some(value) => format!("{name}={value}").into(),
                None => name.into(),
            });
            continue;
        }
        let is_flag = |next: &OsString| next.to_str().and_then(flag).is_some();
        if value.is_none() && !is_switch(&name) {
            rest.next_if(|next| !is_flag(next));
            while is_list(&name) && rest.next_if(|next| !is_flag(next)).is_some() {}
        }
        marked.push(format!("--ignored={name}").into());
    }
    marked
}

/// Name and value. A number below zero is none.
fn flag(text: &str) -> Option<(String, Option<&str>)> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let bare = name.strip_prefix('-')?;
    let bare = bare.strip_prefix('-').unwrap_or(bare);
    bare.starts_with(|c: char| c.is_ascii_alphabetic()).then(|| (name.replace('_', "-"), value))
}

fn is_known(command: &Command, name: &str) -> bool {
    let own = |argument: &clap::Arg| match name.strip_prefix("--") {
        Some(long) => {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            argument.get_long() == Some(long) || aliases.contains(&long)
        }
        None => argument.get_short().is_some_and(|short| name == format!("-{short}")),
    };
    matches!(name, "--help" | "-h" | "--version" | "-V") || command.get_arguments().any(own)
}

/// Flags of vLLM that have several values after them.
fn is_list(name: &str) -> bool {
    matches!(
        name,
        "--lora-modules"
            | "--middleware"
            | "--cuda-graph-sizes"
            | "--cudagraph-capture-sizes"
            | "--ignore-patterns"
            | "--logits-processors"
    )
}

/// Flags of vLLM that have no value after them.
fn is_switch(name: &str) -> bool {
    ["--enable-", "--disable-", "--no-", "--async-"].iter().any(|start| name.starts_with(start))
        || matches!(name, "--enforce-eager" | "--trust-remote-code" | "--headless")
}
